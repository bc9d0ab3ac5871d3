//! The append-only file as the rest of the process sees it: what may be asked of the thread that
//! writes it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use node::config::Config;
use node::host::RewriteBegin;
use parking_lot::Mutex;
use persist::aof::{Aof, Names, TriedSync, WholeBase};

use super::directory::Directory;
use super::log_lock::LogLock;
use super::log_memory::{self, Places};
use super::log_ring::LogRing;
use super::real_disk::RealDisk;
use crate::threads::control::SNAPSHOT_PASS;
use crate::threads::shared::Shared;

/// What is asked of the thread that writes the log.
pub enum Request {
    /// An append-only file is about to begin: give up the rewrite that BGREWRITEAOF has asked for
    /// while there is none, and hand over the lock.
    Prepare(Sender<Result<LogLock, String>>),
    /// Begin an append-only file, with a base of what is in memory.
    Start(Arc<LogRing>, Sender<Result<(), String>>),
    /// End it.
    Stop(Sender<Result<(), String>>),
    /// Write a new base.
    Rewrite,
    /// Give up a rewrite that is in progress, or wait for its end if there is no base without it,
    /// unless the end of the process is forced. None begins until `GoOn` comes.
    EndRewrite(IsForced, Sender<()>),
    /// The end of the process is called off.
    GoOn,
    /// A sync was tried.
    Synced(TriedSync),
    /// A base was tried.
    Based(Result<WholeBase, String>),
    /// Write all that is in the log.
    Flush(Sender<Result<(), String>>),
    /// The configuration has changed.
    Configured,
    /// The process ends: write and sync all, and end.
    End(IsForced, Sender<()>),
}

/// Whether the process is to end in any case: SHUTDOWN FORCE.
pub type IsForced = bool;

/// How to reach the thread that writes the log.
#[derive(Default)]
pub struct AppendOnly {
    thread: Mutex<Option<Caller>>,
    /// While there is an append-only file.
    lock: Mutex<Option<LogLock>>,
}

/// The way of requests to a thread that may sleep.
#[derive(Clone)]
pub struct Caller {
    requests: Sender<Request>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Caller {
    /// A way to whoever has the receiver, and is woken by `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> (Self, Receiver<Request>) {
        let (requests, receiver) = channel();
        (Self { requests, wake: Arc::new(wake) }, receiver)
    }

    /// Asks for something.
    pub fn call(&self, request: Request) {
        // Nobody receives it at the end of the process, when nobody waits either.
        let _ = self.requests.send(request);
        (self.wake)();
    }

    fn call_and_wait<R>(&self, request: impl FnOnce(Sender<R>) -> Request) -> Option<R> {
        let (sender, answer) = channel();
        self.call(request(sender));
        answer.recv().ok()
    }
}

/// What clients and the log are told when the append-only file cannot be begun, as in Redis.
const START_FAILED: &str = "Unable to turn on AOF. Check server logs.";

impl AppendOnly {
    /// The thread can be reached from now on.
    pub fn begin(&self, caller: Caller) {
        *self.thread.lock() = Some(caller);
    }

    /// Makes sure that no other process writes the append-only file: at start, before it is read.
    ///
    /// # Errors
    /// When one does.
    pub fn lock(&self, disk: &RealDisk, config: &Config) -> Result<(), String> {
        *self.lock.lock() = Some(LogLock::wait(disk, config)?);
        Ok(())
    }

    fn caller(&self) -> Option<Caller> {
        self.thread.lock().clone()
    }

    /// Begins the append-only file. On the main thread.
    ///
    /// # Errors
    /// When it cannot begin; the log says why.
    pub fn start(&self, shared: &Shared) -> Result<(), String> {
        self.try_start(shared).map_err(|reason| {
            crate::warning!("Can't begin the append-only file: {reason}");
            START_FAILED.to_owned()
        })
    }

    fn try_start(&self, shared: &Shared) -> Result<(), String> {
        let config = shared.node.config();
        // Without a thread the append-only file is being loaded, and goes on when it is.
        let Some(caller) = self.caller() else { return Ok(()) };
        let mut lock = self.lock.lock();
        let taken = caller.call_and_wait(Request::Prepare).ok_or("the server ends")??;
        let disk = disk();
        let places = Places::of(&disk, &config);
        // Until the first base is whole, the files and what a killed process has left beyond them
        // are all that a start finds.
        let aof = Aof::open(disk, names(&config)).map_err(|error| error.to_string())?;
        places.keep_left(aof.manifest().log)?;
        let (id, begin) = (log_memory::new_id(), random_position());
        let ring = log_memory::create_ring(places, id, begin);
        let ring = ring.map_err(|error| error.to_string())?;
        let started = caller.call_and_wait(|done| Request::Start(Arc::clone(&ring), done));
        if let Some(Err(reason)) = started {
            ring.places().remove_own();
            return Err(reason);
        }
        shared.set_log(Some(ring));
        *lock = Some(taken);
        Ok(())
    }

    /// Ends the append-only file. On the main thread.
    pub fn stop(&self, shared: &Shared) {
        // One that is being loaded ends when it is.
        let Some(caller) = self.caller() else { return };
        shared.set_log(None);
        let stopped = caller.call_and_wait(Request::Stop);
        if let Some(Err(reason)) = stopped {
            crate::warning!("Ending the append-only file: {reason}");
        }
        *self.lock.lock() = None;
    }

    /// Writes all that was logged.
    ///
    /// # Errors
    /// What the disk said.
    pub fn flush(&self) -> Result<(), String> {
        let flushed = self.caller().and_then(|caller| caller.call_and_wait(Request::Flush));
        flushed.unwrap_or(Ok(()))
    }

    /// Begins a rewrite, or says why it does not.
    pub fn rewrite(&self, shared: &Shared, later: bool) -> RewriteBegin {
        let Some(caller) = self.caller() else { return RewriteBegin::Failed };
        let began_ms = sys::clock::steady_micros() / 1000;
        let begin = {
            let mut figures = shared.node.append_only.lock();
            if figures.rewrite_began_ms.is_some() {
                return RewriteBegin::InProgress;
            }
            figures.is_rewrite_scheduled = true;
            figures.asked += 1;
            if later || is_snapshot_running(shared) {
                RewriteBegin::Scheduled
            } else {
                figures.rewrite_began_ms = Some(began_ms);
                figures.is_rewrite_scheduled = false;
                RewriteBegin::Started
            }
        };
        caller.call(Request::Rewrite);
        begin
    }

    /// Ends a rewrite that is in progress, so that the keyspace can be saved at the end. None that
    /// is due begins until the process is to [go on](Self::go_on).
    pub fn end_rewrite(&self, is_forced: IsForced) {
        if let Some(caller) = self.caller() {
            caller.call_and_wait(|done| Request::EndRewrite(is_forced, done));
        }
    }

    /// The process does not end after all.
    pub fn go_on(&self) {
        if let Some(caller) = self.caller() {
            caller.call(Request::GoOn);
        }
    }

    /// The threads that execute commands have ended: writes and syncs what they have logged.
    pub fn end(&self, is_forced: IsForced) {
        if let Some(caller) = self.caller() {
            caller.call_and_wait(|done| Request::End(is_forced, done));
        }
    }

    /// The configuration has changed.
    pub fn configured(&self) {
        if let Some(caller) = self.caller() {
            caller.call(Request::Configured);
        }
    }
}

/// Whether a snapshot is being taken, so that none can begin.
fn is_snapshot_running(shared: &Shared) -> bool {
    shared.gate.register_as(SNAPSHOT_PASS).is_none()
}

/// Where the log of a new append-only file begins: at another position than any other, so that
/// positions of two files are not mistaken for one another.
pub fn random_position() -> u64 {
    base::random::entropy_seed() >> 24
}

/// Where a configuration has the append-only file.
pub fn names(config: &Config) -> Names {
    let config = &config.append_only;
    Names {
        directory: Path::new(&config.appenddirname).to_owned(),
        file: config.appendfilename.clone().into_bytes(),
    }
}

/// The disk as seen from the working directory of this moment, also when that changes. All that is
/// done there fails if it cannot be opened.
pub fn disk() -> RealDisk {
    RealDisk::of(Directory::current())
}

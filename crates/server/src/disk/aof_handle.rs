//! The append-only file for the rest of the process: requests to the thread that writes it.

use std::sync::Arc;

use node::config::Config;
use node::host::RewriteBegin;
use parking_lot::Mutex;
use persist::aof::Aof;

use super::aof_files::{names, random_position};
use super::aof_lock::AofLock;
use super::aof_requests::{Caller, IsForced, Request};
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::log::log_slot::LogSlot;
use crate::log::places::{self, Places};
use crate::log::ring::LogRing;
use crate::system::real_disk::RealDisk;
use crate::system::server_log::warning;

/// The append-only file: the state that it saves, and the way to the thread that writes it.
pub(crate) struct AppendOnlyFile {
    /// The keys that it saves.
    pub(super) keyspace: Arc<SharedKeyspace>,
    pub(super) log: Arc<LogSlot>,
    thread: Mutex<Option<Caller>>,
    /// While there is an append-only file.
    lock: Mutex<Option<AofLock>>,
}

/// The reply and the log line when the append-only file cannot be begun, as in Redis.
const START_FAILED: &str = "Unable to turn on AOF. Check server logs.";

impl AppendOnlyFile {
    /// No append-only file.
    pub(crate) fn new(keyspace: &Arc<SharedKeyspace>, log: &Arc<LogSlot>) -> Self {
        let (keyspace, log) = (Arc::clone(keyspace), Arc::clone(log));
        Self { keyspace, log, thread: Mutex::default(), lock: Mutex::default() }
    }

    /// The thread can be reached from now on.
    pub fn begin(&self, caller: Caller) {
        *self.thread.lock() = Some(caller);
    }

    /// Makes sure that no other process writes the append-only file. Called at start, before it is
    /// read.
    ///
    /// # Errors
    /// When one does.
    pub fn lock(&self, disk: &RealDisk, config: &Config) -> Result<(), String> {
        *self.lock.lock() = Some(AofLock::wait(disk, config)?);
        Ok(())
    }

    fn caller(&self) -> Option<Caller> {
        self.thread.lock().clone()
    }

    /// Begins the append-only file with the policy of a configuration. On the main thread.
    ///
    /// # Errors
    /// When it cannot begin; the log says why.
    pub fn start(&self, new: &Config) -> Result<(), String> {
        self.try_start(new).map_err(|reason| {
            warning!("Can't begin the append-only file: {reason}");
            START_FAILED.to_owned()
        })
    }

    fn try_start(&self, new: &Config) -> Result<(), String> {
        let config = self.keyspace.node.config();
        // Without the thread, the append-only file is being loaded, and continues when it is.
        let Some(caller) = self.caller() else { return Ok(()) };
        let mut lock = self.lock.lock();
        let taken = caller.ask_and_wait(Request::Prepare).ok_or("the server ends")??;
        let disk = RealDisk::of_working_directory();
        let places = Places::of(&disk, &config);
        // Until the first base is whole, a start finds only the files, and the log that a killed
        // process has left.
        let aof = Aof::open(disk, names(&config)).map_err(|error| error.to_string())?;
        places.keep_left(aof.manifest().log)?;
        let (id, begin) = (places::new_id(), random_position());
        let ring = LogRing::create(places, id, begin);
        let ring = ring.map_err(|error| error.to_string())?;
        ring.configure(new);
        let started = caller.ask_and_wait(|done| Request::Start(Arc::clone(&ring), done));
        if let Some(Err(reason)) = started {
            ring.places().remove_own();
            return Err(reason);
        }
        self.log.set(Some(ring));
        *lock = Some(taken);
        Ok(())
    }

    /// Ends the append-only file. On the main thread.
    pub fn stop(&self) {
        // One that is being loaded ends when it is.
        let Some(caller) = self.caller() else { return };
        self.log.set(None);
        let stopped = caller.ask_and_wait(Request::Stop);
        if let Some(Err(reason)) = stopped {
            warning!("Ending the append-only file: {reason}");
        }
        *self.lock.lock() = None;
    }

    /// Writes all that was logged.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn flush(&self) -> Result<(), String> {
        let flushed = self.caller().and_then(|caller| caller.ask_and_wait(Request::Flush));
        flushed.unwrap_or(Ok(()))
    }

    /// Begins a rewrite, or says why it does not.
    pub fn rewrite(&self, later: bool) -> RewriteBegin {
        let Some(caller) = self.caller() else { return RewriteBegin::Failed };
        let mut lock = None;
        if self.lock.lock().is_none() && !self.is_rewriting() {
            let (disk, config) = (RealDisk::of_working_directory(), self.keyspace.node.config());
            match AofLock::take(&disk, &config) {
                Ok(taken) => lock = Some(taken),
                Err(reason) => {
                    warning!("Can't rewrite the append-only file: {reason}");
                    return RewriteBegin::Failed;
                }
            }
        }
        let began_ms = sys::clock::steady_micros() / 1000;
        let begin = {
            let mut figures = self.keyspace.node.append_only.lock();
            if figures.rewrite_began_ms.is_some() {
                return RewriteBegin::InProgress;
            }
            figures.is_rewrite_scheduled = true;
            figures.asked += 1;
            if later || self.keyspace.is_snapshot_running() {
                RewriteBegin::Scheduled
            } else {
                figures.rewrite_began_ms = Some(began_ms);
                figures.is_rewrite_scheduled = false;
                RewriteBegin::Started
            }
        };
        caller.call(Request::Rewrite(lock));
        begin
    }

    /// Whether a rewrite is due or in progress, which has the lock.
    fn is_rewriting(&self) -> bool {
        let figures = self.keyspace.node.append_only.lock();
        figures.rewrite_began_ms.is_some() || figures.is_rewrite_scheduled
    }

    /// Ends a rewrite in progress, so that the keyspace can be saved at the end. Rewrites that are
    /// due wait until the shutdown is [cancelled](Self::go_on).
    pub fn end_rewrite(&self, is_forced: IsForced) {
        if let Some(caller) = self.caller() {
            caller.ask_and_wait(|done| Request::EndRewrite(is_forced, done));
        }
    }

    /// The process does not end after all.
    pub fn go_on(&self) {
        if let Some(caller) = self.caller() {
            caller.call(Request::GoOn);
        }
    }

    /// Writes and syncs the rest of the log. The threads that execute commands have ended.
    pub fn end(&self, is_forced: IsForced) {
        if let Some(caller) = self.caller() {
            caller.ask_and_wait(|done| Request::End(is_forced, done));
        }
    }

    /// Follows a configuration that is about to be set: from now on replies wait as it asks for.
    /// The thread that writes follows when it is set. On the main thread.
    pub fn configured(&self, new: &Config) {
        if let Some(ring) = self.log.ring() {
            ring.configure(new);
        }
        if let Some(caller) = self.caller() {
            caller.call(Request::Configured);
        }
    }
}

//! Requests of other threads to the thread that writes the append-only file.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use persist::aof::{TriedSync, WholeBase};

use super::aof_lock::AofLock;
use crate::log::ring::LogRing;

/// A request to the thread that writes the append-only file.
pub enum Request {
    /// An append-only file is about to begin: cancel the rewrite that BGREWRITEAOF has asked for
    /// without one, and take the lock.
    Prepare(Sender<Result<AofLock, String>>),
    /// Begin an append-only file, with a base of the keyspace.
    Start(Arc<LogRing>, Sender<Result<(), String>>),
    Stop(Sender<Result<(), String>>),
    /// Write a new base. Without an append-only file, the lock of one comes along.
    Rewrite(Option<AofLock>),
    /// Cancel a rewrite in progress, or wait for its end if there is no base without it, unless the
    /// shutdown is forced. No rewrite begins until `GoOn` comes.
    EndRewrite(IsForced, Sender<()>),
    /// The end of the process is called off.
    GoOn,
    Synced(TriedSync),
    Based(Result<WholeBase, String>),
    /// Write all that is in the log.
    Flush(Sender<Result<(), String>>),
    Configured,
    /// The process ends: write and sync all, and end.
    End(IsForced, Sender<()>),
}

/// Whether the process ends in any case: SHUTDOWN FORCE.
pub type IsForced = bool;

/// The way of requests to a thread that may sleep.
#[derive(Clone)]
pub struct Caller {
    requests: Sender<Request>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Caller {
    /// A sender to the thread that has the receiver and is woken by `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> (Self, Receiver<Request>) {
        let (requests, receiver) = channel();
        (Self { requests, wake: Arc::new(wake) }, receiver)
    }

    pub fn call(&self, request: Request) {
        // At the end of the process there is no receiver, and no thread waits.
        let _ = self.requests.send(request);
        (self.wake)();
    }

    pub(super) fn ask_and_wait<R>(&self, request: impl FnOnce(Sender<R>) -> Request) -> Option<R> {
        let (sender, answer) = channel();
        self.call(request(sender));
        answer.recv().ok()
    }
}

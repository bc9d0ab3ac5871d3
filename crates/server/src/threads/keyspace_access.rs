//! A thread's access to the keyspace, which a script takes along.

use std::sync::Arc;

use node::Worker;
use resp::Out;
use sync::gate::Pass;

use super::shared::SharedState;
use crate::keyspace::shard_locks::{NoOtherClients, ThreadShards};
use crate::keyspace::thread_waits::ThreadWaits;

/// A thread's access to the keyspace. While a script runs, the script has it, with the thread's
/// worker and replies, and the thread has what otherwise lies here: a worker that replies BUSY, and
/// an empty buffer for replies.
pub(crate) struct KeyspaceAccess {
    pub(super) shared: Arc<SharedState>,
    pub(crate) pass: Pass,
    pub(crate) waits: ThreadWaits,
    pub(super) worker: Box<Worker>,
    pub(super) out: Box<Out>,
}

impl KeyspaceAccess {
    /// That of the thread with this pass and worker.
    pub(crate) fn new(shared: Arc<SharedState>, pass: Pass, worker: &mut Worker) -> Box<Self> {
        let (busy, out) = (Box::new(worker.busy_worker()), Box::default());
        worker.admit_scripts(false);
        let waits = ThreadWaits::default();
        Box::new(Self { shared, pass, waits, worker: busy, out })
    }

    /// Exchanges the worker and the replies that are here with those of the thread.
    pub(super) fn exchange(&mut self, worker: &mut Box<Worker>, out: &mut Box<Out>) {
        std::mem::swap(&mut self.worker, worker);
        std::mem::swap(&mut self.out, out);
    }
}

impl SharedState {
    /// The shards as a thread with this access sees them; none without access.
    #[inline]
    pub(super) fn enter<'a>(&'a self, access: Option<&'a KeyspaceAccess>) -> ThreadShards<'a> {
        self.keyspace.enter(access.map(|access| &access.pass), &NoOtherClients)
    }
}

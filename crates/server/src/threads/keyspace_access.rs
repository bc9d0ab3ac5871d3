//! What a thread executes with: its access to the keyspace, which a script takes along.

use std::sync::Arc;

use node::Worker;
use resp::Out;
use sync::gate::Pass;

use super::shared::Shared;
use crate::keyspace::shard_locks::{Nobody, ServesOthers, ThreadShards};
use crate::keyspace::thread_waits::{ThreadWaits, Waited};

/// A thread's access to the keyspace. While a script runs, its caller has it, with the thread's
/// worker and replies, and the thread has what is here otherwise: a worker that answers with BUSY,
/// and an empty buffer for replies.
pub(crate) struct KeyspaceAccess {
    pub(super) shared: Arc<Shared>,
    /// Its pass of the gate.
    pub(crate) pass: Pass,
    /// How its clients wait for shards.
    pub(crate) waits: ThreadWaits,
    pub(super) worker: Box<Worker>,
    pub(super) out: Box<Out>,
}

impl KeyspaceAccess {
    /// That of the thread with this pass and worker.
    pub(crate) fn new(shared: Arc<Shared>, pass: Pass, worker: &mut Worker) -> Box<Self> {
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

/// What execution needs of its thread.
pub(crate) struct ExecutionContext<'a> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) out: &'a mut Out,
    pub(crate) shared: &'a Shared,
    /// None: the thread has no access to the keyspace, and its worker answers with BUSY.
    pub(super) pass: Option<(&'a Pass, &'a ThreadWaits)>,
    pub(super) others: &'a dyn ServesOthers,
}

impl<'a> ExecutionContext<'a> {
    /// That of a thread for whatever runs no scripts.
    #[inline]
    pub(crate) fn of_thread(
        (worker, out): (&'a mut Worker, &'a mut Out),
        shared: &'a Shared,
        access: Option<&'a KeyspaceAccess>,
    ) -> Self {
        let pass = access.map(|access| (&access.pass, &access.waits));
        Self { worker, out, shared, pass, others: &Nobody }
    }

    /// Enters the gate for a client's requests, if the thread has access. None: a busy script is
    /// alone behind the gate, and what is to be executed is so
    /// [without access](IoThread::without_access).
    #[inline]
    pub(crate) fn enter(&self, waited: Waited) -> Option<ThreadShards<'a>> {
        let Some((pass, waits)) = self.pass else {
            return Some(self.shared.enter(None, self.others));
        };
        let locks = self.shared.enter(Some(pass), self.others).waiting(waits, waited);
        locks.is_inside().then_some(locks)
    }
}

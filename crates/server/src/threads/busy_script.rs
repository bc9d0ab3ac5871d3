//! Serving a thread's other clients while one of them runs a busy script, or another thread does
//! behind the closed gate.
//!
//! Only scripts run for long without letting go. Once one has exceeded `busy-reply-threshold`, its
//! thread takes a *nested turn* from within each of its ticks, as a nested event loop does. Such a
//! turn accepts, reads, answers and sends, so that any client can end the script. For that, whoever
//! executes scripts takes what execution needs out of the thread
//! ([`IoThread::with_execution_context`]), and the rest of the thread is free meanwhile: it has a
//! worker of its own, which answers with BUSY, and no access to the keyspace.
//!
//! Invariants:
//! - A nested turn waits for nothing, and neither uses the thread's pass nor reaches a shard. What
//!   would have to is put off: `node` keeps it (`Worker::has_put_off`).
//! - It runs no script, so there is never a nested turn within a nested turn.
//! - The client whose request is executed is in no slot, so nobody else finds it there. Its slot
//!   stays reserved.
//! - Whoever executes has nothing at hand that the nested turn may change: neither events nor lists
//!   of slots. What waits behind the script in the same turn is queued before the first nested
//!   turn, and is answered there.
//!
//! Deadlines, cron and moves of clients rest, and a thread that is told to end does so afterwards.

use std::cell::RefCell;
use std::sync::Arc;

use node::{Outcome, Worker};
use resp::Out;
use sync::gate::Pass;
use sys::epoll::Events;

use crate::keyspace::shard_locks::{Nobody, ServesOthers, ThreadShards, ThreadWaits, Waited};
use crate::net::accept;
use crate::net::read_batch::{Batch, ReadBatch};
use crate::process::host::ProcessHost;
use crate::threads::io_thread::{HANDSHAKES_MAX, IoThread, MAILBOX_TOKEN};
use crate::threads::listeners::LISTENER_TOKEN;
use crate::threads::shared::Shared;

/// Events of one wait of a nested turn.
const EVENTS_MAX: usize = 128;

/// Between two tries to do what was put off.
pub(crate) const CATCH_UP_MS: i32 = 10;

/// A thread's access to the keyspace. While a script runs, its caller has it, with the thread's
/// worker and replies, and the thread has what is here otherwise: a worker that answers with BUSY,
/// and an empty buffer for replies.
pub(crate) struct KeyspaceAccess {
    shared: Arc<Shared>,
    /// Its pass of the gate.
    pub(crate) pass: Pass,
    /// How its clients wait for shards.
    pub(crate) waits: ThreadWaits,
    worker: Box<Worker>,
    out: Box<Out>,
}

impl KeyspaceAccess {
    /// That of the thread with this pass and worker.
    pub(crate) fn new(shared: Arc<Shared>, pass: Pass, worker: &mut Worker) -> Box<Self> {
        let (busy, out) = (Box::new(worker.busy_worker()), Box::default());
        worker.admit_scripts(false);
        let waits = ThreadWaits::default();
        Box::new(Self { shared, pass, waits, worker: busy, out })
    }

    fn exchange(&mut self, thread: &mut IoThread) {
        std::mem::swap(&mut self.worker, &mut thread.worker);
        std::mem::swap(&mut self.out, &mut thread.out);
    }
}

/// What execution needs of its thread.
pub(crate) struct ExecutionContext<'a> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) out: &'a mut Out,
    pub(crate) shared: &'a Shared,
    /// None: the thread has no access to the keyspace, and its worker answers with BUSY.
    pass: Option<(&'a Pass, &'a ThreadWaits)>,
    others: &'a dyn ServesOthers,
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

/// Requests of the turn that wait behind those that are executed, with what they lie in.
pub(crate) type Waiting<'a> = Option<(&'a ReadBatch, &'a mut [Batch])>;

/// A thread without its access, which serves its other clients.
struct Others<'a>(RefCell<(&'a mut IoThread, Waiting<'a>)>);

impl ServesOthers for Others<'_> {
    #[cold]
    fn serve_others(&self) {
        let (thread, waiting) = &mut *self.0.borrow_mut();
        if let Some((read_batch, batches)) = waiting.take() {
            batches.iter_mut().for_each(|batch| thread.put_off(read_batch, batch));
        }
        thread.nested_turn();
    }
}

impl IoThread {
    /// Calls `work` with what execution needs, that of scripts included, and serves the other
    /// clients of the thread while a script is busy, those of `waiting` among them.
    pub(crate) fn with_execution_context<R>(
        &mut self,
        waiting: Waiting<'_>,
        work: impl FnOnce(ExecutionContext<'_>) -> R,
    ) -> R {
        let Some(mut access) = self.take_access() else {
            let Self { worker, out, shared, .. } = self;
            return work(ExecutionContext::of_thread((worker, out), shared, None));
        };
        let KeyspaceAccess { shared, pass, waits, worker, out } = &mut *access;
        worker.admit_scripts(true);
        let others = Others(RefCell::new((&mut *self, waiting)));
        let result = work(ExecutionContext {
            worker,
            out,
            shared,
            pass: Some((pass, waits)),
            others: &others,
        });
        access.worker.admit_scripts(false);
        self.restore_access(access);
        result
    }

    /// Calls `work` while the thread has no access to the keyspace, because a busy script is alone
    /// behind the closed gate.
    #[cold]
    pub(crate) fn without_access<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let Some(mut access) = self.take_access() else { return work(self) };
        self.begin_nested_turn();
        let result = work(self);
        self.worker.end_turn();
        access.out.append(std::mem::take(&mut *self.out));
        self.restore_access(access);
        result
    }

    fn take_access(&mut self) -> Option<Box<KeyspaceAccess>> {
        let mut access = self.access.take()?;
        access.exchange(self);
        Some(access)
    }

    fn restore_access(&mut self, mut access: Box<KeyspaceAccess>) {
        access.exchange(self);
        if self.ran_nested_turn {
            self.worker.take_over(&mut access.worker);
        }
        self.access = Some(access);
    }

    /// Queues the requests of a batch, which are then executed in nested turns, or when this turn
    /// has looked at those that wait.
    pub(crate) fn put_off(&mut self, read_batch: &ReadBatch, batch: &mut Batch) {
        self.finish_batch(read_batch, batch, batch.requests.start, Outcome::Postponed);
        // Whoever comes to this batch finds nobody.
        batch.slot = usize::MAX;
    }

    fn begin_nested_turn(&mut self) {
        self.ran_nested_turn = true;
        let now = self.clock.now();
        self.worker.begin_turn(now.time, now.tsc);
    }

    /// One turn from within a busy script.
    fn nested_turn(&mut self) {
        self.begin_nested_turn();
        self.handshakes_left = HANDSHAKES_MAX;
        self.look_at_those_again();
        let mut events = Events::with_capacity(EVENTS_MAX);
        for index in 0..self.epoll.wait(&mut events, 0).unwrap_or(0) {
            let event = events.at(index);
            match event.token() {
                MAILBOX_TOKEN => self.wake.clear(),
                token if token >= LISTENER_TOKEN => {
                    accept::accept(&self.shared, token, self.steady_ms());
                }
                token => self.client_ready(token as usize, event),
            }
        }
        // A signal ends the server when the script is over.
        if self.worker.index == 0 && self.shared.signalled.has_come() {
            self.take_signals();
        }
        self.execute_turn();
        self.go_on_with_postponed();
        self.retry_shard_waits();
        self.handle_messages();
        self.end_graces();
        self.deliver();
        self.look_at_log();
        self.worker.end_turn();
    }

    #[cold]
    fn take_signals(&self) {
        self.shared.control.lock().take_signals(&self.shared);
        self.shared.node.pause_for_ever();
        self.shared.node.scripting.end_harmless();
    }

    /// Does what was put off, as far as the scripts are over.
    pub(crate) fn catch_up(&mut self) {
        let Some(access) = &self.access else { return };
        let locks = self.shared.enter(Some(&access.pass), &Nobody);
        self.worker.catch_up(&locks, &ProcessHost(&self.shared));
    }
}

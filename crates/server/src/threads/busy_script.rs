//! Serving a thread's other clients while one of them runs a busy script, or while a busy script of
//! another thread is exclusive.
//!
//! Only scripts run for long without interruption. Once a script has exceeded
//! `busy-reply-threshold`, its thread takes a *nested turn* in each tick of the script, as a nested
//! event loop does. A nested turn accepts, reads, replies and sends, so that any client can end the
//! script. For that, [`IoThread::with_scripts`] takes everything that execution needs out of the
//! thread. The rest of the thread stays usable: it has a second worker, which replies BUSY, and no
//! access to the keyspace.
//!
//! Invariants:
//! - A nested turn waits for nothing, and neither uses the thread's pass nor reaches a shard. Work
//!   that would need either is deferred: `node` keeps it (`Worker::has_deferred`).
//! - It runs no script, so there is never a nested turn within a nested turn.
//! - The client whose request is executed is in no slot, so nothing else finds it there. Its slot
//!   stays reserved.
//! - The code that executes the script holds nothing that the nested turn may change: neither
//!   events nor lists of slots. Requests after the script in the same turn are queued before the
//!   first nested turn, and are answered there.
//!
//! Deadlines, cron and moves of clients pause, and a thread that receives the order to end does so
//! afterwards.

use std::cell::RefCell;

use node::Outcome;
use sys::epoll::Events;

use super::accept;
use super::execute::{ExecutionContext, WaitingBatches};
use super::io_thread::{HANDSHAKES_MAX, IoThread, MAILBOX_TOKEN};
use super::keyspace_access::KeyspaceAccess;
use super::listeners::LISTENER_TOKEN;
use super::read_batch::{ClientBatch, ReadBatch};
use crate::keyspace::shard_locks::ServesOthers;

/// Events of one wait of a nested turn.
const EVENTS_MAX: usize = 128;

/// A thread without its access, which serves its other clients, and the requests of these that it
/// has read and not executed.
struct OtherClients<'a>(RefCell<(&'a mut IoThread, Option<WaitingBatches<'a>>)>);

impl ServesOthers for OtherClients<'_> {
    #[cold]
    fn serve_others(&self) {
        let (thread, waiting) = &mut *self.0.borrow_mut();
        if let Some(WaitingBatches { read_batch, batches }) = waiting.take() {
            batches.iter_mut().for_each(|batch| thread.defer_batch(read_batch, batch));
        }
        thread.nested_turn();
    }
}

impl IoThread {
    /// Calls `work` with everything that execution needs, scripts included, and serves the thread's
    /// other clients while a script is busy, those of `waiting` among them.
    pub(super) fn with_scripts<R>(
        &mut self,
        waiting: Option<WaitingBatches<'_>>,
        work: impl FnOnce(ExecutionContext<'_>) -> R,
    ) -> R {
        let Some(mut access) = self.take_access() else {
            let Self { worker, out, shared, .. } = self;
            return work(ExecutionContext::of_thread(worker, out, shared, None));
        };
        let KeyspaceAccess { shared, pass, waits, worker, out } = &mut *access;
        worker.admit_scripts(true);
        let others = OtherClients(RefCell::new((&mut *self, waiting)));
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

    /// Calls `work` while the thread has no access to the keyspace, because a busy script is
    /// exclusive.
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
        access.exchange(&mut self.worker, &mut self.out);
        Some(access)
    }

    fn restore_access(&mut self, mut access: Box<KeyspaceAccess>) {
        access.exchange(&mut self.worker, &mut self.out);
        if self.ran_nested_turn {
            self.worker.take_over(&mut access.worker);
        }
        self.access = Some(access);
    }

    /// Queues the requests of a batch. They are executed in nested turns, or later in this turn.
    pub(crate) fn defer_batch(&mut self, read_batch: &ReadBatch, batch: &mut ClientBatch) {
        self.finish_batch(read_batch, batch, batch.requests.start, Outcome::Postponed);
        // Later stages of the turn find no client for this batch.
        batch.slot = usize::MAX;
    }

    fn begin_nested_turn(&mut self) {
        self.ran_nested_turn = true;
        let now = self.clock.now();
        self.worker.begin_turn(now.time, now.tsc);
    }

    fn nested_turn(&mut self) {
        self.begin_nested_turn();
        self.handshakes_left = HANDSHAKES_MAX;
        self.receive_deferred();
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
        self.answer_turn();
        self.proceed_with_postponed();
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

    /// Does the deferred work for which no script must be waited for.
    pub(crate) fn catch_up(&mut self) {
        let Some(access) = &self.access else { return };
        let locks = self.shared.enter(Some(access));
        self.worker.catch_up(&locks, &*self.shared);
    }
}

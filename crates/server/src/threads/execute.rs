//! Executing the requests that a turn has read, and sending the replies.
//!
//! Clients are executed one after another, and each gets its replies before the next is executed,
//! while they are in the nearest cache. The clients after it pass the stages of
//! [prefetching](super::prefetch) at the same time.
//!
//! Requests come from `read_batch`. The `Executor` of `node` executes them, and their outcomes
//! become the client's state here.

use std::sync::atomic::Ordering;

use node::host::GatedHost;
use node::{Executor, Host, Outcome, ShardLocks, Worker};
use resp::Out;
use sync::gate::Pass;

use super::client_state::ClientState;
use super::connection::{Connection, SEND_BYTES_MAX};
use super::io_thread::IoThread;
use super::keyspace_access::KeyspaceAccess;
use super::prefetch::stages;
use super::read_batch::{ClientBatch, ReadBatch};
use super::shard_wait::ShardWait;
use super::shared::SharedState;
use crate::keyspace::shard_locks::{NoOtherClients, ServesOthers, ThreadShards};
use crate::keyspace::shim::now_us;
use crate::keyspace::thread_waits::{ThreadWaits, Waited};

/// Replies of one client gathered before they are sent in the middle of its requests.
pub(super) const OUT_BYTES_MAX: usize = 256 * 1024;

/// Memory for replies that a thread keeps from client to client: the bytes, and as much for the
/// places of shared values.
pub(super) const OUT_KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The requests of the turn that wait while a script is executed.
pub(super) struct WaitingBatches<'a> {
    pub(super) read_batch: &'a ReadBatch,
    pub(super) batches: &'a mut [ClientBatch],
}

impl IoThread {
    /// Executes the requests read so far in the turn and sends the replies, client after client.
    pub(super) fn answer_turn(&mut self) {
        let has_some = |read_batch: &mut Box<ReadBatch>| !read_batch.batches.is_empty();
        let Some(mut read_batch) = self.read_batch.take_if(has_some) else { return };
        let mut batches = std::mem::take(&mut read_batch.batches);
        let stages = stages(&read_batch, &batches);
        for index in 0..batches.len() + stages.len() {
            for (distance, stage) in stages.iter().enumerate() {
                if let Some(batch) = index.checked_sub(distance).and_then(|i| batches.get(i)) {
                    self.prefetch(&mut read_batch, batch, *stage);
                }
            }
            let ready = index.checked_sub(stages.len());
            let ready = ready.and_then(|index| batches.get_mut(index..));
            if let Some((batch, waiting)) = ready.and_then(<[ClientBatch]>::split_first_mut) {
                self.answer_client(&read_batch, batch, waiting);
                if self.is_awaited(self.turn_tsc.load(Ordering::Relaxed)) {
                    waiting.iter_mut().for_each(|batch| self.defer_batch(&read_batch, batch));
                }
            }
        }
        read_batch.clear(batches);
        self.read_batch = Some(read_batch);
    }

    /// Executes one client's requests and sends the replies, in parts when they are long. The
    /// batches in `waiting` come next.
    fn answer_client(
        &mut self,
        read_batch: &ReadBatch,
        batch: &ClientBatch,
        waiting: &mut [ClientBatch],
    ) {
        if let Some(client) = self.slots.client_mut(batch.slot) {
            client.state = ClientState::Reading;
            // CLIENT KILL has been answered: nothing that its client sent after that is executed.
            if client.session.record.location.is_killed() {
                self.close(batch.slot);
                return;
            }
        }
        let mut next = batch.requests.start;
        let since_tsc = self.worker.last_tsc();
        loop {
            if self.log.is_on() {
                self.log.begin_batch(self.worker.turn.effects.written_units());
                self.worker.begin_requests();
            }
            let Self { slots, worker, out, shared, access, .. } = self;
            let mut outcome = match slots.client_mut(batch.slot) {
                Some(client) => ExecutionContext::of_thread(worker, out, shared, access.as_deref())
                    .execute(client, read_batch, batch, &mut next, since_tsc),
                None => Some(Outcome::Done),
            };
            if matches!(outcome, Some(Outcome::Script)) {
                outcome = self.answer_scripts(read_batch, batch, waiting, &mut next, since_tsc);
            }
            // Before a reply leaves: its client may read the counters on another thread.
            self.worker.publish_counters();
            if self.log.is_on()
                && let Some(client) = self.slots.client_mut(batch.slot)
            {
                self.worker.end_requests(&mut client.session);
            }
            if let Some(outcome) = outcome {
                self.finish_batch(read_batch, batch, next, outcome);
                break;
            }
            // Sending replies takes no longer than making them. Twice as much as was made, so that
            // the output that waits shrinks.
            let bytes_max = 2 * self.out.bytes.len();
            if !self.send_replies(batch.slot, bytes_max) {
                break;
            }
            // Output that waits for the log must not grow.
            if self.log.is_on() && self.awaits_log(batch.slot) {
                self.finish_batch(read_batch, batch, next, Outcome::Postponed);
                break;
            }
        }
        self.out.clear_to(OUT_KEPT_BYTES_MAX);
        self.wake_shard_waiters();
        // Subscribers on other threads do not wait for the end of a long turn.
        if self.worker.has_receivers()
            && self.worker.has_used_turn(self.turn_tsc.load(Ordering::Relaxed))
        {
            self.worker.wake_receivers();
        }
        self.free_removed();
    }

    /// Continues with a request that runs scripts.
    #[inline(never)]
    fn answer_scripts(
        &mut self,
        read_batch: &ReadBatch,
        batch: &ClientBatch,
        waiting: &mut [ClientBatch],
        next: &mut usize,
        since_tsc: u64,
    ) -> Option<Outcome> {
        let Some(mut client) = self.slots.take_out(batch.slot) else { return Some(Outcome::Done) };
        // A script may run for long, and subscribers on other threads do not wait for it.
        self.worker.wake_receivers();
        let waiting = WaitingBatches { read_batch, batches: waiting };
        let outcome = self.with_scripts(Some(waiting), |context| {
            context.execute(&mut client, read_batch, batch, next, since_tsc)
        });
        self.slots.put_back(batch.slot, client);
        self.look_at_messages(batch.slot);
        outcome
    }

    /// Frees what the turn has removed so far, if that is much.
    #[inline]
    pub(super) fn free_removed(&mut self) {
        let removed = &mut self.worker.turn.lazy_free;
        if removed.is_much() {
            self.shared.free(removed);
        }
    }

    /// Sends a batch's replies and enters the state that its last outcome leads to. If the client
    /// is suspended, requests from number `rest` on wait in its queue.
    #[inline(always)]
    pub(super) fn finish_batch(
        &mut self,
        read_batch: &ReadBatch,
        batch: &ClientBatch,
        rest: usize,
        outcome: Outcome,
    ) {
        let slot = batch.slot;
        let Some(client) = self.slots.client_mut(slot) else { return };
        client.enter(outcome);
        if !self.send_replies(slot, SEND_BYTES_MAX) {
            return;
        }
        self.worker.stats.in_bytes.add(batch.in_bytes as u64);
        let Some(client) = self.slots.client_mut(slot) else { return };
        if client.state.is_suspended() {
            let query_buffer = client.query_buffer.as_deref().filter(|_| batch.in_query_buffer);
            let rest = rest..batch.requests.end;
            client.queue.extend(rest.map(|index| read_batch.owned(index, query_buffer)));
            client.broken = batch.error.clone();
        }
        if batch.in_query_buffer
            && let Some(query_buffer) = &mut client.query_buffer
        {
            query_buffer.consume(batch.consumed);
            if query_buffer.is_empty() {
                client.query_buffer = None;
            }
        }
        // A client that has closed its side still gets the replies to what it sent. If it is
        // suspended, its end is read again afterwards.
        if batch.ended && !client.state.is_suspended() {
            client.enter(Outcome::Close);
        }
        client.publish(&self.worker, batch.in_bytes, 0);
        if client.state.is_suspended() {
            self.act_on_state(slot);
        } else if client.state.is_closing() || client.wants_write() {
            self.after_send(slot);
        }
    }
}

/// The parts of a thread that execution needs.
pub(super) struct ExecutionContext<'a> {
    pub(super) worker: &'a mut Worker,
    pub(super) out: &'a mut Out,
    pub(super) shared: &'a SharedState,
    /// `None` if the thread has no access to the keyspace; then its worker replies BUSY.
    pub(super) pass: Option<(&'a Pass, &'a ThreadWaits)>,
    pub(super) others: &'a dyn ServesOthers,
}

impl<'a> ExecutionContext<'a> {
    /// The context of a thread for requests that run no scripts.
    #[inline]
    pub(super) fn of_thread(
        worker: &'a mut Worker,
        out: &'a mut Out,
        shared: &'a SharedState,
        access: Option<&'a KeyspaceAccess>,
    ) -> Self {
        let pass = access.map(|access| (&access.pass, &access.waits));
        Self { worker, out, shared, pass, others: &NoOtherClients }
    }

    /// Enters the gate for a client's requests, if the thread has access. Returns `None` while a
    /// busy script is exclusive: then the requests are executed
    /// [without access](IoThread::without_access).
    #[inline]
    pub(super) fn enter(&self, waited: Waited) -> Option<ThreadShards<'a>> {
        let keyspace = &self.shared.keyspace;
        let Some((pass, waits)) = self.pass else { return Some(keyspace.enter(None, self.others)) };
        let locks = keyspace.enter(Some(pass), self.others).waiting(waits, waited);
        locks.is_inside().then_some(locks)
    }

    /// Whether a client's next request must not begin yet, because one of its last ones was slow
    /// and a thread has waited long to stop all others.
    #[inline]
    pub(super) fn is_held(&self, client: &Connection) -> bool {
        client.slow_us != 0
            && self.shared.keyspace.shards.stoppers.holds(client.slow_us, now_us)
            && {
                let ticket = client.shard_wait.as_ref();
                let ticket = ticket.map(|wait| wait.ticket(client.session.record.id));
                let stops =
                    |ticket| self.pass.is_some_and(|(_, waits)| waits.waits_to_stop(ticket));
                !ticket.is_some_and(stops) && !self.worker.node.scripting.busy.any()
            }
    }

    /// Executes one client's requests from number `next` on, which it advances. The first of them
    /// began at `since_tsc`. Returns `None` if the replies so far must be sent before the rest is
    /// executed.
    #[inline(always)]
    fn execute(
        self,
        client: &mut Connection,
        read_batch: &ReadBatch,
        batch: &ClientBatch,
        next: &mut usize,
        since_tsc: u64,
    ) -> Option<Outcome> {
        if self.is_held(client) {
            client.shard_wait = Some(ShardWait::begin());
            return Some(Outcome::ShardInUse);
        }
        let slow_us_before = std::mem::take(&mut client.slow_us);
        // Outside the gate they are executed later, from the client's queue.
        let first = Waited::default();
        let Some(locks) = self.enter(first) else { return Some(Outcome::Postponed) };
        self.worker.go_on(locks.tsc(), || locks.time());
        let has_access = locks.is_inside();
        self.out.bytes_max = client.out_bytes_max(&self.worker.config);
        let Connection { session, query_buffer, shard_wait, commands, slow_us, .. } = client;
        let query_buffer = if batch.in_query_buffer { query_buffer.as_deref() } else { None };
        let mut executor = Executor {
            worker: &mut *self.worker,
            session,
            locks: &locks,
            host: GatedHost::new(self.shared),
            out: &mut *self.out,
        };
        executor.begin_batch();
        while *next < batch.requests.end {
            if executor.out.bytes.len() > OUT_BYTES_MAX {
                return None;
            }
            let began_tsc = executor.worker.last_tsc();
            let outcome = executor.execute(read_batch.request(*next, query_buffer));
            *slow_us = executor.worker.slow_us_since(began_tsc).max(*slow_us);
            match outcome {
                Outcome::Done | Outcome::Failed => {}
                Outcome::Close => {
                    *commands += 1;
                    return Some(outcome);
                }
                Outcome::Block(_) | Outcome::GracePeriod(_) => {
                    *next += 1;
                    return Some(outcome);
                }
                Outcome::ShardInUse | Outcome::NotExclusive => {
                    let wait = ShardWait::begin().after_try(&self.shared.keyspace.shards, &locks);
                    *shard_wait = Some(wait);
                    *slow_us = slow_us_before.max(*slow_us);
                    return Some(outcome);
                }
                Outcome::MainThread
                | Outcome::Script
                | Outcome::Paused
                | Outcome::Postponed
                | Outcome::Congested => return Some(outcome),
            }
            *commands += 1;
            *next += 1;
            let goes_on = *next < batch.requests.end;
            let end = end_between(executor.worker, &locks, since_tsc, goes_on, has_access);
            if end.is_some() {
                return end;
            }
        }
        let Some(error) = &batch.error else { return Some(Outcome::Done) };
        Some(self.worker.refuse(error, session, self.out))
    }
}

/// The reason to end a client's batch between two requests, if there is one. `goes_on` if another
/// request follows, `has_access` if the thread was inside the gate.
#[inline(always)]
fn end_between(
    worker: &mut Worker,
    locks: &ThreadShards<'_>,
    since_tsc: u64,
    goes_on: bool,
    has_access: bool,
) -> Option<Outcome> {
    locks.end_command();
    if worker.take_fills_inboxes() {
        return Some(Outcome::Congested);
    }
    if goes_on && worker.has_used_turn(since_tsc) {
        return Some(Outcome::Postponed);
    }
    // A thread that closes the gate waits for one command, not for the whole batch. The next one
    // begins when that thread has opened it.
    if locks.is_awaited() {
        locks.make_way();
        worker.go_on(locks.tsc(), || locks.time());
    }
    (goes_on && has_access && !locks.is_inside()).then_some(Outcome::Postponed)
}

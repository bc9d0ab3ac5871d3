//! Executing what a turn has gathered, and sending the replies.
//!
//! Clients are executed one after another, and each is answered before the next, while its replies
//! are in the nearest cache. The clients behind it pass the stages of prefetching meanwhile: the
//! shards of their keys, then the table slots, then the records.
//!
//! On the way of a request: `net::read_batch` comes before, `node`'s `Executor` behind; the outcome
//! comes back here and becomes the client's state.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use command::PrefetchHint;
use node::host::GatedHost;
use node::{Executor, Host, Outcome, Request, ShardLocks};
use resp::out::Mark;
use resp::{Args, Span};
use store::Side;

use crate::keyspace::thread_waits::Waited;
use crate::threads::client_state::ClientState;
use crate::threads::connection::{Connection, OwnedRequest, SEND_BYTES_MAX};
use crate::threads::io_thread::IoThread;
use crate::threads::keyspace_access::ExecutionContext;
use crate::threads::message::{Message, Origin};
use crate::threads::output::warn_over;
use crate::threads::read_batch::{Batch, ReadBatch};
use crate::threads::shard_wait::ShardWait;

/// Replies of one client gathered before they are sent in the middle of its requests.
const OUT_BYTES_MAX: usize = 256 * 1024;

/// Memory for replies that a thread keeps from client to client: the bytes, and as much for the
/// places of shared values.
const OUT_KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The stages of prefetching: each finds its place by what the one before has brought.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Shard,
    Slot,
    Record,
    Object,
    Inside,
}

/// All stages, those of keys before those of what lies in their values.
const STAGES: &[Stage] = &[Stage::Shard, Stage::Slot, Stage::Record, Stage::Object, Stage::Inside];

impl IoThread {
    /// Executes and answers the requests of the turn so far, client after client. The clients
    /// behind the one that is executed are at their stages of prefetching meanwhile, so that what a
    /// request needs has been on its way while others were executed and sent, and no longer.
    pub(crate) fn execute_turn(&mut self) {
        let has_some = |read_batch: &mut Box<ReadBatch>| !read_batch.batches.is_empty();
        let Some(mut read_batch) = self.read_batch.take_if(has_some) else { return };
        let mut batches = std::mem::take(&mut read_batch.batches);
        // Each further stage keeps more in the cache at once, so none is passed for nothing.
        let stages = if read_batch.prefetches_inside(&batches) { STAGES } else { &STAGES[..3] };
        for index in 0..batches.len() + stages.len() {
            for (behind, stage) in stages.iter().enumerate() {
                if let Some(batch) = index.checked_sub(behind).and_then(|i| batches.get(i)) {
                    self.prefetch(&mut read_batch, batch, *stage);
                }
            }
            let ready = index.checked_sub(stages.len());
            let ready = ready.and_then(|index| batches.get_mut(index..));
            if let Some((batch, behind)) = ready.and_then(<[Batch]>::split_first_mut) {
                self.answer(&read_batch, batch, behind);
                if self.is_awaited(self.turn_tsc.load(Ordering::Relaxed)) {
                    behind.iter_mut().for_each(|batch| self.put_off(&read_batch, batch));
                }
            }
        }
        read_batch.clear(batches);
        self.read_batch = Some(read_batch);
    }

    /// Executes one client's requests and sends the replies; in parts when they are long. Those of
    /// the batches `behind` are next.
    fn answer(&mut self, read_batch: &ReadBatch, batch: &Batch, behind: &mut [Batch]) {
        if let Some(client) = self.slots.client_mut(batch.slot) {
            client.state = ClientState::Reading;
            // The killer has been told so: nothing that the client sent since is answered.
            if client.session.record.location.is_killed() {
                self.close(batch.slot);
                return;
            }
        }
        let mut next = batch.requests.start;
        let since_tsc = self.worker.last_tsc();
        loop {
            if self.log.is_on() {
                self.log.begin_batch(self.worker.turn.effects.logged_units());
                self.worker.begin_requests();
            }
            let outcome = self.execute_batch((read_batch, batch, behind), &mut next, since_tsc);
            // Who has a reply finds what it changed counted, also on another thread.
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
            // Sending replies takes no longer than making them took. Twice as much as was made, so
            // that what waits gets less.
            let bytes_max = 2 * self.out.bytes.len();
            if !self.send_replies(batch.slot, bytes_max) {
                break;
            }
            // What is held is not added to.
            if self.log.is_on() && self.is_held_for_log(batch.slot) {
                self.finish_batch(read_batch, batch, next, Outcome::Postponed);
                break;
            }
        }
        self.out.clear_to(OUT_KEPT_BYTES_MAX);
        self.tell_called();
        // Others do not wait for the end of a long turn.
        if self.worker.has_receivers()
            && self.worker.has_used_turn(self.turn_tsc.load(Ordering::Relaxed))
        {
            self.worker.wake_receivers();
        }
        self.free_much();
    }

    /// Drops what the turn has removed so far, if that is much.
    #[inline]
    fn free_much(&mut self) {
        let removed = &mut self.worker.turn.lazy_free;
        if removed.is_much() {
            self.shared.free(removed);
        }
    }

    /// Asks the processor for what a client's requests need next.
    fn prefetch(&mut self, read_batch: &mut ReadBatch, batch: &Batch, stage: Stage) {
        let Some(client) = self.slots.client(batch.slot) else { return };
        let db = client.session.db;
        let map = self.worker.node.map;
        let shards = &self.shared.keyspace.shards;
        for index in batch.requests.clone() {
            let request = &read_batch.requests[index];
            let Some(hash) = request.hash else { continue };
            let shard = map.shard_of(hash);
            let reach = || request.entry.map_or(PrefetchHint::Record, |entry| entry.spec.prefetch);
            match stage {
                Stage::Shard => shards.prefetch_shard(shard),
                Stage::Slot => shards.try_peek(shard, db, |db| db.prefetch_slots(hash)),
                Stage::Record => shards.try_peek(shard, db, |db| db.prefetch_record(hash)),
                Stage::Object => match reach() {
                    PrefetchHint::Record => {}
                    PrefetchHint::Stream => {
                        shards.try_peek(shard, db, |db| db.prefetch_stream(hash))
                    }
                    PrefetchHint::Front => {
                        shards.try_peek(shard, db, |db| db.prefetch_list(hash, Side::Left));
                    }
                    PrefetchHint::Back => {
                        shards.try_peek(shard, db, |db| db.prefetch_list(hash, Side::Right));
                    }
                    PrefetchHint::Member(at) => {
                        let query_buffer = if batch.in_query_buffer {
                            client.query_buffer.as_deref()
                        } else {
                            None
                        };
                        let member = read_batch.request(index, query_buffer).args.text(at);
                        let hasher = &self.worker.node.hasher;
                        let member_hash = shards.try_peek(shard, db, |db| {
                            db.prefetch_member_slot(hash, || hasher.hash(member))
                        });
                        read_batch.requests[index].member_hash = member_hash;
                    }
                },
                Stage::Inside => match (reach(), request.member_hash) {
                    (PrefetchHint::Member(_), Some(member_hash)) => {
                        shards.try_peek(shard, db, |db| db.prefetch_member(hash, member_hash));
                    }
                    (PrefetchHint::Stream, _) => {
                        shards.try_peek(shard, db, |db| db.prefetch_stream_end(hash));
                    }
                    _ => {}
                },
            }
        }
    }

    /// Executes one client's requests from number `next` on, which moves behind those that are
    /// done; the first one began at `since_tsc`. None: the replies so far have to be sent before
    /// the rest is executed.
    fn execute_batch(
        &mut self,
        (read_batch, batch, behind): (&ReadBatch, &Batch, &mut [Batch]),
        next: &mut usize,
        since_tsc: u64,
    ) -> Option<Outcome> {
        let Self { slots, worker, out, shared, access, .. } = self;
        let Some(client) = slots.client_mut(batch.slot) else { return Some(Outcome::Done) };
        let context = ExecutionContext::of_thread((worker, out), shared, access.as_deref());
        let outcome = context.execute_batch(client, (read_batch, batch), next, since_tsc);
        match outcome {
            Some(Outcome::Script) => {
                self.execute_scripts((read_batch, batch, behind), next, since_tsc)
            }
            outcome => outcome,
        }
    }

    /// The same from a request on that runs scripts.
    #[inline(never)]
    fn execute_scripts(
        &mut self,
        (read_batch, batch, behind): (&ReadBatch, &Batch, &mut [Batch]),
        next: &mut usize,
        since_tsc: u64,
    ) -> Option<Outcome> {
        let Some(mut client) = self.slots.take_out(batch.slot) else { return Some(Outcome::Done) };
        // Nobody waits for it.
        self.worker.wake_receivers();
        let outcome = self.with_execution_context(Some((read_batch, behind)), |context| {
            context.execute_batch(&mut client, (read_batch, batch), next, since_tsc)
        });
        self.slots.put_back(batch.slot, client);
        self.look_at_messages(batch.slot);
        outcome
    }

    /// Sends a batch's replies and enters the state that its last outcome leads to. Requests from
    /// number `rest` on wait in the client's queue if it is held.
    #[inline(always)]
    pub(crate) fn finish_batch(
        &mut self,
        read_batch: &ReadBatch,
        batch: &Batch,
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
        if client.state.is_held() {
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
        // A client that has closed its side still gets the replies to what it sent. When it is
        // held, its end is read again afterwards.
        if batch.ended && !client.state.is_held() {
            client.enter(Outcome::Close);
        }
        client.publish(&self.worker, batch.in_bytes, 0);
        if client.state.is_held() {
            self.act_on_state(slot);
        } else if client.state.is_closing() || client.wants_write() {
            self.after_send(slot);
        }
    }

    /// Proceeds with a client that was held: executes its queue, sends the replies, and acts on the
    /// state that it has come to.
    pub(crate) fn proceed(&mut self, slot: usize) {
        let Some(mut client) = self.slots.take_out(slot) else { return };
        self.execute_queue(&mut client, Which::All);
        self.slots.put_back(slot, client);
        self.look_at_messages(slot);
        self.send_and_act(slot);
    }

    /// Goes on with the clients whose queues come behind the requests of the turn. They have a time
    /// of their own: a slow command before them does not leave all but one for a later turn, in
    /// which there may be another slow one.
    pub(crate) fn go_on_with_postponed(&mut self) {
        let since_tsc = self.worker.last_tsc();
        for _ in 0..self.postponed.len() {
            let Some(slot) = self.postponed.pop_front() else { return };
            self.go_on(slot);
            if self.is_awaited(since_tsc) {
                break;
            }
        }
    }

    /// Goes on with a client that has used its time in an earlier turn.
    fn go_on(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let is_held = client.held_back || client.log_hold.is_some();
        if matches!(client.state, ClientState::Postponed) && !is_held {
            self.proceed(slot);
        }
    }

    fn execute_queue(&mut self, client: &mut Connection, which: Which) {
        let done =
            self.with_execution_context(None, |mut context| context.execute_queue(client, which));
        if let Err(Outside) = done {
            self.without_access(|thread| {
                let _ = thread.with_execution_context(None, |mut context| {
                    context.execute_queue(client, which)
                });
            });
        }
        self.worker.publish_counters();
        self.tell_called();
        self.free_much();
    }

    /// Sends what waits for a client whose queue was executed, and acts on the state that it has
    /// come to.
    pub(crate) fn send_and_act(&mut self, slot: usize) {
        if self.close_if_over(slot) {
            return;
        }
        if let Some(client) = self.slots.client_mut(slot) {
            // Its state is acted on below: that its output leaves is no news then.
            client.held_back = false;
        }
        if self.log.is_on() {
            self.hold_output(slot);
        }
        self.send_pending(slot);
        self.act_on_state(slot);
    }

    /// Does what the state asks for that a client has come to.
    pub(crate) fn act_on_state(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        match client.state {
            ClientState::Reading => {
                if client.is_to_be_looked_at() {
                    self.look_again(slot);
                }
            }
            ClientState::Batched => {}
            ClientState::Postponed => {
                // One that is held back goes on when more of its output has left.
                if !client.held_back && client.log_hold.is_none() {
                    self.look_again(slot);
                }
                self.after_send(slot);
            }
            ClientState::Blocked(_) => self.begin_wait(slot),
            ClientState::AwaitsShard => self.begin_shard_wait(slot),
            ClientState::GracePeriod(_) => self.begin_grace(slot),
            ClientState::Paused => self.waits_for_pause = true,
            ClientState::OnMainThread => self.lend(slot),
            ClientState::Congested => self.wait_for_room(slot),
            ClientState::Closing => self.after_send(slot),
        }
    }

    /// Executes for another thread what only this one may, and returns the client. What comes
    /// behind is executed at home: it may take long, and everyone needs the main thread.
    pub(crate) fn execute_lent(&mut self, mut client: Box<Connection>, origin: Origin) {
        self.execute_queue(&mut client, Which::OfMainThread);
        // A limit that was set counts when that is answered.
        self.keep_clients_small();
        self.shared.send(origin.thread, Message::Return(client, origin.slot));
    }

    /// Proceeds with clients that waited for the end of CLIENT PAUSE, as far as it has ended.
    pub(crate) fn resume_paused(&mut self) {
        if !std::mem::take(&mut self.waits_for_pause) {
            return;
        }
        for slot in 0..self.slots.len() {
            match self.slots.client(slot).map(|client| &client.state) {
                Some(ClientState::Paused) => self.proceed(slot),
                Some(ClientState::Blocked(_)) => self.schedule(slot),
                _ => {}
            }
        }
    }
}

/// Which requests of a queue are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    /// Those in front that only the main thread may execute.
    OfMainThread,
}

/// A busy script is alone behind the closed gate, and the thread has to go on without access.
struct Outside;

impl ExecutionContext<'_> {
    /// Executes one client's requests; see [`IoThread::execute_batch`].
    #[inline(always)]
    fn execute_batch(
        self,
        client: &mut Connection,
        (read_batch, batch): (&ReadBatch, &Batch),
        next: &mut usize,
        since_tsc: u64,
    ) -> Option<Outcome> {
        // Its queue goes on without access.
        let first = Waited::default();
        let Some(locks) = self.enter(first) else { return Some(Outcome::Postponed) };
        self.worker.go_on(locks.tsc(), || locks.time());
        let has_way = locks.is_inside();
        self.out.bytes_max = client.out_bytes_max(&self.worker.config);
        let Connection { session, query_buffer, shard_wait, commands, .. } = client;
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
            let outcome = executor.execute(read_batch.request(*next, query_buffer));
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
                Outcome::ShardInUse => {
                    let wait = ShardWait::begin().after_try(&self.shared.keyspace.shards, &locks);
                    *shard_wait = Some(wait);
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
            locks.end_command();
            let goes_on = *next < batch.requests.end;
            if goes_on && executor.worker.has_used_turn(since_tsc) {
                return Some(Outcome::Postponed);
            }
            // A closer of the gate waits for one command, not for the whole batch.
            if !locks.make_way() && has_way && goes_on {
                return Some(Outcome::Postponed);
            }
        }
        let Some(error) = &batch.error else { return Some(Outcome::Done) };
        Some(self.worker.refuse(error, session, self.out))
    }

    /// Executes a client's queued requests until they are done, one leads to a held state or the
    /// client's time in this turn is used. The replies are added to what the client has to send.
    fn execute_queue(&mut self, client: &mut Connection, which: Which) -> Result<(), Outside> {
        client.enter(Outcome::Done);
        let since_tsc = self.worker.last_tsc();
        let units = self.worker.turn.effects.logged_units();
        self.worker.begin_requests();
        while let Some(owned) = client.queue.pop_front() {
            let Ok(outcome) = self.execute_one(client, &owned, which) else {
                client.queue.push_front(owned);
                client.keep(self.out, Mark::default(), self.out.mark());
                self.out.clear();
                client.log_wrote = true;
                self.worker.end_requests(&mut client.session);
                return Err(Outside);
            };
            match outcome {
                Outcome::Done | Outcome::Failed => client.commands += 1,
                Outcome::Close => client.queue.clear(),
                Outcome::MainThread
                | Outcome::Script
                | Outcome::Paused
                | Outcome::ShardInUse
                | Outcome::Postponed
                | Outcome::Congested => client.queue.push_front(owned),
                Outcome::Block(_) | Outcome::GracePeriod(_) => {}
            }
            client.enter(outcome);
            let goes_on = matches!(client.state, ClientState::Reading) && !client.queue.is_empty();
            if goes_on && self.worker.has_used_turn(since_tsc) {
                client.enter(Outcome::Postponed);
            }
            if client.state.is_held() {
                break;
            }
            if self.out.bytes.len() > OUT_BYTES_MAX {
                if self.shared.log.holds() {
                    client.enter(Outcome::Postponed);
                    break;
                }
                self.send_part(client);
            }
        }
        if matches!(client.state, ClientState::Reading)
            && let Some(error) = client.broken.take()
        {
            let outcome = self.worker.refuse(&error, &client.session, self.out);
            client.enter(outcome);
        }
        client.log_wrote |= self.worker.turn.effects.logged_units() != units;
        self.worker.end_requests(&mut client.session);
        client.keep(self.out, Mark::default(), self.out.mark());
        self.out.clear_to(OUT_KEPT_BYTES_MAX);
        if client.queue.is_empty() {
            client.queue = VecDeque::new();
        }
        client.publish(self.worker, 0, 0);
        Ok(())
    }

    fn execute_one(
        &mut self,
        client: &mut Connection,
        owned: &OwnedRequest,
        which: Which,
    ) -> Result<Outcome, Outside> {
        let spans: Vec<Span> = (0..owned.args.len()).map(Span::own).collect();
        let args = Args::new(&[], &spans, &owned.args);
        let entry = self.worker.table.resolve(&args);
        if which == Which::OfMainThread && !self.worker.is_for_main(&client.session, entry) {
            return Ok(Outcome::Postponed);
        }
        let id = client.session.record.id;
        let waited = client.shard_wait.clone();
        let locks = self.enter(waited.as_ref().map_or_else(Waited::default, |it| it.waited(id)));
        let locks = locks.ok_or(Outside)?;
        let hasher = self.worker.turn.hasher;
        let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
        self.worker.go_on(locks.tsc(), || locks.time());
        self.out.bytes_max = client.out_bytes_max(&self.worker.config);
        let mut executor = Executor {
            worker: self.worker,
            session: &mut client.session,
            locks: &locks,
            host: GatedHost::new(self.shared),
            out: self.out,
        };
        executor.begin_batch();
        let outcome = executor.execute(Request { entry, args, hash });
        let wait = match outcome {
            Outcome::ShardInUse => {
                let before = waited.unwrap_or_else(ShardWait::begin);
                Some(before.after_try(&self.shared.keyspace.shards, &locks))
            }
            // Its try is still to come.
            Outcome::MainThread | Outcome::Script => waited,
            _ => None,
        };
        if wait.is_none() {
            // It has run, or begins from the beginning.
            client.session.record.forget_visited();
        }
        client.wait_for_shard(&self.shared.keyspace.shards, wait);
        Ok(outcome)
    }

    /// Sends a part of long replies. A client that does not take them is marked as killed: its
    /// owner closes it.
    fn send_part(&mut self, client: &mut Connection) {
        let bytes_max = 2 * self.out.bytes.len();
        client.keep(self.out, Mark::default(), self.out.mark());
        self.out.clear();
        let sent = client.send_pending(bytes_max);
        let over = client.is_over(self.worker);
        if over {
            self.worker.stats.output_limit_closes.add(1);
            warn_over(client);
        }
        if over || sent.is_err() {
            self.worker.node.kill(&client.session.record);
            client.queue.clear();
        }
    }
}

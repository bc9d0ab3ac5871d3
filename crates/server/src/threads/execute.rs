//! Executing what a turn has gathered, and sending the replies.
//!
//! Clients are executed one after another, and each is answered before the next, while its replies
//! are in the nearest cache. The clients behind it pass the stages of prefetching meanwhile: the
//! shards of their keys, then the table slots, then the records.

use command::PrefetchHint;
use node::clients::record::flag;
use node::execution::dispatch::Request;
use node::{Step, dispatch, table};
use resp::out::Mark;
use resp::{Args, Reply, Span};
use store::Side;

use crate::keyspace::shard_locks::ThreadShards;
use crate::net::connection::{Connection, OwnedRequest};
use crate::net::read_batch::Batch;
use crate::process::host::ProcessHost;
use crate::threads::io_thread::IoThread;
use crate::threads::message::{Message, Origin};
use crate::warning;

/// Replies of one client gathered before they are sent in the middle of its requests.
const OUT_BYTES_MAX: usize = 256 * 1024;

/// Room for replies that a thread keeps from turn to turn.
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

/// What a batch left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Nothing.
    Done,
    /// Sending the replies so far, then executing from this request on.
    SendFirst(usize),
    /// Closing the client when its replies are sent.
    Close,
    /// Handing it to the main thread from this request on.
    HandOver(usize),
    /// Executing from this request on when the pause ends.
    Postpone(usize),
    /// Executing from this request on when the client's wait ends.
    Wait(usize),
}

impl IoThread {
    /// Executes and answers the requests of the turn so far, client after client. The clients
    /// behind the one that is executed are at their stages of prefetching meanwhile, so that what a
    /// request needs has been on its way while others were executed and sent, and no longer.
    pub(crate) fn execute_turn(&mut self) {
        let mut batches = std::mem::take(&mut self.read_batch.batches);
        if batches.is_empty() {
            return;
        }
        // Each further stage keeps more in the cache at once, so none is passed for nothing.
        let stages =
            if self.read_batch.prefetches_inside(&batches) { STAGES } else { &STAGES[..3] };
        for index in 0..batches.len() + stages.len() {
            for (behind, stage) in stages.iter().enumerate() {
                if let Some(batch) = index.checked_sub(behind).and_then(|i| batches.get(i)) {
                    self.prefetch(batch, *stage);
                }
            }
            let ready = index.checked_sub(stages.len());
            if let Some(batch) = ready.and_then(|index| batches.get_mut(index)) {
                self.answer(batch);
            }
        }
        batches.clear();
        self.read_batch.clear();
        self.read_batch.batches = batches;
    }

    /// Executes one client's requests and sends the replies; in parts when they are long.
    fn answer(&mut self, batch: &mut Batch) {
        if let Some(client) = self.slots.client_mut(batch.slot) {
            client.batched = false;
            // Whoever killed it has been told so: nothing that it sent since must have an answer.
            if client.session.record.location.is_killed() {
                self.close(batch.slot);
                return;
            }
        }
        let mut next = batch.requests.start;
        loop {
            self.pass.enter();
            let after = self.execute_batch(batch, next);
            self.pass.leave();
            let After::SendFirst(rest) = after else {
                self.finish_batch(batch, after);
                break;
            };
            if !self.send_replies(batch.slot) {
                break;
            }
            next = rest;
        }
        self.out.clear();
        self.out.shrink_to(OUT_KEPT_BYTES_MAX);
    }

    /// Asks the processor for what a client's requests need next.
    fn prefetch(&mut self, batch: &Batch, stage: Stage) {
        let Some(client) = self.slots.client(batch.slot) else { return };
        let db = client.session.db;
        let map = self.worker.node.map;
        let shards = &self.shared.shards;
        for index in batch.requests.clone() {
            let request = &self.read_batch.requests[index];
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
                        let member = self.read_batch.request(index, query_buffer).args.text(at);
                        let hasher = &self.worker.node.hasher;
                        let member_hash = shards.try_peek(shard, db, |db| {
                            db.prefetch_member_slot(hash, || hasher.hash(member))
                        });
                        self.read_batch.requests[index].member_hash = member_hash;
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

    /// Executes one client's requests from number `first` on.
    fn execute_batch(&mut self, batch: &Batch, first: usize) -> After {
        let Some(client) = self.slots.client_mut(batch.slot) else { return After::Done };
        let locks = ThreadShards { shards: &self.shared.shards, pass: &self.pass };
        let host = ProcessHost(&self.shared);
        let Connection { session, query_buffer, commands, .. } = &mut **client;
        let query_buffer = if batch.in_query_buffer { query_buffer.as_deref() } else { None };
        for index in first..batch.requests.end {
            if self.out.bytes.len() > OUT_BYTES_MAX {
                return After::SendFirst(index);
            }
            let request = self.read_batch.request(index, query_buffer);
            let worker = &mut self.worker;
            let step = dispatch(worker, session, request, &locks, &host, &mut self.out);
            match step {
                Step::Done => *commands += 1,
                Step::Close => {
                    *commands += 1;
                    return After::Close;
                }
                Step::HandOver => return After::HandOver(index),
                Step::Postpone => return After::Postpone(index),
                Step::Wait => return After::Wait(index + 1),
            }
        }
        match &batch.error {
            None => After::Done,
            Some(error) => {
                Reply::new(&mut self.out, session.resp3).error(error.to_string().as_bytes());
                After::Close
            }
        }
    }

    /// Sends the replies so far. Returns whether the client is still there.
    fn send_replies(&mut self, slot: usize) -> bool {
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let to = self.out.mark();
        if to == Mark::default() {
            return true;
        }
        let sent = client.send(&mut self.out);
        self.out.clear();
        match sent {
            Ok(count) => {
                self.worker.stats.writes.add(1);
                self.worker.stats.out_bytes.add(count as u64);
                client.publish(self.now.unix_us / 1000, 0, count);
                !self.close_if_over(slot)
            }
            Err(_) => {
                self.close(slot);
                false
            }
        }
    }

    /// Closes a client whose waiting replies are beyond the limit, or that was killed. Returns
    /// whether it did.
    pub(crate) fn close_if_over(&mut self, slot: usize) -> bool {
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let limit = self.worker.config.client_output_buffer_limit.normal;
        let over = client.wants_write() && client.is_over(limit, self.now.unix_us / 1000);
        let killed = client.session.record.location.is_killed();
        if over && !killed {
            warn_over(client);
        }
        if over || killed {
            self.close(slot);
        }
        over || killed
    }

    /// Sends a batch's replies and does what its last request asked for.
    fn finish_batch(&mut self, batch: &Batch, after: After) {
        let slot = batch.slot;
        if !self.send_replies(slot) {
            return;
        }
        self.worker.stats.in_bytes.add(batch.in_bytes as u64);
        let Some(client) = self.slots.client_mut(slot) else { return };
        if let After::HandOver(first) | After::Postpone(first) | After::Wait(first) = after {
            let query_buffer =
                if batch.in_query_buffer { client.query_buffer.as_deref() } else { None };
            let rest =
                (first..batch.requests.end).map(|index| self.read_batch.owned(index, query_buffer));
            client.queue.extend(rest);
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
        // A client that has closed its side still gets the replies to what it sent. When requests
        // wait, its end is read again after them.
        client.closing |= after == After::Close || batch.ended && !client.is_held();
        client.publish(self.now.unix_us / 1000, batch.in_bytes, 0);
        match after {
            After::HandOver(_) => self.send_away(slot),
            After::Postpone(_) => {
                client.session.record.set_flag(flag::PAUSED, true);
                self.paused.push(slot);
            }
            After::Wait(_) => self.begin_wait(slot),
            After::Done | After::Close | After::SendFirst(_) => {
                if client.closing || client.wants_write() {
                    self.after_send(slot);
                }
            }
        }
    }

    /// Executes the queued requests of a client until they are done or one cannot be executed here
    /// and now, which is then returned as the step it asks for; the replies are added to what the
    /// client has to send.
    pub(crate) fn execute_queue(&mut self, client: &mut Connection) -> Option<Step> {
        let mut stopped = None;
        self.pass.enter();
        let locks = ThreadShards { shards: &self.shared.shards, pass: &self.pass };
        let host = ProcessHost(&self.shared);
        let limit = self.worker.config.client_output_buffer_limit.normal;
        let unix_ms = self.now.unix_us / 1000;
        while let Some(owned) = client.queue.pop_front() {
            let spans: Vec<Span> = (0..owned.args.len()).map(Span::own).collect();
            let args = Args::new(&[], &spans, &owned.args);
            let request = request_of(args, &self.worker);
            let session = &mut client.session;
            let step = dispatch(&mut self.worker, session, request, &locks, &host, &mut self.out);
            match step {
                Step::Done => client.commands += 1,
                Step::Close => {
                    client.closing = true;
                    client.queue.clear();
                }
                Step::HandOver | Step::Postpone => {
                    client.queue.push_front(OwnedRequest { args: owned.args });
                    stopped = Some(step);
                    break;
                }
                Step::Wait => {
                    stopped = Some(step);
                    break;
                }
            }
            if self.out.bytes.len() > OUT_BYTES_MAX {
                self.pass.leave();
                client.keep(&self.out, Mark::default(), self.out.mark());
                self.out.clear();
                let sent = client.send_pending();
                self.pass.enter();
                let over = client.is_over(limit, unix_ms);
                if over {
                    warn_over(client);
                }
                if over || sent.is_err() {
                    // Whoever puts it back into its slot closes it.
                    client.session.record.kill();
                    client.queue.clear();
                }
            }
        }
        self.pass.leave();
        if !client.is_held()
            && let Some(error) = client.broken.take()
            && !client.closing
        {
            let resp3 = client.session.resp3;
            Reply::new(&mut self.out, resp3).error(error.to_string().as_bytes());
            client.closing = true;
        }
        client.keep(&self.out, Mark::default(), self.out.mark());
        self.out.clear();
        client.publish(unix_ms, 0, 0);
        stopped
    }

    /// Executes for another thread what only this one may, and sends the client back.
    pub(crate) fn execute_for(&mut self, mut client: Box<Connection>, origin: Origin) {
        self.execute_queue(&mut client);
        // Before the reply is on its way, which may bring a look at the counts in this very turn.
        self.worker.publish_counters();
        self.shared.send(origin.thread, Message::Return(client, origin.slot));
    }

    /// Executes what CLIENT PAUSE had postponed, as far as it has ended.
    pub(crate) fn resume_paused(&mut self) {
        let mut slots = std::mem::take(&mut self.paused);
        // A slot is there twice when the client that had it was closed and the next waits as well.
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            match self.slots.client(slot) {
                // Its look was postponed, or it has its slot from a client that was paused.
                Some(client) if client.session.waiter.is_some() => self.schedule(slot),
                Some(_) => self.go_on(slot),
                None => {}
            }
        }
    }

    /// Executes what a client has queued, as far as may be, and goes on with its input.
    pub(crate) fn go_on(&mut self, slot: usize) {
        let Some(mut client) = self.slots.lend(slot) else { return };
        let stopped = self.execute_queue(&mut client);
        client.session.record.set_flag(flag::PAUSED, stopped == Some(Step::Postpone));
        self.slots.restore(slot, client);
        if self.close_if_over(slot) {
            return;
        }
        match stopped {
            Some(Step::HandOver) => {
                self.send_pending(slot);
                self.send_away(slot);
            }
            Some(Step::Wait) => {
                self.send_pending(slot);
                self.begin_wait(slot);
            }
            Some(_) => {
                self.paused.push(slot);
                self.send_pending(slot);
            }
            None => {
                self.send_pending(slot);
                if let Some(client) = self.slots.client(slot)
                    && (client.query_buffer.is_some() || client.transport.has_received())
                {
                    self.look_again(slot);
                }
            }
        }
    }
}

fn warn_over(client: &Connection) {
    let record = &client.session.record;
    warning!(
        "Client id={} addr={} closed for exceeding the output buffer limit, omem={}",
        record.id,
        record.address,
        client.output_bytes()
    );
}

fn request_of<'a>(args: Args<'a>, worker: &node::Worker) -> Request<'a> {
    let entry = table().resolve(&args);
    let hasher = &worker.turn.hasher;
    let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
    Request { entry, args, hash }
}

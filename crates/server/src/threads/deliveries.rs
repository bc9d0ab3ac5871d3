//! Published messages on their way from a thread's inbox to its clients: all messages that wait for
//! the same client leave in one write.
//!
//! Messages are written between two requests of their client, never within its reply. They wait, in
//! order, and count for the client's limit, while the client is on the main thread, while a request
//! of it is executed, or while its output waits for the log. The writes that they announce are in
//! the log, so they wait for it as replies do.
//!
//! A client that publishes faster than messages are delivered is suspended until the receivers'
//! threads have room, so the memory for slow threads is bounded; the memory for a slow client is
//! bounded by its output limit. It does not wait for a slow command: its thread takes messages in
//! for the thread that runs one, until half of its limit waits for a client, since clients that
//! read must not be closed for the slow commands of others. After a second in one command they are.
//! That thread takes in no more before it has written these: in each turn some, or as long as its
//! commands have taken.

use std::sync::atomic::Ordering;

use node::clients::ReplyMode;
use node::clients::record::flag;
use node::propagation::subscribe;
use node::{PendingClient, WrittenMessages};
use resp::out::Mark;

use crate::threads::client_state::ClientState;
use crate::threads::connection::{Connection, SEND_BYTES_MAX};
use crate::threads::deliverer::Stall;
use crate::threads::io_thread::IoThread;

/// The bytes of messages that are written in one turn, over all clients, and those that are written
/// at once for as long as the turn's commands have taken, but no longer than the last.
const WRITTEN_BYTES_MAX: usize = 4 << 20;
const MORE_BYTES_MAX: usize = 1 << 20;
const MORE_US_MAX: u64 = 50_000;

/// From so many bytes on, a client's output is noted among its messages.
const NOTED_BYTES_MIN: usize = 1 << 20;

/// From so many bytes on, the output kept for an absent client is checked against its limit.
const KEPT_BYTES_MIN: u64 = 64 << 10;

/// Memory of output that is kept from round to round, in bytes.
const OUT_KEPT_BYTES_MAX: usize = 16 << 10;

impl IoThread {
    /// Takes the messages that have arrived for the thread's clients, and sends them.
    #[inline]
    pub(crate) fn deliver(&mut self) {
        if self.worker.deliveries.is_active() {
            // Memory that replies have left for the next replies stays.
            let kept_bytes = self.out.bytes.capacity().max(OUT_KEPT_BYTES_MAX);
            self.deliver_some();
            self.send_invalidations();
            self.out.clear_to(kept_bytes);
        }
    }

    fn deliver_some(&mut self) {
        let mut ready = std::mem::take(&mut self.deliverer.ready);
        let mut unfinished = std::mem::take(&mut self.deliverer.unfinished);
        let deliveries = &self.worker.deliveries;
        self.deliverer.has_more = match std::mem::take(&mut self.deliverer.has_unwritten) {
            false => deliveries.receive(&mut ready),
            true => {
                deliveries.receive_nothing(&mut ready);
                true
            }
        };
        let (mut bytes_left, mut more_until_tsc) = (WRITTEN_BYTES_MAX, None);
        for pending in &ready {
            if bytes_left == 0 {
                bytes_left = self.more_bytes(&mut more_until_tsc);
            }
            if bytes_left == 0 {
                self.keep(*pending);
                self.deliverer.has_unwritten = true;
                continue;
            }
            let written = self.deliver_to(*pending, bytes_left);
            bytes_left = bytes_left.saturating_sub(written.bytes);
            if written.has_more {
                unfinished.push(*pending);
            }
        }
        // In the next turn, clients that this one has not reached come first.
        self.deliverer.has_unwritten |= !unfinished.is_empty();
        self.deliverer.has_more |= self.deliverer.has_unwritten;
        unfinished.drain(..).for_each(|pending| self.keep(pending));
        self.deliverer.unfinished = unfinished;
        self.deliverer.ready = ready;
    }

    /// How many bytes of messages the turn may write in addition: some, for as long as its commands
    /// have taken. If there were slow ones, much may have been taken in for the thread.
    #[cold]
    fn more_bytes(&self, until_tsc: &mut Option<u64>) -> usize {
        // The turns within a busy script come one after the other.
        if self.ran_nested_turn {
            return 0;
        }
        let now_tsc = sys::clock::tsc();
        let until_tsc = until_tsc.get_or_insert_with(|| {
            let commands_tsc =
                self.worker.last_tsc().saturating_sub(self.turn_tsc.load(Ordering::Relaxed));
            let most_tsc = (MORE_US_MAX as f64 * sys::clock::tsc_per_micro()) as u64;
            now_tsc.saturating_add(commands_tsc.min(most_tsc))
        });
        if now_tsc < *until_tsc { MORE_BYTES_MAX } else { 0 }
    }

    /// Writes pending messages of a client, up to this many bytes, and sends them.
    fn deliver_to(&mut self, pending: PendingClient, bytes_max: usize) -> WrittenMessages {
        let Self { slots, worker, out, .. } = self;
        let client = pending.slot.and_then(|slot| Some((slot, slots.client_mut(slot)?)));
        let here = client.filter(|(_, client)| client.session.record.id == pending.id);
        // A message follows the output that waits for the log, which must not grow for as long as
        // messages arrive.
        let here = here.filter(|(_, client)| {
            client.awaits_log.is_none() || client.session.record.location.is_killed()
        });
        let Some((slot, client)) = here else {
            self.keep(pending);
            return WrittenMessages::default();
        };
        let mut subscribers = worker.deliveries.subscribers();
        let written = subscribers.write(pending, out, client.session.resp3, bytes_max);
        drop(subscribers);
        if written.is_given_up || client.session.record.location.is_killed() {
            out.clear();
            self.close_given_up(slot, pending);
            return written;
        }
        let is_silent =
            client.session.reply_mode == ReplyMode::Off && !client.session.record.has(flag::PUBSUB);
        if is_silent {
            // Lines of MONITOR are no pushes.
            out.clear();
            return written;
        }
        self.send_unasked(slot);
        let output_bytes = self.slots.client(slot).map_or(0, |client| client.output_bytes());
        if output_bytes >= NOTED_BYTES_MIN || pending.had_output {
            let noted = if output_bytes >= NOTED_BYTES_MIN { output_bytes } else { 0 };
            self.worker.deliveries.subscribers().note_output(pending, noted);
        }
        written
    }

    /// Closes a client that was killed, or whose messages reached its limit.
    #[cold]
    fn close_given_up(&mut self, slot: usize, pending: PendingClient) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        if self.worker.node.kill(&client.session.record) {
            self.worker.stats.output_limit_closes.add(1);
        }
        self.close(slot);
        // It may have ended its last subscription before.
        self.worker.deliveries.subscribers().forget(pending.id);
    }

    /// Sends a client, whose output is not waiting for the log, output that it did not request.
    pub(crate) fn send_unasked(&mut self, slot: usize) {
        let Self { slots, worker, out, .. } = self;
        let Some(client) = slots.client_mut(slot) else { return };
        if client.state.is_closing() {
            // It has had its last reply.
            out.clear();
            return;
        }
        if client.wants_write() {
            // It is watched for room already.
            client.keep(out, Mark::default(), out.mark());
            out.clear();
            client.publish(worker, 0, 0);
            if self.log.is_on() {
                self.defer_output(slot);
            }
            self.close_if_over(slot);
        } else {
            if self.log.is_on() {
                // The message depends on writes of other clients, as the reply of a read does.
                self.log.begin_batch(worker.turn.effects.written_units());
            }
            if self.send_replies(slot, SEND_BYTES_MAX) {
                self.after_send(slot);
            }
        }
    }

    /// Keeps messages for a client to which nothing can be written now.
    fn keep(&mut self, pending: PendingClient) {
        let mut subscribers = self.worker.deliveries.subscribers();
        let kept_bytes = subscribers.keep(pending) as u64;
        let is_given_up = kept_bytes == 0 && subscribers.is_given_up(pending.id);
        drop(subscribers);
        if kept_bytes <= KEPT_BYTES_MIN && !is_given_up {
            return;
        }
        let Some(record) = self.worker.node.clients.find(pending.id) else { return };
        let limit = self.worker.config.client_output_buffer_limit.of(record.client_type());
        let is_over = is_given_up
            || limit.hard_bytes != 0 && kept_bytes >= limit.hard_bytes
            || self.worker.node.is_behind(&record, kept_bytes);
        if is_over && self.worker.node.kill(&record) {
            // The thread that has the client closes it.
            self.worker.stats.output_limit_closes.add(1);
        }
    }

    /// Holds a client that publishes until there is room.
    pub(crate) fn wait_for_room(&mut self, slot: usize) {
        if self.deliverer.publishers.is_empty() {
            self.deliverer.stalls.clear();
        }
        self.deliverer.publishers.push(slot);
        self.after_send(slot);
    }

    /// Continues with clients that wait to publish, if a thread has room again.
    pub(crate) fn proceed_with_publishers(&mut self) {
        if self.deliverer.publishers.is_empty() {
            return;
        }
        // Messages to clients of this thread are written first.
        if !self.log.has_room() || self.deliverer.has_unwritten {
            return;
        }
        if self.worker.node.inboxes.are_some_full() {
            self.relieve_stalled();
        }
        let inboxes = &self.worker.node.inboxes;
        let relieved = inboxes.relieved();
        let before = std::mem::replace(&mut self.deliverer.relieved, relieved);
        if relieved == before && inboxes.are_some_full() {
            return;
        }
        for slot in std::mem::take(&mut self.deliverer.publishers) {
            let state = self.slots.client(slot).map(|client| &client.state);
            if matches!(state, Some(ClientState::Congested)) {
                self.proceed(slot);
            }
        }
    }

    /// Takes messages in for threads with full inboxes that do not look into them.
    #[cold]
    fn relieve_stalled(&mut self) {
        let now_ms = self.steady_ms();
        let Self { worker, deliverer, .. } = self;
        let rounds = |thread| (thread, worker.node.inboxes.rounds(thread));
        let stalled = deliverer.stalls.look(worker.full_receivers().map(rounds), now_ms);
        for (thread, stall) in stalled {
            worker.relieve(thread, stall == Stall::Long);
        }
    }

    /// Moves the subscriptions of a client that goes to another thread.
    pub(crate) fn hand_over(&mut self, client: &mut Connection, thread: usize) {
        let Self { worker, out, .. } = self;
        subscribe::hand_over(worker, &client.session, thread, out);
        if out.mark() != Mark::default() {
            client.keep(out, Mark::default(), out.mark());
            out.clear();
            self.log.extend_reply_wait(client);
        }
    }
}

//! Replies that wait for the log, and how a thread follows that there is one.
//!
//! A reply leaves when everything that its request wrote or saw is safe: when the log has reached
//! the position where it ended as the reply was made. While there is a position to wait for
//! ([`LogRing::replies_wait_for`](crate::log::ring::LogRing::replies_wait_for)), a client's output
//! waits in the client, whatever state the client is in, and nothing more is read from it. Its
//! thread serves the other clients, and one message notifies it when the log has advanced. At the
//! end of a turn in which output began to wait, the thread wakes the reader of the log.
//!
//! Without a log that costs a branch for each client that is answered.

use std::sync::Arc;

use resp::out::Mark;

use super::io_thread::IoThread;
use super::message::Message;
use super::reply_waits::ReplyWaits;

impl IoThread {
    /// Attaches to the log that there is now, or detaches from the one that has ended.
    pub(crate) fn follow_log(&mut self) {
        self.log.follows_later = self.access.is_none();
        if self.log.follows_later {
            return;
        }
        let (ring, index) = (self.shared.log.ring(), self.worker.index);
        let producer = ring.as_ref().map(|ring| Box::new(ring.producer(index)) as _);
        self.worker.set_log(producer);
        let is_same = ring.as_ref().map(Arc::as_ptr) == self.log.ring.as_ref().map(Arc::as_ptr);
        self.shared.log.followed(index, ring.as_deref());
        let before = std::mem::replace(&mut self.log.ring, ring);
        if is_same {
            return;
        }
        self.log.ended = before;
        if self.log.is_on() {
            // It begins when the one before has ended.
            self.release_waiting_before(u64::MAX);
            self.log.ended = None;
        }
        self.log_reached();
    }

    /// At the end of a turn: notifies the reader of the log of new units and of waiting output.
    #[inline]
    pub(crate) fn look_at_log(&mut self) {
        if self.log.is_on() {
            self.report_to_log();
        }
        if self.log.follows_later {
            self.follow_log();
        }
    }

    fn report_to_log(&mut self) {
        let ReplyWaits { ring, is_urgent, .. } = &mut self.log;
        let Some(ring) = ring else { return };
        match std::mem::take(is_urgent) {
            true => ring.urge(),
            false => ring.look(),
        }
    }

    /// Keeps the replies so far in a client if they have to wait for the log. Returns whether they
    /// do.
    #[inline(never)]
    pub(crate) fn defer_replies(&mut self, slot: usize) -> bool {
        let wrote = self.log.units.take() != Some(self.worker.turn.effects.written_units());
        let Some(ring) = &self.log.ring else { return false };
        let Some(until) = ring.replies_wait_for().filter(|_| wrote || !ring.serves_reads()) else {
            return false;
        };
        let Some(client) = self.slots.client_mut(slot) else { return false };
        client.keep(&self.out, Mark::default(), self.out.mark());
        self.out.clear();
        client.awaits_log = Some(until);
        client.log_wrote |= wrote;
        client.publish(&self.worker, 0, 0);
        self.begin_reply_wait(slot, until)
    }

    /// The same for output that is already pending in the client.
    pub(crate) fn defer_output(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        if client.output.is_none() {
            return;
        }
        // Its pending output precedes the output that waited for the log elsewhere.
        let wrote = client.log_wrote;
        let hold = self.log.ring.as_ref().filter(|ring| wrote || !ring.serves_reads());
        client.awaits_log = hold.and_then(|ring| ring.replies_wait_for());
        client.log_wrote &= client.awaits_log.is_some();
        if let Some(until) = client.awaits_log {
            self.begin_reply_wait(slot, until);
        }
    }

    /// Takes over a client that has moved here with output that waits for the log.
    pub(crate) fn adopt_reply_wait(&mut self, slot: usize) {
        if let Some(until) = self.slots.client(slot).and_then(|client| client.awaits_log)
            && !self.begin_reply_wait(slot, until)
        {
            self.send_pending(slot);
        }
    }

    /// Waits until the log reaches a position. Returns whether it must.
    fn begin_reply_wait(&mut self, slot: usize, until: u64) -> bool {
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let waits = match self.log.awaited() {
            Some(ring) => ring.replies.wait(self.worker.index, until),
            None => false,
        };
        if !waits {
            client.awaits_log = None;
            return false;
        }
        self.log.is_urgent = true;
        self.log.waiting.push((slot, client.session.record.id));
        true
    }

    /// Acts on a log that has advanced, was replaced or has ended.
    pub(crate) fn log_reached(&mut self) {
        self.release_waiting();
        if !self.log.waits.is_empty() {
            self.end_log_waits();
        }
    }

    /// Sends the output that no longer waits for the log, and continues with those clients.
    pub(crate) fn release_waiting(&mut self) {
        self.release_waiting_before(
            self.log.awaited().map_or(u64::MAX, |ring| ring.replies.reached()),
        );
    }

    fn release_waiting_before(&mut self, reached: u64) {
        let serves_reads = self.log.awaited().is_some_and(|ring| ring.serves_reads());
        let mut first = u64::MAX;
        let mut waiting = std::mem::take(&mut self.log.waiting);
        let mut ready = Vec::new();
        waiting.retain(|(slot, id)| {
            let client = self.slots.client(*slot).filter(|client| client.session.record.id == *id);
            let hold = client.and_then(|client| Some((client.awaits_log?, client.log_wrote)));
            let Some((until, wrote)) = hold else { return false };
            let waits = until > reached && (wrote || !serves_reads);
            if waits {
                first = first.min(until);
            } else {
                ready.push(*slot);
            }
            waits
        });
        waiting.append(&mut self.log.waiting);
        self.log.waiting = waiting;
        if self.log.waiting.is_empty() {
            self.log.ended = None;
        }
        if let Some(ring) = self.log.awaited()
            && first != u64::MAX
            && !ring.replies.wait(self.worker.index, first)
        {
            // The log has advanced since, and may not notify this thread of that.
            self.shared.send(self.worker.index, Message::LogReached);
        }
        for slot in ready {
            self.release_client(slot);
        }
    }

    /// Whether the output of a client waits for the log.
    pub(crate) fn awaits_log(&self, slot: usize) -> bool {
        self.slots.client(slot).is_some_and(|client| client.awaits_log.is_some())
    }

    fn release_client(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        client.awaits_log = None;
        client.log_wrote = false;
        self.send_pending(slot);
        // Messages that have arrived since are written now.
        self.look_at_messages(slot);
        self.deliverer.has_more |= self.worker.deliveries.is_active();
        // A throttled client continues when more of its output has left.
        let Some(client) = self.slots.client(slot) else { return };
        if !client.throttled && client.has_more_to_do() {
            self.look_again(slot);
        }
    }
}

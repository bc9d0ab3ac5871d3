//! Invalidations for clients that track keys, on their way from the clients' records to their
//! sockets.
//!
//! They are written between two replies of their client. While the client is on the main thread, or
//! a request of it is executed, they wait in its record, which is read when the client returns. A
//! client whose wait for a key is over gets that reply first: the keys that it has read may have
//! changed since.
//!
//! A thread sends invalidations for a bounded time in a turn, so that its other clients do not wait
//! for thousands of them. Keys that change during that time are added to the later ones.

use node::ClientRecord;
use node::clients::client_tracking::write_messages;
use node::propagation::invalidations;

use crate::threads::io_thread::IoThread;

impl IoThread {
    /// Sends the thread's clients the invalidations that wait for them.
    pub(crate) fn send_invalidations(&mut self) {
        self.worker.notify_rounds();
        let since_tsc = sys::clock::tsc();
        while let Some(record) = self.worker.deliveries.next_look() {
            self.send_invalidations_to(&record);
            if self.worker.is_turn_used(since_tsc, sys::clock::tsc()) {
                self.deliverer.has_more = true;
                return;
            }
        }
    }

    fn send_invalidations_to(&mut self, record: &ClientRecord) {
        let (thread, slot) = record.location.place();
        let slot = slot as usize;
        let is_here = |thread: &Self| {
            thread.slots.client(slot).is_some_and(|client| client.session.record.id == record.id)
        };
        // The thread that gets the client next reads its record.
        if thread as usize != self.worker.index || !is_here(self) {
            return;
        }
        let is_over = |thread: &Self| {
            let blocked = thread.slots.client(slot).and_then(|client| client.state.blocked());
            blocked.is_some_and(|blocked| !blocked.waiter.waits())
        };
        if is_over(self) {
            self.end_wait(slot);
            // If a shard is in use, its reply comes later, and it proceeds after that.
            if !is_here(self) || is_over(self) {
                return;
            }
        }
        // A client whose output waits for the log is served when that has left.
        let Self { slots, out, .. } = self;
        if let Some(client) = slots.client_mut(slot).filter(|client| client.awaits_log.is_none()) {
            write_messages(&client.session, out);
            self.send_unasked(slot);
        }
    }

    /// Schedules the invalidations of a client that was on the main thread or executed something.
    #[inline]
    pub(crate) fn look_at_messages(&self, slot: usize) {
        if let Some(client) = self.slots.client(slot)
            && client.session.record.tracking.has_messages()
        {
            self.worker.deliveries.look_at(&client.session.record);
        }
    }

    /// Sends the invalidations of a client that has moved here from here on.
    pub(crate) fn follow_invalidations_here(&mut self, slot: usize) {
        if let Some(client) = self.slots.client(slot) {
            invalidations::arrived(&mut self.worker, &client.session);
        }
        self.look_at_messages(slot);
    }
}

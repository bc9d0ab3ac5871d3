//! What clients that track keys are told, on its way from their records to their sockets.
//!
//! It is written between two replies of its client. For one that is away, or for which something is
//! executed, it waits in the record, which is looked at when the client is back. One whose wait for
//! a key is over gets the reply first: what it has read may have changed since.
//!
//! A thread tells clients for a bounded time in a turn, so that the others do not wait for
//! thousands of them. What changes meanwhile adds to what those are told who come later.

use node::ClientRecord;
use node::clients::tracking::write_messages;
use node::propagation::tracking;

use crate::threads::io_thread::IoThread;

impl IoThread {
    /// Tells the thread's clients what waits for them.
    pub(crate) fn send_invalidations(&mut self) {
        self.worker.tell_rounds();
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
        // Whoever gets it next looks for itself.
        if thread as usize != self.worker.index || !is_here(self) {
            return;
        }
        let is_over = |thread: &Self| {
            let blocked = thread.slots.client(slot).and_then(|client| client.state.blocked());
            blocked.is_some_and(|blocked| !blocked.waiter.waits())
        };
        if is_over(self) {
            self.end_wait(slot);
            // Its reply is still to come if a shard is in use, and it proceeds behind that.
            if !is_here(self) || is_over(self) {
                return;
            }
        }
        // One whose output is held is looked at when that has left.
        let Self { slots, out, .. } = self;
        if let Some(client) = slots.client_mut(slot).filter(|client| client.awaits_log.is_none()) {
            write_messages(&client.session, out);
            self.send_unasked(slot);
        }
    }

    /// Sees to it that a client which has been away, or for which something was executed, is told
    /// what has come meanwhile.
    #[inline]
    pub(crate) fn look_at_messages(&self, slot: usize) {
        if let Some(client) = self.slots.client(slot)
            && client.session.record.tracking.has_messages()
        {
            self.worker.deliveries.look_at(&client.session.record);
        }
    }

    /// A client has moved here: it is told here from now on.
    pub(crate) fn follow_invalidations_here(&mut self, slot: usize) {
        if let Some(client) = self.slots.client(slot) {
            tracking::arrived(&mut self.worker, &client.session);
        }
        self.look_at_messages(slot);
    }
}

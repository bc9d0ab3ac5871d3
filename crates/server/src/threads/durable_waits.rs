//! Clients that wait with WAITAOF until their writes are durable in this server's file. Waits for
//! replicas only are not among them: the log does not end these.
//!
//! The log notifies the thread of such a client when it reaches a position that one of them waits
//! for, and the thread ends the waits that are over.

use node::state::durability::{AwaitedCopies, LogWait};

use crate::threads::io_thread::IoThread;

/// The waits that the log ends.
const LOCAL: AwaitedCopies = AwaitedCopies::Files { local: true, replicas: false };

impl IoThread {
    /// Adds a client that begins to wait, or has moved here while waiting.
    pub(crate) fn begin_log_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        self.log.waits.insert(client.session.record.id, slot);
        self.end_log_waits();
    }

    /// Ends the waits that are over, and asks for a notification when the others are.
    pub(super) fn end_log_waits(&mut self) {
        let ring = self.shared.log.ring();
        // Asked before the check below, so that no progress is missed.
        if let Some(ring) = &ring {
            let first = self.log.waits.values().filter_map(|slot| {
                let wait = self.log_wait(*slot).filter(|wait| wait.copies == LOCAL)?;
                let own = wait.written.filter(|place| place.log == ring.number());
                // Any base contains the earlier writes.
                Some(own.map_or(1, |place| place.position))
            });
            if let Some(first) = first.min() {
                let _ = ring.synced.wait(self.worker.index, first);
            }
        }
        let mut ended = Vec::new();
        self.log.waits.retain(|id, slot| {
            let client = self.slots.client(*slot).filter(|client| client.session.record.id == *id);
            let waiter = client.and_then(|client| Some(&client.state.blocked()?.waiter));
            let Some((waiter, wait)) = waiter.and_then(|waiter| Some((waiter, waiter.log_wait()?)))
            else {
                return false;
            };
            let is_over = match (&ring, wait.is_over(&self.worker.node.durability)) {
                (_, true) => waiter.log_reached(),
                (None, false) => waiter.log_ended(),
                (Some(_), false) => false,
            };
            if is_over {
                ended.push(*slot);
            }
            !is_over
        });
        for slot in ended {
            self.end_wait(slot);
        }
    }

    fn log_wait(&self, slot: usize) -> Option<&LogWait> {
        self.slots.client(slot)?.state.blocked()?.waiter.log_wait()
    }
}

//! Sending output to clients, and the limits of pending output.
//!
//! A reply is sent as far as the socket takes it, up to a bound for each turn; the rest waits. A
//! client with too much pending output is closed (`client-output-buffer-limit`) before any of the
//! reply that exceeds the limit is sent.

use resp::out::Mark;

use crate::system::server_log::warning;
use crate::threads::connection::{Connection, SEND_BYTES_MAX};
use crate::threads::io_thread::IoThread;

impl IoThread {
    /// Sends the replies so far, up to `bytes_max` bytes. Returns whether the client is still
    /// there.
    pub(crate) fn send_replies(&mut self, slot: usize, bytes_max: usize) -> bool {
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let to = self.out.mark();
        if to == Mark::default() {
            return true;
        }
        let limit = client.hard_limit(&self.worker.config);
        if limit != 0 && self.is_too_long(slot, limit) {
            return false;
        }
        if self.log.is_on() && self.defer_replies(slot) {
            return !self.close_if_over(slot);
        }
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let was_held_back = client.throttled;
        let sent = client.send(&mut self.out, bytes_max);
        self.out.clear();
        match sent {
            Ok(count) => {
                self.worker.stats.writes.add(1);
                self.worker.stats.out_bytes.add(count as u64);
                client.publish(&self.worker, 0, count);
                if client.throttled && !was_held_back {
                    self.again.push_back(slot);
                }
                !self.close_if_over(slot)
            }
            Err(_) => {
                self.close(slot);
                false
            }
        }
    }

    /// Closes a client whose replies are beyond the limit before any of them is sent. As in Redis,
    /// one that is too long is not answered by a part of it. Returns whether it did.
    #[cold]
    fn is_too_long(&mut self, slot: usize, limit: u64) -> bool {
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let bytes = self.out.bytes_since(Mark::default()) + client.output_bytes();
        let is_over = bytes as u64 >= limit;
        if is_over {
            client.keep(&self.out, Mark::default(), self.out.mark());
            // So much room is not needed soon.
            self.out.clear_to(0);
            self.close_if_over(slot);
        }
        is_over
    }

    /// Closes a client whose waiting replies are beyond the limit, or that was killed. Returns
    /// whether it did.
    pub(crate) fn close_if_over(&mut self, slot: usize) -> bool {
        let Some(client) = self.slots.client_mut(slot) else { return false };
        let over = client.wants_write() && client.is_over(&self.worker);
        let killed = client.session.record.location.is_killed();
        if over && !killed {
            self.worker.stats.output_limit_closes.add(1);
            warn_over(client);
        }
        if over || killed {
            self.close(slot);
        }
        over || killed
    }

    /// Sends pending output to a client, and continues with the client if it was throttled.
    pub(crate) fn send_pending(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let was_held_back = client.throttled;
        match client.send_pending(SEND_BYTES_MAX) {
            Ok(sent) => {
                self.worker.stats.writes.add(u64::from(sent > 0));
                self.worker.stats.out_bytes.add(sent as u64);
                client.publish(&self.worker, 0, sent);
                let is_held_back = client.throttled;
                if is_held_back && !was_held_back {
                    self.again.push_back(slot);
                } else if was_held_back && !is_held_back && client.has_more_to_do() {
                    self.look_again(slot);
                }
                self.after_send(slot);
            }
            Err(_) => self.close(slot),
        }
    }

    /// Closes a client that is done, and watches the others for what they need now.
    pub(crate) fn after_send(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        if client.state.is_closing() && !client.wants_write() {
            return self.close(slot);
        }
        let interest = client.interest();
        if client.watched != Some(interest) {
            self.watch(slot, interest);
        }
    }
}

/// Says in the log why a client is closed.
pub(crate) fn warn_over(client: &Connection) {
    let record = &client.session.record;
    warning!(
        "Client id={} addr={} closed for exceeding the output buffer limit, omem={}",
        record.id,
        record.address,
        client.output_bytes()
    );
}

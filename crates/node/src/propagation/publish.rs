//! Publishing messages, and waking the threads that receive them.

use pubsub::{ChannelKind, ChannelRegistry, PublishedMessage};

use crate::execution::worker::Worker;
use crate::state::inboxes::{Delivery, ReliefCause};

/// The most bytes of messages that wait for a client whose thread does not write them, if
/// `client-output-buffer-limit pubsub` has no limit.
const PENDING_BYTES_MAX: usize = 1 << 30;

impl Worker {
    /// Publishes a message to a channel of a kind. Returns how many receivers it has.
    #[inline]
    pub(crate) fn publish(&mut self, kind: ChannelKind, channel: &[u8], payload: &[u8]) -> usize {
        // Redis sends PUBLISH to replicas, and does not log it.
        let (count, fills) =
            self.send_message(|pubsub, send| pubsub.publish(kind, channel, payload, send));
        self.receivers.were_some_full |= fills;
        count
    }

    /// Whether a transaction or script has published so much since the last call that its client
    /// must wait before its next request, as a client does before it publishes more.
    #[inline]
    pub fn take_fills_inboxes(&mut self) -> bool {
        self.receivers.were_some_full && std::mem::take(&mut self.receivers.were_some_full)
    }

    /// Publishes an event of a key on a channel.
    pub(crate) fn publish_event(&mut self, channel: &[u8], payload: &[u8]) {
        self.send_message(|pubsub, send| pubsub.publish_event(channel, payload, send));
    }

    /// Returns how many receivers a message has, and whether the inbox of one was full.
    #[inline]
    fn send_message(
        &mut self,
        publish: impl FnOnce(&ChannelRegistry, &mut dyn FnMut(usize, PublishedMessage)) -> usize,
    ) -> (usize, bool) {
        let Self { node, receivers, .. } = self;
        let count = publish(&node.pubsub, &mut |thread, message| {
            node.inboxes.push(thread, Delivery::Published(message));
            receivers.threads |= 1 << thread;
        });
        let fills = count > 0 && node.inboxes.are_some_full() && self.relieve_receivers();
        (count, fills)
    }

    /// A script, a transaction or a command on many keys publishes more than the receiving threads
    /// take in meanwhile, one of which may be this thread. Returns whether some inbox was full.
    #[cold]
    fn relieve_receivers(&self) -> bool {
        let inboxes = &self.node.inboxes;
        let mut are_some_full = false;
        for thread in inboxes.full_threads() {
            let is_receiver = self.receivers.threads >> thread & 1 != 0;
            are_some_full |= is_receiver;
            if is_receiver && (thread == self.index || inboxes.is_overfull(thread)) {
                inboxes.relieve(thread, ReliefCause::Command(self.waiting_bytes_max()));
            }
        }
        are_some_full
    }

    /// The threads, besides this one, for which publishers wait.
    pub fn full_receivers(&self) -> impl Iterator<Item = usize> {
        let (inboxes, index) = (&self.node.inboxes, self.index);
        inboxes.full_threads().filter(move |thread| *thread != index)
    }

    /// Takes some messages in for a thread whose inbox is full and that does not look into it. If
    /// it has not for long, its clients whose messages reach the limit are given up: it closes them
    /// when it writes to them the next time.
    #[cold]
    pub fn relieve(&self, thread: usize, is_long: bool) {
        let limit = self.waiting_bytes_max();
        let cause = if is_long { ReliefCause::LongStall(limit) } else { ReliefCause::Stall(limit) };
        self.node.inboxes.relieve(thread, cause);
    }

    /// How many bytes may wait for a client whose thread does not write them.
    fn waiting_bytes_max(&self) -> usize {
        let bytes_max = self.config.client_output_buffer_limit.pubsub.hard_bytes;
        match usize::try_from(bytes_max) {
            Ok(0) | Err(_) => PENDING_BYTES_MAX,
            Ok(bytes_max) => bytes_max,
        }
    }

    /// Whether threads must be [woken](Self::wake_receivers).
    #[inline]
    pub fn has_receivers(&self) -> bool {
        self.receivers.threads != 0
    }

    /// Wakes the threads in whose inboxes this one has put messages. Outside the gate.
    pub fn wake_receivers(&mut self) {
        let mut receivers = std::mem::take(&mut self.receivers.threads) & !(1 << self.index);
        while receivers != 0 {
            let thread = receivers.trailing_zeros() as usize;
            receivers &= receivers - 1;
            self.node.inboxes.wake(thread);
        }
    }
}

//! Publishing messages, and waking the threads that receive them.

use pubsub::{ChannelKind, ChannelRegistry, PublishedMessage};

use crate::execution::worker::Worker;
use crate::state::inboxes::Delivery;

/// The most bytes of messages that wait for a client whose thread does not write them, if
/// `client-output-buffer-limit pubsub` has no limit.
const PENDING_BYTES_MAX: usize = 1 << 30;

impl Worker {
    /// Publishes a message to a channel of a kind. Returns how many receivers it has.
    #[inline]
    pub(crate) fn publish(&mut self, kind: ChannelKind, channel: &[u8], payload: &[u8]) -> usize {
        // Redis sends PUBLISH to replicas, and does not log it.
        self.send_message(|pubsub, send| pubsub.publish(kind, channel, payload, send))
    }

    /// Publishes an event of a key on a channel.
    pub(crate) fn publish_event(&mut self, channel: &[u8], payload: &[u8]) {
        self.send_message(|pubsub, send| pubsub.publish_event(channel, payload, send));
    }

    #[inline]
    fn send_message(
        &mut self,
        publish: impl FnOnce(&ChannelRegistry, &mut dyn FnMut(usize, PublishedMessage)) -> usize,
    ) -> usize {
        let Self { node, receivers, .. } = self;
        let count = publish(&node.pubsub, &mut |thread, message| {
            node.inboxes.push(thread, Delivery::Published(message));
            *receivers |= 1 << thread;
        });
        if count > 0 && node.inboxes.are_some_full() {
            self.relieve_receivers();
        }
        count
    }

    /// A script, a transaction or a command on many keys publishes more than the receiving threads
    /// take in meanwhile, one of which may be this thread.
    #[cold]
    fn relieve_receivers(&self) {
        let inboxes = &self.node.inboxes;
        for thread in inboxes.full_threads() {
            let is_receiver = self.receivers >> thread & 1 != 0;
            if is_receiver && (thread == self.index || inboxes.is_overfull(thread)) {
                self.relieve(thread);
            }
        }
    }

    /// The threads, besides this one, for which publishers wait.
    pub fn full_receivers(&self) -> impl Iterator<Item = usize> {
        let (inboxes, index) = (&self.node.inboxes, self.index);
        inboxes.full_threads().filter(move |thread| *thread != index)
    }

    /// Takes some messages in for a thread whose inbox is full, and gives up its clients whose
    /// messages exceed the limit.
    #[cold]
    pub fn relieve(&self, thread: usize) {
        let bytes_max = self.config.client_output_buffer_limit.pubsub.hard_bytes;
        let bytes_max = match usize::try_from(bytes_max) {
            Ok(0) | Err(_) => PENDING_BYTES_MAX,
            Ok(bytes_max) => bytes_max,
        };
        for client in self.node.inboxes.relieve(thread, bytes_max) {
            if let Some(record) = self.node.clients.find(client)
                && self.node.kill(&record)
            {
                // The thread closes it when it writes to it the next time.
                self.stats.output_limit_closes.add(1);
            }
        }
    }

    /// Whether threads must be [woken](Self::wake_receivers).
    #[inline]
    pub fn has_receivers(&self) -> bool {
        self.receivers != 0
    }

    /// Wakes the threads in whose inboxes this one has put messages. Outside the gate.
    pub fn wake_receivers(&mut self) {
        let mut receivers = std::mem::take(&mut self.receivers) & !(1 << self.index);
        while receivers != 0 {
            let thread = receivers.trailing_zeros() as usize;
            receivers &= receivers - 1;
            self.node.inboxes.wake(thread);
        }
    }
}

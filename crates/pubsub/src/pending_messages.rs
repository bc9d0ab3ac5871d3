//! The messages that clients of one thread have not received yet. A message stays as long as some
//! client refers to it.

use crate::message::{DELIVERY_BYTES, PublishedMessage, SharedName};

/// A message to the channel itself, not by a pattern.
pub(crate) const NO_PATTERN: u32 = u32::MAX;
/// Entries that lists keep from round to round.
pub(crate) const PENDING_KEPT: usize = 64;

/// A pending message, and the pattern by which a client receives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageRef {
    /// Its place among the messages.
    pub(crate) message: u32,
    pub(crate) pattern: u32,
}

/// A message that clients have not received yet.
#[derive(Debug)]
struct PendingMessage {
    message: PublishedMessage,
    /// How many references to it are pending.
    references: usize,
}

/// The messages that clients have not received yet, each in a place of its own.
#[derive(Debug, Default)]
pub(crate) struct PendingMessages {
    places: Vec<Option<PendingMessage>>,
    free: Vec<u32>,
    /// The approximate memory that all of them take, shared by their receivers.
    pub(crate) bytes: usize,
}

impl PendingMessages {
    /// The place of the message that is added next.
    pub(crate) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.places.len() as u32)
    }

    pub(crate) fn add(&mut self, message: PublishedMessage, references: usize) {
        self.bytes += memory_of(&message) + references * size_of::<MessageRef>();
        let message = Some(PendingMessage { message, references });
        match self.free.pop() {
            Some(place) => self.places[place as usize] = message,
            None => self.places.push(message),
        }
    }

    pub(crate) fn get(&self, item: MessageRef) -> Option<&PublishedMessage> {
        let pending = self.places.get(item.message as usize)?.as_ref();
        debug_assert!(pending.is_some(), "what is pending is here");
        pending.map(|pending| &pending.message)
    }

    /// Drops a reference, and with the last one the message.
    pub(crate) fn release(&mut self, item: MessageRef) {
        let Some(place) = self.places.get_mut(item.message as usize) else { return };
        let Some(pending) = place else { return };
        pending.references -= 1;
        self.bytes -= size_of::<MessageRef>();
        if pending.references > 0 {
            return;
        }
        self.bytes -= memory_of(&pending.message);
        *place = None;
        self.free.push(item.message);
        if self.free.len() == self.places.len() && self.places.len() > PENDING_KEPT {
            *self = Self::default();
        }
    }
}

/// The approximate memory of a message without the references to it.
fn memory_of(message: &PublishedMessage) -> usize {
    message.body().len() + DELIVERY_BYTES
}

/// The pattern of a reference to a message, or `None` for a message to the channel itself.
pub(crate) fn pattern_of(message: &PublishedMessage, item: MessageRef) -> Option<&SharedName> {
    let matches = message.matches.as_ref().filter(|_| item.pattern != NO_PATTERN);
    matches.and_then(|matches| matches.patterns.get(item.pattern as usize)).map(|(name, _)| name)
}

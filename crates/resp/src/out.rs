//! The output of a client: one buffer, and at offsets in it large values that are not copied but
//! shared with the keyspace or with the outputs of other clients.

use std::ops::Deref;
use std::sync::Arc;

use base::uncounted::{Uncounted, block_bytes};

/// Memory that a buffer keeps for removed bytes.
const REMOVED_KEPT_BYTES_MAX: usize = 64 * 1024;
/// The most memory of the buffer that counts for a byte of a notification.
const NOTIFICATION_MEMORY_PER_BYTE: usize = 2;

/// The replies of one client, or of all clients of one turn in sequence.
#[derive(Debug, Default)]
pub struct Out {
    /// All bytes except the shared values.
    pub bytes: Vec<u8>,
    /// Shared values, in order of their offsets.
    shared: Vec<SharedValue>,
    /// The client is closed if there are more bytes than this, not counting shared values; 0 for no
    /// limit.
    pub bytes_max: usize,
    /// How many of the bytes, not counting shared values, are notifications about keys.
    notification_bytes: usize,
    /// The memory of these bytes, which never causes eviction.
    uncounted: Uncounted,
}

#[derive(Debug)]
struct SharedValue {
    /// The value is sent before the byte at this offset in `bytes`.
    at: usize,
    value: SharedBytes,
}

/// Bytes that several owners share.
#[derive(Clone, Debug)]
pub enum SharedBytes {
    /// A value of the keyspace.
    Value(Arc<Vec<u8>>),
    /// A message to several clients.
    Message(Arc<SharedMessage>),
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Value(value) => value,
            Self::Message(message) => message,
        }
    }
}

/// A message to several clients. If it is about keys, its memory never causes eviction.
#[derive(Debug, Default)]
pub struct SharedMessage {
    bytes: Vec<u8>,
    uncounted: Uncounted,
}

impl SharedMessage {
    /// A message that is not about keys.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, uncounted: Uncounted::default() }
    }

    /// A message about keys.
    pub fn about_keys(bytes: Vec<u8>) -> Self {
        let uncounted = Uncounted::new(block_bytes(bytes.capacity()));
        Self { bytes, uncounted }
    }

    /// Whether the message is about keys.
    pub fn is_about_keys(&self) -> bool {
        self.uncounted.bytes() != 0
    }

    /// The message's memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Deref for SharedMessage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Out {
    /// Appends a value without copying it.
    pub fn push_shared(&mut self, value: Arc<Vec<u8>>) {
        self.push(SharedBytes::Value(value));
    }

    /// Appends a message to several clients without copying it.
    pub fn push_message(&mut self, message: Arc<SharedMessage>) {
        self.push(SharedBytes::Message(message));
    }

    fn push(&mut self, value: SharedBytes) {
        self.shared.push(SharedValue { at: self.bytes.len(), value });
    }

    /// Records that the last `bytes` bytes are notifications about keys.
    pub fn count_notification(&mut self, bytes: usize) {
        self.notification_bytes += bytes;
        // A growing buffer has up to twice the memory that it needs.
        let block = block_bytes(self.bytes.capacity());
        self.uncounted.set(block.min(NOTIFICATION_MEMORY_PER_BYTE * self.notification_bytes));
    }

    /// How many bytes, not counting shared values, are notifications about keys, at most.
    #[inline]
    pub fn notification_bytes(&self) -> usize {
        self.notification_bytes
    }

    #[inline]
    fn forget_notifications(&mut self) {
        if self.notification_bytes != 0 {
            self.notification_bytes = 0;
            self.uncounted.set(0);
        }
    }

    /// Appends another output.
    pub fn append(&mut self, other: Self) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        if other.notification_bytes != 0 {
            self.count_notification(other.notification_bytes);
        }
        let moved = |shared: SharedValue| SharedValue { at: offset + shared.at, ..shared };
        self.shared.extend(other.shared.into_iter().map(moved));
    }

    /// Whether the output exceeds the client's limit.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.bytes_max != 0 && self.bytes.len() > self.bytes_max
    }

    /// A mark to `truncate` to.
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// How many bytes were written after the mark.
    pub fn bytes_since(&self, mark: Mark) -> usize {
        let shared = self.shared.iter().skip(mark.shared).map(|shared| shared.value.len());
        self.bytes.len().saturating_sub(mark.bytes) + shared.sum::<usize>()
    }

    /// Removes everything after the mark, and frees its memory if it is much.
    pub fn truncate(&mut self, mark: Mark) {
        let removed = self.bytes.len().saturating_sub(mark.bytes);
        self.bytes.truncate(mark.bytes);
        self.shared.truncate(mark.shared);
        if mark.bytes == 0 {
            self.forget_notifications();
        }
        if removed > REMOVED_KEPT_BYTES_MAX {
            self.bytes.shrink_to(mark.bytes + REMOVED_KEPT_BYTES_MAX);
        }
    }

    /// Inserts bytes at a mark, before everything after it.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        self.bytes.splice(mark.bytes..mark.bytes, bytes.iter().copied());
        for shared in &mut self.shared[mark.shared..] {
            shared.at += bytes.len();
        }
    }

    /// Removes everything and keeps the buffer's memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        self.forget_notifications();
    }

    /// Removes everything. Each of the two lists keeps at most `kept_bytes_max` of memory.
    pub fn clear_to(&mut self, kept_bytes_max: usize) {
        base::room::clear(&mut self.bytes, kept_bytes_max);
        base::room::clear(&mut self.shared, kept_bytes_max);
        self.forget_notifications();
    }

    /// The pieces between two marks, in order.
    pub fn pieces(&self, from: Mark, to: Mark) -> impl Iterator<Item = Piece<'_>> {
        let mut at = from.bytes;
        let values = self.shared[from.shared..to.shared].iter();
        let tail_at = values.as_slice().last().map_or(from.bytes, |last| last.at);
        values
            .flat_map(move |shared| {
                let before = Piece::Bytes(&self.bytes[at..shared.at]);
                at = shared.at;
                [before, Piece::Shared(&shared.value)]
            })
            .chain(std::iter::once(Piece::Bytes(&self.bytes[tail_at..to.bytes])))
            .filter(|piece| !piece.as_slice().is_empty())
    }
}

/// A position in an [`Out`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The offset in `bytes`.
    pub bytes: usize,
    /// The number of shared values before it.
    pub shared: usize,
}

impl Mark {
    /// Whether there are shared values between the two marks.
    pub fn shares_since(self, from: Self) -> bool {
        self.shared != from.shared
    }
}

/// A contiguous part of the output.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Bytes of the buffer.
    Bytes(&'a [u8]),
    /// A shared value.
    Shared(&'a SharedBytes),
}

impl<'a> Piece<'a> {
    /// The bytes of either kind.
    pub fn as_slice(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(value) => value,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::uncounted::thread_bytes;

    use super::*;

    #[test]
    fn a_cleared_output_keeps_a_bounded_amount_of_memory() {
        let mut out = Out::default();
        out.bytes.resize(1 << 20, 0);
        let value = Arc::new(Vec::new());
        (0..100_000).for_each(|_| out.push_shared(Arc::clone(&value)));
        out.clear_to(1000);
        assert!(out.bytes.capacity() <= 1000 && out.shared.capacity() <= 1000);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn removed_bytes_leave_a_bounded_amount_of_memory() {
        let mut out = Out::default();
        out.bytes.extend_from_slice(b"kept");
        let mark = out.mark();
        out.bytes.resize(1 << 20, 0);
        out.truncate(mark);
        assert_eq!(out.bytes, b"kept");
        assert!(out.bytes.capacity() <= 4 + REMOVED_KEPT_BYTES_MAX);
    }

    /// A message about keys is excluded once until the last client has sent it, on any thread.
    /// Other messages are not excluded.
    #[test]
    fn a_shared_message_about_keys_is_excluded_until_the_last_client_drops_it() {
        let event = Arc::new(SharedMessage::about_keys(Vec::with_capacity(1 << 20)));
        let other = Arc::new(SharedMessage::new(Vec::with_capacity(1 << 20)));
        assert_eq!(
            (event.is_about_keys(), other.is_about_keys(), thread_bytes()),
            (true, false, 1 << 20)
        );
        let mut outs: Vec<Out> = (0..3).map(|_| Out::default()).collect();
        for out in &mut outs {
            out.push_message(Arc::clone(&event));
            out.push_message(Arc::clone(&other));
            out.push_shared(Arc::new(vec![0; 1 << 20]));
        }
        drop((event, other));
        let mut last = outs.pop().unwrap();
        outs.iter_mut().for_each(|out| out.truncate(Mark::default()));
        assert_eq!(thread_bytes(), 1 << 20);
        last.append(outs.remove(0));
        let here = std::thread::spawn(move || {
            drop(last);
            thread_bytes()
        });
        assert_eq!((here.join().unwrap(), thread_bytes()), (-(1 << 20), 1 << 20));
    }

    #[test]
    fn pieces_interleave_shared_values() {
        let mut out = Out::default();
        out.bytes.extend_from_slice(b"skipped");
        out.push_shared(Arc::new(b"skipped too".to_vec()));
        let from = out.mark();
        out.bytes.extend_from_slice(b"$3\r\n");
        out.push_shared(Arc::new(b"abc".to_vec()));
        out.bytes.extend_from_slice(b"\r\n");
        out.push_shared(Arc::new(b"def".to_vec()));
        let to = out.mark();
        let text: Vec<u8> = out.pieces(from, to).flat_map(|p| p.as_slice().to_vec()).collect();
        assert_eq!(text, b"$3\r\nabc\r\ndef");
        assert_eq!(out.pieces(from, to).count(), 4);
        let mut other = Out::default();
        other.bytes.extend_from_slice(b">");
        let other_from = other.mark();
        other.append(std::mem::take(&mut out));
        let text: Vec<u8> =
            other.pieces(other_from, other.mark()).flat_map(|p| p.as_slice().to_vec()).collect();
        assert_eq!(text, b"skippedskipped too$3\r\nabc\r\ndef");
        other.truncate(other_from);
        assert_eq!(other.pieces(other_from, other.mark()).count(), 0);
    }
}

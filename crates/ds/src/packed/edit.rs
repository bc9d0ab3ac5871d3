//! Changes packed lists in any buffer.

use std::ops::Range;

use crate::packed::{COUNT_BYTES, COUNT_UNKNOWN, Encoded, Packed, stored_count};
use crate::record::Record;

/// A container for the bytes of a packed list.
pub trait Buffer {
    /// The bytes for reading.
    fn bytes(&self) -> &[u8];

    /// The bytes for writing.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Replaces `range` with `room` bytes of unspecified content, which the caller then writes.
    /// Returns all bytes.
    fn splice(&mut self, range: Range<usize>, room: usize) -> &mut [u8];
}

impl Buffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn splice(&mut self, range: Range<usize>, room: usize) -> &mut [u8] {
        let (old_len, end) = (self.len(), range.start + room);
        let len = old_len - range.len() + room;
        if len > old_len {
            self.resize(len, 0);
        }
        self.copy_within(range.end..old_len, end);
        self.truncate(len);
        self
    }
}

/// The inline bytes of a record. The record keeps its kind. An object counts as no bytes; the first
/// change drops it.
impl<P> Buffer for Record<P> {
    fn bytes(&self) -> &[u8] {
        self.view().bytes().unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        Record::bytes_mut(self).unwrap_or_default()
    }

    fn splice(&mut self, range: Range<usize>, room: usize) -> &mut [u8] {
        let kind = self.view().kind();
        let old_len = Buffer::bytes(self).len();
        let (end, len) = (range.start + room, old_len - range.len() + room);
        if len >= old_len {
            let bytes = self.resize_bytes(kind, len);
            bytes.copy_within(range.end..old_len, end);
            bytes
        } else {
            Buffer::bytes_mut(self).copy_within(range.end..old_len, end);
            self.resize_bytes(kind, len)
        }
    }
}

/// A packed list opened for writing.
///
/// Each change moves the following bytes once. Positions before a change stay valid.
#[derive(Debug)]
pub struct PackedMut<'a, B: Buffer> {
    buffer: &'a mut B,
}

impl<'a, B: Buffer> PackedMut<'a, B> {
    /// The list in a buffer, which may be empty.
    #[inline]
    pub fn new(buffer: &'a mut B) -> Self {
        Self { buffer }
    }

    /// The list for reading.
    #[inline]
    pub fn view(&self) -> Packed<'_> {
        Packed::new(self.buffer.bytes())
    }

    /// Adds an element at the end.
    #[inline]
    pub fn push_back<'e>(&mut self, element: impl Into<Encoded<'e>>) {
        let end = self.view().end();
        self.insert(end, element);
    }

    /// Adds an element at the front.
    #[inline]
    pub fn push_front<'e>(&mut self, element: impl Into<Encoded<'e>>) {
        self.insert(0, element);
    }

    /// Inserts an element before the one at position `at`.
    #[inline]
    pub fn insert<'e>(&mut self, at: usize, element: impl Into<Encoded<'e>>) {
        let element = element.into();
        let room = self.replace_span(at..at, 0, element.len(), 1);
        element.write(room);
    }

    /// Replaces the element at position `at`.
    #[inline]
    pub fn replace<'e>(&mut self, at: usize, element: impl Into<Encoded<'e>>) {
        let element = element.into();
        let end = self.view().after(at);
        let room = self.replace_span(at..end, 1, element.len(), 1);
        element.write(room);
    }

    /// Removes at most `elements` elements, starting at position `at`. Returns their number.
    pub fn remove(&mut self, at: usize, elements: usize) -> usize {
        let view = self.view();
        let mut end = at;
        let mut removed = 0;
        while removed < elements && end < view.end() {
            end = view.after(end);
            removed += 1;
        }
        self.remove_span(at..end, removed);
        removed
    }

    /// Removes the `elements` elements between two positions.
    pub fn remove_span(&mut self, span: Range<usize>, elements: usize) {
        if elements > 0 {
            self.replace_span(span, elements, 0, 0);
        }
    }

    /// Removes at most `max` elements that equal `element`, from the front or from the back.
    /// Returns their number.
    pub fn remove_equal(&mut self, element: &Encoded<'_>, max: usize, from_back: bool) -> usize {
        let mut removed = 0;
        let mut at = if from_back { self.view().end() } else { 0 };
        while removed < max {
            let view = self.view();
            let found =
                if from_back { view.find_back(element, at) } else { view.find(*element, at, 1) };
            let Some(found) = found else { break };
            self.remove(found, 1);
            at = found;
            removed += 1;
        }
        removed
    }

    /// Replaces the `elements` elements between two positions with `new`. Moves the following bytes
    /// once, however many elements change.
    pub fn splice<'e, I>(&mut self, span: Range<usize>, elements: usize, new: I)
    where
        I: IntoIterator<Item: Into<Encoded<'e>>>,
        I::IntoIter: Clone,
    {
        let new = new.into_iter();
        let (bytes, count) = new
            .clone()
            .fold((0, 0), |(bytes, count), element| (bytes + element.into().len(), count + 1));
        let mut room = self.replace_span(span, elements, bytes, count);
        for element in new {
            let written = element.into().write(room);
            room = &mut room[written..];
        }
    }

    /// Adds elements at the end.
    pub fn extend<'e, I>(&mut self, new: I)
    where
        I: IntoIterator<Item: Into<Encoded<'e>>>,
        I::IntoIter: Clone,
    {
        let end = self.view().end();
        self.splice(end..end, 0, new);
    }

    /// Adds all elements of another list at the end.
    pub fn append(&mut self, more: Packed<'_>) {
        let end = self.view().end();
        let room = self.replace_span(end..end, 0, more.entries.len(), more.len());
        room.copy_from_slice(more.entries);
    }

    /// Replaces `removed` elements in `span` with room for `count` elements of `room` bytes, and
    /// updates the stored count.
    #[inline]
    fn replace_span(
        &mut self,
        span: Range<usize>,
        removed: usize,
        room: usize,
        count: usize,
    ) -> &mut [u8] {
        if self.buffer.bytes().is_empty() {
            self.buffer.splice(0..0, COUNT_BYTES).fill(0);
        }
        let (start, end) = (span.start + COUNT_BYTES, span.end + COUNT_BYTES);
        let len = self.len_after(span, removed, count);
        let bytes = if end - start == room {
            self.buffer.bytes_mut()
        } else {
            self.buffer.splice(start..end, room)
        };
        bytes[..COUNT_BYTES].copy_from_slice(&len.to_le_bytes());
        &mut bytes[start..start + room]
    }

    /// The count to store after a change.
    #[inline]
    fn len_after(&self, span: Range<usize>, removed: usize, added: usize) -> u16 {
        let view = self.view();
        let old_len = if view.count < COUNT_UNKNOWN {
            usize::from(view.count)
        } else if removed == 0 {
            return COUNT_UNKNOWN;
        } else {
            view.len()
        };
        debug_assert_eq!(view.between(span.start, span.end).count(), removed);
        stored_count(old_len - removed + added)
    }
}

//! A chunk of a list: a packed list in an allocation with slack before it, after it, or both.
//!
//! ```text
//! room   | slack | count, entries | slack |
//!                ^ start          ^ end
//! ```
//!
//! A change moves the shorter side, so pushing and popping at either end moves almost nothing. Room
//! doubles when it grows. A chunk that is no longer at an end of its list is *sealed*: its room is
//! cut to the allocator's size class of its contents.

use std::ops::Range;

use crate::packed::{Buffer, COUNT_BYTES, Encoded, Packed, PackedMut};
use crate::record::class_bytes;

/// From this size on a chunk has one large element and no slack.
const DOUBLING_BYTES_END: usize = 1 << 16;
const ROOM_BYTES_MIN: usize = 64;
/// Room up to this size is kept even if it is nearly empty.
const SPARSE_ROOM_BYTES_MAX: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct ListChunk {
    room: Box<[u8]>,
    /// 32 bits suffice for all numbers here: a chunk of several elements has little more than a
    /// megabyte (`REPLACED_BYTES_MAX`), and one element with its frame is below 4 GiB.
    start: u32,
    end: u32,
    /// The number of elements, so that an index is found without reading the chunks before it.
    count: u32,
    /// See `Chunks`, which sets it.
    pub(super) number: u32,
}

impl ListChunk {
    /// A chunk of one element.
    pub(super) fn of(element: Encoded<'_>) -> Self {
        let mut chunk = Self::default();
        chunk.edit(|list| list.push_back(element));
        chunk
    }

    /// A chunk with the elements of a packed list.
    pub(super) fn of_packed(list: Packed<'_>) -> Self {
        let mut chunk = Self::default();
        chunk.edit(|own| own.append(list));
        chunk
    }

    /// The same in a chunk without slack.
    pub(super) fn sealed(list: Packed<'_>) -> Self {
        let room = vec![0; class_bytes(COUNT_BYTES + list.end())].into_boxed_slice();
        let mut chunk = Self { room, ..Self::default() };
        chunk.edit(|own| own.append(list));
        chunk
    }

    /// The same with a chunk number.
    #[inline]
    pub(super) fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    #[inline]
    pub(super) fn view(&self) -> Packed<'_> {
        Packed::new(self.bytes())
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// The position of the list in the room.
    #[inline]
    fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    #[inline]
    fn set_span(&mut self, span: Range<usize>) {
        debug_assert!(span.end <= u32::MAX as usize, "a chunk is below 4 GiB");
        (self.start, self.end) = (span.start as u32, span.end as u32);
    }

    /// Changes the chunk and counts its elements again.
    #[inline]
    pub(super) fn edit<R>(&mut self, change: impl FnOnce(&mut PackedMut<'_, Self>) -> R) -> R {
        let mut list = PackedMut::new(self);
        let result = change(&mut list);
        self.count = self.view().len() as u32;
        // A nearly empty chunk frees its room.
        if self.room.len() > SPARSE_ROOM_BYTES_MAX && self.span().len() < self.room.len() / 4 {
            self.seal();
        }
        result
    }

    /// Moves the elements from a position on to a new chunk, which is sealed; this one keeps its
    /// room.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let (span, (_, tail)) = (at..self.view().end(), self.view().split_at(at));
        let right = Self::sealed(tail);
        self.edit(|list| list.remove_span(span, right.len()));
        right
    }

    /// Frees the slack.
    pub(super) fn seal(&mut self) {
        let wanted = class_bytes(self.span().len());
        if wanted < self.room.len() {
            self.relocate(wanted, 0..0, 0, false);
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        class_bytes(self.room.len())
    }

    /// Moves the contents into room of `capacity` with all slack on one side, and replaces the
    /// bytes of `range` with `new` bytes of any content.
    fn relocate(&mut self, capacity: usize, range: Range<usize>, new: usize, slack_front: bool) {
        let Range { start, end } = self.span();
        let (head, tail) = (start..start + range.start, start + range.end..end);
        let len = head.len() + new + tail.len();
        let to = if slack_front { capacity - len } else { 0 };
        let tail_to = to + head.len() + new;
        if capacity != self.room.len() {
            let mut fresh = vec![0; capacity].into_boxed_slice();
            fresh[to..to + head.len()].copy_from_slice(&self.room[head]);
            fresh[tail_to..to + len].copy_from_slice(&self.room[tail]);
            self.room = fresh;
        } else if slack_front {
            // The part that moves outwards goes first, so that no byte is overwritten.
            self.room.copy_within(tail, tail_to);
            self.room.copy_within(head, to);
        } else {
            self.room.copy_within(head, to);
            self.room.copy_within(tail, tail_to);
        }
        self.set_span(to..to + len);
    }
}

/// The room to allocate for `len` bytes.
fn grown(len: usize) -> usize {
    if len < DOUBLING_BYTES_END {
        len.next_power_of_two().max(ROOM_BYTES_MIN)
    } else {
        class_bytes(len)
    }
}

impl Buffer for ListChunk {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.room[self.span()]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let span = self.span();
        &mut self.room[span]
    }

    fn splice(&mut self, range: Range<usize>, new: usize) -> &mut [u8] {
        let Range { start, end } = self.span();
        let (head, tail) = (start..start + range.start, start + range.end..end);
        let front = head.len() < tail.len();
        let old = range.len();
        let len = head.len() + new + tail.len();
        if new <= old {
            let less = old - new;
            if front {
                self.room.copy_within(head, start + less);
                self.set_span(start + less..end);
            } else {
                self.room.copy_within(tail.clone(), tail.start - less);
                self.set_span(start..end - less);
            }
        } else {
            let more = new - old;
            if front && start >= more {
                self.room.copy_within(head, start - more);
                self.set_span(start - more..end);
            } else if !front && self.room.len() - end >= more {
                self.room.copy_within(tail.clone(), tail.start + more);
                self.set_span(start..end + more);
            } else {
                let capacity = if len <= self.room.len() { self.room.len() } else { grown(len) };
                self.relocate(capacity, range, new, front);
            }
        }
        self.bytes_mut()
    }
}

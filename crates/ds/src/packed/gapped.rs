//! A packed list in the inline bytes of a record, preceded by a gap.
//!
//! ```text
//! offset 0   gap   u16, little-endian: bytes from here to the list
//!        2   the gap, of any content
//!      ...   the list: count, entries
//! ```
//!
//! Removing an element from the front widens the gap, and adding one there narrows it, so a queue
//! moves only the bytes of the element. Invariant: after a removal the gap is at most a quarter of
//! the list or a few bytes, and always fits its field. Zero bytes are an empty list, too.

use std::ops::Range;

use crate::packed::{Buffer, Packed, PackedMut};
use crate::record::Record;
use crate::table::prefetch_bytes;

const HEADER_BYTES: usize = 2;
/// The longest gap: a longer one does not fit the header and is closed.
const GAP_BYTES_MAX: usize = u16::MAX as usize;
/// A removal never closes a gap up to this size.
const GAP_BYTES_MIN: usize = 32;
/// A removal closes a gap above 1/4 of the list.
const GAP_PART_MAX: usize = 4;
/// A list that needs room at its end closes a gap of 1/8 of the list or more instead of growing.
const GAP_PART_WORTH: usize = 8;

/// Bytes prefetched on either side of a list's end.
const PREFETCH_BYTES: usize = 128;

/// The list in the inline bytes of a record, opened for writing.
pub struct Gapped<'a, P> {
    record: &'a mut Record<P>,
}

/// Reads the list in the inline bytes of a record.
#[inline]
pub fn view(bytes: &[u8]) -> Packed<'_> {
    let start = start_of(bytes);
    Packed::new(bytes.get(start..).unwrap_or_default())
}

/// Prefetches the first elements and the gap before them. Reads the header to find them.
#[inline]
pub fn prefetch_front(bytes: &[u8]) {
    let start = bytes.as_ptr().wrapping_add(start_of(bytes));
    prefetch_bytes(start.wrapping_sub(PREFETCH_BYTES), 2 * PREFETCH_BYTES);
}

/// Prefetches the last elements and the room after them.
#[inline]
pub fn prefetch_back(bytes: &[u8]) {
    prefetch_bytes(bytes.as_ptr_range().end.wrapping_sub(PREFETCH_BYTES), 2 * PREFETCH_BYTES);
}

/// The inline bytes of a record for a list in its encoded form.
pub fn bytes_of(list: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + list.len());
    bytes.extend_from_slice(&[0; HEADER_BYTES]);
    bytes.extend_from_slice(list);
    bytes
}

/// Appends the inline bytes of a record for a list.
pub fn append(list: Packed<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; HEADER_BYTES]);
    list.append_to(out);
}

/// Where the list begins.
#[inline]
fn start_of(bytes: &[u8]) -> usize {
    match bytes.first_chunk::<HEADER_BYTES>() {
        Some(gap) => HEADER_BYTES + usize::from(u16::from_le_bytes(*gap)),
        None => 0,
    }
}

impl<'a, P> Gapped<'a, P> {
    /// The list in a record, whose inline bytes may be empty.
    #[inline]
    pub fn new(record: &'a mut Record<P>) -> Self {
        Self { record }
    }

    /// The list for writing.
    #[inline]
    pub fn list(&mut self) -> PackedMut<'_, Self> {
        PackedMut::new(self)
    }

    fn all(&mut self) -> &mut [u8] {
        Record::bytes_mut(self.record).unwrap_or_default()
    }

    fn set_gap(&mut self, gap: usize) {
        debug_assert!(gap <= GAP_BYTES_MAX, "callers close a longer gap");
        self.all()[..HEADER_BYTES].copy_from_slice(&(gap as u16).to_le_bytes());
    }

    /// Replaces `range` with `new` bytes, at most as many.
    #[inline]
    fn narrow(&mut self, start: usize, range: Range<usize>, new: usize) {
        let kind = self.record.view().kind();
        let bytes = self.all();
        let total = bytes.len();
        let less = range.len() - new;
        if range.start < total - start - range.end {
            bytes.copy_within(start..start + range.start, start + less);
            let gap = start + less - HEADER_BYTES;
            let list = total - start - less;
            if gap > GAP_BYTES_MAX || gap > GAP_BYTES_MIN && gap > list / GAP_PART_MAX {
                bytes.copy_within(start + less.., HEADER_BYTES);
                self.record.resize_bytes(kind, HEADER_BYTES + list);
                self.set_gap(0);
            } else {
                self.set_gap(gap);
            }
        } else {
            bytes.copy_within(start + range.end.., start + range.start + new);
            self.record.resize_bytes(kind, total - less);
        }
    }

    /// Replaces `range` with `new` bytes, more than it has.
    fn widen(&mut self, start: usize, range: Range<usize>, new: usize) {
        let kind = self.record.view().kind();
        let total = self.all().len();
        let (head, tail) = (start..start + range.start, start + range.end..total);
        let more = new - range.len();
        let gap = start - HEADER_BYTES;
        let list = total - start + more;
        let spare = self.record.view().spare_bytes();
        if head.len() < tail.len() {
            if more <= gap {
                self.all().copy_within(head, start - more);
                self.set_gap(gap - more);
                return;
            }
            // All spare bytes of the allocation become the gap.
            let needed = HEADER_BYTES + list;
            if needed > total + spare {
                self.record.resize_bytes(kind, needed);
            }
            let room = self.all().len() + self.record.view().spare_bytes();
            let gap = (room - needed).min(GAP_BYTES_MAX);
            let bytes = self.record.resize_bytes(kind, needed + gap);
            bytes.copy_within(tail.clone(), needed + gap - tail.len());
            bytes.copy_within(head, HEADER_BYTES + gap);
            self.set_gap(gap);
        } else if more <= spare || gap < list / GAP_PART_WORTH {
            let bytes = self.record.resize_bytes(kind, total + more);
            bytes.copy_within(tail.clone(), tail.start + more);
        } else {
            let needed = HEADER_BYTES + list;
            if needed > total {
                self.record.resize_bytes(kind, needed);
            }
            let bytes = self.all();
            bytes.copy_within(head.clone(), HEADER_BYTES);
            bytes.copy_within(tail, HEADER_BYTES + head.len() + new);
            self.record.resize_bytes(kind, needed);
            self.set_gap(0);
        }
    }
}

impl<P> Buffer for Gapped<'_, P> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        let bytes = self.record.view().bytes().unwrap_or_default();
        bytes.get(start_of(bytes)..).unwrap_or_default()
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.all();
        let start = start_of(bytes);
        bytes.get_mut(start..).unwrap_or_default()
    }

    fn splice(&mut self, range: Range<usize>, new: usize) -> &mut [u8] {
        if self.all().is_empty() {
            let kind = self.record.view().kind();
            self.record.resize_bytes(kind, HEADER_BYTES + new);
        } else {
            let start = start_of(self.all());
            if new <= range.len() {
                self.narrow(start, range, new);
            } else {
                self.widen(start, range, new);
            }
        }
        self.bytes_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use crate::packed::Entry;
    use crate::record::Payload;

    #[test]
    fn a_queue_stays_small_and_moves_little() {
        let mut record: Record<u64> = Record::new(b"queue", 4, Payload::Bytes(b""), None, 0);
        let element = |i: i64| format!("element-{i:05}").into_bytes();
        (0..100).for_each(|i| Gapped::new(&mut record).list().push_back(&element(i)[..]));
        let size = record.view().allocated_bytes();
        let mut closed = 0;
        for i in 100..10_000 {
            let mut gapped = Gapped::new(&mut record);
            assert_eq!(gapped.list().remove(0, 1), 1);
            let after_removal = gapped.record.view().bytes().map(start_of);
            closed += usize::from(after_removal == Some(HEADER_BYTES));
            gapped.list().push_back(&element(i)[..]);
            let list = view(record.view().bytes().unwrap_or_default());
            assert_eq!(list.len(), 100);
            assert_eq!(list.first(), Some(Entry::Bytes(&element(i - 99))));
            assert_eq!(list.last(), Some(Entry::Bytes(&element(i))));
            assert!(record.view().allocated_bytes() <= size * 3 / 2);
        }
        assert!(closed < 1000, "the gap was closed {closed} times");
    }

    proptest! {
        /// A list of about a megabyte loses most elements from the front, of all sizes.
        #[test]
        fn a_long_list_is_emptied_from_the_front(
            lens in prop::collection::vec(
                prop_oneof![Just(0usize), 1usize..300, 8_000usize..9_000, 60_000usize..140_000],
                16..40,
            ),
            changes in prop::collection::vec((0u8..8, any::<usize>(), 1usize..4), 1..40),
        ) {
            let mut record: Record<u64> = Record::new(b"long", 4, Payload::Bytes(b""), None, 0);
            let mut model: VecDeque<Vec<u8>> =
                lens.iter().zip(b'A'..).map(|(len, byte)| vec![byte; *len]).collect();
            Gapped::new(&mut record).list().extend(model.iter().map(Vec::as_slice));
            for (op, pick, count) in changes {
                let mut gapped = Gapped::new(&mut record);
                let mut list = gapped.list();
                match op {
                    0..5 => {
                        prop_assert_eq!(list.remove(0, count), count.min(model.len()));
                        model.drain(..count.min(model.len()));
                    }
                    5 if !model.is_empty() => {
                        let index = pick % model.len();
                        let at = list.view().position(index);
                        let element = vec![b'r'; pick % 9_000];
                        list.replace(at, &element[..]);
                        model[index] = element;
                    }
                    _ => {
                        let element = vec![b'f'; pick % 9_000];
                        list.push_front(&element[..]);
                        model.push_front(element);
                    }
                }
                let list = view(record.view().bytes().unwrap_or_default());
                prop_assert!(list.iter().eq(model.iter().map(|element| Entry::of(element))));
            }
        }
    }

    #[test]
    fn a_gap_is_closed_before_its_field_overflows() {
        // The list has more than 256 KB, a quarter of which does not fit the gap's field.
        const ELEMENTS: i64 = 100_000;
        let mut record: Record<u64> = Record::new(b"queue", 4, Payload::Bytes(b""), None, 0);
        Gapped::new(&mut record).list().extend(10_000..10_000 + ELEMENTS);
        for first in (0..ELEMENTS).step_by(1000) {
            let list = view(record.view().bytes().unwrap_or_default());
            assert_eq!(list.first(), Some(Entry::Integer(10_000 + first)));
            assert_eq!(list.last(), Some(Entry::Integer(10_000 + ELEMENTS - 1)));
            Gapped::new(&mut record).list().remove(0, 1000);
        }
        assert!(view(record.view().bytes().unwrap_or_default()).is_empty());
    }

    #[test]
    fn a_list_that_grows_in_front_grows_by_size_classes() {
        let mut record: Record<u64> = Record::new(b"stack", 4, Payload::Bytes(b""), None, 0);
        for i in 0..1000 {
            Gapped::new(&mut record).list().push_front(&[b'x'; 10][..]);
            let bytes = record.view().bytes().unwrap_or_default();
            let list = view(bytes);
            assert_eq!(list.len(), i + 1);
            assert!(bytes.len() <= HEADER_BYTES + (list.end() + 2) * 5 / 4 + 16);
        }
    }
}

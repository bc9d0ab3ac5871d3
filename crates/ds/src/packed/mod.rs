//! Packed lists: the elements of a small collection, one after the other in one run of bytes.
//!
//! ```text
//! offset 0   count    u16, little-endian; 65535 means that many or more
//!        2   entries  see `entry`
//! ```
//!
//! Zero bytes are an empty list, too. The entries are those of a listpack of Redis. Its 6 bytes of
//! header and its terminator are not stored, but [`Packed::listpack_bytes`] includes them, because
//! thresholds and files do.
//!
//! A *position* is the offset of an entry after the count, or the end. Lists come from this program
//! or have passed [`check`]: invalid positions and bytes may panic, but never touch other memory.

mod check;
mod edit;
mod entry;
pub mod gapped;

pub use check::{Checked, check};
pub use edit::{Buffer, PackedMut};
pub use entry::{Digits, Encoded, Entry, FRAME_BYTES_MAX};
pub(crate) use entry::{after, before};
pub use gapped::Gapped;

pub(crate) const COUNT_BYTES: usize = 2;
/// Counts from here on are not stored.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// Bytes of a listpack in addition to its entries: length, count and terminator.
const LISTPACK_FRAME_BYTES: usize = 7;

/// A borrowed packed list.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    entries: &'a [u8],
    count: u16,
}

impl<'a> Packed<'a> {
    /// The list in `bytes`, which start with the count.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        match bytes.split_first_chunk::<COUNT_BYTES>() {
            Some((count, entries)) => Self { entries, count: u16::from_le_bytes(*count) },
            None => Self { entries: &[], count: 0 },
        }
    }

    /// The list with these `len` encoded entries.
    pub fn of_entries(entries: &'a [u8], len: usize) -> Self {
        Self { entries, count: stored_count(len) }
    }

    /// The encoded entries.
    #[inline]
    pub fn entries(self) -> &'a [u8] {
        self.entries
    }

    /// Appends the count and the entries to `out`.
    pub fn append_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(self.entries);
    }

    /// Elements.
    #[inline]
    pub fn len(self) -> usize {
        if self.count < COUNT_UNKNOWN { usize::from(self.count) } else { count(self.entries) }
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    /// The size of the listpack with these entries.
    #[inline]
    pub fn listpack_bytes(self) -> usize {
        self.entries.len() + LISTPACK_FRAME_BYTES
    }

    /// The position after the last entry.
    #[inline]
    pub fn end(self) -> usize {
        self.entries.len()
    }

    /// The entry at a position before the end.
    #[inline]
    pub fn entry(self, at: usize) -> Entry<'a> {
        Entry::at(self.entries, at)
    }

    /// The position after the entry at `at`, or the end if `at` is the end.
    #[inline]
    pub fn after(self, at: usize) -> usize {
        if at < self.entries.len() { after(self.entries, at) } else { at }
    }

    /// The position before `at`, or the start if `at` is the start.
    #[inline]
    pub fn before(self, at: usize) -> usize {
        if at > 0 { before(self.entries, at) } else { 0 }
    }

    /// The position of element `index`, or the end if there is none. Walks from the nearer end.
    pub fn position(self, index: usize) -> usize {
        let len = self.len();
        if index >= len {
            return self.end();
        }
        if index <= len / 2 {
            self.skip(0, index)
        } else {
            (index..len).fold(self.end(), |at, _| before(self.entries, at))
        }
    }

    /// The position `elements` elements after another, or the end.
    #[inline]
    pub fn skip(self, mut at: usize, elements: usize) -> usize {
        for _ in 0..elements {
            at = self.after(at);
        }
        at
    }

    /// Element `index`, counted from the front.
    pub fn get(self, index: usize) -> Option<Entry<'a>> {
        let at = self.position(index);
        (at < self.end()).then(|| self.entry(at))
    }

    /// The first element.
    #[inline]
    pub fn first(self) -> Option<Entry<'a>> {
        (!self.is_empty()).then(|| self.entry(0))
    }

    /// The last element.
    #[inline]
    pub fn last(self) -> Option<Entry<'a>> {
        (!self.is_empty()).then(|| self.entry(before(self.entries, self.end())))
    }

    /// The position of the first entry that equals `wanted`, among the one at `from` and every
    /// `stride`th after it. A stride of 2 searches the fields of field and value pairs.
    #[inline]
    pub fn find<'b>(
        self,
        wanted: impl Into<Encoded<'b>>,
        from: usize,
        stride: usize,
    ) -> Option<usize> {
        let wanted = wanted.into();
        let mut at = from;
        while at < self.entries.len() {
            if wanted.is_at(self.entries, at) {
                return Some(at);
            }
            at = self.skip(at, stride.max(1));
        }
        None
    }

    /// The position of the last entry before the position `end` that holds `element`.
    pub fn find_back(self, element: &Encoded<'_>, end: usize) -> Option<usize> {
        let mut at = end;
        while at > 0 {
            at = before(self.entries, at);
            if element.is_at(self.entries, at) {
                return Some(at);
            }
        }
        None
    }

    /// The indexes of the elements that equal `element`, counted from the front.
    pub fn matches<'b>(self, element: Encoded<'b>) -> impl Iterator<Item = usize> + use<'a, 'b> {
        let (mut at, mut index) = (0, 0);
        std::iter::from_fn(move || {
            while at < self.entries.len() {
                let found = element.is_at(self.entries, at);
                at = after(self.entries, at);
                index += 1;
                if found {
                    return Some(index - 1);
                }
            }
            None
        })
    }

    /// The same counted from the back, where the last element is 0.
    pub fn rev_matches<'b>(
        self,
        element: Encoded<'b>,
    ) -> impl Iterator<Item = usize> + use<'a, 'b> {
        let (mut at, mut index) = (self.entries.len(), 0);
        std::iter::from_fn(move || {
            while at > 0 {
                at = before(self.entries, at);
                index += 1;
                if element.is_at(self.entries, at) {
                    return Some(index - 1);
                }
            }
            None
        })
    }

    /// Whether the entry at a position before the end holds `element`.
    #[inline]
    pub fn is_at(self, element: &Encoded<'_>, at: usize) -> bool {
        element.is_at(self.entries, at)
    }

    /// The lists before and after a position.
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let (head, tail) = self.entries.split_at(at);
        let len = self.len();
        // Only the list with fewer bytes is counted.
        let head_len = match head.len() < tail.len() {
            true => count(head),
            false => len - count(tail),
        };
        let list = |entries, len| Self { entries, count: stored_count(len) };
        (list(head, head_len), list(tail, len - head_len))
    }

    /// Iterates over the elements from both ends.
    #[inline]
    pub fn iter(self) -> PackedIter<'a> {
        PackedIter { entries: self.entries, front: 0, back: self.entries.len() }
    }

    /// Iterates over the elements between two positions, from both ends.
    #[inline]
    pub fn between(self, from: usize, to: usize) -> PackedIter<'a> {
        PackedIter { entries: self.entries, front: from, back: to.min(self.entries.len()) }
    }
}

/// Counts entries.
fn count(entries: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < entries.len() {
        at = after(entries, at);
        count += 1;
    }
    count
}

/// The stored count of a list of `len` elements.
fn stored_count(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(COUNT_UNKNOWN)
}

impl<'a> IntoIterator for Packed<'a> {
    type Item = Entry<'a>;
    type IntoIter = PackedIter<'a>;

    fn into_iter(self) -> PackedIter<'a> {
        self.iter()
    }
}

/// An iterator over the elements of a packed list.
#[derive(Clone, Debug)]
pub struct PackedIter<'a> {
    entries: &'a [u8],
    front: usize,
    back: usize,
}

impl PackedIter<'_> {
    /// The position of the element that `next` returns.
    pub fn front(&self) -> usize {
        self.front
    }

    /// The position after the element that `next_back` returns.
    pub fn back(&self) -> usize {
        self.back
    }
}

impl<'a> Iterator for PackedIter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.front >= self.back {
            return None;
        }
        let entry = Entry::at(self.entries, self.front);
        self.front = after(self.entries, self.front);
        Some(entry)
    }
}

impl DoubleEndedIterator for PackedIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        self.back = before(self.entries, self.back);
        Some(Entry::at(self.entries, self.back))
    }
}

impl std::iter::FusedIterator for PackedIter<'_> {}

#[cfg(test)]
mod tests;

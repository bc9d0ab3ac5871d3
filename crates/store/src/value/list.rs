//! The list type: packed elements in the record while they are few, chunks of them when many.
//!
//! ```text
//! within list-max-listpack-size    PackedList   elements in the record, after a gap
//! beyond                           List         chunks, each within the same limit
//! ```
//!
//! A long list is always the record's object, a short one the record's inline bytes.

use ds::List as LongList;
use ds::packed::{Encoded, Entry, Packed, gapped};
use ds::record::RecordRef;

use super::stored::{Object, StoredType, ValueKind};

/// The list type.
pub enum ListValue {}

/// A borrowed list.
#[derive(Clone, Copy, Debug)]
pub enum ListRef<'a> {
    /// Elements in the record.
    Packed(Packed<'a>),
    /// Chunks.
    Long(&'a LongList),
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first element, the head.
    Left,
    /// The last element, the tail.
    Right,
}

impl StoredType for ListValue {
    const EMPTY: ValueKind = ValueKind::PackedList;
    type View<'a> = ListRef<'a>;

    #[inline]
    fn view(record: RecordRef<'_, Object>) -> Option<ListRef<'_>> {
        match ValueKind::from_bits(record.kind()) {
            ValueKind::PackedList => Some(ListRef::Packed(gapped::view(record.bytes()?))),
            ValueKind::List => match record.object()? {
                Object::List(list) => Some(ListRef::Long(list)),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_empty(record: RecordRef<'_, Object>) -> bool {
        Self::view(record).is_none_or(ListRef::is_empty)
    }
}

impl<'a> ListRef<'a> {
    /// Elements.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Packed(list) => list.len(),
            Self::Long(list) => list.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Element `index`, counted from the left.
    pub fn get(self, index: usize) -> Option<Entry<'a>> {
        match self {
            Self::Packed(list) => list.get(index),
            Self::Long(list) => list.get(index),
        }
    }

    /// The element at an end.
    #[inline]
    pub fn end(self, side: Side) -> Option<Entry<'a>> {
        match (self, side) {
            (Self::Packed(list), Side::Left) => list.first(),
            (Self::Packed(list), Side::Right) => list.last(),
            (Self::Long(list), Side::Left) => list.front(),
            (Self::Long(list), Side::Right) => list.back(),
        }
    }

    /// The bytes that an element from this list counts as when another list checks its limit: as in
    /// Redis, an integer from chunks counts as none.
    pub fn moved_bytes(self, element: Entry<'_>) -> usize {
        match (self, element) {
            (Self::Long(_), Entry::Integer(_)) => 0,
            _ => element.len(),
        }
    }

    /// The elements from `index` on.
    pub fn iter_from(self, index: usize) -> impl Iterator<Item = Entry<'a>> {
        match self {
            Self::Packed(list) => Entries::Packed(list.between(list.position(index), list.end())),
            Self::Long(list) => Entries::Long(list.iter_from(index)),
        }
    }

    /// The indexes of the elements that equal `element` among the first `max`, counted from an end.
    pub fn matches<'b>(
        self,
        element: &'b [u8],
        from: Side,
        max: usize,
    ) -> impl Iterator<Item = usize> + use<'a, 'b> {
        let element = Encoded::text(element);
        let is_left = from == Side::Left;
        let (packed, long) = match self {
            Self::Packed(list) => (Some(list), None),
            Self::Long(list) => (None, Some(list)),
        };
        let forward = packed.filter(|_| is_left).map(|list| list.matches(element));
        let backward = packed.filter(|_| !is_left).map(|list| list.rev_matches(element));
        let packed = forward.into_iter().flatten().chain(backward.into_iter().flatten());
        let forward = long.filter(|_| is_left).map(|list| list.matches(element, max));
        let backward = long.filter(|_| !is_left).map(|list| list.rev_matches(element, max));
        let long = forward.into_iter().flatten().chain(backward.into_iter().flatten());
        packed.take_while(move |index| *index < max).chain(long)
    }

    /// The elements before index `end`, in reverse order.
    pub fn rev_before(self, end: usize) -> impl Iterator<Item = Entry<'a>> {
        match self {
            Self::Packed(list) => Entries::Packed(list.between(0, list.position(end)).rev()),
            Self::Long(list) => Entries::Long(list.rev_before(end)),
        }
    }
}

/// The elements of one form or the other.
enum Entries<P, L> {
    Packed(P),
    Long(L),
}

impl<'a, P, L> Iterator for Entries<P, L>
where
    P: Iterator<Item = Entry<'a>>,
    L: Iterator<Item = Entry<'a>>,
{
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        match self {
            Self::Packed(entries) => entries.next(),
            Self::Long(entries) => entries.next(),
        }
    }

    // Chooses the form once and not for each element.
    #[inline]
    fn fold<B, F: FnMut(B, Entry<'a>) -> B>(self, start: B, each: F) -> B {
        match self {
            Self::Packed(entries) => entries.fold(start, each),
            Self::Long(entries) => entries.fold(start, each),
        }
    }
}

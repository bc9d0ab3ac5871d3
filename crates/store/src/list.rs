//! The list type: packed elements in the record while they are few, chunks of them when many.
//!
//! ```text
//! within list-max-listpack-size    PackedList   elements in the record, behind a gap
//! beyond                           List         chunks, each within the same limit
//! ```
//!
//! A list grows into chunks when what is added leads beyond the limit, and goes back into the
//! record when removals leave one chunk of at most half of it, so that a list at the limit does not
//! change its form with each command (both as in Redis). Always: a long list is the record's
//! object, a short one its inline bytes.

use std::ops::Range;

use ds::List as LongList;
use ds::list::ChunkLimit;
use ds::packed::{Encoded, Entry, FRAME_BYTES_MAX, Gapped, Packed, gapped};
use ds::record::{Record, RecordRef};

use crate::db::{Edit, Type};
use crate::limits::Limits;
use crate::stored::{Kind, Object};

/// A packed list of more bytes becomes chunks, whatever its limit says: that counts an added
/// element by its text, so that any number of empty ones is within it.
const PACKED_BYTES_MAX: usize = 1 << 20;

/// The list type.
pub enum List {}

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
    /// The first element's, the head.
    Left,
    /// The last element's, the tail.
    Right,
}

impl Type for List {
    const EMPTY: Kind = Kind::PackedList;
    type View<'a> = ListRef<'a>;

    #[inline]
    fn view(record: RecordRef<'_, Object>) -> Option<ListRef<'_>> {
        match Kind::from_bits(record.kind()) {
            Kind::PackedList => Some(ListRef::Packed(gapped::view(record.bytes()?))),
            Kind::List => match record.object()? {
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

    /// The bytes that an element taken from this list adds to another one, when it is asked whether
    /// that must grow: as in Redis, an integer from chunks adds none.
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

    /// The elements before index `end`, the last of them first.
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

    // Asks once, not for each element, which form it is.
    #[inline]
    fn fold<B, F: FnMut(B, Entry<'a>) -> B>(self, start: B, each: F) -> B {
        match self {
            Self::Packed(entries) => entries.fold(start, each),
            Self::Long(entries) => entries.fold(start, each),
        }
    }
}

/// A record's list for writing.
enum Form<'a> {
    Packed(Gapped<'a, Object>),
    Long(&'a mut LongList),
}

impl<'a> Form<'a> {
    #[inline]
    fn of(record: &'a mut Record<Object>) -> Self {
        if record.view().object().is_none() {
            return Self::Packed(Gapped::new(record));
        }
        match record.object_mut() {
            Some(Object::List(list)) => Self::Long(list),
            _ => unreachable!("the object of a list is a long list"),
        }
    }
}

impl Edit<'_, List> {
    /// The list for reading.
    #[inline]
    pub fn list(&self) -> ListRef<'_> {
        List::view(self.record()).unwrap_or(ListRef::Packed(Packed::new(&[])))
    }

    /// Adds elements at an end, one after another: the last of them ends up outermost.
    #[inline]
    pub fn push<'e, I>(&mut self, side: Side, elements: I, limits: &Limits)
    where
        I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone,
    {
        self.make_room(elements.clone(), limits);
        self.add(side, elements);
    }

    /// Adds an element that was taken from another list, where it counted as `bytes` bytes.
    pub fn push_moved(&mut self, side: Side, element: &[u8], bytes: usize, limits: &Limits) {
        self.make_room_for(1, bytes, limits);
        self.add(side, std::iter::once(element));
    }

    /// Fills an empty list with a result: chunks first, as in Redis, which go into the record if
    /// they are one within the limit.
    pub fn fill<'e, I>(&mut self, elements: I, limits: &Limits)
    where
        I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone,
    {
        /// How many bytes longer than it is a chunk may be estimated.
        const ESTIMATE_BYTES_MAX: usize = 64;
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        let bytes: usize = elements.clone().map(|element| Encoded::text(element).len()).sum();
        if limit.admits(bytes + ESTIMATE_BYTES_MAX, elements.len()) {
            return self.add(Side::Right, elements);
        }
        let mut long = Box::new(LongList::new(limit));
        elements.for_each(|element| long.push_back(element));
        self.record_mut().set_object(Kind::List as u8, Object::List(long));
        self.pack_within(limit.when_packing());
    }

    #[inline]
    fn add<'e, I>(&mut self, side: Side, elements: I)
    where
        I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone,
    {
        let mut record = self.record_mut();
        match Form::of(&mut record) {
            Form::Long(list) => elements.for_each(|element| match side {
                Side::Left => list.push_front(element),
                Side::Right => list.push_back(element),
            }),
            Form::Packed(mut packed) => {
                let mut list = packed.list();
                match side {
                    Side::Left if elements.len() == 1 => {
                        elements.for_each(|one| list.push_front(one));
                    }
                    Side::Left => list.splice(0..0, 0, elements.rev()),
                    Side::Right if elements.len() == 1 => {
                        elements.for_each(|one| list.push_back(one));
                    }
                    Side::Right => list.extend(elements),
                }
            }
        }
    }

    /// Puts an element before or after the first one that equals `pivot`. Returns whether there is
    /// one.
    pub fn insert(&mut self, pivot: &[u8], after: bool, element: &[u8], limits: &Limits) -> bool {
        let pivot = Encoded::text(pivot);
        // Whether there is such an element or not, as in Redis.
        self.make_room(std::iter::once(element), limits);
        if let ListRef::Packed(list) = self.list() {
            let Some(at) = list.find(pivot, 0, 1) else { return false };
            let at = if after { list.after(at) } else { at };
            if let Form::Packed(mut list) = Form::of(&mut self.record_mut()) {
                list.list().insert(at, element);
            }
            return true;
        }
        let ListRef::Long(list) = self.list() else { return false };
        let Some(place) = list.find(pivot) else { return false };
        if let Form::Long(list) = Form::of(&mut self.record_mut()) {
            if after {
                list.insert_after(place, element);
            } else {
                list.insert_before(place, element);
            }
        }
        true
    }

    /// Puts another element in the place of element `index`. Returns whether there is one. As in
    /// Redis, a list that would be too large in its record with the element becomes chunks even if
    /// there is none, and stays so.
    pub fn replace(&mut self, index: usize, element: &[u8], limits: &Limits) -> bool {
        let is_there = index < self.list().len();
        if !is_there || !self.takes_in_place(element, limits) {
            self.make_room(std::iter::once(element), limits);
        }
        if !is_there {
            return false;
        }
        match Form::of(&mut self.record_mut()) {
            Form::Packed(mut packed) => {
                let mut list = packed.list();
                let at = list.view().position(index);
                list.replace(at, element);
            }
            Form::Long(list) => {
                list.replace(index, element);
            }
        }
        self.shrink(limits);
        true
    }

    /// Whether a packed list that gets an element for another one would be made chunks and go back
    /// into the record at once, which moves it twice.
    fn takes_in_place(&self, element: &[u8], limits: &Limits) -> bool {
        let ListRef::Packed(list) = self.list() else { return false };
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        let element = Encoded::text(element);
        let bytes = list.listpack_bytes() + element.len();
        !limit.is_large(&element) && limit.halved().when_packing().admits(bytes, list.len())
    }

    /// Removes elements by their indexes, those past the end ignored.
    pub fn remove(&mut self, range: Range<usize>, limits: &Limits) {
        self.cut(range);
        self.shrink(limits);
    }

    /// Moves the element at an end, of which the caller knows the text, to an end.
    pub fn rotate(&mut self, from: Side, to: Side, element: &[u8], limits: &Limits) {
        let len = self.list().len();
        self.cut(if from == Side::Left { 0..1 } else { len.saturating_sub(1)..len });
        self.push(to, std::iter::once(element), limits);
        self.shrink(limits);
    }

    /// Removes elements and leaves the form as it is.
    fn cut(&mut self, range: Range<usize>) {
        let end = range.end.min(self.list().len());
        if range.start >= end {
            return;
        }
        let whole = match Form::of(&mut self.record_mut()) {
            Form::Packed(mut packed) => {
                let mut list = packed.list();
                let at = list.view().position(range.start);
                list.remove(at, end - range.start);
                return;
            }
            Form::Long(list) => list.remove(range),
        };
        if !whole.is_empty() {
            self.turn().lazy_free.push(Object::List(Box::new(whole)));
        }
    }

    /// Removes up to `elements` elements at an end.
    #[inline]
    pub fn pop(&mut self, side: Side, elements: usize, limits: &Limits) {
        let len = self.list().len();
        let elements = elements.min(len);
        match side {
            Side::Left => self.remove(0..elements, limits),
            Side::Right => self.remove(len - elements..len, limits),
        }
    }

    /// Removes elements that equal `element`, at most `max` of them, beginning at an end. Returns
    /// how many they were.
    pub fn remove_equal(
        &mut self,
        element: &[u8],
        max: usize,
        from: Side,
        limits: &Limits,
    ) -> usize {
        let element = Encoded::text(element);
        let from_back = from == Side::Right;
        let found = match self.list() {
            ListRef::Packed(list) => list.find(element, 0, 1).is_some(),
            ListRef::Long(list) => list.find(element).is_some(),
        };
        if !found {
            return 0;
        }
        let removed = match Form::of(&mut self.record_mut()) {
            Form::Packed(mut list) => list.list().remove_equal(&element, max, from_back),
            Form::Long(list) => list.remove_equal(element, max, from_back),
        };
        self.shrink(limits);
        removed
    }

    /// Moves a packed list into chunks when the elements to be added lead beyond the limit.
    #[inline]
    fn make_room<'e>(
        &mut self,
        elements: impl ExactSizeIterator<Item = &'e [u8]>,
        limits: &Limits,
    ) {
        let added = elements.len();
        self.make_room_for(added, elements.map(<[u8]>::len).sum(), limits);
    }

    #[inline]
    fn make_room_for(&mut self, elements: usize, bytes: usize, limits: &Limits) {
        let ListRef::Packed(list) = self.list() else { return };
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        let bytes = list.listpack_bytes() + bytes;
        if !limit.admits(bytes, list.len() + elements)
            || bytes + elements * FRAME_BYTES_MAX > PACKED_BYTES_MAX
        {
            let long = Box::new(LongList::of_packed(list, limit));
            self.record_unchanged_mut().set_object(Kind::List as u8, Object::List(long));
        }
    }

    /// Moves a list of one chunk back into the record when it is at most half of the limit.
    fn shrink(&mut self, limits: &Limits) {
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        self.pack_within(limit.halved().when_packing());
    }

    fn pack_within(&mut self, limit: ChunkLimit) {
        let ListRef::Long(list) = self.list() else { return };
        let Some(bytes) = list.as_packed() else { return };
        let packed = Packed::new(bytes);
        if limit.admits(packed.listpack_bytes(), packed.len()) {
            let bytes = gapped::bytes_of(bytes);
            self.discard_object();
            self.record_unchanged_mut().set_bytes(Kind::PackedList as u8, &bytes);
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;

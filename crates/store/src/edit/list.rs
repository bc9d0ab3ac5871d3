//! Changes of lists.
//!
//! A list grows into chunks when added elements exceed the limit, and moves back into the record
//! when removals leave one chunk of at most half the limit, so a list at the limit does not change
//! its form with each command (both as in Redis).

use std::ops::Range;

use ds::List as LongList;
use ds::list::ChunkLimit;
use ds::packed::{Encoded, FRAME_BYTES_MAX, Gapped, Packed, gapped};
use ds::record::Record;

use crate::db::Edit;
use crate::limits::EncodingLimits;
use crate::value::list::{ListRef, ListValue, Side};
use crate::value::stored::{Object, StoredType, ValueKind};

/// A packed list of more bytes becomes chunks, whatever its limit: the limit counts added elements
/// by their text, so it admits any number of empty ones.
const PACKED_BYTES_MAX: usize = 1 << 20;

/// A record's list for writing.
enum OpenList<'a> {
    Packed(Gapped<'a, Object>),
    Long(&'a mut LongList),
}

impl<'a> OpenList<'a> {
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

impl Edit<'_, ListValue> {
    /// The list for reading.
    #[inline]
    pub fn list(&self) -> ListRef<'_> {
        ListValue::view(self.record()).unwrap_or(ListRef::Packed(Packed::new(&[])))
    }

    /// Adds elements at an end one after another, so the last one ends up outermost.
    #[inline]
    pub fn push<'e, I>(&mut self, side: Side, elements: I, limits: &EncodingLimits)
    where
        I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone,
    {
        self.make_room(elements.clone(), limits);
        self.add(side, elements);
    }

    /// Adds an element that was taken from another list, where it counted as `bytes` bytes.
    pub fn push_moved(
        &mut self,
        side: Side,
        element: &[u8],
        bytes: usize,
        limits: &EncodingLimits,
    ) {
        self.make_room_for(1, bytes, limits);
        self.add(side, std::iter::once(element));
    }

    /// Fills an empty list with a result: as chunks first, as in Redis, which become packed if they
    /// are one chunk within the limit.
    pub fn fill<'e, I>(&mut self, elements: I, limits: &EncodingLimits)
    where
        I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone,
    {
        /// The most bytes by which the size of a chunk is overestimated.
        const ESTIMATE_BYTES_MAX: usize = 64;
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        let bytes: usize = elements.clone().map(|element| Encoded::text(element).len()).sum();
        if limit.admits(bytes + ESTIMATE_BYTES_MAX, elements.len()) {
            return self.add(Side::Right, elements);
        }
        let mut long = Box::new(LongList::new(limit));
        elements.for_each(|element| long.push_back(element));
        self.record_mut().set_object(ValueKind::List as u8, Object::List(long));
        self.pack_within(limit.when_packing());
    }

    #[inline]
    fn add<'e, I>(&mut self, side: Side, elements: I)
    where
        I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone,
    {
        let mut record = self.record_mut();
        match OpenList::of(&mut record) {
            OpenList::Long(list) => elements.for_each(|element| match side {
                Side::Left => list.push_front(element),
                Side::Right => list.push_back(element),
            }),
            OpenList::Packed(mut packed) => {
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

    /// Adds an element before or after the first one that equals `pivot`. Returns whether there is
    /// one.
    pub fn insert(
        &mut self,
        pivot: &[u8],
        after: bool,
        element: &[u8],
        limits: &EncodingLimits,
    ) -> bool {
        let pivot = Encoded::text(pivot);
        // As in Redis, the form changes even if no element equals the pivot.
        self.make_room(std::iter::once(element), limits);
        if let ListRef::Packed(list) = self.list() {
            let Some(at) = list.find(pivot, 0, 1) else { return false };
            let at = if after { list.after(at) } else { at };
            if let OpenList::Packed(mut list) = OpenList::of(&mut self.record_mut()) {
                list.list().insert(at, element);
            }
            return true;
        }
        let ListRef::Long(list) = self.list() else { return false };
        let Some(place) = list.find(pivot) else { return false };
        if let OpenList::Long(list) = OpenList::of(&mut self.record_mut()) {
            if after {
                list.insert_after(place, element);
            } else {
                list.insert_before(place, element);
            }
        }
        true
    }

    /// Replaces element `index`. Returns whether it exists. As in Redis, a packed list that would
    /// exceed its limit becomes chunks even if the element does not exist, and stays so.
    pub fn replace(&mut self, index: usize, element: &[u8], limits: &EncodingLimits) -> bool {
        let is_there = index < self.list().len();
        if !is_there || !self.takes_in_place(element, limits) {
            self.make_room(std::iter::once(element), limits);
        }
        if !is_there {
            return false;
        }
        match OpenList::of(&mut self.record_mut()) {
            OpenList::Packed(mut packed) => {
                let mut list = packed.list();
                let at = list.view().position(index);
                list.replace(at, element);
            }
            OpenList::Long(list) => {
                list.replace(index, element);
            }
        }
        self.shrink(limits);
        true
    }

    /// Whether a replacement can stay in the packed list, so that it need not become chunks and go
    /// back at once, which would move it twice.
    fn takes_in_place(&self, element: &[u8], limits: &EncodingLimits) -> bool {
        let ListRef::Packed(list) = self.list() else { return false };
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        let element = Encoded::text(element);
        let bytes = list.listpack_bytes() + element.len();
        !limit.is_large(&element) && limit.halved().when_packing().admits(bytes, list.len())
    }

    /// Removes elements by their indexes, ignoring those past the end.
    pub fn remove(&mut self, range: Range<usize>, limits: &EncodingLimits) {
        self.cut(range);
        self.shrink(limits);
    }

    /// Moves the element at one end, whose text the caller knows, to an end.
    pub fn rotate(&mut self, from: Side, to: Side, element: &[u8], limits: &EncodingLimits) {
        let len = self.list().len();
        self.cut(if from == Side::Left { 0..1 } else { len.saturating_sub(1)..len });
        self.push(to, std::iter::once(element), limits);
        self.shrink(limits);
    }

    /// Removes elements without changing the form.
    fn cut(&mut self, range: Range<usize>) {
        let end = range.end.min(self.list().len());
        if range.start >= end {
            return;
        }
        let whole = match OpenList::of(&mut self.record_mut()) {
            OpenList::Packed(mut packed) => {
                let mut list = packed.list();
                let at = list.view().position(range.start);
                list.remove(at, end - range.start);
                return;
            }
            OpenList::Long(list) => list.remove(range),
        };
        if !whole.is_empty() {
            self.turn().lazy_free.push(Object::List(Box::new(whole)));
        }
    }

    /// Removes up to `elements` elements at an end.
    #[inline]
    pub fn pop(&mut self, side: Side, elements: usize, limits: &EncodingLimits) {
        let len = self.list().len();
        let elements = elements.min(len);
        match side {
            Side::Left => self.remove(0..elements, limits),
            Side::Right => self.remove(len - elements..len, limits),
        }
    }

    /// Removes up to `max` elements that equal `element`, beginning at an end. Returns how many it
    /// removed.
    pub fn remove_equal(
        &mut self,
        element: &[u8],
        max: usize,
        from: Side,
        limits: &EncodingLimits,
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
        let removed = match OpenList::of(&mut self.record_mut()) {
            OpenList::Packed(mut list) => list.list().remove_equal(&element, max, from_back),
            OpenList::Long(list) => list.remove_equal(element, max, from_back),
        };
        self.shrink(limits);
        removed
    }

    /// Changes a packed list to chunks if the elements to add would exceed the limit.
    #[inline]
    fn make_room<'e>(
        &mut self,
        elements: impl ExactSizeIterator<Item = &'e [u8]>,
        limits: &EncodingLimits,
    ) {
        let added = elements.len();
        self.make_room_for(added, elements.map(<[u8]>::len).sum(), limits);
    }

    #[inline]
    fn make_room_for(&mut self, elements: usize, bytes: usize, limits: &EncodingLimits) {
        let ListRef::Packed(list) = self.list() else { return };
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        let bytes = list.listpack_bytes() + bytes;
        if !limit.admits(bytes, list.len() + elements)
            || bytes + elements * FRAME_BYTES_MAX > PACKED_BYTES_MAX
        {
            let long = Box::new(LongList::of_packed(list, limit));
            self.record_unchanged_mut().set_object(ValueKind::List as u8, Object::List(long));
        }
    }

    /// Packs a list of one chunk if it is at most half of the limit.
    fn shrink(&mut self, limits: &EncodingLimits) {
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
            self.record_unchanged_mut().set_bytes(ValueKind::PackedList as u8, &bytes);
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;

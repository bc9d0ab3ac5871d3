//! Values that are built whole before they have a key, from a file or a payload.
//!
//! They take the form that Redis gives a value it reads, which depends on the limits of small forms
//! and on how the value was written. Packed collections stay packed if they have few enough
//! elements, however long these are; elements written one by one are packed if the limits allow it.
//!
//! Callers check packed elements first: their entries are sound, in canonical form, and sorted
//! where the form requires it.

use std::borrow::Cow;

use base::hash::KeyHasher;
use ds::List as LongList;
use ds::SortedSet as BigSortedSet;
use ds::Stream;
use ds::dict::Dict;
use ds::intset::IntSet;
use ds::list::ChunkLimit;
use ds::packed::{Digits, Encoded, Packed, PackedMut, gapped};
use ds::record::{Payload, Record};

use super::hash::NewHash;
use super::set::{NewSet, insert, ints_max};
use super::sorted_set::NewSortedSet;
use super::string::NewString;
use crate::limits::EncodingLimits;
use crate::value::packed_pairs;
use crate::value::stored::{Object, ValueKind};

/// A packed list of more bytes is read element by element.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A value without a key.
#[derive(Debug)]
pub struct NewValue<'a>(NewForm<'a>);

#[derive(Debug)]
enum NewForm<'a> {
    Integer(i64),
    Inline(ValueKind, Cow<'a, [u8]>),
    Object(ValueKind, Object),
}

/// An element occurs twice in a collection without duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate;

impl<'a> NewValue<'a> {
    /// A string.
    pub fn string(text: NewString<'a>) -> Self {
        Self(match text {
            NewString::Bytes(bytes) => NewForm::Inline(ValueKind::Bytes, Cow::Borrowed(bytes)),
            NewString::Edited(bytes) => {
                NewForm::Inline(ValueKind::EditedBytes, Cow::Borrowed(bytes))
            }
            NewString::Integer(value) => NewForm::Integer(value),
            NewString::Shared(text) => NewForm::Object(ValueKind::Shared, Object::String(text)),
        })
    }

    /// A list that is one packed list for which [`NewList::packs`] returns true; `room` is a buffer
    /// to build it in.
    pub fn packed_list(list: Packed<'_>, room: &'a mut Vec<u8>) -> Self {
        room.clear();
        gapped::append(list, room);
        Self(NewForm::Inline(ValueKind::PackedList, Cow::Borrowed(room)))
    }

    /// A set of sorted integers, in the bytes of [`IntSet`].
    pub fn int_set(bytes: &'a [u8], limits: &EncodingLimits, hasher: &KeyHasher) -> Self {
        let ints = IntSet::new(bytes);
        if ints.len() as u64 <= ints_max(limits) {
            return Self(NewForm::Inline(ValueKind::IntSet, Cow::Borrowed(bytes)));
        }
        let mut table = Box::new(Dict::with_room(ints.len(), hasher));
        for value in ints {
            insert(
                &mut table,
                ds::packed::Entry::Integer(value).text(&mut Digits::default()),
                hasher,
            );
        }
        Self(NewForm::Object(ValueKind::Set, Object::Set(table)))
    }

    /// A set of packed members. Checks for duplicates only if the members do not stay packed.
    ///
    /// # Errors
    /// When a member occurs twice.
    pub fn packed_set(
        members: Packed<'_>,
        limits: &EncodingLimits,
        hasher: &KeyHasher,
        room: &'a mut Vec<u8>,
    ) -> Result<Self, Duplicate> {
        if members.len() as u64 <= limits.set_max_listpack_entries && is_short(members, limits) {
            return Ok(Self::packed(ValueKind::PackedSet, members, room));
        }
        let mut table = Box::new(Dict::with_room(members.len(), hasher));
        for member in members {
            if !insert(&mut table, member.text(&mut Digits::default()), hasher) {
                return Err(Duplicate);
            }
        }
        Ok(Self(NewForm::Object(ValueKind::Set, Object::Set(table))))
    }

    /// A hash of packed fields and values, or of fields, values and expiries. Checks for duplicate
    /// fields only if they do not stay packed.
    ///
    /// # Errors
    /// When a field occurs twice.
    pub fn packed_hash(
        fields: Packed<'_>,
        expiring: bool,
        limits: &EncodingLimits,
        hasher: &KeyHasher,
        room: &'a mut Vec<u8>,
    ) -> Result<Self, Duplicate> {
        let (kind, stride) =
            if expiring { (ValueKind::PackedExpiringHash, 3) } else { (ValueKind::PackedHash, 2) };
        let len = fields.len() / stride;
        if len as u64 <= limits.hash_max_listpack_entries && is_short(fields, limits) {
            return Ok(Self::packed(kind, fields, room));
        }
        Ok(NewHash::of_packed(fields, expiring, hasher)?.into())
    }

    /// A sorted set of packed members and scores. Checks for duplicates only if the members do not
    /// stay packed.
    ///
    /// # Errors
    /// When a member occurs twice.
    pub fn packed_sorted_set(
        pairs: Packed<'_>,
        limits: &EncodingLimits,
        hasher: &KeyHasher,
        room: &'a mut Vec<u8>,
    ) -> Result<Self, Duplicate> {
        let len = pairs.len() as u64 / 2;
        if len <= limits.zset_max_listpack_entries && is_short(pairs, limits) {
            return Ok(Self::packed(ValueKind::PackedSortedSet, pairs, room));
        }
        let mut big = ds::sorted_set::Builder::with_room(pairs.len() / 2, *hasher);
        let mut entries = pairs.iter();
        while let (Some(member), Some(score)) = (entries.next(), entries.next()) {
            let member = member.text(&mut Digits::default()).to_vec();
            if !big.push(&member, packed_pairs::score_of(score)) {
                return Err(Duplicate);
            }
        }
        Ok(NewValue::big_sorted_set(big.finish()))
    }

    fn packed(kind: ValueKind, list: Packed<'_>, room: &'a mut Vec<u8>) -> Self {
        room.clear();
        list.append_to(room);
        Self(NewForm::Inline(kind, Cow::Borrowed(room)))
    }

    /// The value under a key, with the access clock of [`crate::Turn::access_clock`].
    #[inline]
    pub fn record(self, key: &[u8], expires_at: Option<i64>, access_clock: u32) -> Record<Object> {
        let (integer, inline);
        let (kind, payload) = match self.0 {
            NewForm::Integer(value) => {
                integer = value.to_le_bytes();
                (ValueKind::Integer, Payload::Bytes(&integer[..]))
            }
            NewForm::Inline(kind, bytes) => {
                inline = bytes;
                (kind, Payload::Bytes(&inline[..]))
            }
            NewForm::Object(kind, object) => (kind, Payload::Object(object)),
        };
        Record::new(key, kind as u8, payload, expires_at, access_clock)
    }
}

/// Whether packed elements may be kept in a record.
fn is_short(list: Packed<'_>, limits: &EncodingLimits) -> bool {
    list.listpack_bytes() <= limits.packed_bytes_max
}

impl NewValue<'static> {
    /// A set that was built member by member.
    pub fn set(set: NewSet) -> Self {
        Self(match set {
            NewSet::Ints(ints) => NewForm::Inline(ValueKind::IntSet, Cow::Owned(ints)),
            NewSet::Packed(members) => NewForm::Inline(ValueKind::PackedSet, Cow::Owned(members)),
            NewSet::Table(table) => NewForm::Object(ValueKind::Set, Object::Set(table)),
        })
    }

    /// A sorted set of members that were written one by one, packed if the limits allow it.
    ///
    /// # Errors
    /// When a member occurs twice.
    pub fn sorted_set(
        mut set: NewSortedSet,
        limits: &EncodingLimits,
        hasher: &KeyHasher,
    ) -> Result<Self, Duplicate> {
        set.sort();
        let longest = set.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
        let bytes: usize = set.iter().map(|(member, _)| member.len()).sum();
        if set.len() as u64 <= limits.zset_max_listpack_entries
            && longest as u64 <= limits.zset_max_listpack_value
            && bytes <= limits.packed_bytes_max / 2
        {
            let mut bytes = Vec::new();
            let mut pairs = PackedMut::new(&mut bytes);
            set.iter().for_each(|(member, score)| packed_pairs::push(&mut pairs, member, score));
            let form = NewForm::Inline(ValueKind::PackedSortedSet, Cow::Owned(bytes));
            return Ok(Self(form));
        }
        let mut big = ds::sorted_set::Builder::with_room(set.len(), *hasher);
        match set.iter().all(|(member, score)| big.push(member, score)) {
            true => Ok(Self::big_sorted_set(big.finish())),
            false => Err(Duplicate),
        }
    }

    /// A sorted set with too many members to be packed.
    pub fn big_sorted_set(set: BigSortedSet) -> Self {
        Self(NewForm::Object(ValueKind::SortedSet, Object::SortedSet(Box::new(set))))
    }

    /// A stream.
    pub fn stream(stream: Stream) -> Self {
        Self(NewForm::Object(ValueKind::Stream, Object::Stream(Box::new(stream))))
    }

    pub(crate) fn inline(kind: ValueKind, bytes: Vec<u8>) -> Self {
        Self(NewForm::Inline(kind, Cow::Owned(bytes)))
    }

    pub(crate) fn object(kind: ValueKind, object: Object) -> Self {
        Self(NewForm::Object(kind, object))
    }
}

/// A list that is built part by part.
#[derive(Debug)]
pub struct NewList {
    list: Box<LongList>,
    limit: ChunkLimit,
}

impl NewList {
    /// A list without elements.
    pub fn new(limits: &EncodingLimits) -> Self {
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size));
        Self { list: Box::new(LongList::new(limit)), limit }
    }

    /// Whether a list of one chunk has so few elements that it is packed.
    pub fn packs(chunk: Packed<'_>, limits: &EncodingLimits) -> bool {
        let limit = ChunkLimit::of(i64::from(limits.list_max_listpack_size)).when_packing();
        !chunk.is_empty() && limit.admits(chunk.listpack_bytes(), chunk.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds an element at the end.
    pub fn push(&mut self, element: Encoded<'_>) {
        self.list.push_back(element);
    }

    /// Adds a chunk of elements at the end.
    pub fn push_chunk(&mut self, elements: Packed<'_>) {
        if elements.listpack_bytes() > CHUNK_BYTES_MAX {
            elements.iter().for_each(|element| self.list.push_back(element));
        } else if !elements.is_empty() {
            self.list.push_chunk(elements);
        }
    }

    /// Adds a chunk of one element at the end.
    pub fn push_as_chunk(&mut self, element: Encoded<'_>) {
        self.list.push_alone(element);
    }

    /// The list in chunks.
    pub fn unpacked(self) -> NewValue<'static> {
        NewValue::object(ValueKind::List, Object::List(self.list))
    }

    /// The list, packed if it is one chunk within the limit.
    pub fn finish(self) -> NewValue<'static> {
        let limit = self.limit.when_packing();
        if let Some(bytes) = self.list.as_packed()
            && limit.admits(Packed::new(bytes).listpack_bytes(), self.list.len())
        {
            return NewValue::inline(ValueKind::PackedList, gapped::bytes_of(bytes));
        }
        self.unpacked()
    }
}

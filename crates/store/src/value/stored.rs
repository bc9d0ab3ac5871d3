//! The value of a key: the kinds of value, and the properties of each kind.

use std::sync::Arc;

use ds::dict::Dict;
use ds::packed::{Packed, gapped};
use ds::record::{RecordRef, class_bytes};

use super::field_table::FieldTable;

/// The kinds of value, as the 5 bits of a record's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueKind {
    /// A string as a client set it.
    Bytes = 0,
    /// A string that was changed in place: its encoding stays `raw` at any length.
    EditedBytes = 1,
    /// A string that is a canonical integer: 8 bytes, little-endian.
    Integer = 2,
    /// A long string, shared with replies that are being sent.
    Shared = 3,
    /// A short list: packed elements in the record.
    PackedList = 4,
    /// A list in chunks.
    List = 5,
    /// A small set of integers: sorted in the record.
    IntSet = 6,
    /// A small set: packed members in the record.
    PackedSet = 7,
    /// A set as a table.
    Set = 8,
    /// A small hash: packed fields and values in the record.
    PackedHash = 9,
    /// A small hash some of whose fields expire: packed with their expiry in the record.
    PackedExpiringHash = 10,
    /// A hash as a table.
    Hash = 11,
    /// A small sorted set: packed members and scores in the record.
    PackedSortedSet = 12,
    /// A sorted set as a table and a ranked tree.
    SortedSet = 13,
    /// A stream.
    Stream = 14,
}

impl ValueKind {
    /// The kind with these bits. Records hold no other bits.
    pub fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Bytes,
            1 => Self::EditedBytes,
            2 => Self::Integer,
            3 => Self::Shared,
            4 => Self::PackedList,
            5 => Self::List,
            6 => Self::IntSet,
            7 => Self::PackedSet,
            8 => Self::Set,
            9 => Self::PackedHash,
            10 => Self::PackedExpiringHash,
            11 => Self::Hash,
            12 => Self::PackedSortedSet,
            13 => Self::SortedSet,
            _ => Self::Stream,
        }
    }

    /// The name that TYPE replies.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Bytes | Self::EditedBytes | Self::Integer | Self::Shared => "string",
            Self::PackedList | Self::List => "list",
            Self::IntSet | Self::PackedSet | Self::Set => "set",
            Self::PackedHash | Self::PackedExpiringHash | Self::Hash => "hash",
            Self::PackedSortedSet | Self::SortedSet => "zset",
            Self::Stream => "stream",
        }
    }
}

/// Values outside their record.
#[derive(Clone, Debug)]
pub enum Object {
    /// A long string.
    String(Arc<Vec<u8>>),
    /// A big sorted set.
    SortedSet(Box<ds::SortedSet>),
    /// A set as a table.
    Set(Box<Dict>),
    /// A list in chunks.
    List(Box<ds::List>),
    /// A hash as a table.
    Hash(Box<FieldTable>),
    /// A stream.
    Stream(Box<ds::Stream>),
}

impl Object {
    /// The table of its members, if it has one.
    pub fn members(&self) -> Option<&Dict> {
        match self {
            Self::Set(table) => Some(table),
            Self::Hash(table) => Some(table.dict()),
            Self::SortedSet(set) => Some(set.dict()),
            Self::String(_) | Self::List(_) | Self::Stream(_) => None,
        }
    }

    /// The approximate number of allocations that dropping it frees.
    pub fn allocations(&self) -> usize {
        match self {
            Self::String(_) => 1,
            Self::SortedSet(set) => set.allocations() + 1,
            Self::Set(table) => table.allocations(),
            Self::List(list) => 1 + list.allocations(),
            Self::Hash(table) => 1 + table.allocations(),
            Self::Stream(stream) => 1 + stream.allocations(),
        }
    }

    /// The approximate bytes of memory that it takes in addition to its record.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::String(text) => text_bytes(text),
            Self::SortedSet(set) => size_of::<ds::SortedSet>() + set.memory_bytes(),
            Self::Set(table) => size_of::<Dict>() + table.memory_bytes(),
            Self::List(list) => list.memory_bytes(),
            Self::Hash(table) => table.memory_bytes(),
            Self::Stream(stream) => stream.memory_bytes(),
        }
    }
}

/// The memory of a long string.
pub(crate) fn text_bytes(text: &Vec<u8>) -> usize {
    size_of::<Vec<u8>>() + 16 + class_bytes(text.capacity())
}

/// A type of value: how a record of this type is read.
pub trait StoredType {
    /// The kind of a value of this type that has no bytes in its record.
    const EMPTY: ValueKind;
    /// The value for reading.
    type View<'a>;
    /// The value in the record, or `None` if it is of another type.
    fn view(record: RecordRef<'_, Object>) -> Option<Self::View<'_>>;
    /// Whether the value is empty, so that its key must be removed.
    fn is_empty(record: RecordRef<'_, Object>) -> bool;
}

/// The longest string whose encoding is called `embstr`.
const EMBSTR_BYTES_MAX: usize = 44;

/// A borrowed value with its key, whatever its type.
#[derive(Clone, Copy)]
pub struct Stored<'a>(pub(crate) RecordRef<'a, Object>);

impl<'a> Stored<'a> {
    /// The key.
    pub fn key(self) -> &'a [u8] {
        self.0.key()
    }

    /// The kind of value.
    #[inline]
    pub fn kind(self) -> ValueKind {
        ValueKind::from_bits(self.0.kind())
    }

    /// The value as one of type `T`, or `None` if it is of another type.
    pub fn view<T: StoredType>(self) -> Option<T::View<'a>> {
        T::view(self.0)
    }

    /// When the key expires, in milliseconds since 1970.
    pub fn expires_at(self) -> Option<i64> {
        self.0.expires_at()
    }

    /// The encoding's name, as OBJECT ENCODING replies.
    pub fn encoding(self) -> &'static str {
        match self.kind() {
            ValueKind::Integer => "int",
            ValueKind::Bytes if self.0.bytes().is_some_and(|b| b.len() <= EMBSTR_BYTES_MAX) => {
                "embstr"
            }
            ValueKind::Bytes | ValueKind::EditedBytes | ValueKind::Shared => "raw",
            ValueKind::PackedList
            | ValueKind::PackedSet
            | ValueKind::PackedHash
            | ValueKind::PackedSortedSet => "listpack",
            ValueKind::PackedExpiringHash => "listpackex",
            ValueKind::List => "quicklist",
            ValueKind::IntSet => "intset",
            ValueKind::Set | ValueKind::Hash => "hashtable",
            ValueKind::SortedSet => "skiplist",
            ValueKind::Stream => "stream",
        }
    }

    /// The packed list in the record, if the value is one.
    pub fn packed(self) -> Option<Packed<'a>> {
        match self.kind() {
            ValueKind::PackedList => self.0.bytes().map(gapped::view),
            ValueKind::PackedSet
            | ValueKind::PackedHash
            | ValueKind::PackedExpiringHash
            | ValueKind::PackedSortedSet => self.0.bytes().map(Packed::new),
            _ => None,
        }
    }
}

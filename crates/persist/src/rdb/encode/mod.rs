//! Writes values as Redis 8 does: RDB version 12, or 11 in files without fields that expire.
//!
//! | value | packed in its record | otherwise |
//! |---|---|---|
//! | string | | a string |
//! | list | one listpack | listpacks, and single large elements |
//! | set | an intset or a listpack | members |
//! | sorted set | a listpack | members with binary scores, the highest first |
//! | hash | a listpack | fields with values |
//! | hash with expiries | the earliest, a listpack | the earliest, fields with distances to it |
//! | stream | | a listpack for each chunk; identifiers; groups |
//!
//! Of a large value, at most one string, packed collection or chunk is copied before it is written.
//! Packed collections above 16 MB are not compressed, because compression needs them in one piece.

mod packed;
pub mod parts;
pub(super) mod stream;

use ds::list::ListChunkRef;
use ds::packed::{Entry, Packed, PackedMut};
use store::ListRef;
use store::SetRef;
use store::Stored;
use store::{
    HashRef, HashValue, ListValue, SetValue, SortedSetValue, StreamValue, StringRef, StringValue,
    ValueKind,
};

use super::types::ValueType;
use super::{SHARED_VERSION, VERSION, length, string};
use crate::ByteSink;
use crate::lzf::Compressor;

/// The kinds of parts of a list: a single large element, or a listpack.
pub(super) const PLAIN_NODE: u64 = 1;
pub(super) const PACKED_NODE: u64 = 2;

/// The options of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether strings are compressed: `rdbcompression`.
    pub compress: bool,
    /// Whether the file ends with its checksum, or with 0: `rdbchecksum`.
    pub checksum: bool,
    /// Whether fields of hashes may expire. A file without such fields gets the version that Valkey
    /// reads too.
    pub fields_expire: bool,
}

impl Options {
    /// The version of the file.
    pub fn version(self) -> u16 {
        if self.fields_expire { VERSION } else { SHARED_VERSION }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { compress: true, checksum: true, fields_expire: true }
    }
}

/// Writes values one after another.
#[derive(Debug, Default)]
pub struct ValueEncoder {
    compressor: Option<Compressor>,
    /// Packed collections in the form of a file.
    room: Vec<u8>,
    /// Whether a hash with room for expiries, none of which is set, is written as one without.
    forgets_expiries: bool,
}

/// The type that DUMP gives to a value.
pub fn value_type(value: Stored<'_>) -> ValueType {
    match value.kind() {
        ValueKind::Bytes | ValueKind::EditedBytes | ValueKind::Integer | ValueKind::Shared => {
            ValueType::String
        }
        ValueKind::PackedList | ValueKind::List => ValueType::ListQuicklist2,
        ValueKind::IntSet => ValueType::SetIntset,
        ValueKind::PackedSet => ValueType::SetListpack,
        ValueKind::Set => ValueType::Set,
        ValueKind::PackedHash => ValueType::HashListpack,
        ValueKind::PackedExpiringHash => ValueType::HashListpackExpiring,
        ValueKind::Hash => match value.view::<HashValue>().and_then(HashRef::earliest) {
            Some(_) => ValueType::HashExpiring,
            None => ValueType::Hash,
        },
        ValueKind::PackedSortedSet => ValueType::SortedSetListpack,
        ValueKind::SortedSet => ValueType::SortedSet2,
        ValueKind::Stream => ValueType::Stream3,
    }
}

impl ValueEncoder {
    /// An encoder for payloads of DUMP. `compress` says whether strings are compressed.
    pub fn new(compress: bool) -> Self {
        let compressor = compress.then(Compressor::new);
        Self { compressor, ..Self::default() }
    }

    /// An encoder for a file.
    pub fn of_file(options: Options) -> Self {
        Self { forgets_expiries: !options.fields_expire, ..Self::new(options.compress) }
    }

    /// The type that this encoder gives to a value.
    pub(super) fn value_type(&self, value: Stored<'_>) -> ValueType {
        match value_type(value) {
            ValueType::HashListpackExpiring if self.forgets(value.view::<HashValue>()) => {
                ValueType::HashListpack
            }
            other => other,
        }
    }

    fn forgets(&self, hash: Option<HashRef<'_>>) -> bool {
        self.forgets_expiries && hash.and_then(HashRef::earliest).is_none()
    }

    /// Writes a value without its type and key.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn value<S: ByteSink>(&mut self, value: Stored<'_>, out: &mut S) -> Result<(), S::Error> {
        if let Some(text) = value.view::<StringValue>() {
            match text {
                StringRef::Bytes(text) => self.string(text, out),
                StringRef::Shared(text) => self.string(text, out),
                StringRef::Integer(value) => string::write_integer(out, value),
            }
        } else if let Some(list) = value.view::<ListValue>() {
            self.list(list, out)
        } else if let Some(set) = value.view::<SetValue>() {
            self.set(set, out)
        } else if let Some(set) = value.view::<SortedSetValue>() {
            if let Some(packed) = value.packed() {
                return self.packed(packed, out);
            }
            length::write(out, set.len() as u64)?;
            // Redis loads them fastest in this order.
            for pair in set.walk(0..set.len(), true) {
                self.scored_member(pair.member, pair.score(), out)?;
            }
            Ok(())
        } else if let Some(hash) = value.view::<HashValue>() {
            self.hash(hash, out)
        } else if let Some(stream) = value.view::<StreamValue>() {
            self.stream(stream, out)
        } else {
            unreachable!("a value has one of the types above")
        }
    }

    /// Writes a string.
    ///
    /// # Errors
    /// Those of the sink.
    #[inline]
    pub fn string<S: ByteSink>(&mut self, text: &[u8], out: &mut S) -> Result<(), S::Error> {
        string::write(out, text, self.compressor.as_mut())
    }

    /// Writes an element, a member, a field or a value.
    ///
    /// # Errors
    /// Those of the sink.
    #[inline]
    pub fn entry<S: ByteSink>(&mut self, entry: Entry<'_>, out: &mut S) -> Result<(), S::Error> {
        string::write_entry(out, entry, self.compressor.as_mut())
    }

    fn list<S: ByteSink>(&mut self, list: ListRef<'_>, out: &mut S) -> Result<(), S::Error> {
        match list {
            ListRef::Packed(list) => {
                length::write(out, 1)?;
                self.list_node(ListChunkRef::Packed(list), out)
            }
            ListRef::Long(list) => {
                length::write(out, list.chunks().len() as u64)?;
                list.chunks().try_for_each(|chunk| self.list_node(chunk, out))
            }
        }
    }

    /// Writes a part of a list. The number of parts precedes them.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn list_node<S: ByteSink>(
        &mut self,
        node: ListChunkRef<'_>,
        out: &mut S,
    ) -> Result<(), S::Error> {
        match node {
            ListChunkRef::Packed(list) => {
                length::write(out, PACKED_NODE)?;
                self.packed(list, out)
            }
            ListChunkRef::Large(element) => {
                length::write(out, PLAIN_NODE)?;
                self.entry(element, out)
            }
        }
    }

    fn set<S: ByteSink>(&mut self, set: SetRef<'_>, out: &mut S) -> Result<(), S::Error> {
        match set {
            SetRef::Ints(ints) => self.ints(ints, out),
            SetRef::Packed(members) => self.packed(members, out),
            SetRef::Table(table) => {
                length::write(out, table.len() as u64)?;
                table.iter().try_for_each(|member| self.string(member.key(), out))
            }
        }
    }

    /// Writes a member of a big sorted set. The number of members precedes them.
    ///
    /// # Errors
    /// Those of the sink.
    #[inline]
    pub fn scored_member<S: ByteSink>(
        &mut self,
        member: Entry<'_>,
        score: f64,
        out: &mut S,
    ) -> Result<(), S::Error> {
        self.entry(member, out)?;
        out.put(&score.to_le_bytes())
    }

    fn hash<S: ByteSink>(&mut self, hash: HashRef<'_>, out: &mut S) -> Result<(), S::Error> {
        let earliest = hash.earliest();
        match hash {
            HashRef::Packed(fields) => return self.packed(fields, out),
            HashRef::Expiring(_) if self.forgets(Some(hash)) => {
                let mut bytes = Vec::new();
                let mut pairs = PackedMut::new(&mut bytes);
                for (field, value) in hash {
                    pairs.push_back(field);
                    pairs.push_back(value.entry);
                }
                return self.packed(Packed::new(&bytes), out);
            }
            HashRef::Expiring(fields) => {
                out.put(&earliest.unwrap_or(0).to_le_bytes())?;
                return self.packed(fields, out);
            }
            HashRef::Table(_) => {}
        }
        if let Some(earliest) = earliest {
            out.put(&earliest.to_le_bytes())?;
        }
        length::write(out, hash.len() as u64)?;
        for (field, value) in hash {
            if let Some(earliest) = earliest {
                length::write(out, distance(earliest, value.expires_at))?;
            }
            self.entry(field, out)?;
            self.entry(value.entry, out)?;
        }
        Ok(())
    }
}

/// The form of a field's expiry in a file: 0 for none, and otherwise one more than the distance to
/// the earliest expiry of the hash.
pub fn distance(earliest: i64, expires_at: Option<i64>) -> u64 {
    // No expiry is below the earliest, and expiries have 48 bits.
    expires_at.map_or(0, |at| at.wrapping_sub(earliest).wrapping_add(1) as u64)
}

//! Decodes values of RDB versions 1 to 12 and of Valkey's 80.
//!
//! Encodings, lengths, order, and that no field or member occurs twice are checked before bytes
//! become a value. A packed collection is copied if its entries have the form that this server
//! writes, as those of Redis have, and is encoded again otherwise. The form of the value depends on
//! the limits, as in Redis; see [`store::NewValue`].

mod distinct;
mod hash;
mod intset;
mod list;
mod listpack;
mod module;
mod set;
mod skip;
mod sorted_set;
mod stream;
mod ziplist;
mod zipmap;

use std::sync::Arc;

use base::hash::KeyHasher;
use ds::packed::{Encoded, Entry};
use store::Duplicate;
use store::{EncodingLimits, NewValue};
use store::{INLINE_BYTES_MAX, NewString};

use super::length;
use super::string::{self, Text};
use super::types::ValueType;
use crate::{ByteInput, ByteSource, Error, ModuleId};
use distinct::Distinct;
use stream::StreamVersion;

pub(super) use module::{UNSIGNED, skip as skip_module};
pub use skip::skip;

/// How much memory each buffer keeps between two values.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// Decodes values one after another.
#[derive(Debug)]
pub struct ValueDecoder<'l> {
    limits: &'l EncodingLimits,
    hasher: KeyHasher,
    rooms: Rooms,
}

/// Buffers that are used again.
#[derive(Debug, Default)]
struct Rooms {
    /// A string that is split between two blocks, or was compressed.
    text: Vec<u8>,
    /// The string before it, while both are needed.
    name: Vec<u8>,
    /// Entries that are encoded again.
    entries: Vec<u8>,
    /// The value in the form of its record.
    value: Vec<u8>,
    distinct: Distinct,
}

impl From<Duplicate> for Error {
    fn from(_: Duplicate) -> Self {
        Self::Corrupt("an element occurs twice")
    }
}

impl<'l> ValueDecoder<'l> {
    /// A decoder for a keyspace with these limits and this hash function.
    pub fn new(limits: &'l EncodingLimits, hasher: KeyHasher) -> Self {
        Self { limits, hasher, rooms: Rooms::default() }
    }

    /// Decodes a value of a type.
    ///
    /// # Errors
    /// When the input fails or is no such value. Of a module's value, only the identifier was read.
    pub fn value<'a, S: ByteSource>(
        &'a mut self,
        value_type: ValueType,
        input: &'a mut ByteInput<S>,
    ) -> Result<NewValue<'a>, Error> {
        self.clear();
        match value_type {
            ValueType::String => self.string(input),
            ValueType::List => self.elements(input),
            ValueType::ListZiplist => self.list_ziplist(input),
            ValueType::ListQuicklist => self.quicklist(input, false),
            ValueType::ListQuicklist2 => self.quicklist(input, true),
            ValueType::Set => self.members(input),
            ValueType::SetIntset => self.set_intset(input),
            ValueType::SetListpack => self.set_listpack(input),
            ValueType::SortedSet => self.scored_members(input, sorted_set::text_score),
            ValueType::SortedSet2 => self.scored_members(input, sorted_set::binary_score),
            ValueType::SortedSetZiplist => self.sorted_set_packed(input, listpack::of_ziplist),
            ValueType::SortedSetListpack => self.sorted_set_packed(input, listpack::open),
            ValueType::Hash => self.fields(input),
            ValueType::HashZipmap => self.hash_zipmap(input),
            ValueType::HashZiplist => self.hash_packed(input, false, listpack::of_ziplist),
            ValueType::HashListpack => self.hash_packed(input, false, listpack::open),
            ValueType::HashListpackExpiring => {
                // The earliest expiry, which the fields contain too.
                input.array::<8>()?;
                self.hash_packed(input, true, listpack::open)
            }
            ValueType::HashListpackExpiringPreview => self.hash_packed(input, true, listpack::open),
            ValueType::HashExpiring => {
                let earliest = u64::from_le_bytes(input.array()?);
                self.expiring_fields(input, Some(earliest))
            }
            ValueType::HashExpiringPreview => self.expiring_fields(input, None),
            ValueType::HashExpiringValkey => self.valkey_fields(input),
            ValueType::Stream => self.stream(input, StreamVersion::One),
            ValueType::Stream2 => self.stream(input, StreamVersion::Two),
            ValueType::Stream3 => self.stream(input, StreamVersion::Three),
            ValueType::Module2 => Err(Error::Module(ModuleId(length::read(input)?))),
        }
    }

    fn clear(&mut self) {
        let Rooms { text, name, entries, value, .. } = &mut self.rooms;
        for room in [text, name, entries, value] {
            base::room::clear(room, ROOM_BYTES_MAX);
        }
    }

    fn string<'a, S: ByteSource>(
        &'a mut self,
        input: &'a mut ByteInput<S>,
    ) -> Result<NewValue<'a>, Error> {
        let text = match string::read_or_own(input, &mut self.rooms.text, INLINE_BYTES_MAX)? {
            Text::Seen(Entry::Integer(value)) => NewString::Integer(value),
            Text::Seen(Entry::Bytes(text)) => NewString::encode(text, None),
            Text::Own(text) => NewString::Shared(Arc::new(text)),
        };
        Ok(NewValue::string(text))
    }
}

/// Reads how many elements a collection has.
fn read_len<S: ByteSource>(input: &mut ByteInput<S>) -> Result<u64, Error> {
    match length::read(input)? {
        0 => Err(Error::EmptyValue),
        len => Ok(len),
    }
}

/// Reads a string that is a packed collection.
fn read_bytes<'a, S: ByteSource>(
    input: &'a mut ByteInput<S>,
    room: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    match string::read(input, room)? {
        Entry::Bytes(bytes) => Ok(bytes),
        Entry::Integer(_) => Err(Error::Corrupt("an integer instead of a collection")),
    }
}

/// A string as an element, encoded as an integer if it is one.
fn encoded(text: Entry<'_>) -> Encoded<'_> {
    match text {
        Entry::Integer(value) => Encoded::integer(value),
        Entry::Bytes(text) => Encoded::text(text),
    }
}

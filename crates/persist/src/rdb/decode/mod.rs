//! Reading values, however they were written: RDB versions 1 to 12, and Valkey's 80.
//!
//! Everything is looked through before it becomes a value: encodings, lengths, order, and that no
//! field or member stands twice. Packed collections are copied as they are when their entries are
//! in the form that this server gives them, which those of Redis are, and written anew otherwise.
//! Which form a value gets depends on the limits, as in Redis; see [`store::new_value`].

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
use store::new_value::Duplicate;
use store::string::{INLINE_BYTES_MAX, NewString};
use store::{Limits, NewValue};

use super::length;
use super::string::{self, Text};
use super::types::ValueType;
use crate::{Error, Input, Source};
use distinct::Distinct;

pub(super) use module::{UNSIGNED, name as module_name, skip as skip_module};
pub use skip::skip;

/// What is kept of each room between two values.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// Reads values one after another.
#[derive(Debug)]
pub struct Decoder<'l> {
    limits: &'l Limits,
    hasher: KeyHasher,
    rooms: Rooms,
}

/// Buffers that are used again.
#[derive(Debug, Default)]
struct Rooms {
    /// A string that lies across two blocks, or was compressed.
    text: Vec<u8>,
    /// The string before it, while both are needed.
    name: Vec<u8>,
    /// Entries that are written anew.
    entries: Vec<u8>,
    /// The value in the form that its record gets.
    value: Vec<u8>,
    distinct: Distinct,
}

impl From<Duplicate> for Error {
    fn from(_: Duplicate) -> Self {
        Self::Corrupt("an element stands twice")
    }
}

impl<'l> Decoder<'l> {
    /// A decoder that makes values for a keyspace with these limits and this hash of members.
    pub fn new(limits: &'l Limits, hasher: KeyHasher) -> Self {
        Self { limits, hasher, rooms: Rooms::default() }
    }

    /// Reads a value of a type.
    ///
    /// # Errors
    /// When the input fails, or is no such value. For a value of a module nothing has been read.
    pub fn value<'a, S: Source>(
        &'a mut self,
        value_type: ValueType,
        input: &'a mut Input<S>,
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
                // The earliest expiry, which the fields tell too.
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
            ValueType::Stream => self.stream(input, stream::Version::One),
            ValueType::Stream2 => self.stream(input, stream::Version::Two),
            ValueType::Stream3 => self.stream(input, stream::Version::Three),
            ValueType::Module2 => Err(Error::Module(module::name(length::read(input)?))),
        }
    }

    fn clear(&mut self) {
        let Rooms { text, name, entries, value, .. } = &mut self.rooms;
        for room in [text, name, entries, value] {
            base::room::clear(room, ROOM_BYTES_MAX);
        }
    }

    fn string<'a, S: Source>(&'a mut self, input: &'a mut Input<S>) -> Result<NewValue<'a>, Error> {
        let text = match string::read_or_own(input, &mut self.rooms.text, INLINE_BYTES_MAX)? {
            Text::Seen(Entry::Integer(value)) => NewString::Integer(value),
            Text::Seen(Entry::Bytes(text)) => NewString::encode(text, None),
            Text::Own(text) => NewString::Shared(Arc::new(text)),
        };
        Ok(NewValue::string(text))
    }
}

/// Reads how many elements a collection has.
fn read_len<S: Source>(input: &mut Input<S>) -> Result<u64, Error> {
    match length::read(input)? {
        0 => Err(Error::EmptyValue),
        len => Ok(len),
    }
}

/// Reads a string that is no text.
fn read_bytes<'a, S: Source>(
    input: &'a mut Input<S>,
    room: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    match string::read(input, room)? {
        Entry::Bytes(bytes) => Ok(bytes),
        Entry::Integer(_) => Err(Error::Corrupt("an integer in the place of a collection")),
    }
}

/// A string as an element: what is an integer is written as one.
fn encoded(text: Entry<'_>) -> Encoded<'_> {
    match text {
        Entry::Integer(value) => Encoded::integer(value),
        Entry::Bytes(text) => Encoded::text(text),
    }
}

//! The string type: bytes in the record, an integer in 8 of them, or a long value outside it.
//!
//! ```text
//!              SET, INCRBYFLOAT     INCR      APPEND, SETRANGE
//! canonical    Integer              Integer   EditedBytes
//! up to 16 KB  Bytes                          EditedBytes
//! longer       Shared                         Shared
//! ```
//!
//! Always: a `Shared` string is longer than [`INLINE_BYTES_MAX`] and the others are not, and what a
//! reply on its way shares never changes under it. Changes never make a string shorter: that takes
//! a new value. Limits on the length are the callers' business.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use base::number::{INTEGER_BYTES_MAX, decimal_len_i64, parse_i64, write_i64};
use ds::record::RecordRef;

use crate::db::{Edit, Type};
use crate::stored::{Kind, Object};

/// A longer string has a separate allocation, which replies share instead of copying it.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;

/// Up to this capacity a growing long string doubles; a larger one grows by an eighth, at least by
/// this much, so that room nobody may ever use stays small beside what is used.
const DOUBLING_BYTES_MAX: usize = 1 << 20;

/// The string type.
pub enum StringValue {}

/// A borrowed string.
#[derive(Clone, Copy, Debug)]
pub enum StringRef<'a> {
    /// Bytes in the record.
    Bytes(&'a [u8]),
    /// A canonical integer.
    Integer(i64),
    /// A long string.
    Shared(&'a Arc<Vec<u8>>),
}

impl Type for StringValue {
    const EMPTY: Kind = Kind::Bytes;
    type View<'a> = StringRef<'a>;

    fn view(record: RecordRef<'_, Object>) -> Option<StringRef<'_>> {
        match Kind::from_bits(record.kind()) {
            Kind::Bytes | Kind::EditedBytes => record.bytes().map(StringRef::Bytes),
            Kind::Integer => {
                let bytes = record.bytes()?.try_into().ok()?;
                Some(StringRef::Integer(i64::from_le_bytes(bytes)))
            }
            Kind::Shared => match record.object()? {
                Object::String(text) => Some(StringRef::Shared(text)),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_empty(_: RecordRef<'_, Object>) -> bool {
        // A string without bytes is a value like any other.
        false
    }
}

/// Room for the digits of an integer that is read as text.
#[derive(Debug, Default)]
pub struct Digits([u8; INTEGER_BYTES_MAX]);

impl<'a> StringRef<'a> {
    /// Length in bytes as text.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Integer(value) => decimal_len_i64(value),
            Self::Shared(text) => text.len(),
        }
    }

    /// The text itself; an integer is written to `digits`.
    pub fn bytes<'b>(self, digits: &'b mut Digits) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Integer(value) => write_i64(value, &mut digits.0),
            Self::Shared(text) => text,
        }
    }

    /// The text as an integer, if it is a canonical one.
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Bytes(bytes) => parse_i64(bytes),
            Self::Integer(value) => Some(value),
            Self::Shared(_) => None,
        }
    }
}

/// A string about to be stored, in the form it will have.
#[derive(Clone, Debug)]
pub enum NewString<'a> {
    /// Bytes for the record, as they were set.
    Bytes(&'a [u8]),
    /// Bytes for the record, made by a change.
    Edited(&'a [u8]),
    /// A canonical integer.
    Integer(i64),
    /// A long string.
    Shared(Arc<Vec<u8>>),
}

impl<'a> NewString<'a> {
    /// The smallest form of `bytes`; `own` is the buffer they already have, if any.
    #[inline]
    pub fn encode(bytes: &'a [u8], own: Option<&Arc<Vec<u8>>>) -> Self {
        if bytes.len() <= INTEGER_BYTES_MAX
            && let Some(value) = parse_i64(bytes)
        {
            return Self::Integer(value);
        }
        Self::raw(bytes, own)
    }

    /// The same, but never an integer: for the result of INCRBYFLOAT.
    pub fn raw(bytes: &'a [u8], own: Option<&Arc<Vec<u8>>>) -> Self {
        if bytes.len() <= INLINE_BYTES_MAX {
            Self::Bytes(bytes)
        } else {
            Self::Shared(own.map_or_else(|| Arc::new(bytes.to_vec()), Arc::clone))
        }
    }

    /// A string that a change made from nothing, as SETRANGE does. A long one is moved out of
    /// `made`, not copied.
    pub fn edited(made: &'a mut Vec<u8>) -> Self {
        if made.len() <= INLINE_BYTES_MAX {
            Self::Edited(made)
        } else {
            Self::Shared(Arc::new(mem::take(made)))
        }
    }
}

/// A string opened for writing.
pub type StringEdit<'a> = Edit<'a, StringValue>;

impl Edit<'_, StringValue> {
    /// The string for reading.
    pub fn text(&self) -> StringRef<'_> {
        StringValue::view(self.record()).unwrap_or(StringRef::Bytes(b""))
    }

    /// Replaces the string by an integer. In place, without an allocation, when it was one before.
    pub fn set_integer(&mut self, value: i64) {
        self.discard_object();
        self.record_mut().set_bytes(Kind::Integer as u8, &value.to_le_bytes());
    }

    /// Writes `bytes` at `offset`. What lies between the old end and the offset becomes zeros, and
    /// what lies behind the written bytes stays. Returns the new length.
    ///
    /// The caller has checked that the sum of both lengths is within the limit of a string.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let end = offset + bytes.len();
        let len = self.text().len().max(end);
        if let Some(Object::String(text)) = self.record_mut().object_mut() {
            overwrite(writable(text, len), offset, bytes);
            return len;
        }
        let mut digits = Digits::default();
        if len > INLINE_BYTES_MAX {
            let mut text = Vec::with_capacity(len);
            text.extend_from_slice(self.text().bytes(&mut digits));
            overwrite(&mut text, offset, bytes);
            let object = Object::String(Arc::new(text));
            self.record_mut().set_object(Kind::Shared as u8, object);
            return len;
        }
        if let StringRef::Integer(value) = self.text() {
            let text = write_i64(value, &mut digits.0);
            self.record_mut().set_bytes(Kind::EditedBytes as u8, text);
        }
        let mut record = self.record_mut();
        let text = record.resize_bytes(Kind::EditedBytes as u8, len);
        text[offset..end].copy_from_slice(bytes);
        len
    }
}

impl Edit<'_, StringValue> {
    /// Shows all bytes of the string to `write`, after the string was made `len` long if it was
    /// shorter; what it grows by is zeros. In place unless it grows into another size class or a
    /// reply shares it.
    pub fn with_bytes<R>(&mut self, len: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        if len > self.text().len() {
            self.write_at(len, b"");
        }
        self.make_raw();
        let mut record = self.record_mut();
        if let Some(Object::String(text)) = record.object_mut() {
            let len = text.len();
            return write(writable(text, len));
        }
        write(record.bytes_mut().unwrap_or_default())
    }

    /// Replaces the bytes of `range`, which the string has, by others.
    pub fn splice(&mut self, range: Range<usize>, bytes: &[u8]) {
        self.make_raw();
        let old_len = self.text().len();
        let len = old_len - range.len() + bytes.len();
        if old_len.max(len) > INLINE_BYTES_MAX {
            let mut made = Vec::with_capacity(len);
            let old = self.text().bytes(&mut Digits::default()).to_vec();
            made.extend_from_slice(&old[..range.start]);
            made.extend_from_slice(bytes);
            made.extend_from_slice(&old[range.end..]);
            self.replace(&mut made);
            return;
        }
        let end = range.start + bytes.len();
        let mut record = self.record_mut();
        let whole = record.resize_bytes(Kind::EditedBytes as u8, old_len.max(len));
        whole.copy_within(range.end..old_len, end);
        whole[range.start..end].copy_from_slice(bytes);
        if len < old_len {
            record.resize_bytes(Kind::EditedBytes as u8, len);
        }
    }

    /// Replaces the whole string by one that a change made; a long one is moved out of `made`.
    pub fn replace(&mut self, made: &mut Vec<u8>) {
        self.discard_object();
        let kind = Kind::EditedBytes as u8;
        match NewString::edited(made) {
            NewString::Shared(text) => {
                self.record_mut().set_object(Kind::Shared as u8, Object::String(text));
            }
            NewString::Edited(bytes) | NewString::Bytes(bytes) => {
                self.record_mut().set_bytes(kind, bytes);
            }
            NewString::Integer(value) => self.set_integer(value),
        }
    }

    /// Gives the string the encoding `raw`, as commands that may change bits do even when none
    /// changes. The same text is no change.
    pub fn make_raw(&mut self) {
        let kind = Kind::EditedBytes as u8;
        match self.text() {
            StringRef::Integer(value) => {
                let mut digits = Digits::default();
                self.record_unchanged_mut().set_bytes(kind, write_i64(value, &mut digits.0));
            }
            StringRef::Bytes(bytes) if self.record().kind() != kind => {
                let len = bytes.len();
                self.record_unchanged_mut().resize_bytes(kind, len);
            }
            StringRef::Bytes(_) | StringRef::Shared(_) => {}
        }
    }
}

/// A long string for writing, with room for `len` bytes. One that a reply shares is copied, once
/// and with that room.
fn writable(text: &mut Arc<Vec<u8>>, len: usize) -> &mut Vec<u8> {
    if Arc::get_mut(text).is_none() {
        let mut copy = Vec::with_capacity(len.max(text.len()));
        copy.extend_from_slice(text);
        *text = Arc::new(copy);
    }
    // Unique by now, so nothing is copied here.
    let text = Arc::make_mut(text);
    if len > text.capacity() {
        let wanted = len.max(grown(text.capacity()));
        text.reserve_exact(wanted - text.len());
    }
    text
}

/// The capacity that follows `capacity` when a string grows byte by byte.
fn grown(capacity: usize) -> usize {
    let more = if capacity <= DOUBLING_BYTES_MAX {
        capacity
    } else {
        (capacity / 8).max(DOUBLING_BYTES_MAX)
    };
    capacity.saturating_add(more)
}

/// Writes `bytes` at `offset`, over what is there and past the end, with zeros up to the offset.
fn overwrite(text: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if text.len() < offset {
        text.resize(offset, 0);
    }
    let (over, past) = bytes.split_at(bytes.len().min(text.len() - offset));
    text[offset..offset + over.len()].copy_from_slice(over);
    text.extend_from_slice(past);
}

#[cfg(test)]
#[path = "string_tests.rs"]
mod tests;

//! Changes of strings. Only [`Edit::splice`] makes a string shorter; other commands put a new value
//! for that. Callers check limits on the length.

use std::ops::Range;
use std::sync::Arc;

use base::number::write_i64;
use ds::record::Payload;

use crate::db::{Db, Edit, ExpiryChange};
use crate::key::Key;
use crate::new::string::NewString;
use crate::turn::Turn;
use crate::value::stored::{Object, StoredType, ValueKind};
use crate::value::string::{INLINE_BYTES_MAX, StringDigits, StringRef, StringValue};

/// Up to this capacity a growing long string doubles. A larger one grows by an eighth, but at least
/// by this much, so that unused room stays small relative to the string.
const DOUBLING_BYTES_MAX: usize = 1 << 20;

impl Db {
    /// Sets a key to a string, whatever its type was. Returns whether the key is new.
    #[inline]
    pub fn put(
        &mut self,
        turn: &mut Turn,
        key: Key<'_>,
        text: NewString<'_>,
        expires_at: ExpiryChange,
    ) -> bool {
        let integer;
        let (kind, payload) = match text {
            NewString::Bytes(bytes) => (ValueKind::Bytes, Payload::Bytes(bytes)),
            NewString::Edited(bytes) => (ValueKind::EditedBytes, Payload::Bytes(bytes)),
            NewString::Integer(value) => {
                integer = value.to_le_bytes();
                (ValueKind::Integer, Payload::Bytes(&integer))
            }
            NewString::Shared(text) => (ValueKind::Shared, Payload::Object(Object::String(text))),
        };
        self.replace(turn, key, kind, payload, expires_at)
    }
}

/// A string opened for writing.
pub type StringEdit<'a> = Edit<'a, StringValue>;

impl Edit<'_, StringValue> {
    /// The string for reading.
    pub fn text(&self) -> StringRef<'_> {
        StringValue::view(self.record()).unwrap_or(StringRef::Bytes(b""))
    }

    /// Replaces the string by an integer; in place, without an allocation, if it was an integer
    /// before.
    pub fn set_integer(&mut self, value: i64) {
        self.discard_object();
        self.record_mut().set_bytes(ValueKind::Integer as u8, &value.to_le_bytes());
    }

    /// Writes `bytes` at `offset`. Bytes between the old end and the offset become zeros, and bytes
    /// after the written ones stay. Returns the new length.
    ///
    /// The caller has checked that the sum of both lengths is within the limit of a string.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let end = offset + bytes.len();
        let len = self.text().len().max(end);
        if let Some(Object::String(text)) = self.record_mut().object_mut() {
            overwrite(writable(text, len), offset, bytes);
            return len;
        }
        let mut digits = StringDigits::default();
        if len > INLINE_BYTES_MAX {
            let mut text = Vec::with_capacity(len);
            text.extend_from_slice(self.text().bytes(&mut digits));
            overwrite(&mut text, offset, bytes);
            let object = Object::String(Arc::new(text));
            self.record_mut().set_object(ValueKind::Shared as u8, object);
            return len;
        }
        if let StringRef::Integer(value) = self.text() {
            let text = write_i64(value, &mut digits.0);
            self.record_mut().set_bytes(ValueKind::EditedBytes as u8, text);
        }
        let mut record = self.record_mut();
        let text = record.resize_bytes(ValueKind::EditedBytes as u8, len);
        text[offset..end].copy_from_slice(bytes);
        len
    }
}

impl Edit<'_, StringValue> {
    /// Passes all bytes of the string to `write`. A string shorter than `len` is first extended
    /// with zeros. Works in place unless the string grows into another size class or a reply shares
    /// it.
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

    /// Replaces the bytes in `range`, which must be within the string.
    pub fn splice(&mut self, range: Range<usize>, bytes: &[u8]) {
        self.make_raw();
        let old_len = self.text().len();
        let len = old_len - range.len() + bytes.len();
        if old_len.max(len) > INLINE_BYTES_MAX {
            let mut made = Vec::with_capacity(len);
            let old = self.text().bytes(&mut StringDigits::default()).to_vec();
            made.extend_from_slice(&old[..range.start]);
            made.extend_from_slice(bytes);
            made.extend_from_slice(&old[range.end..]);
            self.replace(&mut made);
            return;
        }
        let end = range.start + bytes.len();
        let mut record = self.record_mut();
        let whole = record.resize_bytes(ValueKind::EditedBytes as u8, old_len.max(len));
        whole.copy_within(range.end..old_len, end);
        whole[range.start..end].copy_from_slice(bytes);
        if len < old_len {
            record.resize_bytes(ValueKind::EditedBytes as u8, len);
        }
    }

    /// Replaces the whole string by the result of a change. A long one is moved out of `made`.
    pub fn replace(&mut self, made: &mut Vec<u8>) {
        self.discard_object();
        let kind = ValueKind::EditedBytes as u8;
        match NewString::edited(made) {
            NewString::Shared(text) => {
                self.record_mut().set_object(ValueKind::Shared as u8, Object::String(text));
            }
            NewString::Edited(bytes) | NewString::Bytes(bytes) => {
                self.record_mut().set_bytes(kind, bytes);
            }
            NewString::Integer(value) => self.set_integer(value),
        }
    }

    /// Changes the encoding to `raw`, as commands that may change bits do even if they change none.
    /// This does not count as a change.
    pub fn make_raw(&mut self) {
        let kind = ValueKind::EditedBytes as u8;
        match self.text() {
            StringRef::Integer(value) => {
                let mut digits = StringDigits::default();
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

/// A long string for writing, with room for `len` bytes. If a reply shares it, it is copied once,
/// with that room.
fn writable(text: &mut Arc<Vec<u8>>, len: usize) -> &mut Vec<u8> {
    if Arc::get_mut(text).is_none() {
        let mut copy = Vec::with_capacity(len.max(text.len()));
        copy.extend_from_slice(text);
        *text = Arc::new(copy);
    }
    // It has one owner by now, so nothing is copied here.
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

/// Writes `bytes` at `offset`, replacing bytes and extending the string, with zeros up to the
/// offset.
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

//! The string type: bytes in the record, an integer in 8 of them, or a long value of its own.

use std::sync::Arc;

use base::number::{decimal_len_i64, parse_i64, push_i64};
use ds::record::RecordRef;

use crate::db::{Edit, Type};
use crate::stored::{Kind, Object};

/// A longer string has an allocation of its own, which replies share instead of copying it.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;
/// The longest text of an i64.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// The string type.
pub enum Text {}

/// A borrowed string.
#[derive(Clone, Copy, Debug)]
pub enum TextRef<'a> {
    /// Bytes in the record.
    Bytes(&'a [u8]),
    /// A canonical integer.
    Integer(i64),
    /// A long string.
    Shared(&'a Arc<Vec<u8>>),
}

impl Type for Text {
    type View<'a> = TextRef<'a>;

    fn view(record: RecordRef<'_, Object>) -> Option<TextRef<'_>> {
        match Kind::from_bits(record.kind()) {
            Kind::Bytes | Kind::EditedBytes => record.bytes().map(TextRef::Bytes),
            Kind::Integer => {
                let bytes = record.bytes()?.try_into().ok()?;
                Some(TextRef::Integer(i64::from_le_bytes(bytes)))
            }
            Kind::Shared => match record.object()? {
                Object::Text(text) => Some(TextRef::Shared(text)),
            },
        }
    }

    fn is_empty(_: RecordRef<'_, Object>) -> bool {
        // A string without bytes is a value like any other.
        false
    }
}

/// Room for the digits of an integer that is read as text.
#[derive(Debug, Default)]
pub struct Digits(Vec<u8>);

impl<'a> TextRef<'a> {
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
            Self::Integer(value) => {
                digits.0.clear();
                push_i64(&mut digits.0, value);
                &digits.0
            }
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
pub enum NewText<'a> {
    /// Bytes for the record, as they were set.
    Bytes(&'a [u8]),
    /// Bytes for the record, made by a change.
    Edited(&'a [u8]),
    /// A canonical integer.
    Integer(i64),
    /// A long string.
    Shared(Arc<Vec<u8>>),
}

impl<'a> NewText<'a> {
    /// The smallest form of `bytes`; `own` is the buffer they already have, if any.
    #[inline]
    pub fn encode(bytes: &'a [u8], own: Option<&Arc<Vec<u8>>>) -> Self {
        if bytes.len() <= INTEGER_TEXT_BYTES_MAX
            && let Some(value) = parse_i64(bytes)
        {
            return Self::Integer(value);
        }
        Self::raw(bytes, own)
    }

    /// The same, but never an integer: for the results of APPEND and SETRANGE.
    pub fn raw(bytes: &'a [u8], own: Option<&Arc<Vec<u8>>>) -> Self {
        if bytes.len() <= INLINE_BYTES_MAX {
            Self::Bytes(bytes)
        } else {
            Self::Shared(own.map_or_else(|| Arc::new(bytes.to_vec()), Arc::clone))
        }
    }
}

/// A string opened for writing.
pub type TextEdit<'a> = Edit<'a, Text>;

impl Edit<'_, Text> {
    /// The string for reading.
    pub fn text(&self) -> TextRef<'_> {
        Text::view(self.record()).unwrap_or(TextRef::Bytes(b""))
    }

    /// Replaces an integer or any string by an integer.
    pub fn set_integer(&mut self, value: i64) {
        self.discard_object();
        self.record_mut().set_bytes(Kind::Integer as u8, &value.to_le_bytes());
    }

    /// Makes the string `len` bytes long at least, zero-filled, and writes `bytes` at `offset`.
    /// Returns the new length.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let end = offset + bytes.len();
        let len = self.text().len().max(end);
        self.make_editable(len);
        if let Some(Object::Text(text)) = self.record_mut().object_mut() {
            let text = Arc::make_mut(text);
            if text.len() < len {
                text.resize(len, 0);
            }
            text[offset..end].copy_from_slice(bytes);
            return len;
        }
        let mut record = self.record_mut();
        let own = record.resize_bytes(Kind::EditedBytes as u8, len);
        own[offset..end].copy_from_slice(bytes);
        len
    }

    /// Brings the string into the form a change needs: bytes in the record up to the limit, else a
    /// value of its own.
    fn make_editable(&mut self, len: usize) {
        let mut digits = Digits::default();
        match self.text() {
            TextRef::Shared(_) => {}
            text if len > INLINE_BYTES_MAX => {
                let mut own = Vec::with_capacity(len);
                own.extend_from_slice(text.bytes(&mut digits));
                let object = Object::Text(Arc::new(own));
                self.record_mut().set_object(Kind::Shared as u8, object);
            }
            TextRef::Integer(_) => {
                let bytes = self.text().bytes(&mut digits).to_vec();
                self.record_mut().set_bytes(Kind::EditedBytes as u8, &bytes);
            }
            TextRef::Bytes(_) => {}
        }
    }
}

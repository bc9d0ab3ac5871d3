//! The string type: bytes in the record, an integer in 8 of them, or a long value outside it.
//!
//! ```text
//!              SET, INCRBYFLOAT     INCR      APPEND, SETRANGE
//! canonical    Integer              Integer   EditedBytes
//! up to 16 KB  Bytes                          EditedBytes
//! longer       Shared                         Shared
//! ```
//!
//! Invariants: exactly the `Shared` strings are longer than [`INLINE_BYTES_MAX`], and bytes that a
//! reply shares never change before it is sent.

use std::sync::Arc;

use base::number::{INTEGER_BYTES_MAX, decimal_len_i64, parse_i64, write_i64};
use ds::record::RecordRef;

use super::stored::{Object, StoredType, ValueKind};

/// A longer string has its own allocation, which replies share instead of copying it.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;

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

impl StoredType for StringValue {
    const EMPTY: ValueKind = ValueKind::Bytes;
    type View<'a> = StringRef<'a>;

    fn view(record: RecordRef<'_, Object>) -> Option<StringRef<'_>> {
        match ValueKind::from_bits(record.kind()) {
            ValueKind::Bytes | ValueKind::EditedBytes => record.bytes().map(StringRef::Bytes),
            ValueKind::Integer => {
                let bytes = record.bytes()?.try_into().ok()?;
                Some(StringRef::Integer(i64::from_le_bytes(bytes)))
            }
            ValueKind::Shared => match record.object()? {
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

/// A buffer for the digits of an integer that is read as text.
#[derive(Debug, Default)]
pub struct StringDigits(pub(crate) [u8; INTEGER_BYTES_MAX]);

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

    /// The text itself. An integer is written to `digits`.
    pub fn bytes<'b>(self, digits: &'b mut StringDigits) -> &'b [u8]
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

//! A string that is not stored yet, in the form that it will have.

use std::mem;
use std::sync::Arc;

use base::number::{INTEGER_BYTES_MAX, parse_i64};

use crate::value::string::INLINE_BYTES_MAX;

/// A string about to be stored, in the form it will have.
#[derive(Clone, Debug)]
pub enum NewString<'a> {
    /// Bytes for the record, as a client set them.
    Bytes(&'a [u8]),
    /// Bytes for the record, made by a change.
    Edited(&'a [u8]),
    /// A canonical integer.
    Integer(i64),
    /// A long string.
    Shared(Arc<Vec<u8>>),
}

impl<'a> NewString<'a> {
    /// The smallest form of `bytes`; `own` is the buffer that already holds them, if any.
    #[inline]
    pub fn encode(bytes: &'a [u8], own: Option<&Arc<Vec<u8>>>) -> Self {
        if bytes.len() <= INTEGER_BYTES_MAX
            && let Some(value) = parse_i64(bytes)
        {
            return Self::Integer(value);
        }
        Self::raw(bytes, own)
    }

    /// The smallest form other than an integer: for the result of INCRBYFLOAT.
    pub fn raw(bytes: &'a [u8], own: Option<&Arc<Vec<u8>>>) -> Self {
        if bytes.len() <= INLINE_BYTES_MAX {
            Self::Bytes(bytes)
        } else {
            Self::Shared(own.map_or_else(|| Arc::new(bytes.to_vec()), Arc::clone))
        }
    }

    /// A string that a change such as SETRANGE built from nothing. A long one is moved out of
    /// `made` and not copied.
    pub fn edited(made: &'a mut Vec<u8>) -> Self {
        if made.len() <= INLINE_BYTES_MAX {
            Self::Edited(made)
        } else {
            Self::Shared(Arc::new(mem::take(made)))
        }
    }
}

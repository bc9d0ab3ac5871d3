//! Lengths and counts.
//!
//! ```text
//! 00llllll                  up to 63
//! 01llllll llllllll         up to 16383
//! 10000000 l x 4            32 bits, big-endian
//! 10000001 l x 8            64 bits, big-endian
//! 11eeeeee                  no length: a string in a special encoding, see `string`
//! ```

use crate::{ByteInput, ByteSink, ByteSource, Error};

const BITS_14: u8 = 0x40;
const BITS_32: u8 = 0x80;
const BITS_64: u8 = 0x81;
const ENCODED: u8 = 0xc0;
const LOW_6: u8 = 0x3f;

/// A length, or the mark of a special encoding in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A length.
    Plain(u64),
    /// The number of a special encoding.
    Encoding(u8),
}

/// Writes a length in its shortest form.
///
/// # Errors
/// Those of the sink.
#[inline]
pub fn write<S: ByteSink>(out: &mut S, len: u64) -> Result<(), S::Error> {
    // The casts take the lowest byte.
    if len <= u64::from(LOW_6) {
        out.put(&[len as u8])
    } else if len < 1 << 14 {
        out.put(&[BITS_14 | (len >> 8) as u8, len as u8])
    } else if let Ok(len) = u32::try_from(len) {
        let [a, b, c, d] = len.to_be_bytes();
        out.put(&[BITS_32, a, b, c, d])
    } else {
        out.put(&[BITS_64])?;
        out.put(&len.to_be_bytes())
    }
}

/// Reads a length or the mark of a special encoding.
///
/// # Errors
/// When the input fails or the form is unknown.
#[inline]
pub fn read_any<S: ByteSource>(input: &mut ByteInput<S>) -> Result<Length, Error> {
    let first = input.byte()?;
    Ok(match first {
        0..BITS_14 => Length::Plain(u64::from(first)),
        BITS_14..BITS_32 => {
            let second = input.byte()?;
            Length::Plain(u64::from(first & LOW_6) << 8 | u64::from(second))
        }
        BITS_32 => Length::Plain(u64::from(u32::from_be_bytes(input.array()?))),
        BITS_64 => Length::Plain(u64::from_be_bytes(input.array()?)),
        ENCODED.. => Length::Encoding(first & LOW_6),
        _ => return Err(Error::Corrupt("the form of a length")),
    })
}

/// Reads a length.
///
/// # Errors
/// When the input fails or there is no length.
#[inline]
pub fn read<S: ByteSource>(input: &mut ByteInput<S>) -> Result<u64, Error> {
    match read_any(input)? {
        Length::Plain(len) => Ok(len),
        Length::Encoding(_) => Err(Error::Corrupt("an encoded string instead of a length")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(len: u64, bytes: &[u8]) {
        let mut out = Vec::new();
        write(&mut out, len).unwrap();
        assert_eq!(out, bytes, "{len}");
        let mut input = ByteInput::new(bytes);
        assert_eq!(read(&mut input).unwrap(), len);
        assert!(input.is_at_end().unwrap());
        let cut = &bytes[..bytes.len() - 1];
        assert!(matches!(read(&mut ByteInput::new(cut)), Err(Error::End)), "{len}");
    }

    #[test]
    fn each_form_begins_where_the_shorter_one_ends() {
        check(0, b"\x00");
        check(63, b"\x3f");
        check(64, b"\x40\x40");
        check(16_383, b"\x7f\xff");
        check(16_384, b"\x80\x00\x00\x40\x00");
        check(u64::from(u32::MAX), b"\x80\xff\xff\xff\xff");
        check(1 << 32, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00");
        check(u64::MAX, b"\x81\xff\xff\xff\xff\xff\xff\xff\xff");
    }

    #[test]
    fn other_first_bytes_are_encodings_or_refused() {
        assert_eq!(read_any(&mut ByteInput::new(&b"\xc3"[..])).unwrap(), Length::Encoding(3));
        assert!(matches!(read(&mut ByteInput::new(&b"\xc0"[..])), Err(Error::Corrupt(_))));
        for first in 0x82..0xc0 {
            let bytes = [first; 9];
            assert!(matches!(read_any(&mut ByteInput::new(&bytes[..])), Err(Error::Corrupt(_))));
        }
    }
}

//! Strings.
//!
//! ```text
//! length, bytes                 the bytes themselves
//! 11000000 i8                   the canonical spelling of an integer
//! 11000001 i16                  the same; little-endian
//! 11000010 i32                  the same
//! 11000011 clen len bytes       clen bytes of LZF, which decompress to len bytes
//! ```
//!
//! Keys, elements and whole packed collections are strings.

use base::number::{INTEGER_BYTES_MAX, parse_i64, write_i64};
use ds::packed::Entry;
use store::limits::STRING_BYTES_MAX;

use super::length::{self, Length};
use crate::lzf::{self, Compressor};
use crate::{ByteInput, ByteSink, ByteSource, Error};

const INT_8: u8 = 0;
const INT_16: u8 = 1;
const INT_32: u8 = 2;
const LZF: u8 = 3;
const ENCODED: u8 = 0xc0;
/// The longest spelling of a 32-bit integer.
const INT_32_BYTES_MAX: usize = 11;
/// Shorter strings are not compressed.
const COMPRESSED_BYTES_MIN: usize = 21;

/// Writes a string: as an integer if it is one, compressed if there is a compressor and the result
/// is shorter.
///
/// # Errors
/// Those of the sink.
#[inline]
pub fn write<S: ByteSink>(
    out: &mut S,
    text: &[u8],
    compressor: Option<&mut Compressor>,
) -> Result<(), S::Error> {
    if text.len() <= INT_32_BYTES_MAX
        && let Some(Ok(value)) = parse_i64(text).map(i32::try_from)
    {
        return write_i32(out, value);
    }
    if text.len() >= COMPRESSED_BYTES_MIN
        && let Some(compressor) = compressor
        && write_compressed(out, text, compressor)?
    {
        return Ok(());
    }
    length::write(out, text.len() as u64)?;
    out.put(text)
}

/// Writes an integer as a string.
///
/// # Errors
/// Those of the sink.
pub fn write_integer<S: ByteSink>(out: &mut S, value: i64) -> Result<(), S::Error> {
    if let Ok(value) = i32::try_from(value) {
        return write_i32(out, value);
    }
    let mut digits = [0; INTEGER_BYTES_MAX];
    let text = write_i64(value, &mut digits);
    length::write(out, text.len() as u64)?;
    out.put(text)
}

/// Writes an element of a collection as a string.
///
/// # Errors
/// Those of the sink.
#[inline]
pub fn write_entry<S: ByteSink>(
    out: &mut S,
    entry: Entry<'_>,
    compressor: Option<&mut Compressor>,
) -> Result<(), S::Error> {
    match entry {
        Entry::Bytes(text) => write(out, text, compressor),
        Entry::Integer(value) => write_integer(out, value),
    }
}

fn write_i32<S: ByteSink>(out: &mut S, value: i32) -> Result<(), S::Error> {
    let [a, b, c, d] = value.to_le_bytes();
    if i8::try_from(value).is_ok() {
        out.put(&[ENCODED | INT_8, a])
    } else if i16::try_from(value).is_ok() {
        out.put(&[ENCODED | INT_16, a, b])
    } else {
        out.put(&[ENCODED | INT_32, a, b, c, d])
    }
}

/// Writes a string compressed if that is shorter, and nothing otherwise. Returns whether it wrote.
fn write_compressed<S: ByteSink>(
    out: &mut S,
    text: &[u8],
    compressor: &mut Compressor,
) -> Result<bool, S::Error> {
    let len = match compressor.compress(text) {
        None => return Ok(false),
        Some(lzf::Compressed::Bytes(bytes)) => {
            write_compressed_lengths(out, bytes.len(), text.len())?;
            return out.put(bytes).map(|()| true);
        }
        Some(lzf::Compressed::Len(len)) => len,
    };
    write_compressed_lengths(out, len, text.len())?;
    compressor.write(text, out).map(|()| true)
}

fn write_compressed_lengths<S: ByteSink>(
    out: &mut S,
    compressed_len: usize,
    len: usize,
) -> Result<(), S::Error> {
    out.put(&[ENCODED | LZF])?;
    length::write(out, compressed_len as u64)?;
    length::write(out, len as u64)
}

/// Checks the length of a string.
fn checked_len(len: u64) -> Result<usize, Error> {
    if len > STRING_BYTES_MAX {
        return Err(Error::Corrupt("the length of a string"));
    }
    // At most 3 GB.
    Ok(len as usize)
}

/// Reads a string. The result is in the input or in `room`, whose memory is used again.
///
/// # Errors
/// When the input fails, the encoding is unknown or the string is too long.
#[inline]
pub fn read<'a, S: ByteSource>(
    input: &'a mut ByteInput<S>,
    room: &'a mut Vec<u8>,
) -> Result<Entry<'a>, Error> {
    match length::read_any(input)? {
        Length::Plain(len) => input.bytes(checked_len(len)?, room).map(Entry::Bytes),
        Length::Encoding(LZF) => {
            room.clear();
            append_compressed(input, room)?;
            Ok(Entry::Bytes(room))
        }
        Length::Encoding(encoding) => read_integer(input, encoding).map(Entry::Integer),
    }
}

/// A string that was read.
pub(super) enum Text<'a> {
    /// In the input or in a room.
    Seen(Entry<'a>),
    /// In its own buffer.
    Own(Vec<u8>),
}

/// Reads a string; one of more than `seen_bytes_max` bytes gets a buffer of its own.
///
/// # Errors
/// As for [`read`].
pub(super) fn read_or_own<'a, S: ByteSource>(
    input: &'a mut ByteInput<S>,
    room: &'a mut Vec<u8>,
    seen_bytes_max: usize,
) -> Result<Text<'a>, Error> {
    let seen = match length::read_any(input)? {
        Length::Plain(len) if len > seen_bytes_max as u64 => {
            let mut own = Vec::new();
            input.append(checked_len(len)?, &mut own)?;
            return Ok(Text::Own(own));
        }
        Length::Plain(len) => Entry::Bytes(input.bytes(checked_len(len)?, room)?),
        Length::Encoding(LZF) => {
            let mut own = std::mem::take(room);
            own.clear();
            append_compressed(input, &mut own)?;
            if own.len() > seen_bytes_max {
                own.shrink_to_fit();
                return Ok(Text::Own(own));
            }
            *room = own;
            Entry::Bytes(room)
        }
        Length::Encoding(encoding) => Entry::Integer(read_integer(input, encoding)?),
    };
    Ok(Text::Seen(seen))
}

/// Reads a string and appends its text to `out`.
///
/// # Errors
/// As for [`read`]; part of the text may have been appended.
pub fn append<S: ByteSource>(input: &mut ByteInput<S>, out: &mut Vec<u8>) -> Result<(), Error> {
    match length::read_any(input)? {
        Length::Plain(len) => input.append(checked_len(len)?, out),
        Length::Encoding(LZF) => append_compressed(input, out),
        Length::Encoding(encoding) => {
            let value = read_integer(input, encoding)?;
            out.extend_from_slice(write_i64(value, &mut [0; INTEGER_BYTES_MAX]));
            Ok(())
        }
    }
}

/// Skips a string. Compressed bytes are not checked.
///
/// # Errors
/// When the input fails or the encoding is unknown.
pub fn skip<S: ByteSource>(input: &mut ByteInput<S>) -> Result<(), Error> {
    match length::read_any(input)? {
        Length::Plain(len) => input.skip(len),
        Length::Encoding(LZF) => {
            let compressed_len = length::read(input)?;
            length::read(input)?;
            input.skip(compressed_len)
        }
        Length::Encoding(encoding) => read_integer(input, encoding).map(|_| ()),
    }
}

fn read_integer<S: ByteSource>(input: &mut ByteInput<S>, encoding: u8) -> Result<i64, Error> {
    Ok(match encoding {
        INT_8 => i64::from(i8::from_le_bytes(input.array()?)),
        INT_16 => i64::from(i16::from_le_bytes(input.array()?)),
        INT_32 => i64::from(i32::from_le_bytes(input.array()?)),
        _ => return Err(Error::Corrupt("the encoding of a string")),
    })
}

fn append_compressed<S: ByteSource>(
    input: &mut ByteInput<S>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let compressed_len = checked_len(length::read(input)?)?;
    let len = length::read(input)?;
    let mut room = Vec::new();
    let bytes = input.bytes(compressed_len, &mut room)?;
    let done = checked_len(len).and_then(|len| lzf::decompress(bytes, len, out));
    done.map_err(|error| match error {
        Error::Corrupt(what) => Error::Compressed(what),
        error => error,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::random::Random;

    use super::*;
    use crate::source::tests::Blocks;

    fn written(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, text, Some(&mut Compressor::new())).unwrap();
        out
    }

    /// Checks all ways to read and skip a string, from one block and from blocks of a byte.
    fn check_read(bytes: &[u8], text: &[u8]) {
        let mut room = Vec::new();
        assert_eq!(read(&mut ByteInput::new(bytes), &mut room).unwrap().to_vec(), text);
        let mut input = ByteInput::new(Blocks::new(bytes, 1));
        assert_eq!(read(&mut input, &mut room).unwrap().to_vec(), text);
        assert!(input.is_at_end().unwrap());
        let mut out = b"<".to_vec();
        append(&mut ByteInput::new(bytes), &mut out).unwrap();
        assert_eq!(out[1..], *text);
        let mut input = ByteInput::new(bytes);
        skip(&mut input).unwrap();
        assert!(input.is_at_end().unwrap());
        for len in 0..bytes.len() {
            assert!(read(&mut ByteInput::new(&bytes[..len]), &mut room).is_err(), "{len} bytes");
            assert!(skip(&mut ByteInput::new(&bytes[..len])).is_err(), "{len} bytes");
        }
    }

    fn check(text: &[u8], bytes: &[u8]) {
        assert_eq!(written(text), bytes, "{text:?}");
        check_read(bytes, text);
    }

    #[test]
    fn a_string_is_written_as_an_integer_compressed_or_as_it_is() {
        check(b"", b"\x00");
        check(b"abc", b"\x03abc");
        check(b"0", b"\xc0\x00");
        check(b"-128", b"\xc0\x80");
        check(b"128", b"\xc1\x80\x00");
        check(b"32767", b"\xc1\xff\x7f");
        check(b"-32769", b"\xc2\xff\x7f\xff\xff");
        check(b"2147483647", b"\xc2\xff\xff\xff\x7f");
        check(b"-2147483648", b"\xc2\x00\x00\x00\x80");
        check(b"2147483648", b"\x0a2147483648");
        check(b"007", b"\x03007");
        check(b"aaaaaaaaaaaaaaaaaaaa", b"\x14aaaaaaaaaaaaaaaaaaaa");
        // As Redis compresses 21 and 100 times the same letter.
        check(&[b'a'; 21], b"\xc3\x06\x15\x01aa\xe0\x0a\x00");
        check(&[b'a'; 100], b"\xc3\x09\x40\x64\x01aa\xe0\x57\x00\x01aa");
    }

    #[test]
    fn integers_beyond_32_bits_are_written_as_text() {
        for value in [i64::MIN, -1 << 31, -1, 0, 1 << 31, i64::MAX] {
            let mut out = Vec::new();
            write_integer(&mut out, value).unwrap();
            assert_eq!(out, written(value.to_string().as_bytes()));
            check_read(&out, value.to_string().as_bytes());
        }
    }

    #[test]
    fn strings_of_all_lengths_are_read_back() {
        let mut random = Random::new(7);
        let mut compressor = Compressor::new();
        for round in 0..400usize {
            let letters = 1 + random.below(20);
            let len = if round < 300 { round } else { random.below(70_000) as usize };
            let text: Vec<u8> = (0..len).map(|_| b'a' + random.below(letters) as u8).collect();
            let mut out = Vec::new();
            write(&mut out, &text, Some(&mut compressor)).unwrap();
            assert!(out.len() <= len + 5);
            let mut room = Vec::new();
            let mut input = ByteInput::new(Blocks::new(&out, 1000));
            assert_eq!(read(&mut input, &mut room).unwrap(), Entry::Bytes(&text));
        }
    }

    #[test]
    fn a_long_text_is_compressed_in_bounded_memory() {
        let text: Vec<u8> =
            (0..3 << 20u32).map(|i| b'a' + (i % 7 * (i >> 12) % 23) as u8).collect();
        let mut compressor = Compressor::new();
        let mut count = crate::ByteCount(0);
        write(&mut count, &text, Some(&mut compressor)).unwrap();
        assert!(count.0 < text.len() as u64 / 4, "{} bytes", count.0);
        let mut out = Vec::new();
        write(&mut out, &text, Some(&mut compressor)).unwrap();
        assert_eq!(out.len() as u64, count.0);
        let mut restored = Vec::new();
        append(&mut ByteInput::new(&out[..]), &mut restored).unwrap();
        assert_eq!(restored, text);
    }

    #[test]
    fn wrong_encodings_and_lengths_are_refused() {
        let faults: &[&[u8]] = &[
            b"\xc4",
            b"\xff",
            b"\x83abc",
            b"\x81\x00\x00\x00\x01\x00\x00\x00\x00",
            b"\xc3\x02\x02\x00a",
            b"\xc3\xc0\x02\x00a",
            b"\xc3\x02\x80\xff\xff\xff\xff\x00a",
        ];
        for bytes in faults {
            assert!(read(&mut ByteInput::new(*bytes), &mut Vec::new()).is_err(), "{bytes:?}");
        }
    }
}

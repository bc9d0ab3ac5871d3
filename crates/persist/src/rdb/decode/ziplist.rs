//! Ziplists: small collections of Redis up to 6.
//!
//! ```text
//! bytes u32 │ last entry u32 │ entries u16 │ entry ... │ ff     little-endian; 65535: unknown
//! entry     length of the one before │ encoding │ content
//! before    0..fd, or fe and u32
//! encoding  00llllll                 text of up to 63 bytes
//!           01llllll llllllll        up to 16383 bytes
//!           10000000 l x 4           longer; big-endian
//!           c0, d0, e0, f0, fe       integers of 16, 32, 64, 24, 8 bits; little-endian
//!           1111vvvv                 v-1: 0 to 12, from f1 to fd
//! ```

use ds::packed::Entry;

use crate::Error;

const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;
const LEN_UNKNOWN: u16 = u16::MAX;
/// The length of the previous entry follows in 4 bytes.
const BEFORE_LONG: u8 = 0xfe;
const CORRUPT: Error = Error::Corrupt("a ziplist");

/// Calls `visit` with each element of a ziplist.
///
/// # Errors
/// When this is no ziplist; `visit` may have been called before.
pub(super) fn read<'a>(bytes: &'a [u8], mut visit: impl FnMut(Entry<'a>)) -> Result<(), Error> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(CORRUPT)?;
    let [a, b, c, d, e, f, g, h, i, j] = *header;
    let last_at = u32::from_le_bytes([e, f, g, h]) as usize;
    let stored_len = u16::from_le_bytes([i, j]);
    if u32::from_le_bytes([a, b, c, d]) as usize != bytes.len() || bytes.last() != Some(&END) {
        return Err(CORRUPT);
    }
    let end = bytes.len() - 1;
    let (mut at, mut before, mut len) = (HEADER_BYTES, 0, 0usize);
    if at > end {
        return Err(CORRUPT);
    }
    while at < end {
        let (stored_before, head_at) = length_before(&bytes[..end], at).ok_or(CORRUPT)?;
        let (element, next) = element(&bytes[..end], head_at).ok_or(CORRUPT)?;
        if stored_before != before {
            return Err(CORRUPT);
        }
        visit(element);
        (before, at, len) = (next - at, next, len + 1);
    }
    // In an empty list, an entry would begin there.
    if last_at != at - before || stored_len != LEN_UNKNOWN && usize::from(stored_len) != len {
        return Err(CORRUPT);
    }
    Ok(())
}

/// The length of the entry before the one at `at`, and the position after that length.
fn length_before(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    match *bytes.get(at)? {
        BEFORE_LONG => {
            let len = u32::from_le_bytes(*bytes.get(at + 1..)?.first_chunk()?);
            Some((len as usize, at + 5))
        }
        END => None,
        len => Some((usize::from(len), at + 1)),
    }
}

/// The element whose encoding is at `at`, and the position after the element.
fn element(bytes: &[u8], at: usize) -> Option<(Entry<'_>, usize)> {
    let rest = bytes.get(at..)?;
    let (first, after) = rest.split_first()?;
    let text = |head: usize, len: usize| {
        let text = rest.get(head..)?.get(..len)?;
        Some((Entry::Bytes(text), at + head + len))
    };
    let int = |value: i64, bytes: usize| Some((Entry::Integer(value), at + 1 + bytes));
    match *first {
        0..0x40 => text(1, usize::from(*first)),
        0x40..0x80 => text(2, usize::from(first & 0x3f) << 8 | usize::from(*after.first()?)),
        0x80 => text(5, u32::from_be_bytes(*after.first_chunk()?) as usize),
        0xc0 => int(i64::from(i16::from_le_bytes(*after.first_chunk()?)), 2),
        0xd0 => int(i64::from(i32::from_le_bytes(*after.first_chunk()?)), 4),
        0xe0 => int(i64::from_le_bytes(*after.first_chunk()?), 8),
        0xf0 => {
            let [a, b, c] = *after.first_chunk()?;
            // Shifted from the upper bytes, which extends the sign.
            int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8), 3)
        }
        0xfe => int(i64::from(i8::from_le_bytes(*after.first_chunk()?)), 1),
        0xf1..=0xfd => int(i64::from(first & 0x0f) - 1, 0),
        _ => None,
    }
}

//! Encodes, reads and skips an entry of a packed list.
//!
//! The encodings are those of the listpack format
//! (<https://github.com/antirez/listpack/blob/master/listpack.md>):
//!
//! ```text
//! first byte      then                     holds
//! 0vvvvvvv                                 an integer from 0 to 127
//! 10llllll        l bytes                  text shorter than 64 bytes
//! 110vvvvv        1 byte                   an integer of 13 bits, big-endian
//! 1110llll        1 byte of l, l bytes     text shorter than 4096 bytes
//! 11110000        4 bytes of l, l bytes    longer text; the length is little-endian
//! 11110001 .. 4   2, 3, 4 or 8 bytes       an integer, little-endian
//! ```
//!
//! Each entry ends with its *back length*: the number of bytes before it, in groups of 7 bits that
//! are read backwards. The high bit of a group says that another group precedes it.
//!
//! Invariant: the canonical text of an `i64` is always stored as an integer in the shortest form.
//! Two entries are therefore equal exactly when their bytes are.

use base::number::{INTEGER_BYTES_MAX, decimal_len_i64, parse_i64, write_i64};

const TEXT_6: u8 = 0x80;
const INTEGER_13: u8 = 0xc0;
const TEXT_12: u8 = 0xe0;
const TEXT_32: u8 = 0xf0;
const INTEGER_16: u8 = 0xf1;
const INTEGER_24: u8 = 0xf2;
const INTEGER_32: u8 = 0xf3;
const INTEGER_64: u8 = 0xf4;
/// The longest head: a first byte and an integer of 64 bits.
const HEAD_BYTES_MAX: usize = 9;
const BACK_BYTES_MAX: usize = 5;
/// The most bytes that an entry takes in addition to its text. (An integer with 9 bytes of head
/// replaces a text that is longer than that.)
pub const FRAME_BYTES_MAX: usize = 5 + BACK_BYTES_MAX;

/// A buffer for the digits of an integer that is read as text.
pub type Digits = [u8; INTEGER_BYTES_MAX];

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Text that is not a canonical integer.
    Bytes(&'a [u8]),
    /// A canonical integer.
    Integer(i64),
}

impl<'a> Entry<'a> {
    /// Length in bytes as text.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Integer(value) => decimal_len_i64(value),
        }
    }

    /// The entry as text. An integer is formatted in `digits`.
    #[inline]
    pub fn text<'b>(self, digits: &'b mut Digits) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Integer(value) => write_i64(value, digits),
        }
    }

    /// The entry as owned text.
    pub fn to_vec(self) -> Vec<u8> {
        self.text(&mut Digits::default()).to_vec()
    }

    /// The entry for `text`: an integer if the text is a canonical one.
    #[inline]
    pub fn of(text: &'a [u8]) -> Self {
        match parse_i64(text) {
            Some(value) => Self::Integer(value),
            None => Self::Bytes(text),
        }
    }

    /// Reads the entry that begins at `at`.
    #[inline]
    pub(crate) fn at(entries: &'a [u8], at: usize) -> Self {
        let rest = &entries[at..];
        let head = rest[0];
        match head {
            0..TEXT_6 => Self::Integer(i64::from(head)),
            TEXT_6..INTEGER_13 => Self::Bytes(&rest[1..][..usize::from(head & 0x3f)]),
            INTEGER_13..TEXT_12 => {
                let raw = i64::from(head & 0x1f) << 8 | i64::from(rest[1]);
                Self::Integer(raw << 51 >> 51)
            }
            TEXT_12..TEXT_32 => {
                let len = usize::from(head & 0xf) << 8 | usize::from(rest[1]);
                Self::Bytes(&rest[2..][..len])
            }
            TEXT_32 => Self::Bytes(&rest[5..][..long_len(rest)]),
            INTEGER_16 => Self::Integer(integer::<2>(rest)),
            INTEGER_24 => Self::Integer(integer::<3>(rest)),
            INTEGER_32 => Self::Integer(integer::<4>(rest)),
            _ => Self::Integer(integer::<8>(rest)),
        }
    }
}

/// The integer of `N` bytes after the first byte.
fn integer<const N: usize>(rest: &[u8]) -> i64 {
    let mut bytes = [0; 8];
    bytes[8 - N..].copy_from_slice(&rest[1..=N]);
    // The bytes start in the upper half, so the shift extends the sign.
    i64::from_le_bytes(bytes) >> (64 - 8 * N)
}

fn long_len(rest: &[u8]) -> usize {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&rest[1..5]);
    u32::from_le_bytes(bytes) as usize
}

/// Where the entry after the one at `at` begins.
#[inline]
pub(crate) fn after(entries: &[u8], at: usize) -> usize {
    let head = entries[at];
    if head < TEXT_6 {
        return at + 2;
    }
    if head < INTEGER_13 {
        return at + 2 + usize::from(head & 0x3f);
    }
    let body = match head {
        INTEGER_13..TEXT_12 => 2,
        TEXT_12..TEXT_32 => 2 + (usize::from(head & 0xf) << 8 | usize::from(entries[at + 1])),
        TEXT_32 => 5 + long_len(&entries[at..]),
        INTEGER_16 => 3,
        INTEGER_24 => 4,
        INTEGER_32 => 5,
        _ => 9,
    };
    at + body + back_len(body)
}

/// Where the entry that ends before `end` begins.
#[inline]
pub(crate) fn before(entries: &[u8], end: usize) -> usize {
    let mut at = end - 1;
    let last = entries[at];
    if last < 0x80 {
        return at - usize::from(last);
    }
    let mut body = usize::from(last & 0x7f);
    let mut shift = 7;
    loop {
        at -= 1;
        body |= usize::from(entries[at] & 0x7f) << shift;
        if entries[at] < 0x80 {
            return at - body;
        }
        shift += 7;
    }
}

/// The length of the back length of a body. Most limits are one lower than 7 bits a byte allow,
/// as in Redis, whose files have this format.
pub(super) fn back_len(body: usize) -> usize {
    match body {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => BACK_BYTES_MAX,
    }
}

/// An element, encoded for writing or searching.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    head: [u8; HEAD_BYTES_MAX],
    head_len: u8,
    /// The length of an integer's text; 0 for text, which is in `data`.
    digits: u8,
    data: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// An element with this text.
    #[inline]
    pub fn text(text: &'a [u8]) -> Self {
        match parse_i64(text) {
            Some(value) => Self::integer(value),
            None => Self::bytes(text),
        }
    }

    /// An integer element.
    pub fn integer(value: i64) -> Self {
        let wide = value.to_le_bytes();
        let mut head = [0; HEAD_BYTES_MAX];
        let len = if (0..128).contains(&value) {
            head[0] = wide[0];
            1
        } else if (-4096..4096).contains(&value) {
            head[0] = INTEGER_13 | wide[1] & 0x1f;
            head[1] = wide[0];
            2
        } else {
            let (first, bytes) = match value.unsigned_abs().max((!value).unsigned_abs()) {
                0..=0x8000 => (INTEGER_16, 2),
                0x8001..=0x80_0000 => (INTEGER_24, 3),
                0x80_0001..=0x8000_0000 => (INTEGER_32, 4),
                _ => (INTEGER_64, 8),
            };
            head[0] = first;
            head[1..=bytes].copy_from_slice(&wide[..bytes]);
            bytes + 1
        };
        // The lengths are at most 9 and 20.
        Self { head, head_len: len as u8, digits: decimal_len_i64(value) as u8, data: &[] }
    }

    /// Text that is not a canonical integer.
    fn bytes(text: &'a [u8]) -> Self {
        let mut head = [0; HEAD_BYTES_MAX];
        let len = text.len();
        let head_len = if len < 64 {
            head[0] = TEXT_6 | len as u8;
            1
        } else if len < 4096 {
            head[0] = TEXT_12 | (len >> 8) as u8;
            head[1] = len as u8;
            2
        } else {
            // Callers store no element of 4 GiB or more.
            debug_assert!(u32::try_from(len).is_ok(), "an element is below 4 GiB");
            head[0] = TEXT_32;
            head[1..5].copy_from_slice(&(len as u32).to_le_bytes());
            5
        };
        Self { head, head_len, digits: 0, data: text }
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    /// Length in bytes as text.
    #[inline]
    pub fn text_len(&self) -> usize {
        usize::from(self.digits) + self.data.len()
    }

    /// The entry's length in bytes, including the back length.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        let body = usize::from(self.head_len) + self.data.len();
        body + back_len(body)
    }

    /// Writes the entry to the start of `room` and returns its length.
    #[inline]
    pub(crate) fn write(&self, room: &mut [u8]) -> usize {
        let head_len = usize::from(self.head_len);
        let body = head_len + self.data.len();
        room[..head_len].copy_from_slice(self.head());
        room[head_len..body].copy_from_slice(self.data);
        let end = body + back_len(body);
        let mut left = body;
        for byte in room[body..end].iter_mut().rev() {
            // The lowest 7 bits.
            *byte = left as u8 | 0x80;
            left >>= 7;
        }
        // No group precedes the first one.
        room[body] &= 0x7f;
        end
    }

    /// Appends the entry to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let (start, len) = (out.len(), self.len());
        out.resize(start + len, 0);
        self.write(&mut out[start..]);
    }

    /// Whether the entry at `at` holds this element.
    #[inline]
    pub(crate) fn is_at(&self, entries: &[u8], at: usize) -> bool {
        if entries[at] != self.head[0] {
            return false;
        }
        let head_len = usize::from(self.head_len);
        let Some(own) = entries.get(at..at + head_len + self.data.len()) else { return false };
        let (head, data) = own.split_at(head_len);
        // Different texts usually differ at the end: `field-1`, `field-2`.
        data.last() == self.data.last()
            && (head_len == 1 || head == self.head())
            && data == self.data
    }
}

impl<'a> From<&'a [u8]> for Encoded<'a> {
    #[inline]
    fn from(text: &'a [u8]) -> Self {
        Self::text(text)
    }
}

impl From<i64> for Encoded<'_> {
    fn from(value: i64) -> Self {
        Self::integer(value)
    }
}

impl<'a> From<Entry<'a>> for Encoded<'a> {
    fn from(entry: Entry<'a>) -> Self {
        match entry {
            Entry::Bytes(bytes) => Self::bytes(bytes),
            Entry::Integer(value) => Self::integer(value),
        }
    }
}

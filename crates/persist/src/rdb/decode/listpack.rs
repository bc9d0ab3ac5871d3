//! Listpacks, and ziplists converted to their entries; see [`encode`](crate::rdb::encode) for the
//! layout.

use ds::packed::{self, Encoded, Packed};

use super::ziplist;
use crate::Error;

/// The shortest listpack: a header and the end.
const BYTES_MIN: usize = HEADER_BYTES + 1;
const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;
const LEN_UNKNOWN: u16 = u16::MAX;

/// The elements of a listpack, in `bytes` or encoded again in `room`.
///
/// # Errors
/// When this is no listpack.
pub(super) fn open<'a>(bytes: &'a [u8], room: &'a mut Vec<u8>) -> Result<Packed<'a>, Error> {
    const CORRUPT: Error = Error::Corrupt("a listpack");
    if bytes.len() < BYTES_MIN || bytes.last() != Some(&END) {
        return Err(CORRUPT);
    }
    let ([a, b, c, d, e, f], rest) = bytes.split_first_chunk().ok_or(CORRUPT)?;
    let (bytes_len, len) = (u32::from_le_bytes([*a, *b, *c, *d]), u16::from_le_bytes([*e, *f]));
    let entries = &rest[..rest.len() - 1];
    let checked = packed::check(entries).ok_or(CORRUPT)?;
    if bytes_len as usize != bytes.len() || len != LEN_UNKNOWN && usize::from(len) != checked.len {
        return Err(CORRUPT);
    }
    let list = Packed::of_entries(entries, checked.len);
    if checked.canonical {
        return Ok(list);
    }
    room.clear();
    list.iter().for_each(|entry| super::encoded(entry).append_to(room));
    Ok(Packed::of_entries(room, checked.len))
}

/// The elements of a ziplist, encoded in `room`.
///
/// # Errors
/// When this is no ziplist.
pub(super) fn of_ziplist<'a>(bytes: &'a [u8], room: &'a mut Vec<u8>) -> Result<Packed<'a>, Error> {
    room.clear();
    let mut len = 0;
    ziplist::read(bytes, |element| {
        Encoded::append_to(&super::encoded(element), room);
        len += 1;
    })?;
    Ok(Packed::of_entries(room, len))
}

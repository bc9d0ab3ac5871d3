//! Intsets; see [`encode`](crate::rdb::encode) for their layout.

use ds::intset::IntSet;

use crate::Error;

const CORRUPT: Error = Error::Corrupt("an intset");

/// Writes the integers of an intset to `out` in the form of [`IntSet`].
///
/// # Errors
/// When this is no intset.
pub(super) fn open(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let (width, rest) = bytes.split_first_chunk().ok_or(CORRUPT)?;
    let (len, ints) = rest.split_first_chunk().ok_or(CORRUPT)?;
    let (width, len) = (u32::from_le_bytes(*width), u32::from_le_bytes(*len));
    let width_byte = match width {
        2 => 2,
        4 => 4,
        8 => 8,
        _ => return Err(CORRUPT),
    };
    if u64::from(width) * u64::from(len) != ints.len() as u64 {
        return Err(CORRUPT);
    }
    if ints.is_empty() {
        return Err(Error::EmptyValue);
    }
    out.clear();
    out.push(width_byte);
    out.extend_from_slice(ints);
    match IntSet::new(out).iter().is_sorted_by(|a, b| a < b) {
        true => Ok(()),
        false => Err(CORRUPT),
    }
}

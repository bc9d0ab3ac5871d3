//! Zipmaps: small hashes of Redis up to 2.4.
//!
//! ```text
//! fields u8 │ entry ... │ ff               254 or more fields: unknown
//! entry     length │ field │ length │ free u8 │ value │ free bytes of any content
//! length    0..fd, or fe and u32 >= fe     little-endian
//! ```

use crate::Error;

const LEN_UNKNOWN: u8 = 254;
const LONG: u8 = 0xfe;
const END: u8 = 0xff;
const CORRUPT: Error = Error::Corrupt("a zipmap");

/// Calls `visit` with each field of a zipmap and its value.
///
/// # Errors
/// When this is no zipmap, and those of `visit`.
pub(super) fn read(
    bytes: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (stored_len, mut rest) = bytes.split_first().ok_or(CORRUPT)?;
    let mut len = 0usize;
    while rest != [END] {
        let (field, after) = text(rest, 0).ok_or(CORRUPT)?;
        // The byte between the length of the value and the value.
        let (value, after) = text(after, 1).ok_or(CORRUPT)?;
        visit(field, value)?;
        rest = after;
        len += 1;
    }
    if *stored_len < LEN_UNKNOWN && usize::from(*stored_len) != len {
        return Err(CORRUPT);
    }
    Ok(())
}

/// A text after its length, and the rest. `free_bytes` is 1 if a byte between the two says how many
/// unused bytes follow the text.
fn text(rest: &[u8], free_bytes: usize) -> Option<(&[u8], &[u8])> {
    let (len, rest) = match rest.split_first()? {
        (&LONG, rest) => {
            let (len, rest) = rest.split_first_chunk()?;
            let len = u32::from_le_bytes(*len) as usize;
            // A length that fits into one byte has one.
            (Some(len).filter(|len| *len >= usize::from(LONG))?, rest)
        }
        (&END, _) => return None,
        (len, rest) => (usize::from(*len), rest),
    };
    let (free, rest) = rest.split_at_checked(free_bytes)?;
    let (text, rest) = rest.split_at_checked(len)?;
    let unused = free.first().map_or(0, |free| usize::from(*free));
    Some((text, rest.get(unused..)?))
}

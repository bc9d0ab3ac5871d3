//! The footer of payloads of DUMP and FUNCTION DUMP.
//!
//! ```text
//! content │ version u16 │ CRC64 of all before it, u64      little-endian
//! ```

use crate::crc64::{CHECKSUM_BYTES, checksum};
use crate::rdb::{SHARED_VERSION, VERSION};

const VERSION_BYTES: usize = 2;
const FOOTER_BYTES: usize = VERSION_BYTES + CHECKSUM_BYTES;

/// The highest version that is read: that of Valkey 9. Redis and Valkey share the versions up to
/// 11; those from 12 to 79 belong to Redis.
pub const VERSION_MAX: u16 = 80;

/// The footer is missing or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongFooter;

/// Appends the footer to a content.
pub fn seal(content: &mut Vec<u8>) {
    seal_as(content, VERSION);
}

/// Appends the footer of a version to a content.
pub fn seal_as(content: &mut Vec<u8>, version: u16) {
    content.extend_from_slice(&version.to_le_bytes());
    let checksum = checksum(content);
    content.extend_from_slice(&checksum.to_le_bytes());
}

/// The same payload as one of the version that Redis and Valkey share, if it is of a later one. The
/// content must have nothing that only later versions have.
pub fn lowered(payload: &[u8]) -> Option<Vec<u8>> {
    let (content, version) = open_unchecked(payload).ok()?;
    if version <= SHARED_VERSION {
        return None;
    }
    let mut lowered = Vec::with_capacity(payload.len());
    lowered.extend_from_slice(content);
    seal_as(&mut lowered, SHARED_VERSION);
    Some(lowered)
}

/// The content of a payload and its version.
///
/// # Errors
/// When the payload is too short, its version is not supported or its checksum is wrong.
pub fn open(payload: &[u8]) -> Result<(&[u8], u16), WrongFooter> {
    let summed = &payload[..payload.len().saturating_sub(CHECKSUM_BYTES)];
    let stored = payload.last_chunk().copied().map(u64::from_le_bytes);
    if stored != Some(checksum(summed)) {
        return Err(WrongFooter);
    }
    open_unchecked(payload)
}

/// The same without verifying the checksum, for tests with damaged contents.
///
/// # Errors
/// When the payload is too short or its version is not supported.
pub fn open_unchecked(payload: &[u8]) -> Result<(&[u8], u16), WrongFooter> {
    let (content, footer) = payload.split_last_chunk::<FOOTER_BYTES>().ok_or(WrongFooter)?;
    let [low, high, ..] = *footer;
    let version = u16::from_le_bytes([low, high]);
    if is_supported(version) { Ok((content, version)) } else { Err(WrongFooter) }
}

/// Whether payloads of a version are read.
fn is_supported(version: u16) -> bool {
    version <= VERSION || version == VERSION_MAX
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_content_is_opened_and_a_changed_one_is_not() {
        let mut payload = b"\x00\xc0\x0a".to_vec();
        seal(&mut payload);
        // The reply of Redis 8 to DUMP for the string 10.
        assert_eq!(payload, b"\x00\xc0\x0a\x0c\x00\xa5\xe9\x63\x85\xf4\x84\xfd\xf2");
        assert_eq!(open(&payload), Ok((&b"\x00\xc0\x0a"[..], 12)));
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1;
            assert_eq!(open(&changed), Err(WrongFooter), "byte {at}");
        }
        for len in 0..payload.len() {
            assert_eq!(open(&payload[..len]), Err(WrongFooter), "{len} bytes");
        }
    }

    #[test]
    fn a_payload_of_a_later_version_is_lowered_to_the_shared_one() {
        for (version, lowers) in [(9, false), (11, false), (12, true), (80, true)] {
            let mut payload = b"\x00\xc0\x0a".to_vec();
            seal_as(&mut payload, version);
            let lowered = lowered(&payload);
            assert_eq!(lowered.is_some(), lowers, "{version}");
            if let Some(lowered) = lowered {
                assert_eq!(open(&lowered), Ok((&b"\x00\xc0\x0a"[..], 11)));
            }
        }
        assert_eq!(lowered(b"short"), None);
    }

    #[test]
    fn versions_of_other_formats_are_refused() {
        for version in [0, 1, 11, 12, 13, 79, 80, 81, 0x100, u16::MAX] {
            let mut payload = b"content".to_vec();
            payload.extend_from_slice(&version.to_le_bytes());
            let sum = checksum(&payload);
            payload.extend_from_slice(&sum.to_le_bytes());
            let supported = version <= 12 || version == 80;
            assert_eq!(open(&payload).is_ok(), supported, "{version}");
        }
    }
}

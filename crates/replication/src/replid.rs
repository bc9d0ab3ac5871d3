//! The id of a replication history: 40 hexadecimal digits.
//!
//! Two servers that report the same id and the same offset have the same data. An id is random, so
//! equal ids mean a common origin. It prints in lower case and is read in any case, as peers do.

use std::fmt;

/// The length of an id as text.
pub const REPLICATION_ID_BYTES: usize = 40;

/// The id of a history, `master_replid` in INFO.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplicationId([u8; REPLICATION_ID_BYTES]);

impl ReplicationId {
    /// An id of 20 random bytes.
    pub fn from_random(random: [u8; REPLICATION_ID_BYTES / 2]) -> Self {
        Self(hex_digits(random))
    }

    /// Reads 40 hexadecimal digits in any case. `None` for anything else, such as the `?` by which
    /// a replica asks for a full synchronization.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; REPLICATION_ID_BYTES] = text.try_into().ok()?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        is_hex.then(|| Self(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The digits in lower case.
    pub fn as_bytes(&self) -> &[u8; REPLICATION_ID_BYTES] {
        &self.0
    }
}

impl fmt::Display for ReplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl fmt::Debug for ReplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The 40 hexadecimal digits of 20 bytes.
pub(crate) fn hex_digits(bytes: [u8; 20]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 40];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    digits
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_case() {
        let text = "0123456789abcdefABCDEF0123456789abcdefAB";
        let id = ReplicationId::parse(text.as_bytes()).unwrap();
        assert_eq!(id.to_string(), text.to_ascii_lowercase());
        assert_eq!(Some(id), ReplicationId::parse(text.to_ascii_uppercase().as_bytes()));
        for wrong in ["", "?", &text[1..], &format!("{text}0"), &text.replace('9', "g")] {
            assert_eq!(ReplicationId::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn random_bytes_become_digits() {
        let mut random = [0; 20];
        (random[0], random[19]) = (0x9f, 0x0a);
        let id = ReplicationId::from_random(random).to_string();
        assert_eq!(id, format!("9f{}0a", "0".repeat(36)));
        assert_eq!(ReplicationId::parse(id.as_bytes()).unwrap().to_string(), id);
    }
}

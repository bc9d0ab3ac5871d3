//! Stored passwords: their SHA-256 digests (FIPS 180-4), written as 64 lower-case hexadecimal
//! digits.

use std::fmt;
use std::hint::black_box;

use sha2::{Digest as _, Sha256};

/// Bytes of a digest.
const BYTES: usize = 32;

/// The digest of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordDigest([u8; BYTES]);

impl PasswordDigest {
    /// The digest of a password.
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// The digest written as these digits, or `None` if they are not 64 lower-case digits.
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        let (pairs, []) = digits.as_chunks::<2>() else { return None };
        let mut bytes = [0; BYTES];
        if pairs.len() != BYTES {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }

    /// Whether two digests are equal, in a time that does not depend on where they differ.
    pub fn is_same(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        black_box(pairs.fold(0, |differences, (a, b)| differences | black_box(a ^ b))) == 0
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// The digits.
impl fmt::Display for PasswordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Keeps digests out of logs.
impl fmt::Debug for PasswordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of `abc` in FIPS 180-4.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn digests_are_written_and_read() {
        let digest = PasswordDigest::of(b"abc");
        assert_eq!(digest.to_string(), ABC);
        assert_eq!(PasswordDigest::from_hex(ABC.as_bytes()), Some(digest));
        let upper = ABC.to_uppercase();
        for wrong in ["", "b", &ABC[1..], &ABC[2..], &format!("{ABC}00"), &upper] {
            assert_eq!(PasswordDigest::from_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_same_digest_is_the_same() {
        let digest = PasswordDigest::of(b"abc");
        assert!(digest.is_same(&PasswordDigest::of(b"abc")));
        for bit in 0..8 * BYTES {
            let mut other = digest;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!digest.is_same(&other));
        }
    }
}

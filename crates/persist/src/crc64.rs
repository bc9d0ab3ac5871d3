//! The checksum of RDB files and DUMP payloads: CRC-64 with the Jones polynomial, reflected, from 0
//! and without a final change (`CRC-64/REDIS` in the catalogue of CRC algorithms).

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes of a stored checksum, little-endian.
pub const CHECKSUM_BYTES: usize = 8;

/// The checksum of some bytes.
pub fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// The checksum of bytes in pieces. Each piece costs about 20 ns in addition to its bytes, so
/// pieces should be large.
#[derive(Clone, Debug)]
pub struct Crc64(Digest);

impl Default for Crc64 {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc64 {
    /// The checksum of no bytes.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc64Redis))
    }

    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all pieces so far.
    pub fn value(&self) -> u64 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn slow(bytes: &[u8]) -> u64 {
        const POLYNOMIAL_REFLECTED: u64 = 0xad93_d235_94c9_35a9u64.reverse_bits();
        bytes.iter().fold(0, |crc, byte| {
            (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
                (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL_REFLECTED } else { 0 }
            })
        })
    }

    #[test]
    fn it_matches_the_catalogue_in_one_piece_and_in_many() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!((checksum(b""), Crc64::new().value()), (0, 0));
        let bytes: Vec<u8> = (0..10_000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for len in [1, 7, 8, 15, 16, 17, 127, 128, 129, 255, 256, 257, 1000, 9_999] {
            assert_eq!(checksum(&bytes[..len]), slow(&bytes[..len]), "{len} bytes");
        }
        for piece in [1, 3, 16, 100, 4096] {
            let mut crc = Crc64::new();
            bytes.chunks(piece).for_each(|piece| crc.update(piece));
            assert_eq!(crc.value(), slow(&bytes), "pieces of {piece}");
        }
    }
}

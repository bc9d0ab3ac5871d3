//! HyperLogLog: how many different elements a stream had, in at most 12 KiB.
//!
//! The bytes are those of Redis, so that a value read by GET from one server and written by SET to
//! another counts the same there:
//!
//! ```text
//! offset 0   "HYLL"
//!        4   encoding: 0 dense, 1 sparse
//!        5   3 bytes of zeros
//!        8   the last count, 8 bytes little-endian; its highest bit says that it is stale
//!       16   dense: 16384 registers of 6 bits, lowest bits first (12288 bytes)
//!            sparse: runs of equal registers, see `sparse`
//! ```
//!
//! An element's hash (MurmurHash64A) names a register by its lowest 14 bits; the register keeps the
//! longest run of zeros, and the one behind it, that the other bits ever began with. The count is
//! Ertl's improved estimate (Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog
//! sketches", 2017), see `estimate`.
//!
//! A client can set a string to any bytes: every function here takes any bytes and returns
//! [`Corrupt`] where they are no registers.

mod dense;
mod estimate;
mod hash;
mod self_test;
mod sparse;
#[cfg(test)]
mod tests;
mod union;

pub use dense::{dense_value, merge_dense, raise_dense};
pub use hash::murmur64a;
pub use self_test::self_test;
pub use sparse::{Raise, Run, Runs, Splice, raise_sparse};
pub use union::{Union, to_dense};

/// Registers of a HyperLogLog.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bytes in front of the registers.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a dense one, header included.
pub const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;
/// A sparse one without elements.
pub const EMPTY: [u8; HEADER_BYTES + 2] = *b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff";

const INDEX_BITS: u32 = 14;
const REGISTER_BITS: usize = 6;
/// Bits of a hash behind the register's number: the longest run of zeros.
const RUN_BITS: usize = 64 - INDEX_BITS as usize;
const SEED: u64 = 0xadc8_3b19;
const STALE: u8 = 1 << 7;

/// The bytes are no registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// 6 bits each.
    Dense,
    /// Runs of equal ones.
    Sparse,
}

/// The register of an element, and the value it must have at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which register.
    pub index: usize,
    /// Its least value, 1 to 51.
    pub value: u8,
}

impl Place {
    /// Where an element belongs.
    #[inline]
    pub fn of(element: &[u8]) -> Self {
        let hash = murmur64a(element, SEED);
        // Its trailing zeros are at most `RUN_BITS`, because of the bit above them.
        let run = hash >> INDEX_BITS | 1 << RUN_BITS;
        Self { index: hash as usize & (REGISTERS - 1), value: run.trailing_zeros() as u8 + 1 }
    }
}

/// The encoding that the header names, or nothing when the bytes are no HyperLogLog. Runs are not
/// looked at.
#[inline]
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    match header {
        [b'H', b'Y', b'L', b'L', 0, ..] if bytes.len() == DENSE_BYTES => Some(Encoding::Dense),
        [b'H', b'Y', b'L', b'L', 1, ..] => Some(Encoding::Sparse),
        _ => None,
    }
}

/// The count in the header, unless it is stale.
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count = bytes.get(8..HEADER_BYTES)?.first_chunk::<8>()?;
    (count[7] & STALE == 0).then(|| u64::from_le_bytes(*count))
}

/// Writes a count into the header.
pub fn set_cached_count(bytes: &mut [u8], count: u64) {
    if let Some(place) = bytes.get_mut(8..HEADER_BYTES) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

/// Says that the count in the header is stale.
#[inline]
pub fn mark_stale(bytes: &mut [u8]) {
    if let Some(last) = bytes.get_mut(HEADER_BYTES - 1) {
        *last |= STALE;
    }
}

/// The estimated count of different elements, computed from the registers.
///
/// # Errors
/// When the bytes are no registers.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupt> {
    let histogram = match encoding(bytes).ok_or(Corrupt)? {
        Encoding::Dense => dense::histogram(bytes),
        Encoding::Sparse => Runs::new(bytes).histogram()?,
    };
    Ok(estimate::count(&histogram))
}

//! HyperLogLog: estimates the number of distinct elements in at most 12 KiB.
//!
//! The bytes are those of Redis: a client can read a value by GET from one server and write it by
//! SET to another.
//!
//! ```text
//! offset 0   "HYLL"
//!        4   encoding: 0 dense, 1 sparse
//!        5   3 bytes of zeros
//!        8   the last count, 8 bytes little-endian; its highest bit says that it is stale
//!       16   dense: 16384 registers of 6 bits, lowest bits first (12288 bytes)
//!            sparse: runs of equal registers (see `sparse`)
//! ```
//!
//! The lowest 14 bits of an element's hash (MurmurHash64A) select a register. The register keeps
//! the highest position of the lowest 1 in the other bits. The count is Ertl's improved estimate
//! (Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017).
//!
//! A client can set a string to any bytes. Every function here therefore accepts any bytes;
//! functions that return a result return [`Corrupt`] for invalid ones.

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
pub use sparse::{Raise, RegisterRun, Runs, Splice, raise_sparse};
pub use union::{Union, to_dense};

/// Registers of a HyperLogLog.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bytes before the registers.
pub const HEADER_BYTES: usize = 16;
/// The size of the dense encoding, including the header.
pub const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;
/// A HyperLogLog without elements, in the sparse encoding.
pub const EMPTY: [u8; HEADER_BYTES + 2] = *b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff";

const INDEX_BITS: u32 = 14;
const REGISTER_BITS: usize = 6;
/// Bits of a hash that do not select the register: the longest run of zeros.
const RUN_BITS: usize = 64 - INDEX_BITS as usize;
const SEED: u64 = 0xadc8_3b19;
const STALE: u8 = 1 << 7;

/// The bytes are not a valid HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// 6 bits each.
    Dense,
    /// Runs of equal registers.
    Sparse,
}

/// The register of an element, and the lowest value that it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The number of the register.
    pub index: usize,
    /// Its lowest value, 1 to 51.
    pub value: u8,
}

impl Register {
    /// The register of an element.
    #[inline]
    pub fn of(element: &[u8]) -> Self {
        let hash = murmur64a(element, SEED);
        // The added bit limits the trailing zeros to `RUN_BITS`.
        let run = hash >> INDEX_BITS | 1 << RUN_BITS;
        Self { index: hash as usize & (REGISTERS - 1), value: run.trailing_zeros() as u8 + 1 }
    }
}

/// The encoding in the header, or `None` if the header or the length is invalid. Does not validate
/// runs.
#[inline]
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    match header {
        [b'H', b'Y', b'L', b'L', 0, ..] if bytes.len() == DENSE_BYTES => Some(Encoding::Dense),
        [b'H', b'Y', b'L', b'L', 1, ..] => Some(Encoding::Sparse),
        _ => None,
    }
}

/// The count in the header, or `None` if it is stale.
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count = bytes.get(8..HEADER_BYTES)?.first_chunk::<8>()?;
    (count[7] & STALE == 0).then(|| u64::from_le_bytes(*count))
}

/// Writes a count into the header.
pub fn set_cached_count(bytes: &mut [u8], count: u64) {
    if let Some(field) = bytes.get_mut(8..HEADER_BYTES) {
        field.copy_from_slice(&count.to_le_bytes());
    }
}

/// Marks the count in the header as stale.
#[inline]
pub fn mark_stale(bytes: &mut [u8]) {
    if let Some(last) = bytes.get_mut(HEADER_BYTES - 1) {
        *last |= STALE;
    }
}

/// Estimates the number of distinct elements from the registers.
///
/// # Errors
/// If the bytes are invalid.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupt> {
    let histogram = match encoding(bytes).ok_or(Corrupt)? {
        Encoding::Dense => dense::histogram(bytes),
        Encoding::Sparse => Runs::new(bytes).histogram()?,
    };
    Ok(estimate::count(&histogram))
}

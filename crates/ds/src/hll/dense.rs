//! Registers of 6 bits, packed: four in three bytes, lowest bits first.
//!
//! Eight registers in six bytes are read as one word and spread to a byte each, without a loop over
//! registers. AVX2 processes 32 registers at a time.

use super::estimate::Histogram;
use super::{HEADER_BYTES, Register};

/// Bytes that hold eight registers.
const GROUP_BYTES: usize = 6;
/// Bytes that hold 32 registers, the unit of the vector code.
const BLOCK_BYTES: usize = 24;

/// The value of a register in the dense encoding.
#[inline]
pub fn dense_value(bytes: &[u8], index: usize) -> u8 {
    let (at, shift) = bits_of(index);
    let byte = |at| bytes.get(at).copied().unwrap_or(0);
    (u16::from_le_bytes([byte(at), byte(at + 1)]) >> shift & 63) as u8
}

/// Raises a register in the dense encoding. Returns false if it was as high already.
#[inline]
pub fn raise_dense(bytes: &mut [u8], register: Register) -> bool {
    let (at, shift) = bits_of(register.index);
    let Some([low, high, ..]) = bytes.get_mut(at..) else {
        // The last register has no following byte.
        let Some(byte) = bytes.get_mut(at) else { return false };
        let old = *byte >> shift & 63;
        if old >= register.value {
            return false;
        }
        *byte = *byte & !(63 << shift) | register.value << shift;
        return true;
    };
    let word = u16::from_le_bytes([*low, *high]);
    if (word >> shift & 63) as u8 >= register.value {
        return false;
    }
    let word = word & !(63 << shift) | u16::from(register.value) << shift;
    [*low, *high] = word.to_le_bytes();
    true
}

/// The byte where a register begins, and its lowest bit in that byte.
#[inline]
fn bits_of(index: usize) -> (usize, usize) {
    let bit = index * super::REGISTER_BITS;
    (HEADER_BYTES + bit / 8, bit % 8)
}

/// Raises each register in the dense encoding to the one of `other`.
pub fn merge_dense(bytes: &mut [u8], other: &[u8]) {
    let own = bytes.get_mut(HEADER_BYTES..).unwrap_or_default();
    let other = other.get(HEADER_BYTES..).unwrap_or_default();
    let whole = own.len().min(other.len());
    let mut at = 0;
    #[cfg(target_arch = "x86_64")]
    if whole >= 2 * BLOCK_BYTES && is_x86_feature_detected!("avx2") {
        // The vector code reads past the end of a block, so the loop below merges the rest.
        at = (whole - BLOCK_BYTES) / BLOCK_BYTES * BLOCK_BYTES;
        // SAFETY: the processor has AVX2, and both slices have a block after `at`.
        unsafe { vectors::merge(&mut own[..at + BLOCK_BYTES], &other[..at + BLOCK_BYTES], at) };
    }
    let groups = own[at..whole].as_chunks_mut::<GROUP_BYTES>().0.iter_mut();
    for (group, other) in groups.zip(other[at..whole].as_chunks::<GROUP_BYTES>().0) {
        if group != other {
            let (own, other) = (spread(word_of(group)), spread(word_of(other)));
            let own = own.to_le_bytes().into_iter().zip(other.to_le_bytes());
            let mut higher = [0; 8];
            higher.iter_mut().zip(own).for_each(|(to, (own, other))| *to = own.max(other));
            let word = gather(u64::from_le_bytes(higher)).to_le_bytes();
            group.copy_from_slice(&word[..GROUP_BYTES]);
        }
    }
}

#[inline]
fn word_of(group: &[u8; GROUP_BYTES]) -> u64 {
    let [a, b, c, d, e, f] = *group;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Spreads 8 values of 6 bits to 8 bytes.
#[inline]
fn spread(word: u64) -> u64 {
    let word = word & 0xff_ffff | (word & 0xffff_ff00_0000) << 8;
    let word = word & 0x0000_0fff_0000_0fff | (word & 0x00ff_f000_00ff_f000) << 4;
    word & 0x003f_003f_003f_003f | (word & 0x0fc0_0fc0_0fc0_0fc0) << 2
}

/// The reverse of `spread`.
#[inline]
fn gather(word: u64) -> u64 {
    let word = word & 0x003f_003f_003f_003f | (word & 0x3f00_3f00_3f00_3f00) >> 2;
    let word = word & 0x0000_0fff_0000_0fff | (word & 0x0fff_0000_0fff_0000) >> 4;
    word & 0xff_ffff | (word & 0x00ff_ffff_0000_0000) >> 8
}

/// How many registers have each value.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    // A table for each position in a group, so that increments for equal neighbours do not depend
    // on each other.
    let mut parts = [[0u16; 64]; 8];
    let packed = bytes.get(HEADER_BYTES..).unwrap_or_default();
    for group in packed.as_chunks::<GROUP_BYTES>().0 {
        let word = word_of(group);
        for (i, part) in parts.iter_mut().enumerate() {
            part[(word >> (6 * i) & 63) as usize] += 1;
        }
    }
    std::array::from_fn(|value| parts.iter().map(|part| u32::from(part[value])).sum())
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    //! Merges 32 registers at a time: spreads 24 bytes to 32, compares and packs them.

    use std::arch::x86_64::*;

    use super::BLOCK_BYTES;

    /// Raises the registers in the first `len` bytes, a multiple of a block.
    ///
    /// # Safety
    /// The processor has AVX2; both slices are at least a block longer than `len`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn merge(own: &mut [u8], other: &[u8], len: usize) {
        debug_assert!(own.len() >= len + BLOCK_BYTES && other.len() >= len + BLOCK_BYTES);
        for at in (0..len).step_by(BLOCK_BYTES) {
            if own[at..at + BLOCK_BYTES] == other[at..at + BLOCK_BYTES] {
                continue;
            }
            // SAFETY: 28 bytes are read from `at` on, less than two blocks, and 24 are written.
            unsafe {
                let (a, b) = (load(own.as_ptr().add(at)), load(other.as_ptr().add(at)));
                let higher = _mm256_max_epu8(a, b);
                if _mm256_movemask_epi8(_mm256_cmpeq_epi8(higher, a)) != -1 {
                    store(own.as_mut_ptr().add(at), higher);
                }
            }
        }
    }

    /// Reads 32 registers to a byte each.
    ///
    /// # Safety
    /// The processor has AVX2; 28 bytes can be read.
    #[target_feature(enable = "avx2")]
    unsafe fn load(from: *const u8) -> __m256i {
        // SAFETY: the caller ensures that 28 bytes can be read.
        let (low, high) = unsafe {
            (_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(BLOCK_BYTES / 2).cast()))
        };
        // Each word of 32 bits gets three bytes, which are four registers.
        let words = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), pattern(WORDS));
        let part = |mask: i32| _mm256_and_si256(words, _mm256_set1_epi32(mask));
        let pair = _mm256_or_si256(part(0x3f), _mm256_slli_epi32::<2>(part(0xfc0)));
        let other_pair = _mm256_or_si256(
            _mm256_slli_epi32::<4>(part(0x3_f000)),
            _mm256_slli_epi32::<6>(part(0xfc_0000)),
        );
        _mm256_or_si256(pair, other_pair)
    }

    /// The reverse of `load`.
    ///
    /// # Safety
    /// The processor has AVX2; 24 bytes can be written.
    #[target_feature(enable = "avx2")]
    unsafe fn store(to: *mut u8, registers: __m256i) {
        let part = |mask: i32| _mm256_and_si256(registers, _mm256_set1_epi32(mask));
        let pair = _mm256_or_si256(part(0x3f), _mm256_srli_epi32::<2>(part(0x3f00)));
        let other_pair = _mm256_or_si256(
            _mm256_srli_epi32::<4>(part(0x3f_0000)),
            _mm256_srli_epi32::<6>(part(0x3f00_0000)),
        );
        let words = _mm256_or_si256(pair, other_pair);
        let packed = _mm256_shuffle_epi8(words, pattern(BYTES));
        let mut bytes = [0u8; 32];
        // SAFETY: the array has 32 bytes; the caller ensures that 24 bytes can be written.
        unsafe {
            _mm256_storeu_si256(bytes.as_mut_ptr().cast(), packed);
            to.copy_from_nonoverlapping(bytes.as_ptr(), BLOCK_BYTES / 2);
            to.add(BLOCK_BYTES / 2)
                .copy_from_nonoverlapping(bytes.as_ptr().add(16), BLOCK_BYTES / 2);
        }
    }

    /// Moves three of 12 bytes to each word.
    const WORDS: [i8; 16] = [0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1];
    /// Collects the lowest three bytes of each word.
    const BYTES: [i8; 16] = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1];

    /// The same positions in both halves of a vector.
    #[target_feature(enable = "avx2")]
    fn pattern(positions: [i8; 16]) -> __m256i {
        // SAFETY: the array has 16 bytes.
        let half = unsafe { _mm_loadu_si128(positions.as_ptr().cast()) };
        _mm256_broadcastsi128_si256(half)
    }
}

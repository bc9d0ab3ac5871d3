//! Registers of 6 bits, packed: four in three bytes, lowest bits first.
//!
//! Eight registers are six bytes, which are read as one word and spread to a byte each without a
//! loop over registers.

use super::estimate::Histogram;
use super::{HEADER_BYTES, Place, REGISTERS, Registers};

/// Bytes that hold eight registers.
const GROUP_BYTES: usize = 6;

/// Raises one register of a dense one, if its value is lower. Returns whether it was.
#[inline]
pub fn raise_dense(bytes: &mut [u8], place: Place) -> bool {
    let (at, shift) = bits_of(place.index);
    let Some([low, high, ..]) = bytes.get_mut(at..) else {
        // The last register lies in the last byte alone.
        let Some(byte) = bytes.get_mut(at) else { return false };
        let old = *byte >> shift & 63;
        if old >= place.value {
            return false;
        }
        *byte = *byte & !(63 << shift) | place.value << shift;
        return true;
    };
    let word = u16::from_le_bytes([*low, *high]);
    if (word >> shift & 63) as u8 >= place.value {
        return false;
    }
    let word = word & !(63 << shift) | u16::from(place.value) << shift;
    [*low, *high] = word.to_le_bytes();
    true
}

/// The value of one register of a dense one.
#[inline]
pub fn dense_value(bytes: &[u8], index: usize) -> u8 {
    let (at, shift) = bits_of(index);
    let byte = |at| bytes.get(at).copied().unwrap_or(0);
    (u16::from_le_bytes([byte(at), byte(at + 1)]) >> shift & 63) as u8
}

/// The byte where a register begins, and its lowest bit there.
#[inline]
fn bits_of(index: usize) -> (usize, usize) {
    let bit = index * super::REGISTER_BITS;
    (HEADER_BYTES + bit / 8, bit % 8)
}

/// The registers, eight at a time, a byte each.
fn groups(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> + '_ {
    let packed = bytes.get(HEADER_BYTES..).unwrap_or_default();
    packed.as_chunks::<GROUP_BYTES>().0.iter().map(|group| {
        let [a, b, c, d, e, f] = *group;
        spread(u64::from_le_bytes([a, b, c, d, e, f, 0, 0])).to_le_bytes()
    })
}

/// 8 times 6 bits to 8 bytes.
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
    // Four tables, so that equal neighbours do not wait for each other.
    let mut parts = [[0u32; 64]; 4];
    for group in groups(bytes) {
        for (i, value) in group.into_iter().enumerate() {
            parts[i % 4][usize::from(value & 63)] += 1;
        }
    }
    std::array::from_fn(|value| parts.iter().map(|part| part[value]).sum())
}

/// Raises `registers` to the values of a dense one.
pub(super) fn merge(registers: &mut Registers, bytes: &[u8]) {
    for (own, group) in registers.as_chunks_mut::<8>().0.iter_mut().zip(groups(bytes)) {
        for (own, value) in own.iter_mut().zip(group) {
            *own = (*own).max(value);
        }
    }
}

/// Writes all registers of a dense one.
pub fn compress(bytes: &mut [u8], registers: &Registers) {
    debug_assert_eq!(registers.len(), REGISTERS);
    let packed = bytes.get_mut(HEADER_BYTES..).unwrap_or_default();
    let groups = packed.as_chunks_mut::<GROUP_BYTES>().0.iter_mut();
    for (group, values) in groups.zip(registers.as_chunks::<8>().0) {
        let word = gather(u64::from_le_bytes(*values)).to_le_bytes();
        group.copy_from_slice(&word[..GROUP_BYTES]);
    }
}

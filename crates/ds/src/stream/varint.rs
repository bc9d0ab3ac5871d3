//! Numbers in groups of 7 bits that are read forwards (LEB128) or, for lengths after the measured
//! bytes, backwards.
//!
//! Invalid bytes may panic or result in any number, but never touch other memory.

/// Appends a number.
#[inline]
pub(super) fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at `at`, and the offset after it.
#[inline]
pub(super) fn read(bytes: &[u8], at: usize) -> (u64, usize) {
    let first = bytes[at];
    if first < 0x80 {
        return (u64::from(first), at + 1);
    }
    let (mut value, mut shift, mut at) = (u64::from(first & 0x7f), 7, at + 1);
    loop {
        let byte = bytes[at];
        at += 1;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return (value, at);
        }
        shift += 7;
    }
}

/// The length of a number in bytes.
#[inline]
pub(super) fn len(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

/// Appends a number that is read from its end.
#[inline]
pub(super) fn push_backward(out: &mut Vec<u8>, value: u64) {
    let groups = len(value);
    for group in (0..groups).rev() {
        let byte = (value >> (7 * group)) as u8 & 0x7f;
        // The high bit is set in every byte but the first.
        out.push(if group + 1 == groups { byte } else { byte | 0x80 });
    }
}

/// The number that ends before `end`, and the offset of its start.
#[inline]
pub(super) fn read_backward(bytes: &[u8], end: usize) -> (u64, usize) {
    let (mut value, mut shift, mut at) = (0, 0, end);
    loop {
        at -= 1;
        let byte = bytes[at];
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return (value, at);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back_from_both_sides(value: u64, bits in 0u32..64, before: Vec<u8>) {
            prop_assert_eq!((len(0), len(127), len(128), len(u64::MAX)), (1, 1, 2, 10));
            let value = value >> bits;
            let mut out = before.clone();
            push(&mut out, value);
            prop_assert_eq!(out.len() - before.len(), len(value));
            prop_assert_eq!(read(&out, before.len()), (value, out.len()));
            let mut out = before.clone();
            push_backward(&mut out, value);
            prop_assert_eq!(out.len() - before.len(), len(value));
            prop_assert_eq!(read_backward(&out, out.len()), (value, before.len()));
        }
    }
}

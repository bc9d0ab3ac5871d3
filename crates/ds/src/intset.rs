//! A set of integers: a sorted array in a buffer of the caller.
//!
//! ```text
//! offset 0   width  u8: 2, 4 or 8, the bytes of each integer
//!        1   ints   little-endian, two's complement, ascending, distinct
//! ```
//!
//! The width is the smallest that fits all integers ever added: a wider integer widens the whole
//! array, and a removal never narrows it. Zero bytes are an empty set. A search takes O(log n), but
//! adding and removing move all following integers, so callers limit the length of the array.

use std::ops::Range;

use crate::packed::Buffer;

const WIDTH_BYTES: usize = 1;

/// The set for reading.
#[derive(Clone, Copy, Debug)]
pub struct IntSet<'a> {
    width: usize,
    ints: &'a [u8],
}

/// The integers of a set, ascending.
#[derive(Clone, Debug)]
pub struct IntSetIter<'a> {
    set: IntSet<'a>,
    range: Range<usize>,
}

/// The width that an integer needs.
fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// Integer `at` of an array, or `None` past its end.
#[inline]
fn int_at<const WIDTH: usize>(ints: &[u8], at: usize) -> Option<i64> {
    let bytes = ints.get(at * WIDTH..)?.first_chunk::<WIDTH>()?;
    let mut wide = [0; 8];
    wide[..WIDTH].copy_from_slice(bytes);
    // The shifts extend the sign.
    let unused_bits = 64 - 8 * WIDTH as u32;
    Some(i64::from_le_bytes(wide) << unused_bits >> unused_bits)
}

/// Where `value` is, or where it belongs.
#[inline]
fn search<const WIDTH: usize>(ints: &[u8], value: i64) -> Result<usize, usize> {
    let (mut low, mut len) = (0, ints.len() / WIDTH);
    // Without an early exit, the loop compiles to conditional moves instead of branches.
    while len > 1 {
        let half = len / 2;
        let is_below = int_at::<WIDTH>(ints, low + half).is_some_and(|int| int <= value);
        low += if is_below { half } else { 0 };
        len -= half;
    }
    match int_at::<WIDTH>(ints, low) {
        Some(int) if int == value => Ok(low),
        Some(int) if int < value => Err(low + 1),
        _ => Err(low),
    }
}

impl<'a> IntSet<'a> {
    /// The set in `bytes`, which this module wrote.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        match bytes.split_first() {
            Some((width, ints)) => Self { width: usize::from(*width), ints },
            None => Self { width: 2, ints: b"" },
        }
    }

    /// Bytes of each integer: 2, 4 or 8.
    pub fn width(self) -> usize {
        self.width
    }

    /// The encoded integers.
    pub fn bytes(self) -> &'a [u8] {
        self.ints
    }

    /// The number of integers.
    #[inline]
    pub fn len(self) -> usize {
        match self.width {
            2 => self.ints.len() / 2,
            4 => self.ints.len() / 4,
            _ => self.ints.len() / 8,
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.ints.is_empty()
    }

    /// Integer `at` in ascending order.
    #[inline]
    pub fn at(self, at: usize) -> Option<i64> {
        match self.width {
            2 => int_at::<2>(self.ints, at),
            4 => int_at::<4>(self.ints, at),
            _ => int_at::<8>(self.ints, at),
        }
    }

    /// Where `value` is, or where it belongs.
    #[inline]
    pub fn search(self, value: i64) -> Result<usize, usize> {
        match self.width {
            2 => search::<2>(self.ints, value),
            4 => search::<4>(self.ints, value),
            _ => search::<8>(self.ints, value),
        }
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// All integers, ascending.
    pub fn iter(self) -> IntSetIter<'a> {
        IntSetIter { set: self, range: 0..self.len() }
    }
}

impl Iterator for IntSetIter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.set.at(self.range.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for IntSetIter<'_> {}

impl<'a> IntoIterator for IntSet<'a> {
    type Item = i64;
    type IntoIter = IntSetIter<'a>;

    fn into_iter(self) -> IntSetIter<'a> {
        self.iter()
    }
}

/// Adds an integer. Returns whether it is new.
pub fn insert(bytes: &mut impl Buffer, value: i64) -> bool {
    let set = IntSet::new(bytes.bytes());
    let (width, is_empty) = (width_of(value), bytes.bytes().is_empty());
    if is_empty || width > set.width {
        widen(bytes, width);
    }
    let set = IntSet::new(bytes.bytes());
    let Err(at) = set.search(value) else { return false };
    let start = WIDTH_BYTES + at * set.width;
    let width = set.width;
    let room = &mut bytes.splice(start..start, width)[start..start + width];
    room.copy_from_slice(&value.to_le_bytes()[..width]);
    true
}

/// Removes an integer. Returns whether it was there.
pub fn remove(bytes: &mut impl Buffer, value: i64) -> bool {
    let found = IntSet::new(bytes.bytes()).search(value);
    if let Ok(at) = found {
        remove_range(bytes, at..at + 1);
    }
    found.is_ok()
}

/// Removes the integers in a range of indexes, which must be within the set.
pub fn remove_range(bytes: &mut impl Buffer, range: Range<usize>) {
    if range.is_empty() {
        return;
    }
    let width = IntSet::new(bytes.bytes()).width;
    bytes.splice(WIDTH_BYTES + range.start * width..WIDTH_BYTES + range.end * width, 0);
}

/// Rewrites the array with `width` bytes for each integer.
fn widen(bytes: &mut impl Buffer, width: usize) {
    let set = IntSet::new(bytes.bytes());
    let mut wider = Vec::with_capacity(WIDTH_BYTES + (set.len() + 1) * width);
    wider.push(width as u8);
    for value in set {
        wider.extend_from_slice(&value.to_le_bytes()[..width]);
    }
    let end = bytes.bytes().len();
    bytes.splice(0..end, wider.len()).copy_from_slice(&wider);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn integer() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => -20i64..20,
            2 => i64::from(i16::MIN) - 3..i64::from(i16::MIN) + 3,
            2 => i64::from(i16::MAX) - 3..i64::from(i16::MAX) + 3,
            1 => i64::from(i32::MIN) - 3..i64::from(i32::MIN) + 3,
            1 => i64::from(i32::MAX) - 3..i64::from(i32::MAX) + 3,
            1 => Just(i64::MIN),
            1 => Just(i64::MAX),
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set(ops in prop::collection::vec((0u8..5, integer()), 1..300)) {
            let mut bytes = Vec::new();
            let mut model = BTreeSet::new();
            let mut width = 0;
            for (op, value) in ops {
                prop_assert_eq!(IntSet::new(&bytes).contains(value), model.contains(&value));
                match op {
                    0..3 => {
                        prop_assert_eq!(insert(&mut bytes, value), model.insert(value));
                        width = width.max(width_of(value));
                    }
                    3 => prop_assert_eq!(remove(&mut bytes, value), model.remove(&value)),
                    _ => {
                        let range = 0..model.len().min(2);
                        remove_range(&mut bytes, range.clone());
                        model = model.into_iter().skip(range.len()).collect();
                    }
                }
                let set = IntSet::new(&bytes);
                prop_assert_eq!(set.len(), model.len());
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert!(set.iter().eq(model.iter().copied()));
                prop_assert_eq!(set.at(model.len()), None);
                let before = model.range(..value).count();
                let wanted = if model.contains(&value) { Ok(before) } else { Err(before) };
                prop_assert_eq!(set.search(value), wanted);
                prop_assert!(width == 0 || bytes.len() == 1 + width * model.len());
            }
        }
    }

    #[test]
    fn each_width_is_the_smallest_that_fits() {
        let mut bytes = Vec::new();
        assert_eq!(IntSet::new(&bytes).width, 2);
        for (value, width) in [(-32_768, 2), (32_767, 2), (32_768, 4), (-2_147_483_649, 8)] {
            assert!(insert(&mut bytes, value));
            assert_eq!(IntSet::new(&bytes).width, width);
        }
        assert!(remove(&mut bytes, -2_147_483_649));
        assert_eq!(IntSet::new(&bytes).width, 8);
        assert_eq!(IntSet::new(&bytes).iter().collect::<Vec<_>>(), [-32_768, 32_767, 32_768]);
    }
}

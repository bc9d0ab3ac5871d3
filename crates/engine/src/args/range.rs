//! Indexes and ranges of indexes. Negative ones count from the end, and both ends of a range are
//! inclusive.

use std::ops::Range;

/// The index `at` in a sequence of `len` elements, or `None` if it is before the first. It may be
/// past the last.
#[inline]
pub(crate) fn index(at: i64, len: usize) -> Option<usize> {
    match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => len.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// The elements from `start` to `stop` of `len`: LRANGE, ZRANGE.
#[inline]
pub(crate) fn index_range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let start = index(start, len).unwrap_or(0);
    let end = index(stop, len).map_or(0, |stop| stop.saturating_add(1)).min(len);
    if start < end { start..end } else { 0..0 }
}

/// The bytes or bits of a string from `start` to `end`, where an end before the first counts as the
/// first: GETRANGE, BITCOUNT, BITPOS.
#[inline]
pub(crate) fn clamped_range(start: i64, end: i64, len: usize) -> Range<usize> {
    let start = index(start, len).unwrap_or(0);
    let end = index(end, len).unwrap_or(0).saturating_add(1).min(len);
    if start < end { start..end } else { 0..0 }
}

/// Whether both ends count from the end and the start is after the end: GETRANGE and BITCOUNT then
/// select nothing, before either end is clamped.
#[inline]
pub(crate) fn is_reversed(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_leave_the_sequence() {
        for len in [0usize, 1, 2, 5, 16] {
            let near = len as i64 + 2;
            let ends: Vec<i64> =
                (-near..=near).chain([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]).collect();
            for start in &ends {
                for stop in &ends {
                    for range in
                        [index_range(*start, *stop, len), clamped_range(*start, *stop, len)]
                    {
                        let inside = range.start <= range.end && range.end <= len;
                        assert!(inside, "{len} {start} {stop}");
                    }
                }
            }
        }
        assert_eq!(index_range(i64::MIN, i64::MAX, 16), 0..16);
        assert_eq!(index_range(-3, -2, 16), 13..15);
        assert_eq!(index_range(0, -17, 16), 0..0);
        assert_eq!(index_range(15, 15, 16), 15..16);
        assert_eq!(index_range(16, 20, 16), 0..0);
        assert_eq!(index_range(0, -1, 5), 0..5);
        assert_eq!(index_range(-2, -1, 5), 3..5);
        assert_eq!(index_range(-9, 1, 5), 0..2);
        assert!(index_range(3, 1, 5).is_empty());
        assert!(index_range(0, -6, 5).is_empty());
        assert!(index_range(5, 9, 5).is_empty());
        assert_eq!(clamped_range(-100, -17, 16), 0..1);
        assert_eq!(clamped_range(-1, -5, 16), 0..0);
        assert_eq!(clamped_range(i64::MIN, i64::MAX, 16), 0..16);
    }
}

//! A segment of a glob pattern: elements without a star between them, and its search in a text.
//!
//! | segment | search |
//! |---|---|
//! | short, in a short text | each place is tried |
//! | only literal bytes | that of a substring, in linear time |
//! | with `?` or classes | bit-parallel: one step for a byte tests 64 elements at all places |
//!
//! The bit-parallel search is Shift-And (R. Baeza-Yates, G. Gonnet, "A new approach to text
//! searching", 1992). A segment of more than 64 elements is searched in blocks of 64:
//!
//! ```text
//!   places of block 0       1 0 1 1 0 0 1 0 ...    a bit for each place in the text
//!   places of block 1   and 0 0 1 0 0 1 1 0 ...    moved by 64 places
//!   ...
//!   the first place where all blocks match
//! ```

use memchr::{memchr, memmem};

/// Elements of a block: the bits of a word.
const BLOCK_LEN: usize = 64;
/// Steps that take as long as adding an element to a block: one that matches all bytes, and one
/// that matches some of them.
const ANY_STEPS: usize = 16;
const CLASS_STEPS: usize = 256;
/// The most bytes of a segment, times the places in the text, for which each place is tried.
const TRIED_STEPS_MAX: usize = 4096;

/// The bit-parallel steps that one match may still take for segments of several blocks.
#[derive(Debug)]
pub(crate) struct StepBudget(usize);

impl Default for StepBudget {
    fn default() -> Self {
        // Some tenths of a second. Redis takes a hundred times as long for such a match.
        Self(1 << 28)
    }
}

impl StepBudget {
    fn take(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// At least one element, without stars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobSegment<'a> {
    pattern: &'a [u8],
    /// Elements, each of which takes one byte of the text.
    len: usize,
    ignore_case: bool,
    content: SegmentContent,
}

/// The elements of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentContent {
    /// Bytes that match themselves.
    Plain,
    /// Such bytes, some of them escaped.
    Escaped,
    /// Also `?`, classes, or letters whose case is ignored.
    Mixed,
}

impl<'a> GlobSegment<'a> {
    /// The segment at the beginning of a pattern, and the pattern after it.
    pub(crate) fn split(pattern: &'a [u8], ignore_case: bool) -> (Self, &'a [u8]) {
        let mut content = if ignore_case { SegmentContent::Mixed } else { SegmentContent::Plain };
        let (mut rest, mut len) = (pattern, 0);
        loop {
            rest = match rest {
                [] | [b'*', ..] => break,
                [b'\\', _, after @ ..] => {
                    if content == SegmentContent::Plain {
                        content = SegmentContent::Escaped;
                    }
                    after
                }
                [b'[', b'^', class @ ..] | [b'[', class @ ..] => {
                    content = SegmentContent::Mixed;
                    after_class(class)
                }
                [byte, after @ ..] => {
                    if *byte == b'?' {
                        content = SegmentContent::Mixed;
                    }
                    after
                }
            };
            len += 1;
        }
        let pattern = &pattern[..pattern.len() - rest.len()];
        (Self { pattern, len, ignore_case, content }, rest)
    }

    /// The bytes of a text that it takes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether it matches the end of `text`.
    pub(crate) fn is_at_end(&self, text: &[u8]) -> bool {
        text.len().checked_sub(self.len).is_some_and(|start| self.is_at_start(&text[start..]))
    }

    /// Whether it matches the start of `text`, which is long enough.
    fn is_at_start(&self, text: &[u8]) -> bool {
        if self.content == SegmentContent::Plain {
            return text.starts_with(self.pattern);
        }
        let mut rest = self.pattern;
        text[..self.len].iter().all(|byte| {
            let after = element(rest, *byte, self.ignore_case);
            rest = after.unwrap_or_default();
            after.is_some()
        })
    }

    /// The first place in `text` where it matches.
    pub(crate) fn find(&self, text: &[u8], budget: &mut StepBudget) -> Option<usize> {
        let places = text.len().checked_sub(self.len)? + 1;
        if places.saturating_mul(self.pattern.len()) <= TRIED_STEPS_MAX {
            return self.find_by_trying(text, places);
        }
        match self.content {
            SegmentContent::Plain => memmem::find(text, self.pattern),
            SegmentContent::Escaped => memmem::find(text, &unescaped(self.pattern)),
            SegmentContent::Mixed => self.find_in_parallel(text, places, budget),
        }
    }

    fn find_by_trying(&self, text: &[u8], places: usize) -> Option<usize> {
        let is_first_literal =
            !self.ignore_case && !matches!(self.pattern.first()?, b'?' | b'[' | b'\\');
        let mut at = 0;
        while at < places {
            if is_first_literal {
                at += memchr(*self.pattern.first()?, &text[at..places])?;
            }
            if self.is_at_start(&text[at..]) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    fn find_in_parallel(
        &self,
        text: &[u8],
        places: usize,
        budget: &mut StepBudget,
    ) -> Option<usize> {
        let (mut block, mut rest) = ElementBlock::new(self.pattern, self.ignore_case);
        if rest.is_empty() {
            return block.find(text);
        }
        budget.take(places + block.steps)?;
        let mut matching = vec![u64::MAX; places.div_ceil(64)];
        let mut offset = 0;
        loop {
            let end = offset + places + block.len - 1;
            if !block.narrow(&text[offset..end], &mut matching) {
                return None;
            }
            if rest.is_empty() {
                break;
            }
            offset += block.len;
            (block, rest) = ElementBlock::new(rest, self.ignore_case);
            budget.take(places + block.steps)?;
        }
        let (word, bits) = (0..).zip(&matching).find(|(_, bits)| **bits != 0)?;
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// Up to 64 elements of a segment.
struct ElementBlock {
    /// For each byte the elements that it matches, as bits.
    elements: [u64; 256],
    len: usize,
    /// The cost of making it, in bit-parallel steps.
    steps: usize,
}

impl ElementBlock {
    /// The block at the beginning of a segment, and the segment after it.
    fn new(pattern: &[u8], ignore_case: bool) -> (Self, &[u8]) {
        let mut block = Self { elements: [0; 256], len: 0, steps: 0 };
        let mut rest = pattern;
        while block.len < BLOCK_LEN && !rest.is_empty() {
            let bit = 1 << block.len;
            block.len += 1;
            rest = match rest {
                [b'?', after @ ..] => {
                    block.steps += ANY_STEPS;
                    block.elements.iter_mut().for_each(|elements| *elements |= bit);
                    after
                }
                [b'[', b'^', class @ ..] => block.add_class(bit, class, true, ignore_case),
                [b'[', class @ ..] => block.add_class(bit, class, false, ignore_case),
                [b'\\', literal, after @ ..] | [literal, after @ ..] if !ignore_case => {
                    block.steps += 1;
                    block.elements[usize::from(*literal)] |= bit;
                    after
                }
                [b'\\', literal, after @ ..] | [literal, after @ ..] => {
                    block.steps += CLASS_STEPS;
                    for (byte, elements) in (0..=u8::MAX).zip(&mut block.elements) {
                        if fold_equal(*literal, byte, ignore_case) {
                            *elements |= bit;
                        }
                    }
                    after
                }
                [] => break,
            };
        }
        (block, rest)
    }

    /// Adds the class that starts after `[` or `[^`. Returns the segment after the class.
    fn add_class<'a>(
        &mut self,
        bit: u64,
        class: &'a [u8],
        is_negated: bool,
        ignore_case: bool,
    ) -> &'a [u8] {
        self.steps += CLASS_STEPS;
        // Bytes as they are, and with their case folded, in the order of ranges.
        let (mut exact, mut folded) = (ByteSet::default(), ByteSet::default());
        let mut class = class;
        loop {
            let (item, rest) = class_item(class);
            class = rest;
            match item {
                None => break,
                Some(ClassItem::Exact(byte)) => exact.insert(byte, byte),
                Some(ClassItem::Literal(byte)) => {
                    let byte = place_in_order(fold(byte, ignore_case));
                    folded.insert(byte, byte);
                }
                Some(ClassItem::Range(start, end)) => {
                    let (low, high) = range(start, end, ignore_case);
                    folded.insert(low, high);
                }
            }
        }
        for (byte, elements) in (0..=u8::MAX).zip(&mut self.elements) {
            let contains =
                exact.contains(byte) || folded.contains(place_in_order(fold(byte, ignore_case)));
            if contains != is_negated {
                *elements |= bit;
            }
        }
        class
    }

    /// The elements that match up to and with `byte`: bit `n` says that the first `n + 1` elements
    /// match the bytes that end here.
    #[inline]
    fn step(&self, state: u64, byte: u8) -> u64 {
        (state << 1 | 1) & self.elements[usize::from(byte)]
    }

    /// The first place where it matches.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let mut state = 0;
        let end = text.iter().position(|byte| {
            state = self.step(state, *byte);
            state >> (self.len - 1) & 1 != 0
        });
        end.map(|end| end + 1 - self.len)
    }

    /// Clears the bits of the places where it does not match. Returns whether some are left.
    fn narrow(&self, text: &[u8], places: &mut [u64]) -> bool {
        let (start, text) = text.split_at(self.len - 1);
        let mut state = start.iter().fold(0, |state, byte| self.step(state, *byte));
        let mut left = 0;
        for (place, bytes) in places.iter_mut().zip(text.chunks(64)) {
            let mut found = 0;
            for (bit, byte) in bytes.iter().enumerate() {
                state = self.step(state, *byte);
                found |= (state >> (self.len - 1) & 1) << bit;
            }
            *place &= found;
            left |= *place;
        }
        left != 0
    }
}

/// A set of bytes.
#[derive(Default)]
struct ByteSet([u64; 4]);

impl ByteSet {
    /// Adds the bytes from `low` to `high`, none if `high` is smaller.
    fn insert(&mut self, low: u8, high: u8) {
        let (first, last) = (low / 64, high / 64);
        for word in first..=last {
            let from = if word == first { low % 64 } else { 0 };
            let to = if word == last { high % 64 } else { 63 };
            self.0[usize::from(word)] |= u64::MAX << from & u64::MAX >> (63 - to);
        }
    }

    fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 != 0
    }
}

/// Matches one byte against the first element of `pattern`, which is not a star. Returns the
/// pattern after that element if it matches.
#[inline]
pub(crate) fn element(pattern: &[u8], byte: u8, ignore_case: bool) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', b'^', class @ ..] => {
            let (found, rest) = class_contains(class, byte, ignore_case);
            (!found).then_some(rest)
        }
        [b'[', class @ ..] => {
            let (found, rest) = class_contains(class, byte, ignore_case);
            found.then_some(rest)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            fold_equal(*literal, byte, ignore_case).then_some(rest)
        }
    }
}

/// One item of a class.
enum ClassItem {
    /// This byte, in this case.
    Exact(u8),
    Literal(u8),
    /// The bytes between two ends in either order, both included.
    Range(u8, u8),
}

/// The first item of the rest of a class, or `None` at its end; and what follows.
#[inline]
fn class_item(class: &[u8]) -> (Option<ClassItem>, &[u8]) {
    match class {
        [] => (None, class),
        [b']', rest @ ..] => (None, rest),
        [b'\\', literal, rest @ ..] => (Some(ClassItem::Exact(*literal)), rest),
        [start, b'-', end, rest @ ..] => (Some(ClassItem::Range(*start, *end)), rest),
        [literal, rest @ ..] => (Some(ClassItem::Literal(*literal)), rest),
    }
}

/// Whether the class that starts after `[` or `[^` contains `byte`, and the pattern after the
/// class.
fn class_contains(mut class: &[u8], byte: u8, ignore_case: bool) -> (bool, &[u8]) {
    let mut found = false;
    loop {
        class = match class {
            [] => return (found, class),
            [b']', rest @ ..] => return (found, rest),
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [start, b'-', end, rest @ ..] => {
                let (low, high) = range(*start, *end, ignore_case);
                found |= (low..=high).contains(&place_in_order(fold(byte, ignore_case)));
                rest
            }
            [literal, rest @ ..] => {
                found |= fold_equal(*literal, byte, ignore_case);
                rest
            }
        };
    }
}

/// The pattern after the class that starts after `[` or `[^`.
fn after_class(mut class: &[u8]) -> &[u8] {
    loop {
        let (item, rest) = class_item(class);
        if item.is_none() {
            return rest;
        }
        class = rest;
    }
}

/// The ends of a range by their places in the order of ranges. Redis sorts the ends before it folds
/// their case.
fn range(start: u8, end: u8, ignore_case: bool) -> (u8, u8) {
    let start_is_low = place_in_order(start) <= place_in_order(end);
    let (low, high) = if start_is_low { (start, end) } else { (end, start) };
    (place_in_order(fold(low, ignore_case)), place_in_order(fold(high, ignore_case)))
}

/// The place of a byte in the order of ranges: Redis compares signed characters.
fn place_in_order(byte: u8) -> u8 {
    byte ^ 0x80
}

#[inline]
fn fold_equal(a: u8, b: u8, ignore_case: bool) -> bool {
    fold(a, ignore_case) == fold(b, ignore_case)
}

#[inline]
fn fold(byte: u8, ignore_case: bool) -> u8 {
    if ignore_case { byte.to_ascii_lowercase() } else { byte }
}

/// A segment of literal bytes without its escapes.
fn unescaped(pattern: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pattern.len());
    let mut rest = pattern;
    while let [b'\\', literal, after @ ..] | [literal, after @ ..] = rest {
        bytes.push(*literal);
        rest = after;
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares the searches of a segment: trying each place is the definition.
    fn check(pattern: &[u8], text: &[u8], ignore_case: bool) -> Result<(), TestCaseError> {
        let (segment, rest) = GlobSegment::split(pattern, ignore_case);
        let Some(places) = (text.len() + 1).checked_sub(segment.len) else { return Ok(()) };
        if segment.len == 0 || places == 0 {
            return Ok(());
        }
        prop_assert!(rest.is_empty() || rest[0] == b'*');
        let expected = segment.find_by_trying(text, places);
        let mut budget = StepBudget::default();
        let found = segment.find_in_parallel(text, places, &mut budget);
        prop_assert_eq!(found, expected, "in parallel: {:?} in {:?}", pattern, text);
        prop_assert_eq!(segment.find(text, &mut budget), expected, "{:?} in {:?}", pattern, text);
        if segment.content != SegmentContent::Mixed {
            let found = memmem::find(text, &unescaped(segment.pattern));
            prop_assert_eq!(found, expected, "literal: {:?} in {:?}", pattern, text);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn all_searches_find_the_same_place(
            pattern in "[abA?\\[\\]^\\\\*-]{1,12}", text in "[abA\\]-]{1,30}", fold: bool,
        ) {
            check(pattern.as_bytes(), text.as_bytes(), fold)?;
        }

        #[test]
        fn long_segments_are_searched_block_by_block(
            pattern in "(a|a|a|a|\\?|\\[ab\\]|\\\\a){60,200}b?", text in "(aaaaaaaaa|ab){20,200}",
            fold: bool,
        ) {
            check(pattern.as_bytes(), text.as_bytes(), fold)?;
        }

        #[test]
        fn a_class_has_the_same_bytes_in_a_block(class: Vec<u8>, is_negated: bool, fold: bool) {
            let start: &[u8] = if is_negated { b"[^" } else { b"[" };
            let pattern = [start, &class].concat();
            let (block, _) = ElementBlock::new(&pattern, fold);
            for byte in 0..=u8::MAX {
                let expected = element(&pattern, byte, fold).is_some();
                prop_assert_eq!(block.elements[usize::from(byte)] & 1 != 0, expected, "{}", byte);
            }
        }
    }

    #[test]
    fn only_long_mixed_segments_use_the_budget() {
        let text = vec![b'a'; 10_000];
        let steps = |pattern: &[u8], expected: Option<usize>| {
            let (segment, _) = GlobSegment::split(pattern, false);
            let mut budget = StepBudget::default();
            assert_eq!(segment.find(&text, &mut budget), expected);
            StepBudget::default().0 - budget.0
        };
        let long = [b'a'; 5_000];
        assert_eq!(steps(&[&long[..], b"b"].concat(), None), 0);
        assert_eq!(steps(&[&long[..], b"\\b"].concat(), None), 0);
        assert_eq!(steps(&[&long[..62], b"?b"].concat(), None), 0);
        assert_eq!(steps(&[&long[..63], b"?"].concat(), Some(0)), 0);
        // 79 blocks at 5000 places, whatever the text is.
        let made = 5_000 + ANY_STEPS;
        assert_eq!(steps(&[&long[..], b"?"].concat(), Some(0)), 79 * 5_000 + made);
        // Many classes cost more than a search of few places.
        let classes = b"[a]".repeat(9_000);
        assert_eq!(steps(&classes, Some(0)), 141 * 1_001 + 9_000 * CLASS_STEPS);
        let mut spent = StepBudget(78 * 5_000);
        let pattern = [&long[..], b"?"].concat();
        assert_eq!(GlobSegment::split(&pattern, false).0.find(&text, &mut spent), None);
    }
}

//! Glob patterns of keys and channels, prepared for the check.
//!
//! A user has few patterns, and nearly all of them are a name followed by a star. The first and the
//! last eight of the bytes before the first special byte are kept as numbers, so a pattern whose
//! beginning differs from the key's costs one or two comparisons. [`base::glob`] defines which
//! names match.

use base::glob;

/// The access to a key that a pattern allows: reading its data, writing it, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAccess(u8);

impl KeyAccess {
    /// Only the key's existence.
    pub const NONE: Self = Self(0);
    /// The key's data is read.
    pub const READ: Self = Self(1);
    /// The key's data is changed, added to or removed.
    pub const WRITE: Self = Self(2);
    /// Both.
    pub const ALL: Self = Self(3);

    /// The access that this or the other allows.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it allows everything that the other does.
    pub const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Bytes that are compared as one number.
const WORD: usize = 8;

/// The first eight bytes of a text as a number, padded with zeros.
#[inline]
fn head_of(text: &[u8]) -> u64 {
    if let Some(head) = text.first_chunk::<WORD>() {
        return u64::from_le_bytes(*head);
    }
    let mut head = [0; WORD];
    for (to, from) in head.iter_mut().zip(text) {
        *to = *from;
    }
    u64::from_le_bytes(head)
}

/// A key or channel to compare with patterns.
#[derive(Clone, Copy, Debug)]
pub struct PatternName<'a> {
    bytes: &'a [u8],
    head: u64,
}

impl<'a> PatternName<'a> {
    /// Prepares a name.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, head: head_of(bytes) }
    }
}

/// The part of a pattern after its literal beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternRest {
    /// Nothing: the pattern is a plain name.
    Nothing,
    /// Stars only.
    Anything,
    /// Special bytes that need a match of the whole pattern.
    Glob,
}

/// A glob pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclPattern {
    head: u64,
    /// The bits of `head` that a name must match.
    mask: u64,
    /// The last eight bytes of the literal beginning, if it is longer than `head`.
    tail: u64,
    /// The length of the literal beginning in bytes.
    literal: usize,
    rest: PatternRest,
    text: Box<[u8]>,
}

impl AclPattern {
    /// Prepares a pattern without zero bytes.
    pub fn new(text: &[u8]) -> Self {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let literal = text.iter().position(is_special).unwrap_or(text.len());
        let (start, rest) = text.split_at(literal);
        let rest = match rest {
            [] => PatternRest::Nothing,
            stars if stars.iter().all(|byte| *byte == b'*') => PatternRest::Anything,
            _ => PatternRest::Glob,
        };
        let mask = match literal {
            0 => 0,
            1..WORD => u64::MAX >> (64 - 8 * literal),
            _ => u64::MAX,
        };
        let tail = start.last_chunk().map_or(0, |tail| u64::from_le_bytes(*tail));
        // A literal byte is not zero, so the head of a shorter name differs.
        Self { head: head_of(start), mask, tail, literal, rest, text: text.into() }
    }

    /// The pattern itself.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether a name matches.
    #[inline]
    pub fn matches(&self, name: PatternName<'_>) -> bool {
        (name.head ^ self.head) & self.mask == 0
            && (self.literal <= WORD || self.has_tail(name.bytes))
            && self.matches_rest(name.bytes)
    }

    /// Whether a name has the last bytes of the literal beginning at their position.
    #[inline]
    fn has_tail(&self, name: &[u8]) -> bool {
        let start = name.get(..self.literal).and_then(<[u8]>::last_chunk);
        start.is_some_and(|tail| u64::from_le_bytes(*tail) == self.tail)
    }

    /// Whether the rest of a name matches, after `head` and `tail` have matched.
    fn matches_rest(&self, name: &[u8]) -> bool {
        match self.rest {
            PatternRest::Nothing => name == &*self.text,
            // Head and tail cover the whole beginning. As in a glob, a star does not match the
            // empty name.
            PatternRest::Anything if self.literal <= 2 * WORD => !name.is_empty(),
            PatternRest::Anything => name.starts_with(&self.text[..self.literal]),
            PatternRest::Glob => glob::matches(&self.text, name, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn prepared_patterns_match_like_globs(
            pattern in "[abc*?\\[\\]^\\\\-]{0,14}", literal in "[ab]{0,20}", name in "[ab]{0,24}",
        ) {
            for pattern in [&pattern, &format!("{literal}*"), &format!("{literal}{pattern}")] {
                for name in [&name, &literal, &format!("{literal}{name}")] {
                    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
                    let expected = glob::matches(pattern, name, false);
                    let pattern = AclPattern::new(pattern);
                    prop_assert_eq!(pattern.matches(PatternName::new(name)), expected);
                }
            }
        }

        #[test]
        fn names_of_any_bytes(pattern in "[abc]{0,12}", tail: Vec<u8>) {
            let pattern = pattern.into_bytes();
            let prefix = AclPattern::new(&[&pattern[..], b"*"].concat());
            let exact = AclPattern::new(&pattern);
            let name = [&pattern[..], &tail].concat();
            prop_assert_eq!(prefix.matches(PatternName::new(&name)), !name.is_empty());
            prop_assert_eq!(exact.matches(PatternName::new(&name)), tail.is_empty());
            prop_assert_eq!(prefix.matches(PatternName::new(&tail)), tail.starts_with(&pattern)
                && !tail.is_empty());
        }
    }

    #[test]
    fn a_pattern_of_thousands_of_stars_takes_bounded_time() {
        let name = "a".repeat(20_000);
        for pattern in ["a*".repeat(5_000) + "b", "*a".repeat(5_000) + "?b", "*".repeat(50_000)] {
            let matches =
                AclPattern::new(pattern.as_bytes()).matches(PatternName::new(name.as_bytes()));
            assert_eq!(matches, pattern.len() == 50_000);
        }
    }
}

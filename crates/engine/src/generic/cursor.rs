//! What SCAN, HSCAN, SSCAN and ZSCAN have in common: the cursor, the options, and the pattern that
//! KEYS knows as well.

use base::glob;
use base::number::parse_i64;
use resp::Args;

use crate::error::Error;
use command::{Argument, Shape};

/// The options that all of them have, for their rows.
pub(crate) const MATCH: Argument =
    Argument::new("pattern", Shape::Pattern).after("MATCH").optional();
pub(crate) const COUNT: Argument = Argument::new("count", Shape::Integer).after("COUNT").optional();

/// Elements looked at when COUNT does not say.
const COUNT_DEFAULT: usize = 10;

/// A pattern; a single `*` matches everything, even the empty key that globs never match.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<'a>(Option<&'a [u8]>);

impl<'a> Pattern<'a> {
    pub(crate) const ALL: Self = Self(None);

    pub(crate) fn new(pattern: &'a [u8]) -> Self {
        Self(Some(pattern).filter(|pattern| *pattern != b"*"))
    }

    #[inline]
    pub(crate) fn matches(self, text: &[u8]) -> bool {
        self.0.is_none_or(|pattern| glob::matches(pattern, text, false))
    }

    /// The only text that matches, when the pattern has no character with a meaning.
    pub(crate) fn literal(self) -> Option<&'a [u8]> {
        self.0.filter(|pattern| !pattern.iter().any(|byte| b"*?[\\".contains(byte)))
    }
}

/// What is scanned, which decides on some options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// The keys of a database: TYPE is an option.
    Keys,
    /// The fields of a hash: NOVALUES is an option.
    Fields,
    /// The members of a set, sorted or not.
    Members,
}

/// What the options ask for.
pub(crate) struct Wanted<'a> {
    /// Which elements to reply.
    pub(crate) pattern: Pattern<'a>,
    /// How many elements to look at, at least one.
    pub(crate) count: usize,
    /// The type of the keys to reply.
    pub(crate) type_name: Option<&'a [u8]>,
    /// Whether fields come without their values.
    pub(crate) no_values: bool,
}

impl<'a> Wanted<'a> {
    /// Reads the options at and behind the cursor of `args`.
    pub(crate) fn parse(args: &mut Args<'a>, scanned: Scanned) -> Result<Self, Error> {
        let mut wanted =
            Self { pattern: Pattern::ALL, count: COUNT_DEFAULT, type_name: None, no_values: false };
        while args.remaining() > 0 {
            let has_value = args.remaining() >= 2;
            if has_value && args.take_word("count") {
                let count = parse_i64(args.next().unwrap_or_default()).ok_or(Error::NotInteger)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                wanted.count = count.ok_or(Error::Syntax)?;
            } else if has_value && args.take_word("match") {
                wanted.pattern = args.next().map_or(Pattern::ALL, Pattern::new);
            } else if has_value && scanned == Scanned::Keys && args.take_word("type") {
                wanted.type_name = args.next();
            } else if args.take_word("novalues") {
                if scanned != Scanned::Fields {
                    return Err(Error::NoValuesOutsideHash);
                }
                wanted.no_values = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(wanted)
    }
}

/// A cursor as clients may write it: also with zeros, spaces or a plus in front.
pub(crate) fn parse_cursor(text: &[u8]) -> Result<u64, Error> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return Err(Error::InvalidCursor);
    }
    digits.iter().try_fold(0u64, |cursor, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        let next = digit.and_then(|digit| cursor.checked_mul(10)?.checked_add(digit));
        next.ok_or(Error::InvalidCursor)
    })
}

//! Counts: of elements, of keys, of elements drawn at random.

use base::number::parse_i64;
use resp::Args;

use super::number::negatable_integer;
use crate::error::Error;
use command::{Argument, Shape};

/// `numkeys`, the number of the keys that follow.
pub(crate) const NUMKEYS: Argument = Argument::new("numkeys", Shape::Integer);
/// `[COUNT count]`.
pub(crate) const COUNT: Argument = Argument::new("count", Shape::Integer).after("COUNT").optional();

/// An integer that is at least 0.
#[inline]
pub(crate) fn non_negative(arg: &[u8]) -> Option<usize> {
    parse_i64(arg).and_then(|number| usize::try_from(number).ok())
}

/// An integer that is at least 1.
#[inline]
pub(crate) fn positive(arg: &[u8]) -> Option<usize> {
    non_negative(arg).filter(|number| *number > 0)
}

/// How many elements HRANDFIELD, SRANDMEMBER or ZRANDMEMBER returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleCount {
    pub(crate) len: usize,
    /// Whether an element can be returned several times: the count is negative.
    pub(crate) repeats: bool,
}

impl SampleCount {
    /// Parses a count.
    ///
    /// # Errors
    /// When it is not an integer or cannot be negated.
    pub(crate) fn parse(arg: &[u8]) -> Result<Self, Error> {
        let count = negatable_integer(arg)?;
        let len = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        Ok(Self { len, repeats: count < 0 })
    }

    /// Parses `[count [word]]` after the key, and returns whether `word` is there: WITHVALUES or
    /// WITHSCORES.
    ///
    /// # Errors
    /// As `parse`; if other words follow the count; or if twice the count, the number of elements
    /// in the reply, is out of range.
    pub(crate) fn parse_with(args: &Args<'_>, word: &str) -> Result<Option<(Self, bool)>, Error> {
        const PAIRS_MAX: usize = (i64::MAX / 2) as usize;
        let Some(count) = args.at(2) else { return Ok(None) };
        let count = Self::parse(count)?;
        let has_word = match args.len() {
            3 => false,
            4 if args.text(3).eq_ignore_ascii_case(word.as_bytes()) => true,
            _ => return Err(Error::Syntax),
        };
        if has_word && count.len > PAIRS_MAX {
            return Err(Error::OutOfRange);
        }
        Ok(Some((count, has_word)))
    }
}

//! Parses ranges of ranks, of scores and of members.

use std::ops::Range;

use store::{LexEnd, LexRange, ScoreRange, SortedSetRef};

use crate::args::number::{float_before_nul, integer};
use crate::args::range::index_range;
use crate::error::Error;

use crate::error::sorted_set::SortedSetError;
/// The kind of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// A range as the client wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SortedSetBounds<'a> {
    /// From one rank to another, both included, negative ones counted from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Lex(LexRange<'a>),
}

impl<'a> SortedSetBounds<'a> {
    /// The range between two arguments.
    pub(super) fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self, Error> {
        Ok(match by {
            By::Rank => Self::Ranks(integer(min)?, integer(max)?),
            By::Score => Self::Scores(scores(min, max)?),
            By::Lex => Self::Lex(members(min, max)?),
        })
    }

    /// The ranks inside the range. Ranks in the bounds count from the highest score if `back`.
    pub(super) fn ranks(&self, set: SortedSetRef<'_>, back: bool) -> Range<usize> {
        match self {
            Self::Scores(range) => set.ranks_in_scores(range),
            Self::Lex(range) => set.ranks_in_lex(range),
            Self::Ranks(start, stop) => {
                let ranks = index_range(*start, *stop, set.len());
                if back { set.len() - ranks.end..set.len() - ranks.start } else { ranks }
            }
        }
    }
}

/// The range between two scores, each inclusive, or exclusive after a `(`.
fn scores(min: &[u8], max: &[u8]) -> Result<ScoreRange, Error> {
    let (min, min_open) = score_end(min)?;
    let (max, max_open) = score_end(max)?;
    Ok(ScoreRange { min, min_open, max, max_open })
}

fn score_end(arg: &[u8]) -> Result<(f64, bool), Error> {
    let number = arg.strip_prefix(b"(");
    let open = number.is_some();
    let score = float_before_nul(number.unwrap_or(arg));
    Ok((score.ok_or(SortedSetError::ScoreEnd)?, open))
}

/// The range between two members after `[` or `(`, or `-` and `+`.
fn members<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, Error> {
    Ok(LexRange { min: lex_end(min)?, max: lex_end(max)? })
}

fn lex_end(arg: &[u8]) -> Result<LexEnd<'_>, Error> {
    match arg {
        b"-" => Ok(LexEnd::Least),
        b"+" => Ok(LexEnd::Greatest),
        [b'[', member @ ..] => Ok(LexEnd::Closed(member)),
        [b'(', member @ ..] => Ok(LexEnd::Open(member)),
        _ => Err(SortedSetError::LexEnd.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_score_ranges() {
        for (text, end) in [
            (&b"1.5"[..], (1.5, false)),
            (b"(2", (2.0, true)),
            (b"-inf", (f64::NEG_INFINITY, false)),
            (b"(+Inf", (f64::INFINITY, true)),
            (b"", (0.0, false)),
            (b"(", (0.0, true)),
            (b"3\0x", (3.0, false)),
            (b"1e999", (f64::INFINITY, false)),
        ] {
            assert_eq!(score_end(text), Ok(end));
        }
        for text in [&b"x"[..], b"((1", b"nan", b"1 ", b" 1", b"0x1"] {
            assert_eq!(score_end(text), Err(SortedSetError::ScoreEnd.into()));
        }
    }
}

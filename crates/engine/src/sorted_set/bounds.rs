//! How commands write ranges: of ranks, of scores, of members.

use std::ops::Range;

use base::number::{parse_f64_saturating, parse_i64};
use store::sorted_set::{LexEnd, LexRange, ScoreRange, SortedSetRef};

use crate::error::Error;

use super::error::SortedSetError;
use super::integer;

/// What a range is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// A range as it was written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounds<'a> {
    /// From one rank to another, both inside, negative ones counted from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Lex(LexRange<'a>),
}

impl<'a> Bounds<'a> {
    /// The range between two arguments.
    pub(super) fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self, Error> {
        Ok(match by {
            By::Rank => Self::Ranks(integer(min)?, integer(max)?),
            By::Score => Self::Scores(scores(min, max)?),
            By::Lex => Self::Lex(members(min, max)?),
        })
    }

    /// The ranks of what is inside; ranks in the bounds count from the highest score when `back`.
    pub(super) fn ranks(&self, set: SortedSetRef<'_>, back: bool) -> Range<usize> {
        match self {
            Self::Scores(range) => set.ranks_in_scores(range),
            Self::Lex(range) => set.ranks_in_lex(range),
            Self::Ranks(start, stop) => {
                let ranks = ranks_between(set.len(), *start, *stop);
                if back { set.len() - ranks.end..set.len() - ranks.start } else { ranks }
            }
        }
    }
}

/// The part of so many ranks that lies between two, both inside; negative ones count from the end.
fn ranks_between(len: usize, start: i64, stop: i64) -> Range<usize> {
    let place = |rank: i64| match usize::try_from(rank) {
        Ok(rank) => Some(rank),
        Err(_) => len.checked_sub(usize::try_from(rank.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let start = place(start).unwrap_or(0).min(len);
    let end = place(stop).map_or(0, |stop| stop.saturating_add(1)).min(len);
    start..end.max(start)
}

/// The range between two scores, each alone or behind a `(` that leaves it out.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<ScoreRange, Error> {
    let (min, min_open) = score_end(min)?;
    let (max, max_open) = score_end(max)?;
    Ok(ScoreRange { min, min_open, max, max_open })
}

fn score_end(arg: &[u8]) -> Result<(f64, bool), Error> {
    let number = arg.strip_prefix(b"(");
    let open = number.is_some();
    // As in Redis, what follows a zero byte is not seen, and nothing at all means 0.
    let number = number.unwrap_or(arg).split(|byte| *byte == 0).next().unwrap_or_default();
    let score = match number {
        b"" => Some(0.0),
        _ => match parse_i64(number) {
            Some(integer) => Some(integer as f64),
            None => parse_f64_saturating(number),
        },
    };
    Ok((score.ok_or(SortedSetError::ScoreEnd)?, open))
}

/// The range between two members, behind `[` or `(`, or the words `-` and `+`.
pub(super) fn members<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, Error> {
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
    fn ranks_never_leave_the_set() {
        for len in [0usize, 1, 5] {
            let near = len as i64 + 2;
            let ends: Vec<i64> =
                (-near..=near).chain([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]).collect();
            for start in &ends {
                for stop in &ends {
                    let ranks = ranks_between(len, *start, *stop);
                    assert!(ranks.start <= ranks.end && ranks.end <= len, "{len} {start} {stop}");
                }
            }
        }
        assert_eq!(ranks_between(5, 0, -1), 0..5);
        assert_eq!(ranks_between(5, -2, -1), 3..5);
        assert_eq!(ranks_between(5, -9, 1), 0..2);
        assert!(ranks_between(5, 3, 1).is_empty());
        assert!(ranks_between(5, 0, -6).is_empty());
        assert!(ranks_between(5, 5, 9).is_empty());
    }

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

//! What is wrong with a request on sorted sets.

use std::fmt;

use super::Error;

/// Why a sorted set command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortedSetError {
    /// ZADD with XX and NX.
    XxAndNx,
    /// ZADD with two of GT, LT and NX.
    GtLtNx,
    /// ZADD with INCR and several pairs.
    IncrOfMany,
    /// Infinities of both signs were added up.
    ScoreNan,
    /// An end of a score range that is no number.
    ScoreEnd,
    /// An end of a member range that has none of the four forms.
    LexEnd,
    /// LIMIT on a range of ranks.
    LimitOfRanks,
    /// WITHSCORES on a range of members.
    ScoresOfLex,
    /// A weight that is no number.
    Weight,
    /// No input keys, for a command by its name.
    NoInput(&'static str),
    /// More random members than a reply can hold.
    OutOfRange,
}

impl fmt::Display for SortedSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::XxAndNx => "ERR XX and NX options at the same time are not compatible",
            Self::GtLtNx => "ERR GT, LT, and/or NX options at the same time are not compatible",
            Self::IncrOfMany => "ERR INCR option supports a single increment-element pair",
            Self::ScoreNan => "ERR resulting score is not a number (NaN)",
            Self::ScoreEnd => "ERR min or max is not a float",
            Self::LexEnd => "ERR min or max not valid string range item",
            Self::LimitOfRanks => {
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX"
            }
            Self::ScoresOfLex => {
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
            }
            Self::Weight => "ERR weight value is not a float",
            Self::NoInput(name) => {
                return write!(f, "ERR at least 1 input key is needed for '{name}' command");
            }
            Self::OutOfRange => "ERR value is out of range",
        })
    }
}

impl From<SortedSetError> for Error {
    fn from(error: SortedSetError) -> Self {
        Self::SortedSet(error)
    }
}

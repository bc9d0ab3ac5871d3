//! The errors of sorted set commands.

use std::fmt;

/// Why a sorted set command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortedSetError {
    /// ZADD with XX and NX.
    XxAndNx,
    /// ZADD with two of GT, LT and NX.
    GtLtNx,
    /// ZADD with INCR and several pairs.
    IncrOfMany,
    /// The sum of infinities of opposite signs.
    ScoreNan,
    /// An end of a score range that is not a number.
    ScoreEnd,
    /// A lexicographical end that has none of the four forms.
    LexEnd,
    /// LIMIT on a range of ranks.
    LimitOfRanks,
    /// WITHSCORES with BYLEX.
    ScoresOfLex,
    /// A weight that is not a number.
    Weight,
    /// No input key, for a command by its name.
    NoInput(&'static str),
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
        })
    }
}

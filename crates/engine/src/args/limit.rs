//! `LIMIT offset count`.

use resp::Args;

use super::number::integer;
use crate::error::Error;
use command::{Argument, Shape};

/// `[LIMIT offset count]`.
pub(crate) const LIMIT: Argument = Argument::new(
    "limit",
    Shape::Block(&[
        Argument::new("offset", Shape::Integer),
        Argument::new("count", Shape::Integer),
    ]),
)
.after("LIMIT")
.optional();

/// A part of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitClause {
    /// Elements to skip. A negative number means different things to different commands.
    pub(crate) offset: i64,
    /// The most elements to return, or all if negative.
    pub(crate) count: i64,
}

impl Default for LimitClause {
    /// The whole result.
    fn default() -> Self {
        Self { offset: 0, count: -1 }
    }
}

impl LimitClause {
    /// Parses the two arguments after LIMIT.
    ///
    /// # Errors
    /// When one of them is not an integer.
    pub(crate) fn parse(args: &mut Args<'_>) -> Result<Self, Error> {
        let mut next = || integer(args.next().unwrap_or_default());
        Ok(Self { offset: next()?, count: next()? })
    }
}

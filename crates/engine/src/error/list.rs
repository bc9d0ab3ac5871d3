//! The errors of list commands.

use std::fmt;

/// Why a list command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListError {
    /// An element longer than the maximum.
    ElementTooLarge,
    /// No element has this index.
    IndexOutOfRange,
    /// LPOS with a rank of 0.
    RankZero,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ElementTooLarge => "ERR Element too large",
            Self::IndexOutOfRange => "ERR index out of range",
            Self::RankZero => {
                "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second \
                 ... or use negative to start from the end of the list"
            }
        })
    }
}

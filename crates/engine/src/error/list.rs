//! What is wrong with a request on lists.

use std::fmt;

use super::Error;

/// Why a list command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListError {
    /// An element longer than a list can hold.
    ElementTooLarge,
    /// An index at which there is no element.
    IndexOutOfRange,
    /// The rank of LPOS is zero.
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

impl From<ListError> for Error {
    fn from(error: ListError) -> Self {
        Self::List(error)
    }
}

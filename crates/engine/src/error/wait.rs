//! The errors of blocking commands.

use std::fmt;

/// Why a blocking command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The timeout is not a number.
    NotFloat,
    /// The timeout in milliseconds is not an integer.
    NotInteger,
    /// The timeout is negative.
    Negative,
    /// The timeout ends beyond the range of i64.
    OutOfRange,
    /// CLIENT UNBLOCK with ERROR ended the wait.
    Unblocked,
    /// WAITAOF without an append-only file.
    NoAppendOnlyFile,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFloat => "ERR timeout is not a float or out of range",
            Self::NotInteger => "ERR timeout is not an integer or out of range",
            Self::Negative => "ERR timeout is negative",
            Self::OutOfRange => "ERR timeout is out of range",
            Self::Unblocked => "UNBLOCKED client unblocked via CLIENT UNBLOCK",
            Self::NoAppendOnlyFile => {
                "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
            }
        })
    }
}

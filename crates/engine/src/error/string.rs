//! The errors of string commands.

use std::fmt;

/// Why a string command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StringError {
    /// The string would become longer than `proto-max-bulk-len`.
    TooLong,
    /// A negative offset.
    Offset,
    /// LCS of values that are not strings.
    LcsNotStrings,
    /// LCS with both LEN and IDX.
    LcsLenAndIdx,
    /// LCS of a string whose length does not fit in 32 bits.
    LcsTooLong,
    /// LCS of strings whose table would exceed `proto-max-bulk-len`.
    LcsMemory,
    /// MSETEX with an invalid number of keys.
    MsetexKeys,
    /// MSETEX with fewer pairs than announced.
    MsetexPairs,
    /// A digest that is not 16 hexadecimal characters.
    Digest,
    /// DELEX with an unknown condition.
    DelexCondition,
}

impl fmt::Display for StringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            Self::Offset => "ERR offset is out of range",
            Self::LcsNotStrings => "ERR The specified keys must contain string values",
            Self::LcsLenAndIdx => {
                "ERR If you want both the length and indexes, please just use IDX."
            }
            Self::LcsTooLong => "ERR String too long for LCS",
            Self::LcsMemory => {
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
            }
            Self::MsetexKeys => "ERR invalid numkeys value",
            Self::MsetexPairs => "ERR wrong number of key-value pairs",
            Self::Digest => "ERR must be exactly 16 hexadecimal characters",
            Self::DelexCondition => "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
        })
    }
}

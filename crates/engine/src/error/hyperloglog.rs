//! The errors of HyperLogLog commands.

use std::fmt;

/// Why a HyperLogLog command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HyperLogLogError {
    /// The string is not a HyperLogLog.
    NotHyperLogLog,
    /// The string has the header of a HyperLogLog, but its registers are invalid.
    Corrupt,
    /// PFDEBUG of a missing key.
    NoSuchKey,
    /// PFDEBUG DECODE of a dense HyperLogLog.
    NotSparse,
    /// PFDEBUG SIMD with an argument other than ON and OFF.
    OnOrOff,
    /// PFDEBUG has no subcommand of this name.
    UnknownSubcommand(String),
    /// The error that PFSELFTEST found.
    SelfTest(&'static str),
}

impl fmt::Display for HyperLogLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHyperLogLog => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Self::Corrupt => "INVALIDOBJ Corrupted HLL object detected",
            Self::NoSuchKey => "ERR The specified key does not exist",
            Self::NotSparse => "ERR HLL encoding is not sparse",
            Self::OnOrOff => "ERR Argument must be ON or OFF",
            Self::UnknownSubcommand(name) => {
                return write!(f, "ERR Unknown PFDEBUG subcommand '{name}'");
            }
            Self::SelfTest(what) => return write!(f, "TESTFAILED {what}"),
        })
    }
}

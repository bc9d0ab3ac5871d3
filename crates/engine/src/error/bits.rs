//! What is wrong with a request on bits or on a HyperLogLog.

use std::fmt;

use super::Error;

/// Why a bitmap or HyperLogLog command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BitsError {
    /// An offset that is negative, beyond the longest string, or no number.
    Offset,
    /// SETBIT with another bit than 0 and 1.
    Bit,
    /// BITPOS for another bit than 0 and 1.
    Sought,
    /// BITOP NOT of several keys.
    OneSource,
    /// A BITOP of one key that needs two, by its name.
    TwoSources(&'static str),
    /// A type that BITFIELD does not know.
    FieldType,
    /// A behaviour on overflow that BITFIELD does not know.
    FieldOverflow,
    /// BITFIELD_RO is asked to write.
    FieldReadOnly,
    /// The string is no HyperLogLog.
    NotHyperLogLog,
    /// The string claims to be a HyperLogLog, and its registers are broken.
    CorruptHyperLogLog,
    /// PFDEBUG of a key that is not there.
    NoHyperLogLog,
    /// PFDEBUG DECODE of a dense one.
    NotSparse,
    /// PFDEBUG SIMD with another word than ON and OFF.
    OnOrOff,
    /// No subcommand of PFDEBUG has this name.
    Pfdebug(String),
    /// PFSELFTEST found this.
    SelfTest(&'static str),
}

impl fmt::Display for BitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Offset => "ERR bit offset is not an integer or out of range",
            Self::Bit => "ERR bit is not an integer or out of range",
            Self::Sought => "ERR The bit argument must be 1 or 0.",
            Self::OneSource => "ERR BITOP NOT must be called with a single source key.",
            Self::TwoSources(name) => {
                return write!(f, "ERR BITOP {name} must be called with at least two source keys.");
            }
            Self::FieldType => {
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                 supported but i64 is."
            }
            Self::FieldOverflow => "ERR Invalid OVERFLOW type specified",
            Self::FieldReadOnly => "ERR BITFIELD_RO only supports the GET subcommand",
            Self::NotHyperLogLog => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Self::CorruptHyperLogLog => "INVALIDOBJ Corrupted HLL object detected",
            Self::NoHyperLogLog => "ERR The specified key does not exist",
            Self::NotSparse => "ERR HLL encoding is not sparse",
            Self::OnOrOff => "ERR Argument must be ON or OFF",
            Self::Pfdebug(name) => return write!(f, "ERR Unknown PFDEBUG subcommand '{name}'"),
            Self::SelfTest(what) => return write!(f, "TESTFAILED {what}"),
        })
    }
}

impl From<BitsError> for Error {
    fn from(error: BitsError) -> Self {
        Self::Bits(error)
    }
}

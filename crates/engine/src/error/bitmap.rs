//! The errors of bitmap commands.

use std::fmt;

/// Why a bitmap command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BitmapError {
    /// An offset that is not an integer, is negative, or lies beyond the longest string.
    Offset,
    /// SETBIT with a bit other than 0 and 1.
    Bit,
    /// BITPOS for a bit other than 0 and 1.
    Sought,
    /// BITOP NOT with several source keys.
    OneSource,
    /// A BITOP operation, by its name, with fewer than two source keys.
    TwoSources(&'static str),
    /// An integer type that BITFIELD does not support.
    FieldType,
    /// An overflow behavior that BITFIELD does not support.
    FieldOverflow,
    /// BITFIELD_RO with a subcommand that writes.
    FieldReadOnly,
}

impl fmt::Display for BitmapError {
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
        })
    }
}

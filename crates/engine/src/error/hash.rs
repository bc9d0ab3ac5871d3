//! The errors of hash commands.

use std::fmt;

/// Why a hash command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashError {
    /// The value of the field is not an integer.
    NotInteger,
    /// The value of the field is not a float.
    NotFloat,
    /// The increment is infinite.
    Infinite,
    /// The keyword FIELDS is not where it must be.
    FieldsMissing,
    /// The number of fields is not positive.
    NotPositive,
    /// The number of fields is not positive, with the text of HEXPIRE.
    NotAboveZero,
    /// The number of fields is not positive, with the text of HSETEX.
    InvalidNumber,
    /// `numfields` does not match the number of arguments.
    WrongNumber,
    /// A negative expiry.
    NegativeExpiry,
    /// HSETEX with EX or a similar option as the last argument.
    ExpiryMissing,
    /// HSETEX with more than one expiry option.
    OneExpiry,
    /// HSETEX with both FNX and FXX, or with one of them twice.
    OneCondition,
    /// HSETEX with an unknown option.
    UnknownArgument(String),
}

impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInteger => "ERR hash value is not an integer",
            Self::NotFloat => "ERR hash value is not a float",
            Self::Infinite => "ERR value is NaN or Infinity",
            Self::FieldsMissing => {
                "ERR Mandatory argument FIELDS is missing or not at the right position"
            }
            Self::NotPositive => "ERR Number of fields must be a positive integer",
            Self::NotAboveZero => "ERR Parameter `numFields` should be greater than 0",
            Self::InvalidNumber => "ERR invalid number of fields",
            Self::WrongNumber => "ERR The `numfields` parameter must match the number of arguments",
            Self::NegativeExpiry => "ERR invalid expire time, must be >= 0",
            Self::ExpiryMissing => "ERR missing expire time",
            Self::OneExpiry => {
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
            }
            Self::OneCondition => "ERR Only one of FXX or FNX arguments can be specified",
            Self::UnknownArgument(word) => return write!(f, "ERR unknown argument: {word}"),
        })
    }
}

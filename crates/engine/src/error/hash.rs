//! What is wrong with a request on hashes.

use std::fmt;

use super::Error;

/// Why a hash command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashError {
    /// The value of the field is no integer.
    NotInteger,
    /// The value of the field is no float.
    NotFloat,
    /// The number to add is infinite.
    Infinite,
    /// Too many fields are asked for with their values.
    CountTooLarge,
    /// The word FIELDS is not where it must be.
    FieldsMissing,
    /// The number of fields is not positive.
    NotPositive,
    /// The same, as HEXPIRE says it.
    NotAboveZero,
    /// The same, as HSETEX says it.
    InvalidNumber,
    /// There are more or fewer fields than their number says.
    WrongNumber,
    /// An expiry that is negative.
    NegativeExpiry,
    /// HSETEX with a word that must be followed by an expiry, and is not.
    ExpiryMissing,
    /// HSETEX with two expiries.
    OneExpiry,
    /// HSETEX with two conditions on fields.
    OneCondition,
    /// HSETEX with a word it does not know.
    UnknownArgument(String),
}

impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInteger => "ERR hash value is not an integer",
            Self::NotFloat => "ERR hash value is not a float",
            Self::Infinite => "ERR value is NaN or Infinity",
            Self::CountTooLarge => "ERR value is out of range",
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

impl From<HashError> for Error {
    fn from(error: HashError) -> Self {
        Self::Hash(error)
    }
}

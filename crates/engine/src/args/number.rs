//! Integers and floats.

use base::number::{parse_f64, parse_f64_saturating, parse_i64};

use crate::error::Error;

/// An integer.
///
/// # Errors
/// [`Error::NotInteger`] when it is not an integer or outside the range of i64.
#[inline]
pub(crate) fn integer(arg: &[u8]) -> Result<i64, Error> {
    parse_i64(arg).ok_or(Error::NotInteger)
}

/// An integer in the range of i64 without its minimum, so that it can be negated.
///
/// # Errors
/// [`Error::NotInteger`], or [`Error::NotBetween`] for the minimum.
pub(crate) fn negatable_integer(arg: &[u8]) -> Result<i64, Error> {
    match integer(arg)? {
        i64::MIN => Err(Error::NotBetween(-i64::MAX, i64::MAX)),
        number => Ok(number),
    }
}

/// A float: a score, a coordinate, a length.
///
/// # Errors
/// [`Error::NotFloat`] when it is not a number or NaN.
pub(crate) fn float(arg: &[u8]) -> Result<f64, Error> {
    match parse_i64(arg) {
        Some(integer) => Ok(integer as f64),
        None => parse_f64(arg).ok_or(Error::NotFloat),
    }
}

/// A float up to the first zero byte, or 0 for an empty text, as C's `strtod` in Redis reads it.
/// Numbers outside the range of f64 are infinite.
pub(crate) fn float_before_nul(text: &[u8]) -> Option<f64> {
    match text.split(|byte| *byte == 0).next() {
        None | Some([]) => Some(0.0),
        Some(text) => match parse_i64(text) {
            Some(integer) => Some(integer as f64),
            None => parse_f64_saturating(text),
        },
    }
}

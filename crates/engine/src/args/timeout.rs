//! Timeouts of blocking commands.

use base::decimal::LongDouble;
use base::number::{parse_f64, parse_f64_saturating, parse_i64};

use crate::error::Error;
use crate::error::wait::WaitError;
use command::{Argument, Shape};

/// `timeout`, in seconds.
pub(crate) const TIMEOUT: Argument = Argument::new("timeout", Shape::Double);
/// The history of commands whose timeout was originally an integer.
pub(crate) const FRACTIONS: &[(&str, &str)] = &[("6.0.0", "The timeout may have a fraction.")];

/// The end of a wait in milliseconds since 1970, rounded up, or `None` for 0, which waits forever.
/// `arg` is the length in seconds, possibly with a fraction.
///
/// # Errors
/// When it is not a number, negative, or out of range.
pub(crate) fn timeout(arg: &[u8], unix_ms: i64) -> Result<Option<i64>, Error> {
    const MS_A_SECOND: f64 = 1000.0;
    const SECONDS_MAX: f64 = i64::MAX as f64 / MS_A_SECOND;
    // Redis parses a long double, so a number outside the range of `f64` is not an error here.
    LongDouble::parse(arg).ok_or(WaitError::NotFloat)?;
    let saturating = || match parse_f64_saturating(arg) {
        Some(zero) if zero == 0.0 => f64::MIN_POSITIVE.copysign(zero),
        Some(infinity) => infinity,
        None => f64::INFINITY,
    };
    let seconds = parse_f64(arg).unwrap_or_else(saturating);
    if seconds >= SECONDS_MAX {
        return Err(WaitError::OutOfRange.into());
    }
    // Below the bound the product fits; a product below i64::MIN saturates and stays negative.
    until((seconds * MS_A_SECOND).ceil() as i64, unix_ms)
}

/// The end of a wait whose length is in milliseconds: BLOCK of XREAD, WAITAOF.
///
/// # Errors
/// When it is not an integer, negative, or out of range.
pub fn timeout_ms(arg: &[u8], unix_ms: i64) -> Result<Option<i64>, Error> {
    until(parse_i64(arg).ok_or(WaitError::NotInteger)?, unix_ms)
}

fn until(ms: i64, unix_ms: i64) -> Result<Option<i64>, Error> {
    match ms {
        ..0 => Err(WaitError::Negative.into()),
        0 => Ok(None),
        ms => ms.checked_add(unix_ms).map(Some).ok_or(WaitError::OutOfRange.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_a_moment() {
        let now = 1_000_000;
        let at = |arg: &str| timeout(arg.as_bytes(), now).map(|at| at.map(|at| at - now));
        for (arg, ms) in [
            ("1", 1000),
            ("0.1", 100),
            ("0.0001", 1),
            ("1e-400", 1),
            ("0x1p-4", 63),
            ("2.5e1", 25_000),
            ("9000000000000000", 9_000_000_000_000_000_000),
        ] {
            assert_eq!(at(arg), Ok(Some(ms)), "{arg}");
        }
        for forever in ["0", "0.0", "-0", "-0.0001", "-1e-400"] {
            assert_eq!(at(forever), Ok(None), "{forever}");
        }
        for text in ["", "x", " 1", "1 ", "nan", "1s"] {
            assert_eq!(at(text), Err(WaitError::NotFloat.into()), "{text}");
        }
        for huge in ["inf", "1e30", "1e400", "9223372036854774", "9223372036854776"] {
            assert_eq!(at(huge), Err(WaitError::OutOfRange.into()), "{huge}");
        }
        for negative in ["-1", "-0.001", "-inf", "-1e400"] {
            assert_eq!(at(negative), Err(WaitError::Negative.into()), "{negative}");
        }
    }

    #[test]
    fn milliseconds_become_a_moment() {
        assert_eq!(timeout_ms(b"15", 100), Ok(Some(115)));
        assert_eq!(timeout_ms(b"0", 100), Ok(None));
        assert_eq!(timeout_ms(b"-1", 100), Err(WaitError::Negative.into()));
        assert_eq!(timeout_ms(b"1.5", 100), Err(WaitError::NotInteger.into()));
        assert_eq!(timeout_ms(b"9223372036854775807", 1), Err(WaitError::OutOfRange.into()));
    }
}

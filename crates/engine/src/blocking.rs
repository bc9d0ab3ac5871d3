//! Waiting for a key: what a blocking command says about its wait, and how a wait is answered.
//!
//! A handler tries its keys first. When none has what it wants, it replies nothing and returns a
//! [`BlockRequest`]. From then on every write to one of the keys calls the request's [`Serve`], on
//! the writer's thread and before anyone else can touch the key, first come first served.
//!
//! What it deliberately does not do: keep the blocked clients (`store::waiters` does, per shard),
//! run out of time, or know to whom the reply goes; layer 5 does that.

use std::ops::Range;

use base::decimal::LongDouble;
use base::number::{parse_f64, parse_f64_saturating, parse_i64};
use resp::{Args, Reply};
pub use store::BlockedOn;
use store::Key;

use error::WaitError;

use crate::cx::Cx;
use crate::error::Error;

pub mod error;

/// Tries to answer a waiting request because `key` has changed, or because the time has come that
/// it named. If it does not reply, the request goes on waiting, and nothing must have been written.
/// An error ends the wait, and is the reply.
///
/// The context is that of the waiting client: its database, its keys' hashes (in the order of its
/// row's positions) and its protocol. The shards of the key and of the target are held, no others.
/// What it writes it reports by [`Cx::wrote`] and `replay_as`, as in any handler.
pub type Serve = fn(&mut Cx<'_>, Key<'_>, &Args<'_>, &mut Reply<'_>) -> Result<ServeOutcome, Error>;

/// What came of an attempt to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOutcome {
    /// It replied.
    Replied,
    /// The key has nothing until someone writes to it.
    Nothing,
    /// The key has nothing yet, and something at this time in milliseconds since 1970 although
    /// nobody writes to it: XREADGROUP CLAIM. Who writes meanwhile brings about another attempt.
    NothingUntil(i64),
}

impl From<bool> for ServeOutcome {
    fn from(replied: bool) -> Self {
        if replied { Self::Replied } else { Self::Nothing }
    }
}

/// What a request waits for, and how it is answered then. When its time is over, the reply is a
/// null array, as in Redis for every blocking command.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    /// What it waits for.
    pub blocked_on: BlockedOn,
    /// Indexes of the arguments that are the keys it waits for.
    pub keys: Range<usize>,
    /// Index of a key to which serving writes: the destination of BLMOVE.
    pub target: Option<usize>,
    /// When the wait ends, in milliseconds since 1970; see [`timeout`].
    pub until_ms: Option<i64>,
    /// When it is worth trying again, in milliseconds since 1970, although nobody writes to the
    /// keys: for each of them, or empty.
    pub retry_at_ms: Vec<Option<i64>>,
    /// Answers it.
    pub serve: Serve,
    /// Arguments for [`Serve`] instead of those that were sent, with the keys at the same indexes:
    /// XREAD's with `$` resolved.
    pub args: Option<Vec<Vec<u8>>>,
}

impl BlockRequest {
    /// A wait for a write to one of the keys at these arguments, answered by `serve` with the
    /// arguments that were sent.
    pub fn new(
        blocked_on: BlockedOn,
        keys: Range<usize>,
        until_ms: Option<i64>,
        serve: Serve,
    ) -> Self {
        Self {
            blocked_on,
            keys,
            target: None,
            until_ms,
            retry_at_ms: Vec::new(),
            serve,
            args: None,
        }
    }
}

/// When a wait ends that an argument gives in seconds, a fraction allowed: milliseconds since 1970,
/// or nothing for 0, which waits for ever. Parts of a millisecond are rounded up.
///
/// # Errors
/// When it is not a number, negative, or too large.
pub fn timeout(arg: &[u8], unix_ms: i64) -> Result<Option<i64>, Error> {
    const MS_A_SECOND: f64 = 1000.0;
    const SECONDS_MAX: f64 = i64::MAX as f64 / MS_A_SECOND;
    // Redis reads a long double: what is out of the range of `f64` is a number nevertheless.
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
    // Below the bound the product fits; what is below i64::MIN saturates and stays negative.
    until((seconds * MS_A_SECOND).ceil() as i64, unix_ms)
}

/// The same for an argument in milliseconds: BLOCK of XREAD.
///
/// # Errors
/// When it is not an integer, negative, or too large.
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

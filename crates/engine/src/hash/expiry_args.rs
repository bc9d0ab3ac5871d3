//! The arguments that say which fields, and when they end.

use base::number::parse_i64;
use resp::Args;

use super::error::HashError;
use crate::error::Error;

/// No field ends later, in milliseconds since 1970: Redis keeps 46 bits.
const EXPIRY_MS_MAX: i64 = (1 << 46) - 1;

/// In what a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
}

/// What times are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Now,
    Epoch,
}

/// The unit and the base of the expiries that a word goes before.
pub(super) fn expiry_word(word: &[u8]) -> Option<(Unit, Base)> {
    const WORDS: [(&str, Unit, Base); 4] = [
        ("ex", Unit::Seconds, Base::Now),
        ("px", Unit::Millis, Base::Now),
        ("exat", Unit::Seconds, Base::Epoch),
        ("pxat", Unit::Millis, Base::Epoch),
    ];
    let found = WORDS.iter().find(|(name, ..)| word.eq_ignore_ascii_case(name.as_bytes()));
    found.map(|(_, unit, base)| (*unit, *base))
}

/// An expiry in milliseconds since 1970, for a command by its name.
pub(super) fn parse_expiry(
    text: &[u8],
    (unit, base): (Unit, Base),
    now_ms: i64,
    name: &'static str,
) -> Result<i64, Error> {
    let time = parse_i64(text).ok_or(Error::NotInteger)?;
    if time < 0 {
        return Err(HashError::NegativeExpiry.into());
    }
    let ms = if unit == Unit::Seconds { time.saturating_mul(1000) } else { time };
    let start = if base == Base::Now { now_ms } else { 0 };
    if ms > EXPIRY_MS_MAX - start {
        return Err(Error::InvalidExpire(name));
    }
    Ok(ms + start)
}

/// Which arguments are fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldArgs {
    /// Index of the word FIELDS.
    pub(super) word_at: usize,
}

impl FieldArgs {
    /// Reads `FIELDS numfields field [field ...]` from the argument at `word_at` to the end;
    /// `not_positive` is what is wrong with a number below 1.
    pub(super) fn parse(
        args: &Args<'_>,
        word_at: usize,
        not_positive: HashError,
    ) -> Result<Self, Error> {
        if !args.text(word_at).eq_ignore_ascii_case(b"FIELDS") {
            return Err(HashError::FieldsMissing.into());
        }
        let number = parse_i64(args.text(word_at + 1)).filter(|number| *number > 0);
        let number = number.ok_or(not_positive)?;
        let fields = Self { word_at };
        if usize::try_from(number) != Ok(args.len().saturating_sub(fields.first())) {
            return Err(HashError::WrongNumber.into());
        }
        Ok(fields)
    }

    /// Index of the first field.
    pub(super) fn first(self) -> usize {
        self.word_at + 2
    }

    /// The fields.
    pub(super) fn iter<'a>(self, args: &Args<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
        args.iter().skip(self.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiries_stay_within_46_bits() {
        let parse = |text: &str, unit, base| parse_expiry(text.as_bytes(), (unit, base), 1000, "x");
        assert_eq!(parse("5", Unit::Seconds, Base::Now), Ok(6000));
        assert_eq!(parse("70368744177663", Unit::Millis, Base::Epoch), Ok(EXPIRY_MS_MAX));
        let invalid = Err(Error::InvalidExpire("x"));
        assert_eq!(parse("70368744177664", Unit::Millis, Base::Epoch), invalid);
        assert_eq!(parse("70368744176664", Unit::Millis, Base::Now), invalid);
        assert_eq!(parse("70368744178", Unit::Seconds, Base::Epoch), invalid);
        assert_eq!(parse("9223372036854775807", Unit::Seconds, Base::Now), invalid);
        let negative = Err(HashError::NegativeExpiry.into());
        assert_eq!(parse("-1", Unit::Seconds, Base::Now), negative);
    }
}

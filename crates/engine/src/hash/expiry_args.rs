//! The arguments of commands on the expiries of fields: the expiry, and the fields.

use resp::Args;

use crate::args::count::positive;
use crate::args::expiry::ExpiryForm;
use crate::args::number::integer;
use crate::error::Error;
use crate::error::hash::HashError;

/// The latest expiry of a field in milliseconds since 1970: Redis stores 46 bits.
const EXPIRY_MS_MAX: i64 = (1 << 46) - 1;

/// The expiry of a field in milliseconds since 1970, for a command by its name.
///
/// # Errors
/// When the amount is not an integer, is negative, or leads beyond [`EXPIRY_MS_MAX`].
pub(super) fn parse_expiry(
    amount: &[u8],
    form: ExpiryForm,
    now_ms: i64,
    command: &'static str,
) -> Result<i64, Error> {
    let amount = integer(amount)?;
    if amount < 0 {
        return Err(HashError::NegativeExpiry.into());
    }
    let at_ms = form.at_ms(amount, now_ms).filter(|at_ms| *at_ms <= EXPIRY_MS_MAX);
    at_ms.ok_or(Error::InvalidExpire(command))
}

/// `FIELDS numfields field [field ...]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldArgs {
    /// Index of the keyword FIELDS.
    pub(super) word_at: usize,
}

impl FieldArgs {
    /// Parses the arguments from index `word_at` to the last.
    ///
    /// # Errors
    /// `not_positive` for a number below 1; also when FIELDS is missing or the number does not
    /// match the fields.
    pub(super) fn parse(
        args: &Args<'_>,
        word_at: usize,
        not_positive: HashError,
    ) -> Result<Self, Error> {
        if !args.text(word_at).eq_ignore_ascii_case(b"FIELDS") {
            return Err(HashError::FieldsMissing.into());
        }
        let number = positive(args.text(word_at + 1)).ok_or(not_positive)?;
        let fields = Self { word_at };
        if number != args.len().saturating_sub(fields.first()) {
            return Err(HashError::WrongNumber.into());
        }
        Ok(fields)
    }

    /// Index of the first field.
    pub(super) fn first(self) -> usize {
        self.word_at + 2
    }

    pub(super) fn iter<'a>(self, args: &Args<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
        args.iter().skip(self.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiries_stay_within_46_bits() {
        let parse = |text: &str, form| parse_expiry(text.as_bytes(), form, 1000, "x");
        assert_eq!(parse("5", ExpiryForm::EX), Ok(6000));
        assert_eq!(parse("70368744177663", ExpiryForm::PXAT), Ok(EXPIRY_MS_MAX));
        let invalid = Err(Error::InvalidExpire("x"));
        assert_eq!(parse("70368744177664", ExpiryForm::PXAT), invalid);
        assert_eq!(parse("70368744176664", ExpiryForm::PX), invalid);
        assert_eq!(parse("70368744178", ExpiryForm::EXAT), invalid);
        assert_eq!(parse("9223372036854775807", ExpiryForm::EX), invalid);
        let negative = Err(HashError::NegativeExpiry.into());
        assert_eq!(parse("-1", ExpiryForm::EX), negative);
    }
}

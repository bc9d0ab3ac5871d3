//! Expiries: `EX`, `PX`, `EXAT` and `PXAT`, the commands named after them, and the conditions `NX`,
//! `XX`, `GT` and `LT` on setting one.
//!
//! Commands differ in which amounts are errors, and check that themselves: for a key, an amount
//! must be positive or can be any number; for a field it can be 0 but must end within 46 bits.

use command::{Argument, Shape};

/// `EX seconds`.
pub(crate) const EX: Argument = Argument::new("seconds", Shape::Integer).after("EX");
/// `PX milliseconds`.
pub(crate) const PX: Argument = Argument::new("milliseconds", Shape::Integer).after("PX");
/// `EXAT unix-time-seconds`.
pub(crate) const EXAT: Argument = Argument::new("unix-time-seconds", Shape::UnixTime).after("EXAT");
/// `PXAT unix-time-milliseconds`.
pub(crate) const PXAT: Argument =
    Argument::new("unix-time-milliseconds", Shape::UnixTime).after("PXAT");

/// `[NX | XX | GT | LT]`.
pub(crate) const CONDITION: Argument = Argument::new(
    "condition",
    Shape::OneOf(&[
        Argument::word("nx", "NX"),
        Argument::word("xx", "XX"),
        Argument::word("gt", "GT"),
        Argument::word("lt", "LT"),
    ]),
)
.optional();

/// The unit of an amount of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryUnit {
    Seconds,
    Milliseconds,
}

/// The moment from which an amount counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryBase {
    Now,
    /// 1 January 1970.
    Epoch,
}

/// The meaning of an expiry's amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpiryForm {
    pub(crate) unit: ExpiryUnit,
    pub(crate) base: ExpiryBase,
}

impl ExpiryForm {
    /// Seconds from now: EX, EXPIRE.
    pub(crate) const EX: Self = Self { unit: ExpiryUnit::Seconds, base: ExpiryBase::Now };
    /// Milliseconds from now: PX, PEXPIRE.
    pub(crate) const PX: Self = Self { unit: ExpiryUnit::Milliseconds, base: ExpiryBase::Now };
    /// Seconds since 1970: EXAT, EXPIREAT.
    pub(crate) const EXAT: Self = Self { unit: ExpiryUnit::Seconds, base: ExpiryBase::Epoch };
    /// Milliseconds since 1970: PXAT, PEXPIREAT.
    pub(crate) const PXAT: Self = Self { unit: ExpiryUnit::Milliseconds, base: ExpiryBase::Epoch };

    /// The form of the amount after this word.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        const FORMS: [(&[u8], ExpiryForm); 4] = [
            (b"EX", ExpiryForm::EX),
            (b"PX", ExpiryForm::PX),
            (b"EXAT", ExpiryForm::EXAT),
            (b"PXAT", ExpiryForm::PXAT),
        ];
        FORMS.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, form)| form)
    }

    /// The expiry in milliseconds since 1970, unless it is outside the range of i64.
    #[inline]
    pub(crate) fn at_ms(self, amount: i64, now_ms: i64) -> Option<i64> {
        let ms = match self.unit {
            ExpiryUnit::Seconds => amount.checked_mul(1000)?,
            ExpiryUnit::Milliseconds => amount,
        };
        match self.base {
            ExpiryBase::Now => ms.checked_add(now_ms),
            ExpiryBase::Epoch => Some(ms),
        }
    }
}

/// The condition on the current expiry under which a new one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpiryCondition {
    /// There must be no expiry.
    pub(crate) nx: bool,
    /// There must be an expiry.
    pub(crate) xx: bool,
    /// The new expiry must be later.
    pub(crate) gt: bool,
    /// The new expiry must be earlier.
    pub(crate) lt: bool,
}

impl ExpiryCondition {
    /// Adds the condition with this name. Returns false if there is none.
    pub(crate) fn add(&mut self, word: &[u8]) -> bool {
        let flags: [(&[u8], &mut bool); 4] = [
            (b"NX", &mut self.nx),
            (b"XX", &mut self.xx),
            (b"GT", &mut self.gt),
            (b"LT", &mut self.lt),
        ];
        let found = flags.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        found.map(|(_, flag)| *flag = true).is_some()
    }

    /// Whether the conditions hold for these expiries in milliseconds since 1970. No expiry counts
    /// as later than any time.
    pub(crate) fn holds(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        match old_ms {
            None => !self.xx && !self.gt,
            Some(old_ms) => {
                !self.nx && (!self.gt || new_ms > old_ms) && (!self.lt || new_ms < old_ms)
            }
        }
    }
}

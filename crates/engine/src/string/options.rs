//! The words behind SET's value, GETEX's key and MSETEX's pairs, and the expiry they give.
//!
//! MSETEX has those of SET without GET and comparisons. Words are taken in any case and order. A
//! word may be repeated, the last one counts; words that contradict each other are a syntax error.
//! The amount of an expiry is read after all words, since an error in it comes after the errors in
//! them.

use base::number::parse_i64;
use resp::Args;

use super::compare::{Comparison, Relation};
use crate::error::Error;
use command::{Argument, Shape};
use store::ExpiryChange;

/// `EX`, `PX`, `EXAT` and `PXAT` as the arguments of SET, which got them one after another.
pub(super) const SET_EXPIRY: &[Argument] = &[
    SECONDS.since("2.6.12"),
    MILLISECONDS.since("2.6.12"),
    UNIX_SECONDS.since("6.2.0"),
    UNIX_MILLISECONDS.since("6.2.0"),
    Argument::word("keepttl", "KEEPTTL").since("6.0.0"),
];

/// The same as the arguments of MSETEX, which always had them.
pub(super) const MSETEX_EXPIRY: &[Argument] =
    &[SECONDS, MILLISECONDS, UNIX_SECONDS, UNIX_MILLISECONDS, Argument::word("keepttl", "KEEPTTL")];

/// The same as the arguments of GETEX, which always had them.
pub(super) const GETEX_EXPIRY: &[Argument] =
    &[SECONDS, MILLISECONDS, UNIX_SECONDS, UNIX_MILLISECONDS, Argument::word("persist", "PERSIST")];

const SECONDS: Argument = Argument::new("seconds", Shape::Integer).after("EX");
const MILLISECONDS: Argument = Argument::new("milliseconds", Shape::Integer).after("PX");
const UNIX_SECONDS: Argument = Argument::new("unix-time-seconds", Shape::UnixTime).after("EXAT");
const UNIX_MILLISECONDS: Argument =
    Argument::new("unix-time-milliseconds", Shape::UnixTime).after("PXAT");

/// The command whose words are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedOptions {
    Set,
    Getex,
    Msetex,
}

/// When SET does what it does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    /// NX: the key must not be there.
    Absent,
    /// XX: it must be.
    Present,
    /// IFEQ and its like: its string must compare so.
    Compares(Comparison<'a>),
}

/// How an expiry is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    UnixSeconds,
    UnixMilliseconds,
}

/// An expiry that has not been read yet.
#[derive(Clone, Copy)]
pub(super) struct Expiry<'a> {
    pub(super) amount: &'a [u8],
    pub(super) unit: Unit,
}

/// What becomes of the key's expiry.
#[derive(Clone, Copy)]
pub(super) enum Life<'a> {
    /// Nothing was said.
    Unsaid,
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Persist,
    /// It ends.
    Until(Expiry<'a>),
}

/// All words of a request.
#[derive(Clone, Copy)]
pub(super) struct Options<'a> {
    pub(super) condition: Option<Condition<'a>>,
    /// SET replies the old value.
    pub(super) get: bool,
    pub(super) life: Life<'a>,
}

impl<'a> Options<'a> {
    /// Reads the words from the argument at `from` to the end.
    pub(super) fn parse(
        args: &mut Args<'a>,
        from: usize,
        words: AllowedOptions,
    ) -> Result<Self, Error> {
        let mut options = Self { condition: None, get: false, life: Life::Unsaid };
        let (set, getex) = (words == AllowedOptions::Set, words == AllowedOptions::Getex);
        args.seek(from);
        while let Some(word) = args.next() {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if let Some(unit) = Unit::of(word) {
                let free = match options.life {
                    Life::Unsaid => true,
                    Life::Until(expiry) => expiry.unit == unit,
                    Life::Keep | Life::Persist => false,
                };
                let amount = args.next().filter(|_| free).ok_or(Error::Syntax)?;
                options.life = Life::Until(Expiry { amount, unit });
            } else if !getex
                && is(b"NX")
                && matches!(options.condition, None | Some(Condition::Absent))
            {
                options.condition = Some(Condition::Absent);
            } else if !getex
                && is(b"XX")
                && matches!(options.condition, None | Some(Condition::Present))
            {
                options.condition = Some(Condition::Present);
            } else if set && is(b"GET") {
                options.get = true;
            } else if set && let Some(relation) = Relation::of(word) {
                let operand = args.next().ok_or(Error::Syntax)?;
                let comparison = Comparison { relation, operand };
                if options.condition.replace(Condition::Compares(comparison)).is_some() {
                    return Err(Error::Syntax);
                }
            } else if !getex && is(b"KEEPTTL") && !matches!(options.life, Life::Until(_)) {
                options.life = Life::Keep;
            } else if getex && is(b"PERSIST") && !matches!(options.life, Life::Until(_)) {
                options.life = Life::Persist;
            } else {
                return Err(Error::Syntax);
            }
        }
        if let Some(Condition::Compares(comparison)) = options.condition {
            comparison.check()?;
        }
        Ok(options)
    }
}

impl Life<'_> {
    /// What a put does to the expiry, for a command by its name.
    pub(super) fn expires_at(
        self,
        now_ms: i64,
        command: &'static str,
    ) -> Result<ExpiryChange, Error> {
        Ok(match self {
            Self::Unsaid | Self::Persist => ExpiryChange::Clear,
            Self::Keep => ExpiryChange::Keep,
            Self::Until(expiry) => ExpiryChange::At(expiry.at_ms(now_ms, command)?),
        })
    }
}

impl Expiry<'_> {
    /// The expiry in milliseconds since 1970. One in the past is none of its errors.
    ///
    /// # Errors
    /// When the amount is no integer, is not positive, or leads beyond the range.
    pub(super) fn at_ms(self, now_ms: i64, command: &'static str) -> Result<i64, Error> {
        let amount = parse_i64(self.amount).ok_or(Error::NotInteger)?;
        let at_ms = match self.unit {
            _ if amount <= 0 => None,
            Unit::Seconds => amount.checked_mul(1000).and_then(|ms| ms.checked_add(now_ms)),
            Unit::Milliseconds => amount.checked_add(now_ms),
            Unit::UnixSeconds => amount.checked_mul(1000),
            Unit::UnixMilliseconds => Some(amount),
        };
        at_ms.ok_or(Error::InvalidExpire(command))
    }
}

impl Unit {
    fn of(word: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], Unit); 4] = [
            (b"EX", Unit::Seconds),
            (b"PX", Unit::Milliseconds),
            (b"EXAT", Unit::UnixSeconds),
            (b"PXAT", Unit::UnixMilliseconds),
        ];
        NAMES.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, unit)| unit)
    }

    /// A point in time, which may be in the past.
    pub(super) fn is_absolute(self) -> bool {
        matches!(self, Self::UnixSeconds | Self::UnixMilliseconds)
    }
}

//! The options of SET, GETEX and MSETEX.
//!
//! MSETEX has those of SET without GET and comparisons. Options come in any order. One can be
//! repeated, and the last counts; contradictory options are a syntax error. The amount of an expiry
//! is parsed after all options, since Redis reports an error in it after theirs.

use resp::Args;

use super::compare::{Comparison, Relation};
use crate::args::expiry::{EX, EXAT, ExpiryForm, PX, PXAT};
use crate::args::number::integer;
use crate::error::Error;
use command::Argument;
use store::ExpiryChange;

/// The expiry options of SET, by the versions that added them.
pub(super) const SET_EXPIRY: &[Argument] = &[
    EX.since("2.6.12"),
    PX.since("2.6.12"),
    EXAT.since("6.2.0"),
    PXAT.since("6.2.0"),
    Argument::word("keepttl", "KEEPTTL").since("6.0.0"),
];

/// The expiry options of MSETEX.
pub(super) const MSETEX_EXPIRY: &[Argument] =
    &[EX, PX, EXAT, PXAT, Argument::word("keepttl", "KEEPTTL")];

/// The expiry options of GETEX.
pub(super) const GETEX_EXPIRY: &[Argument] =
    &[EX, PX, EXAT, PXAT, Argument::word("persist", "PERSIST")];

/// The command whose options are parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionsCommand {
    Set,
    Getex,
    Msetex,
}

/// The condition on which a key is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    /// NX: the key must not exist.
    Absent,
    /// XX: the key must exist.
    Present,
    /// IFEQ and its variants: the comparison that the key's value must meet.
    Compares(Comparison<'a>),
}

/// An expiry whose amount has not been parsed yet.
#[derive(Clone, Copy)]
pub(super) struct Expiry<'a> {
    pub(super) amount: &'a [u8],
    pub(super) form: ExpiryForm,
}

/// The option for the key's expiry.
#[derive(Clone, Copy)]
pub(super) enum ExpiryOption<'a> {
    /// No option.
    None,
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Persist,
    /// EX, PX, EXAT or PXAT.
    At(Expiry<'a>),
}

/// The options of a request.
#[derive(Clone, Copy)]
pub(super) struct SetOptions<'a> {
    pub(super) condition: Option<Condition<'a>>,
    /// GET: SET replies the old value.
    pub(super) get: bool,
    pub(super) expiry: ExpiryOption<'a>,
}

impl<'a> SetOptions<'a> {
    /// Parses the arguments from index `from` to the last.
    pub(super) fn parse(
        args: &mut Args<'a>,
        from: usize,
        command: OptionsCommand,
    ) -> Result<Self, Error> {
        let mut options = Self { condition: None, get: false, expiry: ExpiryOption::None };
        let (set, getex) = (command == OptionsCommand::Set, command == OptionsCommand::Getex);
        args.seek(from);
        while let Some(word) = args.next() {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if let Some(form) = ExpiryForm::of(word) {
                let free = match options.expiry {
                    ExpiryOption::None => true,
                    ExpiryOption::At(expiry) => expiry.form == form,
                    ExpiryOption::Keep | ExpiryOption::Persist => false,
                };
                let amount = args.next().filter(|_| free).ok_or(Error::Syntax)?;
                options.expiry = ExpiryOption::At(Expiry { amount, form });
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
            } else if !getex && is(b"KEEPTTL") && !matches!(options.expiry, ExpiryOption::At(_)) {
                options.expiry = ExpiryOption::Keep;
            } else if getex && is(b"PERSIST") && !matches!(options.expiry, ExpiryOption::At(_)) {
                options.expiry = ExpiryOption::Persist;
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

impl ExpiryOption<'_> {
    /// The change to the key's expiry.
    ///
    /// # Errors
    /// As [`Expiry::at_ms`].
    pub(super) fn change(self, now_ms: i64, command: &'static str) -> Result<ExpiryChange, Error> {
        Ok(match self {
            Self::None | Self::Persist => ExpiryChange::Clear,
            Self::Keep => ExpiryChange::Keep,
            Self::At(expiry) => ExpiryChange::At(expiry.at_ms(now_ms, command)?),
        })
    }
}

impl Expiry<'_> {
    /// The expiry in milliseconds since 1970, possibly in the past.
    ///
    /// # Errors
    /// When the amount is not an integer, is not positive or is out of range.
    pub(super) fn at_ms(self, now_ms: i64, command: &'static str) -> Result<i64, Error> {
        let amount = integer(self.amount)?;
        let at_ms = if amount > 0 { self.form.at_ms(amount, now_ms) } else { None };
        at_ms.ok_or(Error::InvalidExpire(command))
    }
}

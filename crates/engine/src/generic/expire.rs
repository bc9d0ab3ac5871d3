//! The expiry of keys: EXPIRE and its variants, TTL and its variants, PERSIST.
//!
//! A client gives a time in various units and bases, but a key keeps one absolute time in
//! milliseconds, and that is replayed: a replica or a log read later must not add its own delay.
//! The replayed command has no condition, since the condition was decided here.

use resp::{Args, Reply};
use store::Lookup;

use crate::args::expiry::{self, ExpiryBase, ExpiryCondition, ExpiryForm, ExpiryUnit};
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::event;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape, Spec};

use super::{READ, WRITE, spec};

const CONDITION: Argument = expiry::CONDITION.since("7.0.0");
const KEY: &[Argument] = &[Argument::key()];
const UPDATED: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::UPDATE))];
const READ_ONLY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
const CONDITION_HISTORY: &[(&str, &str)] =
    &[("7.0.0", "Added the conditions `NX`, `XX`, `GT` and `LT`.")];
const TTL_HISTORY: &[(&str, &str)] = &[("2.8.0", "Added the reply -2 for a missing key.")];
const TTL_TIPS: &[&str] = &["nondeterministic_output"];

const fn setter(
    name: &'static str,
    since: &'static str,
    summary: &'static str,
    arguments: &'static [Argument],
) -> Spec {
    spec(name, -3, since)
        .summary(summary)
        .flags(WRITE)
        .keys(UPDATED)
        .arguments(arguments)
        .history(CONDITION_HISTORY)
}

const fn reader(name: &'static str, since: &'static str, summary: &'static str) -> Spec {
    spec(name, 2, since).summary(summary).flags(READ).keys(READ_ONLY).arguments(KEY)
}

/// The commands on expiry.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        setter(
            "expire",
            "1.0.0",
            "Sets the expiry of a key in seconds.",
            &[Argument::key(), Argument::new("seconds", Shape::Integer), CONDITION],
        ),
        |cx, args, reply| expire(cx, args, reply, "expire", ExpiryForm::EX),
    ),
    Row::new(
        setter(
            "pexpire",
            "2.6.0",
            "Sets the expiry of a key in milliseconds.",
            &[Argument::key(), Argument::new("milliseconds", Shape::Integer), CONDITION],
        ),
        |cx, args, reply| expire(cx, args, reply, "pexpire", ExpiryForm::PX),
    ),
    Row::new(
        setter(
            "expireat",
            "1.2.0",
            "Sets the expiry of a key to a Unix timestamp in seconds.",
            &[Argument::key(), Argument::new("unix-time-seconds", Shape::UnixTime), CONDITION],
        ),
        |cx, args, reply| expire(cx, args, reply, "expireat", ExpiryForm::EXAT),
    ),
    Row::new(
        setter(
            "pexpireat",
            "2.6.0",
            "Sets the expiry of a key to a Unix timestamp in milliseconds.",
            &[Argument::key(), Argument::new("unix-time-milliseconds", Shape::UnixTime), CONDITION],
        ),
        |cx, args, reply| expire(cx, args, reply, "pexpireat", ExpiryForm::PXAT),
    ),
    Row::new(
        reader("ttl", "1.0.0", "Returns the remaining time to live of a key in seconds.")
            .history(TTL_HISTORY)
            .tips(TTL_TIPS),
        |cx, args, reply| remaining(cx, args, reply, ExpiryForm::EX),
    ),
    Row::new(
        reader("pttl", "2.6.0", "Returns the remaining time to live of a key in milliseconds.")
            .history(TTL_HISTORY)
            .tips(TTL_TIPS),
        |cx, args, reply| remaining(cx, args, reply, ExpiryForm::PX),
    ),
    Row::new(
        reader(
            "expiretime",
            "7.0.0",
            "Returns the expiry of a key as a Unix timestamp in seconds.",
        ),
        |cx, args, reply| remaining(cx, args, reply, ExpiryForm::EXAT),
    ),
    Row::new(
        reader(
            "pexpiretime",
            "7.0.0",
            "Returns the expiry of a key as a Unix timestamp in milliseconds.",
        ),
        |cx, args, reply| remaining(cx, args, reply, ExpiryForm::PXAT),
    ),
    Row::new(
        spec("persist", 2, "2.2.0")
            .summary("Removes the expiry of a key.")
            .flags(WRITE)
            .keys(UPDATED)
            .arguments(KEY),
        persist,
    ),
];

fn parse_condition(args: &mut Args<'_>) -> Result<ExpiryCondition, Error> {
    let mut condition = ExpiryCondition::default();
    for word in args {
        if !condition.add(word) {
            let word = echo(word);
            return Err(Error::UnsupportedOption(word));
        }
    }
    if condition.nx && (condition.xx || condition.gt || condition.lt) {
        return Err(Error::NxWithOthers);
    }
    if condition.gt && condition.lt {
        return Err(Error::GtWithLt);
    }
    Ok(condition)
}

fn expire(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    name: &'static str,
    form: ExpiryForm,
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    args.seek(3);
    let condition = parse_condition(args)?;
    let amount = integer(args.text(2))?;
    let at_ms = form.at_ms(amount, cx.turn.unix_ms).ok_or(Error::InvalidExpire(name))?;
    let (db, turn) = cx.db(key);
    let sets = db
        .lookup(turn, key, Lookup::Quiet)
        .is_some_and(|stored| condition.holds(stored.expires_at(), at_ms));
    if !sets {
        reply.int(0);
        return Ok(());
    }
    if turn.is_past(at_ms) {
        db.remove(turn, key);
        let del: &[u8] = if turn.unlink_expired { b"UNLINK" } else { b"DEL" };
        turn.effects.replay_as(|replay| replay.args([del, key.bytes]));
        cx.wrote(event::DEL, key.bytes);
    } else {
        db.set_expiry(turn, key, Some(at_ms));
        turn.effects.replay_as(|replay| {
            replay.args([b"PEXPIREAT", key.bytes]);
            replay.int(at_ms);
        });
        cx.wrote(event::EXPIRE, key.bytes);
    }
    reply.int(1);
    Ok(())
}

fn remaining(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    form: ExpiryForm,
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let value = match db.lookup(turn, key, Lookup::NoTouch).map(|stored| stored.expires_at()) {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => {
            let ms = if form.base == ExpiryBase::Now {
                at_ms.saturating_sub(turn.unix_ms)
            } else {
                at_ms
            };
            // Seconds are rounded to the nearest. Adding first would exceed the range of i64.
            if form.unit == ExpiryUnit::Seconds { ms / 1000 + (ms % 1000 + 500) / 1000 } else { ms }
        }
    };
    reply.int(value);
    Ok(())
}

fn persist(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let expires =
        db.lookup(turn, key, Lookup::Quiet).is_some_and(|stored| stored.expires_at().is_some());
    if expires {
        db.set_expiry(turn, key, None);
        cx.wrote(event::PERSIST, key.bytes);
    }
    reply.int(i64::from(expires));
    Ok(())
}

//! Setting whole values: SET and the older commands that are special cases of it, and MSET, MSETNX
//! and MSETEX.
//!
//! An expiry is replayed as a point in time. One in the past is stored like any other, as in Redis,
//! and the key then expires on the next access.

use std::ops::Range;

use resp::{Args, Reply};
use store::{ExpiryChange, KeyspaceEvent, NewString, StringValue};

use super::compare;
use super::options::{Condition, Expiry, MSETEX_EXPIRY, OptionsCommand, SET_EXPIRY, SetOptions};
use super::{OVERWRITE, UPDATE, UPDATE_KEY, VALUE, WRITE, reply_text, spec};
use crate::args::count::{NUMKEYS, positive};
use crate::args::expiry::ExpiryForm;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::string::StringError;
use crate::event::EXPIRE;
use crate::exec::{Handler, write_arg};
use command::{Access, Argument, Find, Flags, KeySpec, Row, Shape, Spec};

pub(super) const SET: Row<Handler> = Row::new(
    spec("set", -3, "1.0.0")
        .summary("Sets a key to a string value, and replaces a value of any type.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, UPDATE)
            .varying(|args| if args.iter().skip(3).any(is_get) { UPDATE } else { OVERWRITE })
            .notes("It reads only with the argument `GET`")])
        .arguments(&[
            Argument::key(),
            VALUE,
            Argument::new("condition", Shape::OneOf(CONDITION)).optional().since("2.6.12"),
            Argument::word("get", "GET").optional().since("6.2.0"),
            Argument::new("expiration", Shape::OneOf(SET_EXPIRY)).optional(),
        ])
        .history(&[
            // Clients compare these texts with those of Redis.
            ("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."),
            ("6.0.0", "Added the `KEEPTTL` option."),
            ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
            ("7.0.0", "Allowed the `NX` and `GET` options to be used together."),
            ("8.4.0", "The options `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE`."),
        ]),
    set,
);

fn is_get(arg: &[u8]) -> bool {
    arg.eq_ignore_ascii_case(b"get")
}

const CONDITION: &[Argument] = &[
    Argument::word("nx", "NX"),
    Argument::word("xx", "XX"),
    compare::IFEQ.since("8.4.0"),
    compare::IFNE.since("8.4.0"),
    compare::IFDEQ.since("8.4.0"),
    compare::IFDNE.since("8.4.0"),
];

pub(super) const SETNX: Row<Handler> = Row::new(
    spec("setnx", 3, "1.0.0")
        .summary("Sets a missing key to a string value.")
        .flags(WRITE.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::OW.with(Access::INSERT))])
        .arguments(&[Argument::key(), VALUE])
        .deprecated("2.6.12", "`SET` with `NX`"),
    setnx,
);

pub(super) const SETEX: Row<Handler> = Row::new(
    set_until("setex", "2.0.0")
        .summary("Sets the string value and the expiry of a key in seconds.")
        .arguments(&[Argument::key(), Argument::new("seconds", Shape::Integer), VALUE])
        .deprecated("2.6.12", "`SET` with `EX`"),
    setex,
);

pub(super) const PSETEX: Row<Handler> = Row::new(
    set_until("psetex", "2.6.0")
        .summary("Sets the string value and the expiry of a key in milliseconds.")
        .arguments(&[Argument::key(), Argument::new("milliseconds", Shape::Integer), VALUE])
        .deprecated("2.6.12", "`SET` with `PX`"),
    psetex,
);

const fn set_until(name: &'static str, since: &'static str) -> Spec {
    const KEY: &[KeySpec] = &[KeySpec::one(1, Access::OW.with(Access::UPDATE))];
    spec(name, 4, since).flags(WRITE).keys(KEY)
}

pub(super) const GETSET: Row<Handler> = Row::new(
    spec("getset", 3, "1.0.0")
        .summary("Sets the string value of a key and returns the previous one.")
        .flags(WRITE.with(Flags::FAST))
        .keys(UPDATE_KEY)
        .arguments(&[Argument::key(), VALUE])
        .deprecated("6.2.0", "`SET` with `GET`"),
    getset,
);

pub(super) const MSET: Row<Handler> = Row::new(
    set_many("mset")
        .summary("Sets the string values of several keys at once.")
        .keys(&[KeySpec::to_end(1, 2, Access::OW.with(Access::UPDATE))])
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    mset,
);

pub(super) const MSETEX: Row<Handler> = Row::new(
    spec("msetex", -4, "8.4.0")
        .summary(
            "Sets the string values and a common expiry of keys, if all or none of them exist.",
        )
        .complexity("O(N) for N keys.")
        .flags(WRITE.with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec {
            find: Find::Count { at: 0, first: 1, step: 2 },
            ..KeySpec::counted(1, Access::OW.with(Access::UPDATE))
        }])
        .arguments(&[
            NUMKEYS,
            Argument::new("data", Shape::Block(&[Argument::key(), VALUE])).multiple(),
            Argument::new(
                "condition",
                Shape::OneOf(&[Argument::word("nx", "NX"), Argument::word("xx", "XX")]),
            )
            .optional(),
            Argument::new("expiration", Shape::OneOf(MSETEX_EXPIRY)).optional(),
        ])
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    msetex,
);

pub(super) const MSETNX: Row<Handler> = Row::new(
    set_many("msetnx")
        .summary("Sets the string values of several keys at once if none of the keys exists.")
        .keys(&[KeySpec::to_end(1, 2, Access::OW.with(Access::INSERT))]),
    msetnx,
);

const fn set_many(name: &'static str) -> Spec {
    const PAIRS: &[Argument] =
        &[Argument::new("data", Shape::Block(&[Argument::key(), VALUE])).multiple()];
    spec(name, -3, "1.0.1").complexity("O(N) for N keys.").flags(WRITE).arguments(PAIRS)
}

const WRITTEN: KeyspaceEvent = KeyspaceEvent::new('$', "set");

fn set(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len() == 3 {
        put(cx, args, 2, ExpiryChange::Clear);
        reply.ok();
        return Ok(());
    }
    let options = SetOptions::parse(args, 3, OptionsCommand::Set)?;
    let expires_at = options.expiry.change(cx.turn.unix_ms, "set")?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    if options.get {
        reply_text(reply, db.read::<StringValue>(turn, key)?);
    }
    let met = match options.condition {
        None => true,
        Some(Condition::Absent) => !db.contains(turn, key),
        Some(Condition::Present) => db.contains(turn, key),
        Some(Condition::Compares(comparison)) => comparison.holds(db, turn, key)?,
    };
    if met {
        put(cx, args, 2, expires_at);
        if matches!(expires_at, ExpiryChange::At(_)) {
            // The replay has the stored form.
        } else if let Some(Condition::Compares(_)) = options.condition {
            cx.turn.effects.replay_as(|replay| replay.args(unconditional(args, expires_at)));
        } else if options.get {
            cx.turn.effects.replay_as(|replay| replay.args(without_get(args)));
        }
    }
    match (options.get, met) {
        (true, _) => {}
        (false, true) => reply.ok(),
        (false, false) => reply.null(),
    }
    Ok(())
}

/// Sets the first key to the argument at `value_at`.
#[inline]
fn put(cx: &mut Cx<'_>, args: &Args<'_>, value_at: usize, expires_at: ExpiryChange) {
    let key = cx.first_key(args, 1);
    let text = NewString::encode(args.text(value_at), args.own(value_at));
    let (db, turn) = cx.db(key);
    db.put(turn, key, text, expires_at);
    cx.wrote(WRITTEN, key.bytes);
    if let ExpiryChange::At(at_ms) = expires_at {
        cx.wrote(EXPIRE, key.bytes);
        cx.turn.effects.replay_as(|replay| {
            replay.args([b"SET", key.bytes]);
            write_arg(replay, args, value_at);
            replay.arg("PXAT");
            replay.int(at_ms);
        });
    }
}

/// The request without GET, which only affects the reply.
fn without_get<'a>(args: &Args<'a>) -> impl Iterator<Item = &'a [u8]> {
    let (head, words) = (args.iter().take(3), args.iter().skip(3));
    head.chain(words.filter(|word| !word.eq_ignore_ascii_case(b"GET")))
}

/// The request without its comparison, which has been made already.
fn unconditional<'a>(args: &Args<'a>, expires_at: ExpiryChange) -> impl Iterator<Item = &'a [u8]> {
    let keep = (expires_at == ExpiryChange::Keep).then_some(&b"KEEPTTL"[..]);
    args.iter().take(3).chain(keep)
}

fn setnx(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let absent = !db.contains(turn, key);
    if absent {
        put(cx, args, 2, ExpiryChange::Clear);
    }
    reply.int(i64::from(absent));
    Ok(())
}

fn setex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    put_until(cx, args, reply, ExpiryForm::EX, "setex")
}

fn psetex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    put_until(cx, args, reply, ExpiryForm::PX, "psetex")
}

fn put_until(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    form: ExpiryForm,
    command: &'static str,
) -> Result<(), Error> {
    let expiry = Expiry { amount: args.text(2), form };
    let at_ms = expiry.at_ms(cx.turn.unix_ms, command)?;
    put(cx, args, 3, ExpiryChange::At(at_ms));
    reply.ok();
    Ok(())
}

fn getset(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply_text(reply, db.read::<StringValue>(turn, key)?);
    put(cx, args, 2, ExpiryChange::Clear);
    cx.turn.effects.replay_as(|replay| {
        replay.args([b"SET", key.bytes]);
        write_arg(replay, args, 2);
    });
    Ok(())
}

fn mset(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len().is_multiple_of(2) {
        return Err(Error::Arity("mset".to_owned()));
    }
    put_pairs(cx, args, 1..args.len(), ExpiryChange::Clear);
    reply.ok();
    Ok(())
}

fn msetnx(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if args.len().is_multiple_of(2) {
        return Err(Error::Arity("msetnx".to_owned()));
    }
    let free = (1..args.len()).step_by(2).enumerate().all(|(nth, at)| {
        let key = cx.nth_key(args, nth, at);
        let (db, turn) = cx.db(key);
        !db.contains(turn, key)
    });
    if free {
        put_pairs(cx, args, 1..args.len(), ExpiryChange::Clear);
    }
    reply.int(i64::from(free));
    Ok(())
}

fn msetex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let numkeys = positive(args.text(1)).filter(|number| i32::try_from(*number).is_ok());
    let numkeys = numkeys.ok_or(StringError::MsetexKeys)?;
    let end = numkeys.checked_mul(2).and_then(|len| len.checked_add(2));
    let end = end.filter(|end| *end <= args.len()).ok_or(StringError::MsetexPairs)?;
    let options = SetOptions::parse(args, end, OptionsCommand::Msetex)?;
    let expires_at = options.expiry.change(cx.turn.unix_ms, "msetex")?;
    let mut met = true;
    if let Some(condition) = options.condition {
        met = (0..numkeys).all(|nth| {
            let key = cx.nth_key(args, nth, 2 + 2 * nth);
            let (db, turn) = cx.db(key);
            db.contains(turn, key) == (condition == Condition::Present)
        });
    }
    if met {
        put_pairs(cx, args, 2..end, expires_at);
        // Servers that load the log may not know MSETEX.
        for at in (2..end).step_by(2) {
            cx.turn.effects.also_replay(|replay| {
                replay.arg("SET");
                write_arg(replay, args, at);
                write_arg(replay, args, at + 1);
                match expires_at {
                    ExpiryChange::At(at_ms) => {
                        replay.arg("PXAT");
                        replay.int(at_ms);
                    }
                    ExpiryChange::Keep => replay.arg("KEEPTTL"),
                    ExpiryChange::Clear => {}
                }
            });
        }
    }
    reply.int(i64::from(met));
    Ok(())
}

/// Sets each key to the argument after it. A key that occurs twice keeps the last value.
fn put_pairs(cx: &mut Cx<'_>, args: &Args<'_>, pairs: Range<usize>, expires_at: ExpiryChange) {
    for (nth, at) in pairs.step_by(2).enumerate() {
        let key = cx.nth_key(args, nth, at);
        let text = NewString::encode(args.text(at + 1), args.own(at + 1));
        let (db, turn) = cx.db(key);
        db.put(turn, key, text, expires_at);
        cx.wrote(WRITTEN, key.bytes);
        if matches!(expires_at, ExpiryChange::At(_)) {
            cx.wrote(EXPIRE, key.bytes);
        }
    }
}

//! The expiry of fields: HEXPIRE and its variants, HTTL and its variants, HPERSIST.
//!
//! A client gives a time in various units and bases, but a field keeps one absolute time in
//! milliseconds, and that is replayed, for the fields it was set for. A time in the past removes
//! the fields at once and is replayed as HDEL.

use resp::{Args, Reply};
use store::{CommandWriter, HashValue, KeyspaceEvent, Lookup};

use super::expiry_args::{FieldArgs, parse_expiry};
use super::{FAST, FIELDS, READ, READ_KEY, UPDATE_KEY, WRITE, spec, wrote_deletion};
use crate::args::expiry::{CONDITION, ExpiryBase, ExpiryCondition, ExpiryForm, ExpiryUnit};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::hash::HashError;
use crate::exec::Handler;
use command::{Argument, Row, Shape, Spec};

/// The reply for a missing field.
const NO_FIELD: i64 = -2;
/// The reply for a field without expiry.
const NO_EXPIRY: i64 = -1;
/// The condition does not hold.
const NOT_MET: i64 = 0;
/// The expiry was set or removed.
const DONE: i64 = 1;
/// The field was removed, since the time is in the past.
const REMOVED: i64 = 2;

pub(super) const EXPIRED: KeyspaceEvent = KeyspaceEvent::new('h', "hexpire");
pub(super) const PERSISTED: KeyspaceEvent = KeyspaceEvent::new('h', "hpersist");

const PER_FIELD: &str = "O(N) for N fields.";

const fn setter(name: &'static str, summary: &'static str, arguments: &'static [Argument]) -> Spec {
    spec(name, -6, "7.4.0")
        .summary(summary)
        .complexity(PER_FIELD)
        .flags(WRITE.with(FAST))
        .keys(UPDATE_KEY)
        .arguments(arguments)
}

const KEY_AND_FIELDS: &[Argument] = &[Argument::key(), FIELDS];

const fn reader(name: &'static str, summary: &'static str) -> Spec {
    spec(name, -5, "7.4.0")
        .summary(summary)
        .complexity(PER_FIELD)
        .flags(READ.with(FAST))
        .keys(READ_KEY)
        .arguments(KEY_AND_FIELDS)
}

const LEFT_TIPS: &[&str] = &["nondeterministic_output"];

pub(super) const HEXPIRE: Row<Handler> = Row::new(
    setter(
        "hexpire",
        "Sets the expiry of fields in a hash in seconds.",
        &[Argument::key(), Argument::new("seconds", Shape::Integer), CONDITION, FIELDS],
    ),
    |cx, args, reply| expire(cx, args, reply, "hexpire", ExpiryForm::EX),
);

pub(super) const HPEXPIRE: Row<Handler> = Row::new(
    setter(
        "hpexpire",
        "Sets the expiry of fields in a hash in milliseconds.",
        &[Argument::key(), Argument::new("milliseconds", Shape::Integer), CONDITION, FIELDS],
    ),
    |cx, args, reply| expire(cx, args, reply, "hpexpire", ExpiryForm::PX),
);

pub(super) const HEXPIREAT: Row<Handler> = Row::new(
    setter(
        "hexpireat",
        "Sets the expiry of fields in a hash to a Unix timestamp in seconds.",
        &[Argument::key(), Argument::new("unix-time-seconds", Shape::UnixTime), CONDITION, FIELDS],
    ),
    |cx, args, reply| expire(cx, args, reply, "hexpireat", ExpiryForm::EXAT),
);

pub(super) const HPEXPIREAT: Row<Handler> = Row::new(
    setter(
        "hpexpireat",
        "Sets the expiry of fields in a hash to a Unix timestamp in milliseconds.",
        &[
            Argument::key(),
            Argument::new("unix-time-milliseconds", Shape::UnixTime),
            CONDITION,
            FIELDS,
        ],
    ),
    |cx, args, reply| expire(cx, args, reply, "hpexpireat", ExpiryForm::PXAT),
);

pub(super) const HTTL: Row<Handler> = Row::new(
    reader("httl", "Returns the remaining time to live of fields in a hash in seconds.")
        .tips(LEFT_TIPS),
    |cx, args, reply| remaining(cx, args, reply, ExpiryForm::EX),
);

pub(super) const HPTTL: Row<Handler> = Row::new(
    reader("hpttl", "Returns the remaining time to live of fields in a hash in milliseconds.")
        .tips(LEFT_TIPS),
    |cx, args, reply| remaining(cx, args, reply, ExpiryForm::PX),
);

pub(super) const HEXPIRETIME: Row<Handler> = Row::new(
    reader("hexpiretime", "Returns the expiry of fields in a hash as a Unix timestamp in seconds."),
    |cx, args, reply| remaining(cx, args, reply, ExpiryForm::EXAT),
);

pub(super) const HPEXPIRETIME: Row<Handler> = Row::new(
    reader(
        "hpexpiretime",
        "Returns the expiry of fields in a hash as a Unix timestamp in milliseconds.",
    ),
    |cx, args, reply| remaining(cx, args, reply, ExpiryForm::PXAT),
);

pub(super) const HPERSIST: Row<Handler> = Row::new(
    spec("hpersist", -5, "7.4.0")
        .summary("Removes the expiry of fields in a hash.")
        .complexity(PER_FIELD)
        .flags(WRITE.with(FAST))
        .keys(UPDATE_KEY)
        .arguments(KEY_AND_FIELDS),
    hpersist,
);

fn expire(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    name: &'static str,
    form: ExpiryForm,
) -> Result<(), Error> {
    check_type(cx, args)?;
    let key = cx.first_key(args, 1);
    let at_ms = parse_expiry(args.text(2), form, cx.turn.unix_ms, name)?;
    let mut condition = ExpiryCondition::default();
    let word_at = if condition.add(args.text(3)) { 4 } else { 3 };
    let fields = FieldArgs::parse(args, word_at, HashError::NotAboveZero)?;
    // As in Redis, an expired field that still exists gets its new time.
    let is_replayed = cx.turn.effects.is_consumed();
    let (mut updated, mut removed, mut emptied) = (0, 0, false);
    let mut changed = Vec::new();
    let (db, turn) = cx.db(key);
    let past = turn.is_past(at_ms);
    let mut edit = db.edit::<HashValue>(turn, key)?;
    reply.array(fields.iter(args).len());
    for field in fields.iter(args) {
        let old = edit.as_ref().and_then(|edit| Some(edit.get(field)?.expires_at));
        let done = match (&mut edit, old) {
            (Some(edit), Some(old)) if condition.holds(old, at_ms) => {
                if past {
                    edit.remove(field);
                } else {
                    edit.set_expiry(field, Some(at_ms));
                }
                *(if past { &mut removed } else { &mut updated }) += 1;
                if is_replayed {
                    changed.push(field);
                }
                if past { REMOVED } else { DONE }
            }
            (_, Some(_)) => NOT_MET,
            (_, None) => NO_FIELD,
        };
        reply.int(done);
    }
    if let Some(edit) = &mut edit {
        // Redis changes the encoding whether or not an expiry was set.
        edit.make_expiring();
        emptied = edit.hash().is_empty();
    }
    drop(edit);
    if removed > 0 {
        cx.turn.counters.expired_fields += removed as u64;
        wrote_deletion(cx, key, removed, emptied);
        cx.turn.effects.replay_as(|replay| replay_deletion(replay, key.bytes, &changed));
    } else if updated > 0 {
        cx.count_elements(1, updated);
        cx.wrote(EXPIRED, key.bytes);
        cx.turn.effects.replay_as(|replay| {
            replay.args([b"HPEXPIREAT", key.bytes]);
            replay.int(at_ms);
            replay.args((3..=word_at).map(|at| args.text(at)));
            replay.int(changed.len() as i64);
            replay.args(changed);
        });
    }
    Ok(())
}

/// The command that replays the removal of these fields.
pub(super) fn replay_deletion<F: AsRef<[u8]>>(
    replay: &mut CommandWriter<'_>,
    key: &[u8],
    fields: impl IntoIterator<Item = F>,
) {
    replay.args([b"HDEL", key]);
    replay.args(fields);
}

/// The command that replays the expiry of these fields.
pub(crate) fn replay_expiry(
    replay: &mut CommandWriter<'_>,
    key: &[u8],
    at_ms: i64,
    fields: &[&[u8]],
) {
    replay.args([b"HPEXPIREAT", key]);
    replay.int(at_ms);
    replay.arg("FIELDS");
    replay.int(fields.len() as i64);
    replay.args(fields);
}

/// Checks the type of the value before the arguments.
pub(super) fn check_type(cx: &mut Cx<'_>, args: &Args<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    match db.lookup(turn, key, Lookup::Quiet) {
        Some(stored) if stored.view::<HashValue>().is_none() => Err(Error::WrongType),
        _ => Ok(()),
    }
}

fn remaining(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    form: ExpiryForm,
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let (hasher, now_ms) = (turn.hasher, turn.unix_ms);
    let hash = db.read::<HashValue>(turn, key)?;
    let fields = FieldArgs::parse(args, 2, HashError::NotPositive)?;
    reply.array(fields.iter(args).len());
    for field in fields.iter(args) {
        let value = hash.and_then(|hash| hash.get(&hasher, field));
        reply.int(match value.map(|value| value.expires_at) {
            None => NO_FIELD,
            Some(None) => NO_EXPIRY,
            Some(Some(at_ms)) if at_ms < now_ms => NO_FIELD,
            Some(Some(at_ms)) => {
                let ms = if form.base == ExpiryBase::Now { at_ms - now_ms } else { at_ms };
                if form.unit == ExpiryUnit::Seconds { (ms + 999) / 1000 } else { ms }
            }
        });
    }
    Ok(())
}

fn hpersist(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let fields = FieldArgs::parse(args, 2, HashError::NotPositive);
    let (db, turn) = cx.db(key);
    let expired_before_ms = turn.expired_before_ms;
    let mut edit = db.edit::<HashValue>(turn, key)?;
    // A wrong type is reported before wrong arguments.
    let fields = fields?;
    let mut persisted = false;
    reply.array(fields.iter(args).len());
    for field in fields.iter(args) {
        // As in Redis, an expired field is left for other commands to remove.
        let old = edit.as_ref().and_then(|edit| edit.get(field));
        let old = old.filter(|value| !value.is_expired(expired_before_ms));
        let old = old.map(|value| value.expires_at);
        reply.int(match (&mut edit, old) {
            (Some(edit), Some(Some(_))) => {
                edit.set_expiry(field, None);
                persisted = true;
                DONE
            }
            (_, Some(_)) => NO_EXPIRY,
            (_, None) => NO_FIELD,
        });
    }
    drop(edit);
    if persisted {
        cx.wrote(PERSISTED, key.bytes);
    }
    Ok(())
}

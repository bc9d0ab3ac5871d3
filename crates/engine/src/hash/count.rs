//! Fields as counters: HINCRBY and HINCRBYFLOAT.
//!
//! A field keeps its expiry. The float is replayed as its new value, so that a replica or a log has
//! the same digits. Replicas may not know HSETEX KEEPTTL: HSET removes the expiry, and HPEXPIREAT
//! sets it again.

use base::decimal::LongDouble;
use base::number::{parse_i64, push_i64};
use ds::packed::Entry;
use resp::{Args, Reply};
use store::{FieldExpiry, HashValue, KeyspaceEvent};

use super::expiry::replay_expiry;
use super::{FAST, FIELD, GROW, expire_named, spec};
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::hash::HashError;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape};

const KEY: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::UPDATE))];

pub(super) const HINCRBY: Row<Handler> = Row::new(
    spec("hincrby", 4, "2.0.0")
        .member(2)
        .summary("Adds a number to the integer value of a hash field; a missing field counts as 0.")
        .flags(GROW.with(FAST))
        .keys(KEY)
        .arguments(&[Argument::key(), FIELD, Argument::new("increment", Shape::Integer)]),
    hincrby,
);

pub(super) const HINCRBYFLOAT: Row<Handler> = Row::new(
    spec("hincrbyfloat", 4, "2.6.0")
        .member(2)
        .summary("Adds a number to the float value of a hash field; a missing field counts as 0.")
        .flags(GROW.with(FAST))
        .keys(KEY)
        .arguments(&[Argument::key(), FIELD, Argument::new("increment", Shape::Double)]),
    hincrbyfloat,
);

fn hincrby(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let increment = integer(args.text(3))?;
    let (sum, _) = change(cx, args, |old, text| {
        let value = match old {
            None => 0,
            Some(Entry::Integer(value)) => value,
            Some(Entry::Bytes(bytes)) => parse_i64(bytes).ok_or(HashError::NotInteger)?,
        };
        let sum = value.checked_add(increment).ok_or(Error::Overflow)?;
        push_i64(text, sum);
        Ok(sum)
    })?;
    let key = cx.first_key(args, 1);
    cx.wrote(KeyspaceEvent::new('h', "hincrby"), key.bytes);
    reply.int(sum);
    Ok(())
}

fn hincrbyfloat(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let increment = LongDouble::parse(args.text(3)).ok_or(Error::NotFloat)?;
    if !increment.is_finite() {
        return Err(HashError::Infinite.into());
    }
    let (sum, expires_at) = change(cx, args, |old, text| {
        let value = match old {
            None => LongDouble::from(0),
            Some(Entry::Integer(value)) => LongDouble::from(value),
            Some(Entry::Bytes(bytes)) => LongDouble::parse(bytes).ok_or(HashError::NotFloat)?,
        };
        value.checked_add(increment).ok_or(Error::NanOrInfinity)?.push_human(text);
        Ok(text.clone())
    })?;
    let key = cx.first_key(args, 1);
    cx.wrote(KeyspaceEvent::new('h', "hincrbyfloat"), key.bytes);
    let effects = &mut cx.turn.effects;
    effects.replay_as(|replay| replay.args([b"HSET", key.bytes, args.text(2), &sum]));
    if let Some(at_ms) = expires_at {
        effects.also_replay(|replay| replay_expiry(replay, key.bytes, at_ms, &[args.text(2)]));
    }
    reply.bulk(&sum);
    Ok(())
}

/// Sets a field to the value that `make` writes from the old one. Returns the field's expiry too.
fn change<R>(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    make: impl FnOnce(Option<Entry<'_>>, &mut Vec<u8>) -> Result<R, Error>,
) -> Result<(R, Option<i64>), Error> {
    let key = cx.first_key(args, 1);
    let field = args.text(2);
    expire_named(cx, key, args, 2, 2);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let mut text = std::mem::take(&mut turn.scratch);
    text.clear();
    let result =
        db.edit_or_create::<HashValue>(turn, key).map_err(Error::from).and_then(|mut edit| {
            let old = edit.get(field);
            let expires_at = old.and_then(|value| value.expires_at);
            let made = make(old.map(|value| value.entry), &mut text)?;
            edit.fit(limits, 0, [field.len(), text.len()].into_iter());
            edit.set(field, &text, FieldExpiry::Keep, limits);
            Ok((made, expires_at))
        });
    turn.scratch = text;
    result
}

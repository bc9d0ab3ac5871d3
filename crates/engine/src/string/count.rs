//! Strings as numbers: INCR and its variants in 64-bit integers, INCRBYFLOAT in extended precision.
//!
//! An integer is changed in its record, without an allocation. A sum of floats is stored as its
//! text and replayed as a SET, so that replicas and restarts do not add again.

use base::decimal::LongDouble;
use resp::{Args, Reply};
use store::{ExpiryChange, KeyspaceEvent, NewString, StringDigits, StringRef, StringValue};

use super::{UPDATE_KEY, WRITE, spec};
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape, Spec};

pub(super) const INCR: Row<Handler> = Row::new(
    counter("incr", 2, "1.0.0")
        .summary("Adds one to the integer value of a key; a missing key counts as 0.")
        .arguments(&[Argument::key()]),
    incr,
);

pub(super) const DECR: Row<Handler> = Row::new(
    counter("decr", 2, "1.0.0")
        .summary("Subtracts one from the integer value of a key; a missing key counts as 0.")
        .arguments(&[Argument::key()]),
    decr,
);

pub(super) const INCRBY: Row<Handler> = Row::new(
    counter("incrby", 3, "1.0.0")
        .summary("Adds a number to the integer value of a key; a missing key counts as 0.")
        .arguments(&[Argument::key(), Argument::new("increment", Shape::Integer)]),
    incrby,
);

pub(super) const DECRBY: Row<Handler> = Row::new(
    counter("decrby", 3, "1.0.0")
        .summary("Subtracts a number from the integer value of a key; a missing key counts as 0.")
        .arguments(&[Argument::key(), Argument::new("decrement", Shape::Integer)]),
    decrby,
);

pub(super) const INCRBYFLOAT: Row<Handler> = Row::new(
    counter("incrbyfloat", 3, "2.6.0")
        .summary("Adds a number to the float value of a key; a missing key counts as 0.")
        .arguments(&[Argument::key(), Argument::new("increment", Shape::Double)]),
    incrbyfloat,
);

const fn counter(name: &'static str, arity: i32, since: &'static str) -> Spec {
    spec(name, arity, since).flags(WRITE.with(Flags::FAST)).keys(UPDATE_KEY)
}

fn incr(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    add(cx, args, reply, 1)
}

fn decr(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    add(cx, args, reply, -1)
}

fn incrby(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let increment = integer(args.text(2))?;
    add(cx, args, reply, increment)
}

fn decrby(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let decrement = integer(args.text(2))?;
    add(cx, args, reply, decrement.checked_neg().ok_or(Error::DecrementOverflow)?)
}

#[inline]
fn add(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    increment: i64,
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let sum = if let Some(sum) = db.add_to_integer(turn, key, increment) {
        sum.ok_or(Error::Overflow)?
    } else if let Some(mut edit) = db.edit::<StringValue>(turn, key)? {
        let value = edit.text().integer().ok_or(Error::NotInteger)?;
        let sum = value.checked_add(increment).ok_or(Error::Overflow)?;
        edit.set_integer(sum);
        sum
    } else {
        db.put(turn, key, NewString::Integer(increment), ExpiryChange::Clear);
        increment
    };
    cx.wrote(KeyspaceEvent::new('$', "incrby"), key.bytes);
    reply.int(sum);
    Ok(())
}

fn incrbyfloat(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let value = match db.edit::<StringValue>(turn, key)? {
        None => Some(LongDouble::from(0)),
        Some(edit) => match edit.text() {
            StringRef::Integer(value) => Some(LongDouble::from(value)),
            text => LongDouble::parse(text.bytes(&mut StringDigits::default())),
        },
    };
    let value = value.ok_or(Error::NotFloat)?;
    let increment = LongDouble::parse(args.text(2)).ok_or(Error::NotFloat)?;
    let sum = value.checked_add(increment).ok_or(Error::NanOrInfinity)?;
    let mut text = Vec::with_capacity(32);
    sum.push_human(&mut text);
    // Stored as bytes even if it looks like an integer: that is the encoding Redis gives it.
    db.put(turn, key, NewString::raw(&text, None), ExpiryChange::Keep);
    cx.wrote(KeyspaceEvent::new('$', "incrbyfloat"), key.bytes);
    cx.turn.effects.replay_as(|replay| replay.args([b"SET", key.bytes, &text, b"KEEPTTL"]));
    reply.bulk(&text);
    Ok(())
}

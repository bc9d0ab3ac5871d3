//! Reading hashes: HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HEXISTS, HSTRLEN.

use ds::packed::Entry;
use resp::{Args, Reply};
use store::{HashRef, HashValue};

use super::{FAST, FIELD, READ, READ_KEY, expire_named, read_field, read_rest, reply_entry, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Spec};

/// The key of a command that returns a property of its contents.
const KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO)];
const KEY_AND_FIELD: &[Argument] = &[Argument::key(), FIELD];

pub(super) const HGET: Row<Handler> = Row::new(
    spec("hget", 3, "2.0.0")
        .member(2)
        .summary("Returns the value of a field in a hash.")
        .flags(READ.with(FAST))
        .keys(READ_KEY)
        .arguments(KEY_AND_FIELD),
    hget,
);

pub(super) const HMGET: Row<Handler> = Row::new(
    spec("hmget", -3, "2.0.0")
        .member(2)
        .summary("Returns the values of several fields in a hash.")
        .complexity("O(N) for N requested fields.")
        .flags(READ.with(FAST))
        .keys(READ_KEY)
        .arguments(&[Argument::key(), FIELD.multiple()]),
    hmget,
);

pub(super) const HEXISTS: Row<Handler> = Row::new(
    spec("hexists", 3, "2.0.0")
        .member(2)
        .summary("Returns whether a hash has a field.")
        .flags(READ.with(FAST))
        .keys(KEY)
        .arguments(KEY_AND_FIELD),
    hexists,
);

pub(super) const HSTRLEN: Row<Handler> = Row::new(
    spec("hstrlen", 3, "3.2.0")
        .member(2)
        .summary("Returns the length of the value of a field in a hash.")
        .flags(READ.with(FAST))
        .keys(KEY)
        .arguments(KEY_AND_FIELD),
    hstrlen,
);

pub(super) const HLEN: Row<Handler> = Row::new(
    spec("hlen", 2, "2.0.0")
        .summary("Returns the number of fields in a hash.")
        .flags(READ.with(FAST))
        .keys(KEY)
        .arguments(ONLY_KEY),
    hlen,
);

const ONLY_KEY: &[Argument] = &[Argument::key()];

const fn whole(name: &'static str) -> Spec {
    spec(name, 2, "2.0.0")
        .complexity("O(N) for the N fields of the hash.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(ONLY_KEY)
        .tips(&["nondeterministic_output_order"])
}

pub(super) const HGETALL: Row<Handler> =
    Row::new(whole("hgetall").summary("Returns all fields and values of a hash."), hgetall);

pub(super) const HKEYS: Row<Handler> =
    Row::new(whole("hkeys").summary("Returns all fields of a hash."), hkeys);

pub(super) const HVALS: Row<Handler> =
    Row::new(whole("hvals").summary("Returns all values of a hash."), hvals);

fn hget(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    match read_field(db, turn, key, args.text(2))? {
        Some(value) => reply_entry(reply, value),
        None => reply.null(),
    }
    Ok(())
}

fn hmget(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let removed = expire_named(cx, key, args, 2, 1);
    let (db, turn) = cx.db(key);
    let (hasher, unix_ms) = (turn.hasher, turn.expired_before_ms);
    let hash = read_rest(db, turn, key, removed)?;
    reply.array(args.len() - 2);
    for field in args.iter().skip(2) {
        match hash.and_then(|hash| hash.get(&hasher, field)?.live(unix_ms)) {
            Some(value) => reply_entry(reply, value),
            None => reply.null(),
        }
    }
    Ok(())
}

fn hexists(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let value = read_field(db, turn, key, args.text(2))?;
    reply.int(i64::from(value.is_some()));
    Ok(())
}

fn hstrlen(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let value = read_field(db, turn, key, args.text(2))?;
    reply.len(value.map_or(0, |value| value.len()));
    Ok(())
}

fn hlen(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.len(db.read::<HashValue>(turn, key)?.map_or(0, HashRef::len));
    Ok(())
}

/// The number of fields that have not expired. Walks over the hash only if some have.
fn live_len(hash: HashRef<'_>, unix_ms: i64) -> usize {
    if hash.has_expired(unix_ms) {
        hash.iter().filter(|(_, value)| !value.is_expired(unix_ms)).count()
    } else {
        hash.len()
    }
}

/// Replies the fields that have not expired, after the header for this number.
fn reply_live(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    header: fn(&mut Reply<'_>, usize),
    show: impl Fn(&mut Reply<'_>, Entry<'_>, Entry<'_>),
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let unix_ms = turn.expired_before_ms;
    let Some(hash) = db.read::<HashValue>(turn, key)? else {
        header(reply, 0);
        return Ok(());
    };
    header(reply, live_len(hash, unix_ms));
    for (field, value) in hash {
        if let Some(value) = value.live(unix_ms) {
            show(reply, field, value);
        }
    }
    Ok(())
}

fn hgetall(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply_live(
        cx,
        args,
        reply,
        |reply, len| reply.map(len),
        |reply, field, value| {
            reply_entry(reply, field);
            reply_entry(reply, value);
        },
    )
}

fn hkeys(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply_live(
        cx,
        args,
        reply,
        |reply, len| reply.array(len),
        |reply, field, _| reply_entry(reply, field),
    )
}

fn hvals(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply_live(
        cx,
        args,
        reply,
        |reply, len| reply.array(len),
        |reply, _, value| reply_entry(reply, value),
    )
}

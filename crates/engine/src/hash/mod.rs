//! Hashes (<https://redis.io/docs/latest/commands/?group=hash>): the list of their rows, and
//! definitions that the family's files share.
//!
//! Each row is next to its handler: `read` reads fields, `random` draws and `scan` lists them,
//! `write` sets and removes them, `count` has counters, `expiry` the expiry of fields, and
//! `field_ttl` reads or sets fields together with their expiry. `expiry_args` parses the arguments
//! of the latter two.
//!
//! An expired field does not exist for clients, except that HLEN and HDEL count it until it is
//! removed, as in Redis. Commands first remove the expired fields among those they name, as a
//! separate effect. Commands that set a field unconditionally set it in place, and HSET does not
//! count it as new.

use ds::packed::Entry;
use resp::{Args, Reply};
use store::{Db, HashRef, HashValue, Key, KeyspaceEvent, Lookup, Turn, WrongType};

use crate::cx::Cx;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod count;
mod expiry;
mod expiry_args;
mod field_ttl;
mod random;
mod read;
mod scan;
mod write;

pub(crate) use expiry::replay_expiry;

/// The hash commands.
pub const ROWS: &[Row<Handler>] = &[
    write::HDEL,
    read::HEXISTS,
    expiry::HEXPIRE,
    expiry::HEXPIREAT,
    expiry::HEXPIRETIME,
    read::HGET,
    read::HGETALL,
    field_ttl::HGETDEL,
    field_ttl::HGETEX,
    count::HINCRBY,
    count::HINCRBYFLOAT,
    read::HKEYS,
    read::HLEN,
    read::HMGET,
    write::HMSET,
    expiry::HPERSIST,
    expiry::HPEXPIRE,
    expiry::HPEXPIREAT,
    expiry::HPEXPIRETIME,
    expiry::HPTTL,
    random::HRANDFIELD,
    scan::HSCAN,
    write::HSET,
    field_ttl::HSETEX,
    write::HSETNX,
    read::HSTRLEN,
    expiry::HTTL,
    read::HVALS,
];

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const GROW: Flags = Flags::WRITE.with(Flags::DENYOOM);
const FAST: Flags = Flags::FAST;

/// The key of a command that returns its contents.
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
/// The key of a command that sets fields or their expiries.
const UPDATE_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::UPDATE))];

const FIELD: Argument = Argument::new("field", Shape::String);
const VALUE: Argument = Argument::new("value", Shape::String);
const PAIRS: Argument = Argument::new("data", Shape::Block(&[FIELD, VALUE])).multiple();
/// `FIELDS numfields field [field ...]`.
const FIELDS: Argument = Argument::new(
    "fields",
    Shape::Block(&[Argument::new("numfields", Shape::Integer), FIELD.multiple()]),
)
.after("FIELDS");

const SET: KeyspaceEvent = KeyspaceEvent::new('h', "hset");
const FIELDS_DELETED: KeyspaceEvent = KeyspaceEvent::new('h', "hdel");

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Hash, since)
}

/// Replies a field or a value.
#[inline]
fn reply_entry(reply: &mut Reply<'_>, entry: Entry<'_>) {
    match entry {
        Entry::Bytes(text) => reply.bulk(text),
        Entry::Integer(value) => reply.bulk_int(value),
    }
}

/// Removes the expired fields among every `step`th argument from `from` on. Returns how many.
#[inline]
fn expire_named(cx: &mut Cx<'_>, key: Key<'_>, args: &Args<'_>, from: usize, step: usize) -> usize {
    let (db, turn) = cx.db(key);
    db.expire_fields(turn, key, args.iter().skip(from).step_by(step))
}

/// The hash under a key, after `removed` expired fields were removed. As in Redis, a hash that was
/// removed with its last field counts as found: it is a hit.
///
/// # Errors
/// When the key holds another type.
#[inline]
fn read_rest<'d>(
    db: &'d mut Db,
    turn: &mut Turn,
    key: Key<'_>,
    removed: usize,
) -> Result<Option<HashRef<'d>>, WrongType> {
    if removed > 0 && db.lookup(turn, key, Lookup::Quiet).is_none() {
        turn.counters.hits += 1;
        return Ok(None);
    }
    db.read::<HashValue>(turn, key)
}

/// Records that one edit removed fields, and the key if it became empty.
fn wrote_deletion(cx: &mut Cx<'_>, key: Key<'_>, removed: usize, emptied: bool) {
    cx.count_elements(1, removed);
    cx.wrote_removal(FIELDS_DELETED, key.bytes, emptied);
}

/// The value of a field. An expired field is removed.
///
/// # Errors
/// When the key holds another type.
#[inline]
pub(crate) fn read_field<'d>(
    db: &'d mut Db,
    turn: &mut Turn,
    key: Key<'_>,
    field: &[u8],
) -> Result<Option<Entry<'d>>, WrongType> {
    let removed = db.expire_fields(turn, key, std::iter::once(field));
    let (hasher, unix_ms) = (turn.hasher, turn.expired_before_ms);
    let hash = read_rest(db, turn, key, removed)?;
    Ok(hash.and_then(|hash| hash.get(&hasher, field)?.live(unix_ms)))
}

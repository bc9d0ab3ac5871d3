//! Sets (<https://redis.io/docs/latest/commands/?group=set>): the list of their rows, and
//! definitions that the family's files share.
//!
//! Each row is next to its handler: `member` has members of one set, `random` random members,
//! `scan` SSCAN, and `inter`, `union` and `diff` the algebra of several sets, which `algebra` reads
//! and stores.

use resp::Reply;
use store::{Entry, KeyspaceEvent};

use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod algebra;
mod diff;
mod inter;
mod member;
mod random;
mod scan;
mod union;

/// The set commands.
pub const ROWS: &[Row<Handler>] = &[
    member::SADD,
    member::SCARD,
    diff::SDIFF,
    diff::SDIFFSTORE,
    inter::SINTER,
    inter::SINTERCARD,
    inter::SINTERSTORE,
    member::SISMEMBER,
    member::SMEMBERS,
    member::SMISMEMBER,
    member::SMOVE,
    random::SPOP,
    random::SRANDMEMBER,
    member::SREM,
    scan::SSCAN,
    union::SUNION,
    union::SUNIONSTORE,
];

const READ: Flags = Flags::READONLY;
const FAST: Flags = Flags::FAST;

/// The key of a command that replies members.
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, READS)];
/// The key of a command that replies properties of members.
const LOOK_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO)];
const READS: Access = Access::RO.with(Access::ACCESS);

const MEMBER: Argument = Argument::new("member", Shape::String);

const ADDED: KeyspaceEvent = KeyspaceEvent::new('s', "sadd");
const REMOVED: KeyspaceEvent = KeyspaceEvent::new('s', "srem");

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Set, since)
}

#[inline]
fn reply_member(reply: &mut Reply<'_>, member: Entry<'_>) {
    match member {
        Entry::Bytes(text) => reply.bulk(text),
        Entry::Integer(value) => reply.bulk_int(value),
    }
}

//! Sets (<https://redis.io/docs/latest/commands/?group=set>): the list of their rows, and what the
//! files of the family share.
//!
//! A row stands beside its handler: members of one set in `member`, members at random in `random`,
//! SSCAN in `scan`, and the algebra of several sets in `inter`, `union` and `diff`, which say in
//! `algebra` what they read and where the result goes.

use resp::Reply;
use store::Entry;
use store::KeyspaceEvent;

use crate::exec::Handler;
use command::Row;
use command::{Access, Argument, Flags, Group, KeySpec, Shape, Spec};

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
/// The key of a command that replies what is known of members.
const LOOK_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO)];
const READS: Access = Access::RO.with(Access::ACCESS);

const MEMBER: Argument = Argument::new("member", Shape::String);

const ADDED: KeyspaceEvent = KeyspaceEvent::new('s', "sadd");
const REMOVED: KeyspaceEvent = KeyspaceEvent::new('s', "srem");

/// A set command.
const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Set, since)
}

/// Replies a member.
#[inline]
fn reply_member(reply: &mut Reply<'_>, member: Entry<'_>) {
    match member {
        Entry::Bytes(text) => reply.bulk(text),
        Entry::Integer(value) => reply.bulk_int(value),
    }
}

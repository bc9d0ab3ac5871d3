//! Sorted sets (<https://redis.io/docs/latest/commands/?group=sorted-set>): the list of their rows,
//! and definitions that the family's files share.
//!
//! Each row is next to its handler: `add` adds members, `read` reads single and `random` random
//! ones, `range` reads ranges, `remove` removes members, `pop` pops them from the ends, `combine`
//! combines several sets, and `scan` iterates. `bounds` parses ranges; `result` stores the result
//! of a command.

use resp::Reply;
use store::{Entry, KeyspaceEvent, ScoredMember};

use crate::exec::{BlockingHandler, Handler};
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod add;
mod bounds;
mod combine;
mod pop;
mod random;
mod range;
mod read;
mod remove;
pub(crate) mod result;
mod scan;

/// The sorted set commands.
pub const ROWS: &[Row<Handler>] = &[
    add::ZADD,
    read::ZCARD,
    read::ZCOUNT,
    combine::ZDIFF,
    combine::ZDIFFSTORE,
    add::ZINCRBY,
    combine::ZINTER,
    combine::ZINTERCARD,
    combine::ZINTERSTORE,
    read::ZLEXCOUNT,
    pop::ZMPOP,
    read::ZMSCORE,
    pop::ZPOPMAX,
    pop::ZPOPMIN,
    random::ZRANDMEMBER,
    range::ZRANGE,
    range::ZRANGEBYLEX,
    range::ZRANGEBYSCORE,
    range::ZRANGESTORE,
    read::ZRANK,
    remove::ZREM,
    remove::ZREMRANGEBYLEX,
    remove::ZREMRANGEBYRANK,
    remove::ZREMRANGEBYSCORE,
    range::ZREVRANGE,
    range::ZREVRANGEBYLEX,
    range::ZREVRANGEBYSCORE,
    read::ZREVRANK,
    scan::ZSCAN,
    read::ZSCORE,
    combine::ZUNION,
    combine::ZUNIONSTORE,
];

/// The rows that may block.
pub const BLOCKING_ROWS: &[Row<BlockingHandler>] = &[pop::BZMPOP, pop::BZPOPMAX, pop::BZPOPMIN];

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = Flags::READONLY.with(Flags::FAST);

/// The key of a command that reads it.
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, READ_ACCESS)];
const READ_ACCESS: Access = Access::RO.with(Access::ACCESS);
/// The key of a command that removes members without returning them.
const DELETE_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::DELETE))];
/// The key of a command that removes and returns members.
const TAKE: Access = Access::RW.with(Access::ACCESS).with(Access::DELETE);
/// The key of a command that overwrites it.
const STORE: Access = Access::OW.with(Access::UPDATE);

const MEMBER: Argument = Argument::new("member", Shape::String);
const WITHSCORES: Argument = Argument::word("withscores", "WITHSCORES").optional();
const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::SortedSet, since)
}

/// The event of a sorted set command.
const fn event(name: &'static str) -> KeyspaceEvent {
    KeyspaceEvent::new('z', name)
}

#[inline]
pub(crate) fn reply_member(reply: &mut Reply<'_>, member: Entry<'_>) {
    match member {
        Entry::Bytes(bytes) => reply.bulk(bytes),
        Entry::Integer(value) => reply.bulk_int(value),
    }
}

/// Replies `len` pairs: members only, or with their scores, in one flat array in RESP2 and in
/// arrays of two in RESP3.
fn reply_pairs<'a>(
    reply: &mut Reply<'_>,
    len: usize,
    pairs: impl Iterator<Item = ScoredMember<'a>>,
    with_scores: bool,
) {
    if !with_scores {
        reply.array(len);
        pairs.for_each(|pair| reply_member(reply, pair.member));
        return;
    }
    let nested = reply.resp3();
    reply.array(if nested { len } else { len * 2 });
    pairs.for_each(|pair| {
        if nested {
            reply.array(2);
        }
        reply_member(reply, pair.member);
        reply.double(pair.score());
    });
}

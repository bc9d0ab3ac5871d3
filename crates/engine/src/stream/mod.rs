//! Streams (<https://redis.io/docs/latest/commands/?group=stream>): the list of their rows, and
//! definitions that the family's files share.
//!
//! Each row is next to its handler: `add` adds entries, `range` and `read` read them, `delete` and
//! `trim` remove them; `group` creates groups, `read_group` reads as a group, `pending` shows its
//! pending entries and `claim` passes them on. `id` parses identifiers, `entry` replies entries,
//! and `replay` replays deliveries.

use ds::stream::ConsumerGroup;
use store::KeyspaceEvent;

use crate::error::echo::echo;
use crate::error::stream::StreamError;
use crate::exec::{BlockingHandler, Handler};
use command::{Access, Argument, Group, KeySpec, PrefetchHint, Row, Shape, Spec};

mod add;
mod claim;
mod delete;
mod entry;
mod group;
mod id;
mod info;
mod pending;
mod range;
mod read;
mod read_group;
mod replay;
mod request;
mod setid;
mod trim;

/// The stream commands.
pub const ROWS: &[Row<Handler>] = &[
    pending::XACK,
    delete::XACKDEL,
    add::XADD,
    claim::XAUTOCLAIM,
    claim::XCLAIM,
    delete::XDEL,
    delete::XDELEX,
    group::XGROUP,
    info::XINFO,
    range::XLEN,
    pending::XPENDING,
    range::XRANGE,
    range::XREVRANGE,
    setid::XSETID,
    trim::XTRIM,
];

/// The rows that may block.
pub const BLOCKING_ROWS: &[Row<BlockingHandler>] = &[read::XREAD, read_group::XREADGROUP];

/// The key of a command that reads it.
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
/// The key of a command that changes the pending entries of groups.
const UPDATE_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::UPDATE))];
/// The key of a command that removes data.
const DELETE_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RW.with(Access::DELETE))];

const GROUP: Argument = Argument::new("group", Shape::String);
const CONSUMER: Argument = Argument::new("consumer", Shape::String);
const IDS: Argument = Argument::new("id", Shape::String).multiple();

const CONSUMER_MADE: KeyspaceEvent = KeyspaceEvent::new('t', "xgroup-createconsumer");

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec { prefetch: PrefetchHint::Stream, ..Spec::new(name, arity, Group::Stream, since) }
}

/// The group, or the error that it or its key does not exist.
fn needed<G>(group: Option<G>, key: &[u8], name: &[u8]) -> Result<G, StreamError> {
    group.ok_or_else(|| StreamError::NoKeyOrGroup(echo(key), echo(name)))
}

/// Milliseconds since an entry was delivered. Never negative, whatever time a client set.
fn idle_ms(now_ms: i64, delivered_ms: i64) -> i64 {
    now_ms.saturating_sub(delivered_ms).max(0)
}

/// The consumer with this name, created if missing and marked as seen now; and whether it was
/// created.
fn asking(group: &mut ConsumerGroup, name: &[u8], now_ms: i64) -> (ds::stream::Handle, bool) {
    let (handle, made) = group.find_or_add(name, now_ms);
    group.consumer_mut(handle).seen_ms = now_ms;
    (handle, made)
}

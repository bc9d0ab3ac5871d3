//! Keys of any type (<https://redis.io/docs/latest/commands/?group=generic>): this file has
//! commands on their existence and type; the others have one subject each.

use resp::{Args, Reply};
use store::{Key, Lookup, ValueKind};

use crate::cx::Cx;
use crate::error::Error;
use crate::event::DEL;
use crate::exec::Handler;
use command::{Access, Argument, Category, Flags, Group, KeySpec, Row, Spec};

pub mod dump;
mod elements;
pub mod expire;
pub mod object;
pub mod scan;
pub mod sort;
pub mod transfer;

const READ: Flags = Flags::READONLY.with(Flags::FAST);
const WRITE: Flags = Flags::WRITE.with(Flags::FAST);
const KEYS: &[Argument] = &[Argument::key().multiple()];
/// Tips of commands on many keys that count something.
const SUMMED: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Generic, since).category(Category::KEYSPACE)
}

/// The commands on keys as such.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("del", -2, "1.0.0")
            .summary("Removes keys.")
            .complexity("O(N) for N keys; the memory of large values is freed in the background.")
            .flags(Flags::WRITE)
            .keys(&[KeySpec::to_end(1, 1, Access::RM.with(Access::DELETE))])
            .arguments(KEYS)
            .tips(SUMMED),
        del,
    ),
    Row::new(
        spec("unlink", -2, "4.0.0")
            .summary("Removes keys, and frees their memory in the background.")
            .complexity("O(N) for N keys, and O(M) in the background for their M elements.")
            .flags(WRITE)
            .keys(&[KeySpec::to_end(1, 1, Access::RM.with(Access::DELETE))])
            .arguments(KEYS)
            .tips(SUMMED),
        del,
    ),
    Row::new(
        spec("exists", -2, "1.0.0")
            .summary("Counts the given keys that exist; a key given twice counts twice.")
            .complexity("O(N) for N keys.")
            .flags(READ)
            .keys(&[KeySpec::to_end(1, 1, Access::RO)])
            .arguments(KEYS)
            .history(&[("3.0.3", "Several keys may be given.")])
            .tips(SUMMED),
        exists,
    ),
    Row::new(
        spec("touch", -2, "3.2.1")
            .summary(
                "Updates the access times of keys, and returns the number of those that exist.",
            )
            .complexity("O(N) for N keys.")
            .flags(READ)
            .keys(&[KeySpec::to_end(1, 1, Access::RO)])
            .arguments(KEYS)
            .tips(SUMMED),
        touch,
    ),
    Row::new(
        spec("type", 2, "1.0.0")
            .summary("Returns the type of the value of a key.")
            .flags(READ)
            .keys(&[KeySpec::one(1, Access::RO)])
            .arguments(&[Argument::key()]),
        type_of,
    ),
];

/// Counts the request's keys, which are all its arguments, for which `found` holds.
fn count_keys(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    mut found: impl FnMut(&mut Cx<'_>, Key<'_>) -> bool,
) -> Result<(), Error> {
    let mut count = 0;
    for at in 1..args.len() {
        let key = cx.nth_key(args, at - 1, at);
        count += usize::from(found(cx, key));
    }
    reply.len(count);
    Ok(())
}

fn del(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    count_keys(cx, args, reply, |cx, key| {
        let (db, turn) = cx.db(key);
        let removed = db.remove(turn, key);
        if removed {
            cx.wrote(DEL, key.bytes);
        }
        removed
    })
}

fn exists(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    count_keys(cx, args, reply, |cx, key| {
        let (db, turn) = cx.db(key);
        db.lookup(turn, key, Lookup::NoTouch).is_some()
    })
}

fn touch(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    // Only TOUCH counts as a use even with CLIENT NO-TOUCH.
    cx.turn.touch = true;
    count_keys(cx, args, reply, |cx, key| {
        let (db, turn) = cx.db(key);
        db.lookup(turn, key, Lookup::Read).is_some()
    })
}

fn type_of(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let kind = db.lookup(turn, key, Lookup::NoTouch).map(store::Stored::kind);
    reply.simple(kind.map_or("none", ValueKind::type_name));
    Ok(())
}

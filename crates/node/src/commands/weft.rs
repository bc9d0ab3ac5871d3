//! WEFT: commands that Redis does not have.
//!
//! HOTKEYS and BIGKEYS show the most used and the largest keys. Both read tables of bounded size
//! ([`crate::stats::hot_keys`], [`store::large_keys`]), so a tool can ask every second. They show
//! the first 256 bytes of a key. BIGKEYS skips shards that are in use.

use std::time::Duration;

use base::number::parse_i64;
use command::{Argument, Flags, Group, Row, Shape, ShardScope, Spec};
use engine::Error;
use resp::{Args, Reply};
use store::large_keys::LARGE_KEYS_MAX;

use super::help::{help, help_spec};
use super::persistence::backup;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::stats::hot_keys::{HotKeys, hottest};
use crate::stats::top_keys::KEY_BYTES_MAX;

/// Keys to return by default, and at most.
const COUNT_DEFAULT: usize = 16;
const COUNT_MAX: i64 = 1024;

const COUNT: Argument = Argument::new("count", Shape::Integer).after("COUNT").optional();

const fn part(name: &'static str, arity: i32) -> Spec {
    Spec::new(name, arity, Group::Server, "8.0.0")
        .flags(Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE))
        .tips(&["nondeterministic_output", "request_policy:all_nodes"])
        .arguments(&[COUNT])
}

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    Spec::new("weft", -2, Group::Server, "8.0.0")
        .summary("A container for commands that Redis does not have.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            Spec::new("backup", -3, Group::Server, "8.0.0")
                .summary("Writes a consistent RDB file to a path, in the background.")
                .complexity("O(1), and O(N) in the background for N keys in all databases.")
                .flags(
                    Flags::ADMIN
                        .with(Flags::NOSCRIPT)
                        .with(Flags::NO_MULTI)
                        .with(Flags::MAIN)
                        .with(Flags::BLOCKING),
                )
                .arguments(&[
                    Argument::new("path", Shape::String),
                    Argument::word("replace", "REPLACE").optional(),
                    Argument::word("wait", "WAIT").optional(),
                ]),
            backup,
        ),
        Row::new(
            part("bigkeys", -2)
                .summary("Returns the largest keys of each type.")
                .complexity("O(N) with N known large keys, at most 8 for each type and shard.")
                .scope(ShardScope::EachShard),
            big_keys,
        ),
        Row::new(help_spec(Group::Server, "8.0.0"), help),
        Row::new(
            part("hotkeys", -2)
                .summary("Returns the most used keys, estimated from a sample.")
                .complexity("O(N) with N threads."),
            hot_keys,
        ),
    ],
)];

/// Parses the number of keys to return.
fn count(args: &mut Args<'_>) -> Result<usize, Error> {
    args.seek(2);
    if args.remaining() == 0 {
        return Ok(COUNT_DEFAULT);
    }
    if args.remaining() != 2 || !args.take_word("count") {
        return Err(Error::Syntax);
    }
    let count = args.next().and_then(parse_i64).ok_or(Error::NotInteger)?;
    let count = Some(count).filter(|count| (1..=COUNT_MAX).contains(count));
    count.and_then(|count| usize::try_from(count).ok()).ok_or(Error::NotBetween(1, COUNT_MAX))
}

/// A map for each key: `db`, `key`, `requests-per-second`.
fn hot_keys(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let count = count(args)?;
    let threads: Vec<_> = cx.worker.node.threads.read().clone();
    let tables: Vec<HotKeys> = threads.iter().map(|stats| stats.hot_keys.lock().clone()).collect();
    let keys = hottest(&tables, count, cx.worker.turn.steady_ms);
    reply.array(keys.len());
    for hot in keys {
        reply.map(3);
        reply.bulk(b"db");
        reply.int(i64::from(hot.key.db));
        reply.bulk(b"key");
        reply.bulk(&hot.key.key);
        reply.bulk(b"requests-per-second");
        reply.unsigned(hot.requests_per_second);
    }
    Ok(())
}

/// The part of a key that is returned.
fn kept(key: &[u8]) -> Vec<u8> {
    key[..key.len().min(KEY_BYTES_MAX)].to_vec()
}

/// One large key.
struct BigKey {
    type_name: &'static str,
    db: usize,
    key: Vec<u8>,
    size: usize,
}

/// A map for each key: `db`, `key`, `type`, `size` (bytes of a string, elements of other types),
/// sorted by type, the largest first.
fn big_keys(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let count = count(args)?;
    let mut keys: Vec<BigKey> = Vec::new();
    let turn = &cx.worker.turn;
    for number in 0..cx.worker.node.map.len() {
        cx.shards.try_visit(number, Duration::ZERO, &mut |shard| {
            for db in shard.dbs() {
                let number = db.number();
                let large = db.large_keys(turn).into_iter();
                keys.extend(large.filter(|(stored, _)| !stored.is_expired(turn)).map(
                    |(stored, size)| BigKey {
                        type_name: stored.kind().type_name(),
                        db: number,
                        key: kept(stored.key()),
                        size,
                    },
                ));
            }
        });
        // Drops keys that will not be returned, to bound the memory.
        if keys.len() > (count + LARGE_KEYS_MAX) * 64 {
            keep_largest(&mut keys, count);
        }
    }
    keep_largest(&mut keys, count);
    reply.array(keys.len());
    for big in keys {
        reply.map(4);
        reply.bulk(b"db");
        reply.len(big.db);
        reply.bulk(b"key");
        reply.bulk(&big.key);
        reply.bulk(b"type");
        reply.bulk(big.type_name.as_bytes());
        reply.bulk(b"size");
        reply.len(big.size);
    }
    Ok(())
}

/// Keeps the `count` largest keys of each type, sorted by type.
fn keep_largest(keys: &mut Vec<BigKey>, count: usize) {
    keys.sort_by(|a, b| {
        (a.type_name, b.size, a.db, &a.key).cmp(&(b.type_name, a.size, b.db, &b.key))
    });
    let (mut type_name, mut kept) = ("", 0);
    keys.retain(|key| {
        kept = if key.type_name == type_name { kept + 1 } else { 1 };
        type_name = key.type_name;
        kept <= count
    });
}

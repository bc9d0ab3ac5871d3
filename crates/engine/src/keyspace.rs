//! Whole databases: DBSIZE, FLUSHALL, FLUSHDB, SWAPDB.
//!
//! Commands that empty or swap databases run exclusively, so that every client sees them at one
//! moment. They only unlink the tables, which are freed afterwards: large ones in the background,
//! both with ASYNC and with SYNC.

use resp::{Args, Reply};
use store::Db;

use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Category, Flags, Group, Row, Shape, ShardScope, Spec};

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Server, since).category(Category::KEYSPACE)
}

const FLUSH_TYPE: &[Argument] = &[Argument::new(
    "flush-type",
    Shape::OneOf(&[
        Argument::word("async", "ASYNC").since("4.0.0"),
        Argument::word("sync", "SYNC").since("6.2.0"),
    ]),
)
.optional()];

const fn flush(name: &'static str, summary: &'static str) -> Spec {
    spec(name, -1, "1.0.0")
        .summary(summary)
        .complexity("O(1), and O(N) in the background for the N keys removed.")
        .flags(Flags::WRITE)
        .category(Category::DANGEROUS)
        .scope(ShardScope::Exclusive)
        .arguments(FLUSH_TYPE)
        .history(&[
            ("4.0.0", "`ASYNC` frees memory in the background."),
            ("6.2.0", "Added `SYNC`."),
        ])
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
}

/// A save after it makes the main thread wait.
const FLUSHALL: Spec =
    flush("flushall", "Removes all keys from all databases.").flags(FLUSHALL_FLAGS);
const FLUSHALL_FLAGS: Flags = Flags::WRITE.with(Flags::MAIN).with(Flags::SAVES);

/// The commands on databases.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        spec("dbsize", 1, "1.0.0")
            .summary("Returns the number of keys in the database.")
            .flags(Flags::READONLY.with(Flags::FAST))
            .category(Category::READ)
            .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
        dbsize,
    ),
    Row::new(FLUSHALL, |cx, args, reply| {
        check_flush_type(args)?;
        empty(cx, None)?;
        reply.ok();
        Ok(())
    }),
    Row::new(flush("flushdb", "Removes all keys from the database."), |cx, args, reply| {
        check_flush_type(args)?;
        empty(cx, Some(cx.db))?;
        reply.ok();
        Ok(())
    }),
    Row::new(
        spec("swapdb", 3, "4.0.0")
            .summary("Swaps two databases.")
            .complexity(
                "O(N) for the N clients that watch keys of either database or are blocked on them.",
            )
            .flags(Flags::WRITE.with(Flags::FAST))
            .category(Category::DANGEROUS)
            .scope(ShardScope::Exclusive)
            .arguments(&[
                Argument::new("index1", Shape::Integer),
                Argument::new("index2", Shape::Integer),
            ]),
        swapdb,
    ),
];

fn dbsize(cx: &mut Cx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.len(cx.turn.keys.total(cx.db));
    Ok(())
}

fn check_flush_type(args: &mut Args<'_>) -> Result<(), Error> {
    let known = args.take_word("async") || args.take_word("sync");
    if args.len() == 1 || known && args.remaining() == 0 { Ok(()) } else { Err(Error::Syntax) }
}

/// Empties one database or all. Records an effect even if they were empty, because those of a
/// replica may not be. As in Redis, that is no change.
fn empty(cx: &mut Cx<'_>, only: Option<usize>) -> Result<(), Error> {
    let mut removed = 0;
    cx.each_shard(&mut |shard, turn| {
        let mut clear = |db: &mut Db| {
            if !db.is_empty() {
                removed += db.len() as u64;
                turn.lazy_free.push(db.clear(turn));
            }
        };
        match only {
            Some(number) => clear(shard.db(number)),
            None => {
                shard.dbs().for_each(clear);
                shard.drop_empty();
            }
        }
    })?;
    cx.turn.keys.begin_generation(only);
    cx.turn.counters.changes += removed;
    cx.turn.effects.note_eventless();
    // Tracking ignores databases and, as in Redis, the old contents.
    cx.turn.effects.touch_all();
    Ok(())
}

fn swapdb(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let index = |at, error| match cx.database(args.text(at)) {
        Err(Error::NotInteger | Error::NotBetween(..)) => Err(error),
        other => Ok(other),
    };
    let first = index(1, Error::InvalidFirstDatabase)?;
    let second = index(2, Error::InvalidSecondDatabase)?;
    let (first, second) = (first?, second?);
    cx.each_shard(&mut |shard, turn| shard.swap(turn, first, second))?;
    cx.turn.keys.swap(first, second);
    cx.turn.keys.begin_generation(Some(first));
    cx.turn.keys.begin_generation(Some(second));
    cx.turn.counters.changes += 1;
    cx.turn.effects.note_eventless();
    // As in Redis, clients are not notified and keep values of the other database.
    if first != second {
        cx.turn.effects.touch_all();
    }
    reply.ok();
    Ok(())
}

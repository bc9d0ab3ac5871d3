//! MULTI, EXEC, DISCARD, WATCH and UNWATCH
//! (<https://redis.io/docs/latest/commands/?group=transactions>).

use ::command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};
use engine::{Error, ScriptError, TransactionError};
use resp::{Args, Reply};

use super::any_handler::AnyHandler;
use crate::execution::node_cx::NodeCx;

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Transactions, since)
        .flags(Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE))
}

const QUICK: Flags = Flags::FAST.with(Flags::ALLOW_BUSY);

/// The commands on transactions.
pub const ROWS: &[Row<AnyHandler>] = &[
    Row::new(
        spec("discard", 1, "2.0.0")
            .summary("Discards the queued commands and ends the transaction.")
            .complexity("O(N) in the queued commands")
            .flags(QUICK.with(Flags::NOT_QUEUED)),
        AnyHandler::Node(discard),
    ),
    Row::new(
        spec("exec", 1, "1.2.0")
            .summary("Executes the queued commands as a transaction.")
            .complexity("That of the queued commands")
            .flags(Flags::SKIP_SLOWLOG.with(Flags::NOT_QUEUED)),
        AnyHandler::Exec,
    ),
    Row::new(
        spec("multi", 1, "1.2.0")
            .summary("Starts a transaction, which queues the following commands.")
            .flags(QUICK.with(Flags::NOT_QUEUED)),
        AnyHandler::Node(multi),
    ),
    Row::new(
        spec("unwatch", 1, "2.2.0")
            .summary("Stops watching all keys.")
            .flags(QUICK.with(Flags::SESSION)),
        AnyHandler::Node(unwatch),
    ),
    Row::new(
        spec("watch", -2, "2.2.0")
            .summary("Watches keys: the next EXEC executes nothing if one of them has changed.")
            .complexity("O(1) for each key")
            .flags(QUICK.with(Flags::NOT_QUEUED))
            .keys(&[KeySpec::to_end(1, 1, Access::RO)])
            .arguments(&[Argument::new("key", Shape::Key).multiple()]),
        AnyHandler::Node(watch),
    ),
];

fn multi(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if cx.session.transaction.is_some() {
        return Err(TransactionError::Nested.into());
    }
    let transaction = cx.worker.next_transaction.take().unwrap_or_default();
    cx.session.record.set_transaction(Some(&transaction));
    cx.session.transaction = Some(transaction);
    reply.ok();
    Ok(())
}

fn discard(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if cx.session.transaction.is_none() {
        return Err(TransactionError::DiscardWithoutMulti.into());
    }
    cx.worker.discard(cx.session, &mut cx.shards);
    reply.ok();
    Ok(())
}

/// A key that is already watched keeps its state, including a change since then.
fn watch(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if cx.session.transaction.is_some() {
        return Err(TransactionError::WatchInMulti.into());
    }
    let next_watched = &mut cx.worker.next_watched;
    let watched = cx.session.watched.get_or_insert_with(|| next_watched.take().unwrap_or_default());
    let (turn, db, map) = (&cx.worker.turn, cx.session.db, cx.worker.node.map);
    for name in args {
        let key = turn.key(name);
        if watched.contains(db, key) {
            continue;
        }
        let mut name = None;
        let seen = cx.shards.visit(map.shard_of(key.hash), &mut |shard| {
            name = Some(shard.db(db).watch(turn, key, watched.watch()));
        });
        match seen {
            // The command is retried. Keys before this one are watched, which does no harm.
            Err(ScriptError::ShardInUse) => return Err(ScriptError::ShardInUse.into()),
            // A busy script may be changing the key. WATCH succeeds and EXEC will fail: an error
            // here would not stop a client that has already sent the whole transaction.
            Err(_) => watched.watch().touch(),
            Ok(()) => {}
        }
        watched.add(db, key, name);
    }
    cx.session.record.set_watch(Some(watched));
    reply.ok();
    Ok(())
}

/// In a transaction it has no effect, because EXEC has already ended the watch.
fn unwatch(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.worker.unwatch(cx.session, &mut cx.shards);
    reply.ok();
    Ok(())
}

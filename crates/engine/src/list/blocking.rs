//! Commands that wait until a list has elements: BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP.
//!
//! When one of its lists exists, each does the same as the command without the `B`, and is replayed
//! as that command.

use resp::{Args, Reply};
use store::{Key, ListValue, Side};

use super::pop::pop_from;
use super::transfer::{DESTINATION, ListEnd, MOVE_KEYS, SOURCE, sides, transfer};
use super::{SIDES, TAKEN, WRITE, popped, reply_entry, side, spec};
use crate::args::count::{COUNT, NUMKEYS};
use crate::args::timeout::{FRACTIONS, TIMEOUT, timeout};
use crate::blocking::{BlockRequest, BlockedOn, Serve, ServeOutcome};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::BlockingHandler;
use crate::multi_pop::MultiPop;
use command::{Argument, Flags, KeySpec, Row, Spec};

pub(super) const BLPOP: Row<BlockingHandler> = Row::new(
    pop("blpop")
        .summary("Removes and returns the first element of a list, or blocks until there is one."),
    |cx, args, reply| pop_or_wait(cx, args, reply, Side::Left),
);

pub(super) const BRPOP: Row<BlockingHandler> = Row::new(
    pop("brpop")
        .summary("Removes and returns the last element of a list, or blocks until there is one."),
    |cx, args, reply| pop_or_wait(cx, args, reply, Side::Right),
);

const fn pop(name: &'static str) -> Spec {
    const KEYS: &[KeySpec] = &[KeySpec::range(1, -2, 1, TAKEN)];
    const ARGUMENTS: &[Argument] = &[Argument::key().multiple(), TIMEOUT];
    spec(name, -3, "2.0.0")
        .complexity("O(N) for N keys.")
        .flags(Flags::WRITE.with(Flags::BLOCKING))
        .keys(KEYS)
        .arguments(ARGUMENTS)
        .history(FRACTIONS)
}

pub(super) const BLMOVE: Row<BlockingHandler> = Row::new(
    spec("blmove", 6, "6.2.0")
        .summary("Moves an element from one list to another, or blocks until there is one.")
        .flags(WRITE.with(Flags::BLOCKING))
        .keys(MOVE_KEYS)
        .arguments(&[
            SOURCE,
            DESTINATION,
            Argument::new("wherefrom", SIDES),
            Argument::new("whereto", SIDES),
            TIMEOUT,
        ]),
    |cx, args, reply| {
        sides(args)?;
        let until_ms = timeout(args.text(5), cx.turn.unix_ms)?;
        move_or_wait(cx, args, reply, until_ms, serve_move)
    },
);

pub(super) const BRPOPLPUSH: Row<BlockingHandler> = Row::new(
    spec("brpoplpush", 4, "2.2.0")
        .summary("Moves the last element of a list to the front of another, or blocks for one.")
        .flags(WRITE.with(Flags::BLOCKING))
        .keys(MOVE_KEYS)
        .arguments(&[SOURCE, DESTINATION, TIMEOUT])
        .history(FRACTIONS)
        .deprecated("6.2.0", "`BLMOVE` with `RIGHT` and `LEFT`"),
    |cx, args, reply| {
        let until_ms = timeout(args.text(3), cx.turn.unix_ms)?;
        move_or_wait(cx, args, reply, until_ms, serve_rpoplpush)
    },
);

pub(super) const BLMPOP: Row<BlockingHandler> = Row::new(
    spec("blmpop", -5, "7.0.0")
        .summary("Removes and returns elements from an end of a list, or blocks until it has some.")
        .complexity("O(N+M) for N keys and the M elements removed.")
        .flags(Flags::WRITE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec::counted(2, TAKEN)])
        .arguments(&[
            TIMEOUT,
            NUMKEYS,
            Argument::key().multiple(),
            Argument::new("where", SIDES),
            COUNT,
        ]),
    blmpop,
);

fn pop_or_wait(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    side: Side,
) -> Result<Option<BlockRequest>, Error> {
    let last = args.len() - 1;
    let until_ms = timeout(args.text(last), cx.turn.unix_ms)?;
    for at in 1..last {
        let key = cx.nth_key(args, at - 1, at);
        if pop_one(cx, key, side, reply)? {
            return Ok(None);
        }
    }
    let serve: Serve = match side {
        Side::Left => {
            |cx, key, _, reply| pop_one(cx, key, Side::Left, reply).map(ServeOutcome::from)
        }
        Side::Right => {
            |cx, key, _, reply| pop_one(cx, key, Side::Right, reply).map(ServeOutcome::from)
        }
    };
    Ok(Some(BlockRequest::new(BlockedOn::List, 1..last, until_ms, serve)))
}

/// Pops one element and replies the key and the element. Returns whether the list exists.
fn pop_one(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    side: Side,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut list) = db.edit::<ListValue>(turn, key)? else { return Ok(false) };
    reply.array(2);
    reply.bulk(key.bytes);
    if let Some(entry) = list.list().end(side) {
        reply_entry(reply, entry);
    }
    list.pop(side, 1, limits);
    let emptied = list.list().is_empty();
    drop(list);
    cx.wrote_removal(popped(side), key.bytes, emptied);
    let name: &[u8] = if side == Side::Left { b"LPOP" } else { b"RPOP" };
    cx.turn.effects.replay_as(|replay| replay.args([name, key.bytes]));
    Ok(true)
}

/// Moves an element, or waits for one if the source does not exist.
fn move_or_wait(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    until_ms: Option<i64>,
    serve: Serve,
) -> Result<Option<BlockRequest>, Error> {
    let source = cx.nth_key(args, 0, 1);
    if serve(cx, source, args, reply)? == ServeOutcome::Replied {
        return Ok(None);
    }
    let request = BlockRequest::new(BlockedOn::List, 1..2, until_ms, serve);
    Ok(Some(BlockRequest { target: Some(2), ..request }))
}

fn serve_move(
    cx: &mut Cx<'_>,
    source: Key<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<ServeOutcome, Error> {
    let (from, to) = sides(args)?;
    let source = ListEnd { key: source, side: from };
    let destination = ListEnd { key: cx.nth_key(args, 1, 2), side: to };
    let moved = transfer(cx, source, destination, reply)?;
    if moved {
        let (source, destination) = (source.key.bytes, destination.key.bytes);
        let words = [b"LMOVE", source, destination, args.text(3), args.text(4)];
        cx.turn.effects.replay_as(|replay| replay.args(words));
    }
    Ok(moved.into())
}

fn serve_rpoplpush(
    cx: &mut Cx<'_>,
    source: Key<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<ServeOutcome, Error> {
    let source = ListEnd { key: source, side: Side::Right };
    let destination = ListEnd { key: cx.nth_key(args, 1, 2), side: Side::Left };
    let moved = transfer(cx, source, destination, reply)?;
    if moved {
        let words = [b"RPOPLPUSH", source.key.bytes, destination.key.bytes];
        cx.turn.effects.replay_as(|replay| replay.args(words));
    }
    Ok(moved.into())
}

fn blmpop(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<Option<BlockRequest>, Error> {
    let request = MultiPop::parse(args, 2, side)?;
    let until_ms = timeout(args.text(1), cx.turn.unix_ms)?;
    if request.pop_first(cx, args, |cx, key| pop_from(cx, key, &request, reply))? {
        return Ok(None);
    }
    let serve: Serve = |cx, key, args, reply| {
        let request = MultiPop::parse(&mut args.clone(), 2, side)?;
        pop_from(cx, key, &request, reply).map(ServeOutcome::from)
    };
    Ok(Some(BlockRequest::new(BlockedOn::List, request.keys, until_ms, serve)))
}

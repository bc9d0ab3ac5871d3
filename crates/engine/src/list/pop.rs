//! Popping elements: LPOP and RPOP, and LMPOP, which pops from the first list that exists.

use resp::{Args, Reply};
use store::{Key, ListValue, Side};

use super::{SIDES, TAKEN, popped, reply_entry, side, spec};
use crate::args::count::{COUNT, NUMKEYS, non_negative};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use crate::multi_pop::MultiPop;
use command::{Argument, Flags, KeySpec, Row, Shape, Spec};

pub(super) const LPOP: Row<Handler> = Row::new(
    pop("lpop").summary("Removes and returns the first elements of a list."),
    |cx, args, reply| pop_at(cx, args, reply, Side::Left, "lpop"),
);

pub(super) const RPOP: Row<Handler> = Row::new(
    pop("rpop").at_back().summary("Removes and returns the last elements of a list."),
    |cx, args, reply| pop_at(cx, args, reply, Side::Right, "rpop"),
);

const fn pop(name: &'static str) -> Spec {
    const ARGUMENTS: &[Argument] =
        &[Argument::key(), Argument::new("count", Shape::Integer).optional().since("6.2.0")];
    const KEY: &[KeySpec] = &[KeySpec::one(1, TAKEN)];
    spec(name, -2, "1.0.0")
        .complexity("O(N) for the N elements removed.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(KEY)
        .arguments(ARGUMENTS)
        .history(&[("6.2.0", "The argument `count`.")])
}

pub(super) const LMPOP: Row<Handler> = Row::new(
    spec("lmpop", -4, "7.0.0")
        .summary("Removes and returns elements from an end of the first list that exists.")
        .complexity("O(N+M) for N keys and the M elements removed.")
        .flags(Flags::WRITE.with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec::counted(1, TAKEN)])
        .arguments(&[NUMKEYS, Argument::key().multiple(), Argument::new("where", SIDES), COUNT]),
    lmpop,
);

fn pop_at(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    side: Side,
    name: &'static str,
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let count = match args.len() {
        2 => None,
        3 => Some(non_negative(args.text(2)).ok_or(Error::NotPositive)?),
        _ => return Err(Error::Arity(name.to_owned())),
    };
    if let Some(count) = count {
        if take(cx, key, side, count, reply, |_| {})?.is_none() {
            reply.null_array();
        }
        return Ok(());
    }
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut list) = db.edit::<ListValue>(turn, key)? else {
        reply.null();
        return Ok(());
    };
    if let Some(entry) = list.list().end(side) {
        reply_entry(reply, entry);
    }
    list.pop(side, 1, limits);
    let emptied = list.list().is_empty();
    drop(list);
    cx.wrote_removal(popped(side), key.bytes, emptied);
    Ok(())
}

/// Pops up to `count` elements from an end of a list, outermost first, and replies them as an array
/// after the output of `head`. Returns how many, or `None` for a missing key.
fn take(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    side: Side,
    count: usize,
    reply: &mut Reply<'_>,
    head: impl FnOnce(&mut Reply<'_>),
) -> Result<Option<usize>, Error> {
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.edit::<ListValue>(turn, key)? else { return Ok(None) };
    let list = edit.list();
    let len = list.len();
    let count = count.min(len);
    head(reply);
    reply.array(count);
    match side {
        Side::Left => list.iter_from(0).take(count).for_each(|entry| reply_entry(reply, entry)),
        Side::Right => list.rev_before(len).take(count).for_each(|entry| reply_entry(reply, entry)),
    }
    if count > 0 {
        edit.pop(side, count, limits);
        drop(edit);
        cx.count_elements(1, count);
        cx.wrote_removal(popped(side), key.bytes, count == len);
    }
    Ok(Some(count))
}

fn lmpop(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let request = MultiPop::parse(args, 1, side)?;
    if !request.pop_first(cx, args, |cx, key| pop_from(cx, key, &request, reply))? {
        reply.null_array();
    }
    Ok(())
}

/// Pops from a key if it exists, and replies the key and the elements. Returns whether it exists.
pub(super) fn pop_from(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    request: &MultiPop<Side>,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let taken = take(cx, key, request.end, request.count, reply, |reply| {
        reply.array(2);
        reply.bulk(key.bytes);
    })?;
    let Some(taken) = taken else { return Ok(false) };
    cx.turn.effects.replay_as(|replay| {
        replay.arg(if request.end == Side::Left { "LPOP" } else { "RPOP" });
        replay.arg(key.bytes);
        replay.int(taken as i64);
    });
    Ok(true)
}

//! Changing elements in place: LSET, LINSERT, LREM, LTRIM.

use resp::{Args, Reply};
use store::{KeyspaceEvent, ListValue, Side};

use super::{ELEMENT, WRITE, check_length, spec};
use crate::args::number::{integer, negatable_integer};
use crate::args::range::{index, index_range};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::list::ListError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const LSET: Row<Handler> = Row::new(
    spec("lset", 4, "1.0.0")
        .summary("Sets the value of an element in a list by its index.")
        .complexity("O(N) for the N elements or chunks between the nearer end and the index.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::UPDATE))])
        .arguments(&[Argument::key(), Argument::new("index", Shape::Integer), ELEMENT]),
    lset,
);

pub(super) const LINSERT: Row<Handler> = Row::new(
    spec("linsert", 5, "2.2.0")
        .summary("Inserts an element before or after another element in a list.")
        .complexity("O(N) for the N elements between the left end and the other element.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::INSERT))])
        .arguments(&[
            Argument::key(),
            Argument::new(
                "where",
                Shape::OneOf(&[
                    Argument::word("before", "BEFORE"),
                    Argument::word("after", "AFTER"),
                ]),
            ),
            Argument::new("pivot", Shape::String),
            ELEMENT,
        ]),
    linsert,
);

pub(super) const LREM: Row<Handler> = Row::new(
    spec("lrem", 4, "1.0.0")
        .summary("Removes elements from a list by their value.")
        .complexity("O(N+M) for the N elements examined and the M removed.")
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::DELETE))])
        .arguments(&[Argument::key(), Argument::new("count", Shape::Integer), ELEMENT]),
    lrem,
);

pub(super) const LTRIM: Row<Handler> = Row::new(
    spec("ltrim", 4, "1.0.0")
        .summary("Removes the elements outside a range of indexes from a list.")
        .complexity("O(N) for the N elements removed.")
        .flags(Flags::WRITE)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::DELETE))])
        .arguments(&[
            Argument::key(),
            Argument::new("start", Shape::Integer),
            Argument::new("stop", Shape::Integer),
        ]),
    ltrim,
);

fn lset(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    check_length(std::iter::once(args.text(3).len()))?;
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let mut list = db.edit::<ListValue>(turn, key)?.ok_or(Error::NoSuchKey)?;
    let index = index(integer(args.text(2))?, list.list().len()).unwrap_or(usize::MAX);
    if !list.replace(index, args.text(3), limits) {
        return Err(ListError::IndexOutOfRange.into());
    }
    drop(list);
    cx.wrote(KeyspaceEvent::new('l', "lset"), key.bytes);
    reply.ok();
    Ok(())
}

fn linsert(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let after = args.text(2).eq_ignore_ascii_case(b"AFTER");
    if !after && !args.text(2).eq_ignore_ascii_case(b"BEFORE") {
        return Err(Error::Syntax);
    }
    check_length(std::iter::once(args.text(4).len()))?;
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut list) = db.edit::<ListValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    if !list.insert(args.text(3), after, args.text(4), limits) {
        reply.int(-1);
        return Ok(());
    }
    let len = list.list().len();
    drop(list);
    cx.wrote(KeyspaceEvent::new('l', "linsert"), key.bytes);
    reply.len(len);
    Ok(())
}

fn lrem(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let count = negatable_integer(args.text(2))?;
    let from = if count < 0 { Side::Right } else { Side::Left };
    let max = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut list) = db.edit::<ListValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let removed = list.remove_equal(args.text(3), max, from, limits);
    let emptied = list.list().is_empty();
    drop(list);
    if removed > 0 {
        cx.count_elements(1, removed);
        cx.wrote_removal(KeyspaceEvent::new('l', "lrem"), key.bytes, emptied);
    }
    reply.len(removed);
    Ok(())
}

fn ltrim(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (start, stop) = (integer(args.text(2))?, integer(args.text(3))?);
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    reply.ok();
    let Some(mut list) = db.edit::<ListValue>(turn, key)? else { return Ok(()) };
    let len = list.list().len();
    let kept = index_range(start, stop, len);
    list.remove(kept.end..len, limits);
    list.remove(0..kept.start, limits);
    let event = KeyspaceEvent::new('l', "ltrim");
    if kept.len() == len {
        // As in Redis, this fails transactions that watch the list.
        list.touch_watchers();
        drop(list);
        cx.turn.effects.note_unchanged(event, key.bytes);
        return Ok(());
    }
    drop(list);
    cx.count_elements(1, len - kept.len());
    cx.wrote_removal(event, key.bytes, kept.is_empty());
    Ok(())
}

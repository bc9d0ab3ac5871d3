//! Moving an element from one list to another, or to the other end of the same list: LMOVE and its
//! older special case RPOPLPUSH.

use resp::{Args, Reply};
use store::{Key, ListValue, Side};

use super::{SIDES, TAKEN, WRITE, popped, pushed, side, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape};

/// The keys of a command that moves an element.
pub(super) const MOVE_KEYS: &[KeySpec] =
    &[KeySpec::one(1, TAKEN), KeySpec::one(2, Access::RW.with(Access::INSERT))];
pub(super) const SOURCE: Argument = Argument::new("source", Shape::Key);
pub(super) const DESTINATION: Argument = Argument::new("destination", Shape::Key);

pub(super) const LMOVE: Row<Handler> = Row::new(
    spec("lmove", 5, "6.2.0")
        .summary("Moves an element from one list to another and returns it.")
        .flags(WRITE)
        .keys(MOVE_KEYS)
        .arguments(&[
            SOURCE,
            DESTINATION,
            Argument::new("wherefrom", SIDES),
            Argument::new("whereto", SIDES),
        ]),
    |cx, args, reply| {
        let (from, to) = sides(args)?;
        move_or_null(cx, args, reply, from, to)
    },
);

pub(super) const RPOPLPUSH: Row<Handler> = Row::new(
    spec("rpoplpush", 3, "1.2.0")
        .summary("Moves the last element of a list to the front of another and returns it.")
        .flags(WRITE)
        .keys(MOVE_KEYS)
        .arguments(&[SOURCE, DESTINATION])
        .deprecated("6.2.0", "`LMOVE` with `RIGHT` and `LEFT`"),
    |cx, args, reply| move_or_null(cx, args, reply, Side::Right, Side::Left),
);

/// The ends that LMOVE and BLMOVE move from and to.
pub(super) fn sides(args: &Args<'_>) -> Result<(Side, Side), Error> {
    let side = |at| side(args.text(at)).ok_or(Error::Syntax);
    Ok((side(3)?, side(4)?))
}

fn move_or_null(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    from: Side,
    to: Side,
) -> Result<(), Error> {
    let source = ListEnd { key: cx.nth_key(args, 0, 1), side: from };
    let destination = ListEnd { key: cx.nth_key(args, 1, 2), side: to };
    if !transfer(cx, source, destination, reply)? {
        reply.null();
    }
    Ok(())
}

/// An end of a list.
#[derive(Clone, Copy)]
pub(super) struct ListEnd<'a> {
    pub(super) key: Key<'a>,
    pub(super) side: Side,
}

/// Moves one element and replies it. Returns whether the source exists.
pub(super) fn transfer(
    cx: &mut Cx<'_>,
    source: ListEnd<'_>,
    destination: ListEnd<'_>,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let ListEnd { key: source, side: from } = source;
    let ListEnd { key: destination, side: to } = destination;
    let limits = cx.limits;
    let is_rotation = source.bytes == destination.bytes;
    // A destination of another type is an error before anything is taken, if the source exists.
    let refused = if is_rotation {
        Ok(())
    } else {
        let (db, turn) = cx.db(destination);
        db.edit::<ListValue>(turn, destination).map(drop)
    };
    let mut element = std::mem::take(&mut cx.turn.scratch);
    element.clear();
    let (db, turn) = cx.db(source);
    let Some(mut list) = db.edit::<ListValue>(turn, source)? else {
        cx.turn.scratch = element;
        return Ok(false);
    };
    refused?;
    let mut bytes = 0;
    if let Some(entry) = list.list().end(from) {
        bytes = list.list().moved_bytes(entry);
        element.extend_from_slice(entry.text(&mut Default::default()));
    }
    if is_rotation {
        // In one edit, so that a list of one element keeps its key and expiry.
        list.rotate(from, to, &element, limits);
    } else {
        list.pop(from, 1, limits);
    }
    let emptied = list.list().is_empty();
    drop(list);
    if !is_rotation {
        let (db, turn) = cx.db(destination);
        let mut list = db.edit_or_create::<ListValue>(turn, destination)?;
        list.push_moved(to, &element, bytes, limits);
        drop(list);
        cx.count_elements(2, 1);
    }
    reply.bulk(&element);
    cx.turn.scratch = element;
    cx.wrote(pushed(to), destination.bytes);
    cx.wrote_removal(popped(from), source.bytes, emptied);
    Ok(true)
}

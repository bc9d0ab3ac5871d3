//! XLEN, XRANGE and XREVRANGE: the contents of a stream.

use resp::{Args, Reply};
use store::StreamValue;

use crate::args::count::COUNT;
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape, Spec};

use super::entry::reply_entries;
use super::id::{parse_from, parse_to};
use super::{READ_KEY, spec};

const START: Argument = Argument::new("start", Shape::String);
const END: Argument = Argument::new("end", Shape::String);

pub(super) const XLEN: Row<Handler> = Row::new(
    spec("xlen", 2, "5.0.0")
        .summary("Returns the number of entries in a stream.")
        .flags(Flags::READONLY.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RO)])
        .arguments(&[Argument::key()]),
    xlen,
);

const fn range(name: &'static str) -> Spec {
    spec(name, -4, "5.0.0")
        .complexity("O(log M + N) for a stream of M entries of which N are returned.")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .history(&[("6.2.0", "An end after a bracket is excluded.")])
}

pub(super) const XRANGE: Row<Handler> =
    Row::new(
        range("xrange")
            .summary("Returns the entries of a stream within a range of IDs.")
            .arguments(&[Argument::key(), START, END, COUNT]),
        |cx, args, reply| reply_range(cx, args, reply, false),
    );

pub(super) const XREVRANGE: Row<Handler> = Row::new(
    range("xrevrange")
        .summary("Returns the entries of a stream within a range of IDs, in reverse order.")
        .arguments(&[Argument::key(), END, START, COUNT]),
    |cx, args, reply| reply_range(cx, args, reply, true),
);

fn xlen(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.int(db.read::<StreamValue>(turn, key)?.map_or(0, |stream| stream.log.len() as i64));
    Ok(())
}

fn reply_range(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    back: bool,
) -> Result<(), Error> {
    let (from_at, to_at) = if back { (3, 2) } else { (2, 3) };
    let from = parse_from(args.text(from_at))?;
    let to = parse_to(args.text(to_at))?;
    let mut count = None;
    args.seek(4);
    while args.remaining() > 0 {
        if !args.take_word("COUNT") {
            return Err(Error::Syntax);
        }
        let arg = args.next().ok_or(Error::Syntax)?;
        let given = integer(arg)?;
        count = Some(u64::try_from(given).unwrap_or(0));
    }
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(stream) = db.read::<StreamValue>(turn, key)? else {
        reply.array(0);
        return Ok(());
    };
    match count {
        Some(0) => reply.null_array(),
        _ if back => reply_entries(reply, stream.log.range_back(from, to), count.unwrap_or(0)),
        _ => reply_entries(reply, stream.log.range(from, to), count.unwrap_or(0)),
    }
    Ok(())
}

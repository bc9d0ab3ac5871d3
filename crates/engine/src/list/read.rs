//! Reading elements: LLEN, LINDEX, LRANGE, LPOS.

use resp::{Args, Reply};
use store::{ListRef, ListValue, Side};

use super::{ELEMENT, READ, READ_KEY, reply_entry, spec};
use crate::args::count::non_negative;
use crate::args::number::{integer, negatable_integer};
use crate::args::range::{index, index_range};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::list::ListError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const LLEN: Row<Handler> = Row::new(
    spec("llen", 2, "1.0.0")
        .summary("Returns the length of a list.")
        .flags(READ.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RO)])
        .arguments(&[Argument::key()]),
    llen,
);

pub(super) const LINDEX: Row<Handler> = Row::new(
    spec("lindex", 3, "1.0.0")
        .summary("Returns an element of a list by its index.")
        .complexity("O(N) for the N elements or chunks between the nearer end and the index.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[Argument::key(), Argument::new("index", Shape::Integer)]),
    lindex,
);

pub(super) const LRANGE: Row<Handler> = Row::new(
    spec("lrange", 4, "1.0.0")
        .summary("Returns the elements of a list within a range of indexes.")
        .complexity("O(S+N) for the distance S from the nearer end and the N elements returned.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("start", Shape::Integer),
            Argument::new("stop", Shape::Integer),
        ]),
    lrange,
);

pub(super) const LPOS: Row<Handler> = Row::new(
    spec("lpos", -3, "6.0.6")
        .summary("Returns the indexes of matching elements in a list.")
        .complexity(
            "O(N) for the N elements examined: all, unless a match or MAXLEN ends the search.",
        )
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            ELEMENT,
            Argument::new("rank", Shape::Integer).after("RANK").optional(),
            Argument::new("num-matches", Shape::Integer).after("COUNT").optional(),
            Argument::new("len", Shape::Integer).after("MAXLEN").optional(),
        ]),
    lpos,
);

fn llen(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.len(db.read::<ListValue>(turn, key)?.map_or(0, ListRef::len));
    Ok(())
}

fn lindex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(list) = db.read::<ListValue>(turn, key)? else {
        // A missing key ignores even a wrong index.
        reply.null();
        return Ok(());
    };
    let index = index(integer(args.text(2))?, list.len());
    match index.and_then(|index| list.get(index)) {
        Some(entry) => reply_entry(reply, entry),
        None => reply.null(),
    }
    Ok(())
}

fn lrange(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (start, stop) = (integer(args.text(2))?, integer(args.text(3))?);
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(list) = db.read::<ListValue>(turn, key)? else {
        reply.array(0);
        return Ok(());
    };
    let range = index_range(start, stop, list.len());
    reply.array(range.len());
    if !range.is_empty() {
        let elements = list.iter_from(range.start).take(range.len());
        elements.for_each(|entry| reply_entry(reply, entry));
    }
    Ok(())
}

/// The options of LPOS.
struct PositionSearch {
    /// Which match is the first to reply, counted from the end if `backward`.
    rank: u64,
    backward: bool,
    /// The most matches to reply, or `None` for a single index instead of an array.
    matches: Option<usize>,
    /// The most elements to look at.
    elements: usize,
}

impl PositionSearch {
    fn parse(args: &mut Args<'_>) -> Result<Self, Error> {
        let mut search = Self { rank: 1, backward: false, matches: None, elements: usize::MAX };
        args.seek(3);
        while args.remaining() > 0 {
            if args.remaining() == 1 {
                return Err(Error::Syntax);
            } else if args.take_word("RANK") {
                let rank = negatable_integer(args.next().unwrap_or_default())?;
                if rank == 0 {
                    return Err(ListError::RankZero.into());
                }
                (search.rank, search.backward) = (rank.unsigned_abs(), rank < 0);
            } else if args.take_word("COUNT") {
                let count = args.next().and_then(non_negative).ok_or(Error::Negative("COUNT"))?;
                search.matches = Some(if count == 0 { usize::MAX } else { count });
            } else if args.take_word("MAXLEN") {
                let len = args.next().and_then(non_negative).ok_or(Error::Negative("MAXLEN"))?;
                search.elements = if len == 0 { usize::MAX } else { len };
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(search)
    }

    /// The indexes of the wanted matches.
    fn run<'a>(
        &self,
        list: ListRef<'a>,
        wanted: &'a [u8],
    ) -> impl Iterator<Item = usize> + use<'a> {
        let (from, backward) =
            if self.backward { (Side::Right, true) } else { (Side::Left, false) };
        let len = list.len();
        let at = move |index| if backward { len - 1 - index } else { index };
        let skipped = usize::try_from(self.rank - 1).unwrap_or(usize::MAX);
        let matches = self.matches.unwrap_or(1);
        list.matches(wanted, from, self.elements).skip(skipped).take(matches).map(at)
    }
}

fn lpos(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let search = PositionSearch::parse(args)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let list = db.read::<ListValue>(turn, key)?;
    let mut found = list.into_iter().flat_map(|list| search.run(list, args.text(2)));
    if search.matches.is_none() {
        match found.next() {
            Some(index) => reply.len(index),
            None => reply.null(),
        }
        return Ok(());
    }
    let array = reply.array_deferred();
    let mut matches = 0;
    for index in found {
        reply.len(index);
        matches += 1;
    }
    reply.finish(array, matches);
    Ok(())
}

//! Elements taken from an end: LPOP and RPOP, and LMPOP, which takes from the first list that is
//! there.

use base::number::parse_i64;
use resp::{Args, Reply};
use store::{Key, List, Side};

use super::{ELEMENT_COUNT, SIDES, TAKEN, reply_entry, side, spec, took};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::Row;
use command::{Argument, Flags, KeySpec, Shape, Spec};

pub(super) const LPOP: Row<Handler> = Row::new(
    pop("lpop").summary("Takes elements from the left end of a list and replies them."),
    |cx, args, reply| pop_at(cx, args, reply, Side::Left, "lpop"),
);

pub(super) const RPOP: Row<Handler> = Row::new(
    pop("rpop").at_back().summary("Takes elements from the right end of a list and replies them."),
    |cx, args, reply| pop_at(cx, args, reply, Side::Right, "rpop"),
);

const fn pop(name: &'static str) -> Spec {
    const ARGUMENTS: &[Argument] =
        &[Argument::key(), Argument::new("count", Shape::Integer).optional().since("6.2.0")];
    const KEY: &[KeySpec] = &[KeySpec::one(1, TAKEN)];
    spec(name, -2, "1.0.0")
        .complexity("O(N) for the N elements taken.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(KEY)
        .arguments(ARGUMENTS)
        .history(&[("6.2.0", "The argument `count`.")])
}

pub(super) const LMPOP: Row<Handler> = Row::new(
    spec("lmpop", -4, "7.0.0")
        .summary("Takes elements from the first of several lists that is there.")
        .complexity("O(N+M) for N keys and the M elements taken.")
        .flags(Flags::WRITE.with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec::counted(1, TAKEN)])
        .arguments(&[
            Argument::new("numkeys", Shape::Integer),
            Argument::key().multiple(),
            Argument::new("where", SIDES),
            ELEMENT_COUNT,
        ]),
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
        3 => Some(count_of(args.text(2))?),
        _ => return Err(Error::Arity(name.to_owned())),
    };
    if let Some(count) = count {
        if take(cx, key, (side, count), reply, |_| {})?.is_none() {
            reply.null_array();
        }
        return Ok(());
    }
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut list) = db.edit::<List>(turn, key)? else {
        reply.null();
        return Ok(());
    };
    if let Some(entry) = list.list().end(side) {
        reply_entry(reply, entry);
    }
    list.pop(side, 1, limits);
    let emptied = list.list().is_empty();
    drop(list);
    took(cx, key.bytes, side, emptied);
    Ok(())
}

/// How many elements to take: a negative number is out of range, whatever is no number too.
fn count_of(arg: &[u8]) -> Result<usize, Error> {
    let count = parse_i64(arg).ok_or(Error::NotPositive)?;
    usize::try_from(count).map_err(|_| Error::NotPositive)
}

/// Takes up to so many elements from an end of a list, outermost first, and replies them as an
/// array behind what `head` replies. Returns how many they were, or nothing when there is no list.
fn take(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    (side, count): (Side, usize),
    reply: &mut Reply<'_>,
    head: impl FnOnce(&mut Reply<'_>),
) -> Result<Option<usize>, Error> {
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.edit::<List>(turn, key)? else { return Ok(None) };
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
        took(cx, key.bytes, side, count == len);
    }
    Ok(Some(count))
}

/// What LMPOP and BLMPOP are asked for behind their keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Keys.
    pub(super) keys: usize,
    /// The end to take from.
    pub(super) side: Side,
    /// The most elements to take.
    pub(super) count: usize,
}

impl Wanted {
    /// Reads the arguments from the number of keys, which is at index `at`.
    pub(super) fn parse(args: &mut Args<'_>, at: usize) -> Result<Self, Error> {
        let positive = |arg: &[u8], what| {
            let number = parse_i64(arg).filter(|number| *number > 0);
            let number = number.and_then(|number| usize::try_from(number).ok());
            number.ok_or(Error::NotAboveZero(what))
        };
        let keys = positive(args.text(at), "numkeys")?;
        let word = at.saturating_add(keys).saturating_add(1);
        let side = side(args.at(word).ok_or(Error::Syntax)?)?;
        args.seek(word + 1);
        let mut count = None;
        while args.remaining() > 0 {
            if count.is_some() || !args.take_word("COUNT") || args.remaining() == 0 {
                return Err(Error::Syntax);
            }
            count = Some(positive(args.next().unwrap_or_default(), "count")?);
        }
        Ok(Self { keys, side, count: count.unwrap_or(1) })
    }
}

fn lmpop(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let wanted = Wanted::parse(args, 1)?;
    for nth in 0..wanted.keys {
        let key = cx.nth_key(args, nth, nth + 2);
        if take_from(cx, key, wanted, reply)? {
            return Ok(());
        }
    }
    reply.null_array();
    Ok(())
}

/// Takes what is wanted if the list is there, and replies the key and the elements. Returns whether
/// it did.
pub(super) fn take_from(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    wanted: Wanted,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let taken = take(cx, key, (wanted.side, wanted.count), reply, |reply| {
        reply.array(2);
        reply.bulk(key.bytes);
    })?;
    let Some(taken) = taken else { return Ok(false) };
    cx.turn.effects.replay_as(|| {
        let name = if wanted.side == Side::Left { b"LPOP" } else { b"RPOP" };
        vec![name.to_vec(), key.bytes.to_vec(), taken.to_string().into_bytes()]
    });
    Ok(true)
}

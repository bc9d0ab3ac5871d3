//! Popping members from the ends: ZPOPMIN, ZPOPMAX and ZMPOP, and the blocking BZPOPMIN, BZPOPMAX
//! and BZMPOP.
//!
//! All of them are replayed as ZPOPMIN or ZPOPMAX of the key that members were popped from.

use resp::{Args, Reply};
use store::{Key, SortedSetValue};

use super::remove::removed_from;
use super::{TAKE, reply_member, reply_pairs, spec};
use crate::args::count::{COUNT, NUMKEYS, non_negative};
use crate::args::timeout::{FRACTIONS, TIMEOUT, timeout};
use crate::blocking::{BlockRequest, BlockedOn, ServeOutcome};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::{BlockingHandler, Handler};
use crate::multi_pop::MultiPop;
use command::{Argument, Flags, KeySpec, Row, Shape, Spec};

pub(super) const ZPOPMIN: Row<Handler> = Row::new(
    popping("zpopmin")
        .summary("Removes and returns the members with the lowest scores from a sorted set."),
    |cx, args, reply| zpop(cx, args, reply, PopEnd::Min),
);

pub(super) const ZPOPMAX: Row<Handler> = Row::new(
    popping("zpopmax")
        .summary("Removes and returns the members with the highest scores from a sorted set."),
    |cx, args, reply| zpop(cx, args, reply, PopEnd::Max),
);

const fn popping(name: &'static str) -> Spec {
    const KEY: &[KeySpec] = &[KeySpec::one(1, TAKE)];
    const ARGUMENTS: &[Argument] =
        &[Argument::key(), Argument::new("count", Shape::Integer).optional()];
    spec(name, -2, "5.0.0")
        .complexity("O(log(N)+M) for M members removed of N.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(KEY)
        .arguments(ARGUMENTS)
}

pub(super) const ZMPOP: Row<Handler> = Row::new(
    spec("zmpop", -4, "7.0.0")
        .summary("Removes and returns members from an end of the first sorted set that exists.")
        .complexity("O(K+log(N)+M) for K keys and M members removed of N.")
        .flags(Flags::WRITE.with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec::counted(1, TAKE)])
        .arguments(&[NUMKEYS, Argument::key().multiple(), WHERE, COUNT]),
    zmpop,
);

pub(super) const BZMPOP: Row<BlockingHandler> = Row::new(
    spec("bzmpop", -5, "7.0.0")
        .summary(
            "Removes and returns members from an end of a sorted set, or blocks until it has some.",
        )
        .complexity("O(K+log(N)+M) for K keys and M members removed of N.")
        .flags(Flags::WRITE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec::counted(2, TAKE)])
        .arguments(&[TIMEOUT, NUMKEYS, Argument::key().multiple(), WHERE, COUNT]),
    bzmpop,
);

const WHERE: Argument = Argument::new(
    "where",
    Shape::OneOf(&[Argument::word("min", "MIN"), Argument::word("max", "MAX")]),
);

pub(super) const BZPOPMIN: Row<BlockingHandler> = Row::new(
    blocking("bzpopmin").summary(
        "Removes and returns the member with the lowest score, or blocks until there is one.",
    ),
    |cx, args, reply| bzpop(cx, args, reply, PopEnd::Min),
);

pub(super) const BZPOPMAX: Row<BlockingHandler> = Row::new(
    blocking("bzpopmax").summary(
        "Removes and returns the member with the highest score, or blocks until there is one.",
    ),
    |cx, args, reply| bzpop(cx, args, reply, PopEnd::Max),
);

const fn blocking(name: &'static str) -> Spec {
    const KEYS: &[KeySpec] = &[KeySpec::range(1, -2, 1, TAKE)];
    const ARGUMENTS: &[Argument] = &[Argument::key().multiple(), TIMEOUT];
    spec(name, -3, "5.0.0")
        .complexity("O(log(N)) for the N members of the set.")
        .flags(Flags::WRITE.with(Flags::BLOCKING).with(Flags::FAST))
        .keys(KEYS)
        .arguments(ARGUMENTS)
        .history(FRACTIONS)
}

/// An end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PopEnd {
    Min,
    Max,
}

/// The form of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PopForm {
    /// Member and score.
    One,
    /// Like ranges.
    Pairs,
    /// Key, member, score.
    Keyed,
    /// Key, and an array of pairs.
    KeyedPairs,
}

impl PopEnd {
    fn name(self) -> &'static str {
        match self {
            Self::Min => "zpopmin",
            Self::Max => "zpopmax",
        }
    }
}

/// Pops up to `count` members of a key and replies them. Returns how many; if none, nothing was
/// replied.
fn pop(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    end: PopEnd,
    count: usize,
    form: PopForm,
    reply: &mut Reply<'_>,
) -> Result<usize, Error> {
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.edit::<SortedSetValue>(turn, key)? else { return Ok(0) };
    let set = edit.set();
    let taken = count.min(set.len());
    if taken == 0 {
        return Ok(0);
    }
    let ranks = match end {
        PopEnd::Min => 0..taken,
        PopEnd::Max => set.len() - taken..set.len(),
    };
    let mut walk = set.walk(ranks.clone(), end == PopEnd::Max);
    match form {
        PopForm::Pairs => reply_pairs(reply, taken, walk, true),
        PopForm::One | PopForm::Keyed => {
            if form == PopForm::Keyed {
                reply.array(3);
                reply.bulk(key.bytes);
            } else {
                reply.array(2);
            }
            if let Some(pair) = walk.next() {
                reply_member(reply, pair.member);
                reply.double(pair.score());
            }
        }
        PopForm::KeyedPairs => {
            reply.array(2);
            reply.bulk(key.bytes);
            reply.array(taken);
            for pair in walk {
                reply.array(2);
                reply_member(reply, pair.member);
                reply.double(pair.score());
            }
        }
    }
    edit.remove_ranks(ranks);
    let emptied = edit.set().len() == 0;
    drop(edit);
    removed_from(cx, key, end.name(), taken, emptied);
    Ok(taken)
}

fn zpop(cx: &mut Cx<'_>, args: &Args<'_>, reply: &mut Reply<'_>, end: PopEnd) -> Result<(), Error> {
    let (count, form) = match args.at(2) {
        _ if args.len() > 3 => return Err(Error::Syntax),
        None => (1, PopForm::One),
        Some(arg) => (non_negative(arg).ok_or(Error::NotPositive)?, PopForm::Pairs),
    };
    let key = cx.first_key(args, 1);
    if pop(cx, key, end, count, form, reply)? == 0 {
        reply.array(0);
    }
    Ok(())
}

/// The end named by MIN or MAX.
fn end_named(word: &[u8]) -> Option<PopEnd> {
    if word.eq_ignore_ascii_case(b"MIN") {
        Some(PopEnd::Min)
    } else if word.eq_ignore_ascii_case(b"MAX") {
        Some(PopEnd::Max)
    } else {
        None
    }
}

/// Pops from a key if it has members, and replies the key and the members. Returns whether it has.
fn pop_from(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    request: &MultiPop<PopEnd>,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let popped = pop(cx, key, request.end, request.count, PopForm::KeyedPairs, reply)?;
    if popped > 0 {
        cx.turn.effects.replay_as(|replay| {
            replay.arg(request.end.name().to_ascii_uppercase());
            replay.arg(key.bytes);
            replay.int(popped as i64);
        });
    }
    Ok(popped > 0)
}

fn zmpop(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let request = MultiPop::parse(args, 1, end_named)?;
    if !request.pop_first(cx, args, |cx, key| pop_from(cx, key, &request, reply))? {
        reply.null_array();
    }
    Ok(())
}

fn bzmpop(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<Option<BlockRequest>, Error> {
    let request = MultiPop::parse(args, 2, end_named)?;
    let until_ms = timeout(args.text(1), cx.turn.unix_ms)?;
    if request.pop_first(cx, args, |cx, key| pop_from(cx, key, &request, reply))? {
        return Ok(None);
    }
    let serve = |cx: &mut Cx<'_>, key: Key<'_>, args: &Args<'_>, reply: &mut Reply<'_>| {
        let request = MultiPop::parse(&mut args.clone(), 2, end_named)?;
        pop_from(cx, key, &request, reply).map(ServeOutcome::from)
    };
    Ok(Some(BlockRequest::new(BlockedOn::SortedSet, request.keys, until_ms, serve)))
}

/// Pops one member of a key for BZPOPMIN or BZPOPMAX.
fn bpop_one(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    end: PopEnd,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let taken = pop(cx, key, end, 1, PopForm::Keyed, reply)? > 0;
    if taken {
        cx.turn.effects.replay_as(|replay| {
            replay.arg(end.name().to_ascii_uppercase());
            replay.arg(key.bytes);
        });
    }
    Ok(taken)
}

fn bzpop(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    end: PopEnd,
) -> Result<Option<BlockRequest>, Error> {
    let last = args.len() - 1;
    let until_ms = timeout(args.text(last), cx.turn.unix_ms)?;
    for at in 1..last {
        let key = cx.nth_key(args, at - 1, at);
        if bpop_one(cx, key, end, reply)? {
            return Ok(None);
        }
    }
    let serve = match end {
        PopEnd::Min => |cx: &mut Cx<'_>, key: Key<'_>, _: &Args<'_>, reply: &mut Reply<'_>| {
            bpop_one(cx, key, PopEnd::Min, reply).map(ServeOutcome::from)
        },
        PopEnd::Max => |cx: &mut Cx<'_>, key: Key<'_>, _: &Args<'_>, reply: &mut Reply<'_>| {
            bpop_one(cx, key, PopEnd::Max, reply).map(ServeOutcome::from)
        },
    };
    Ok(Some(BlockRequest::new(BlockedOn::SortedSet, 1..last, until_ms, serve)))
}

//! Properties of a set and of single members: ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT,
//! ZLEXCOUNT.

use resp::{Args, Reply};
use store::{SortedSetRef, SortedSetValue};

use super::bounds::{By, SortedSetBounds};
use super::{FAST_READ, MEMBER, READ_KEY, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape, Spec};

pub(super) const ZCARD: Row<Handler> = Row::new(
    spec("zcard", 2, "1.2.0")
        .summary("Returns the number of members in a sorted set.")
        .flags(FAST_READ)
        .keys(&[KeySpec::one(1, Access::RO)])
        .arguments(&[Argument::key()]),
    zcard,
);

pub(super) const ZSCORE: Row<Handler> = Row::new(
    spec("zscore", 3, "1.2.0")
        .member(2)
        .summary("Returns the score of a member of a sorted set.")
        .flags(FAST_READ)
        .keys(READ_KEY)
        .arguments(&[Argument::key(), MEMBER]),
    zscore,
);

pub(super) const ZMSCORE: Row<Handler> = Row::new(
    spec("zmscore", -3, "6.2.0")
        .member(2)
        .summary("Returns the scores of several members of a sorted set.")
        .complexity("O(N) for N members.")
        .flags(FAST_READ)
        .keys(READ_KEY)
        .arguments(&[Argument::key(), MEMBER.multiple()]),
    zmscore,
);

pub(super) const ZRANK: Row<Handler> = Row::new(
    ranked("zrank")
        .summary("Returns the rank of a member of a sorted set, ordered by ascending scores."),
    |cx, args, reply| rank(cx, args, reply, "zrank"),
);

pub(super) const ZREVRANK: Row<Handler> = Row::new(
    ranked("zrevrank")
        .summary("Returns the rank of a member of a sorted set, ordered by descending scores."),
    |cx, args, reply| rank(cx, args, reply, "zrevrank"),
);

const fn ranked(name: &'static str) -> Spec {
    const ARGUMENTS: &[Argument] =
        &[Argument::key(), MEMBER, Argument::word("withscore", "WITHSCORE").optional()];
    spec(name, -3, "2.0.0")
        .member(2)
        .complexity("O(log(N)) for the N members of the set.")
        .flags(FAST_READ)
        .keys(READ_KEY)
        .arguments(ARGUMENTS)
        .history(&[("7.2.0", "The option `WITHSCORE`.")])
}

pub(super) const ZCOUNT: Row<Handler> = Row::new(
    counted("zcount", "2.0.0", ENDS_OF_SCORES)
        .summary("Returns the number of members of a sorted set within a range of scores."),
    |cx, args, reply| count(cx, args, reply, By::Score),
);

pub(super) const ZLEXCOUNT: Row<Handler> = Row::new(
    counted("zlexcount", "2.8.9", ENDS_OF_MEMBERS)
        .summary("Returns the number of members of a sorted set within a lexicographical range."),
    |cx, args, reply| count(cx, args, reply, By::Lex),
);

const ENDS_OF_SCORES: &[Argument] =
    &[Argument::key(), Argument::new("min", Shape::Double), Argument::new("max", Shape::Double)];
const ENDS_OF_MEMBERS: &[Argument] =
    &[Argument::key(), Argument::new("min", Shape::String), Argument::new("max", Shape::String)];

const fn counted(name: &'static str, since: &'static str, arguments: &'static [Argument]) -> Spec {
    spec(name, 4, since)
        .complexity("O(log(N)) for the N members of the set.")
        .flags(FAST_READ)
        .keys(READ_KEY)
        .arguments(arguments)
}

fn zcard(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    reply.len(db.read::<SortedSetValue>(turn, key)?.map_or(0, SortedSetRef::len));
    Ok(())
}

fn zscore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    match set.and_then(|set| set.score(args.text(2))) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

fn zmscore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    args.seek(2);
    reply.array(args.remaining());
    for member in args {
        match set.and_then(|set| set.score(member)) {
            Some(score) => reply.double(score),
            None => reply.null(),
        }
    }
    Ok(())
}

fn rank(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    name: &'static str,
) -> Result<(), Error> {
    let with_score = match args.at(3) {
        _ if args.len() > 4 => return Err(Error::Arity(name.to_owned())),
        Some(word) if !word.eq_ignore_ascii_case(b"withscore") => return Err(Error::Syntax),
        word => word.is_some(),
    };
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(args.text(2))?;
        Some((if name == "zrank" { rank } else { set.len() - 1 - rank }, score))
    });
    match (found, with_score) {
        (Some((rank, _)), false) => reply.len(rank),
        (Some((rank, score)), true) => {
            reply.array(2);
            reply.len(rank);
            reply.double(score);
        }
        (None, false) => reply.null(),
        (None, true) => reply.null_array(),
    }
    Ok(())
}

fn count(cx: &mut Cx<'_>, args: &Args<'_>, reply: &mut Reply<'_>, by: By) -> Result<(), Error> {
    let bounds = SortedSetBounds::parse(by, args.text(2), args.text(3))?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    reply.len(set.map_or(0, |set| bounds.ranks(set, false).len()));
    Ok(())
}

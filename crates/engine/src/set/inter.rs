//! The members that all of several sets have: SINTER, SINTERSTORE, SINTERCARD.
//!
//! The members of the smallest set are looked up in the others, smaller sets first.

use base::hash::KeyHasher;
use resp::{Args, Reply};
use store::{Entry, NewSet, SetRef};

use super::algebra::{
    KEYS, SOURCES, Sources, TARGET_AND_KEYS, TARGET_AND_SOURCES, store, take_room,
};
use super::{READ, READS, reply_member, spec};
use crate::args::count::{NUMKEYS, non_negative, positive};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, KeySpec, Row, Shape, Spec};

pub(super) const SINTER: Row<Handler> = Row::new(
    inter("sinter", -2, "1.0.0")
        .summary("Returns the intersection of several sets.")
        .flags(READ)
        .keys(SOURCES)
        .arguments(KEYS)
        .tips(&["nondeterministic_output_order"]),
    sinter,
);

pub(super) const SINTERSTORE: Row<Handler> = Row::new(
    inter("sinterstore", -3, "1.0.0")
        .summary("Stores the intersection of several sets in a key.")
        .flags(Flags::WRITE.with(Flags::DENYOOM))
        .keys(TARGET_AND_SOURCES)
        .arguments(TARGET_AND_KEYS),
    sinterstore,
);

pub(super) const SINTERCARD: Row<Handler> = Row::new(
    inter("sintercard", -3, "7.0.0")
        .summary("Returns the number of members in the intersection of several sets.")
        .flags(READ.with(Flags::MOVABLE_KEYS))
        .keys(&[KeySpec::counted(1, READS)])
        .arguments(&[
            NUMKEYS,
            Argument::key().multiple(),
            Argument::new("limit", Shape::Integer).after("LIMIT").optional(),
        ]),
    sintercard,
);

const fn inter(name: &'static str, arity: i32, since: &'static str) -> Spec {
    spec(name, arity, since).complexity(
        "O(N*M) for N members of the smallest of M sets, when all its members are shared.",
    )
}

/// Visits the shared members until `visit` returns false.
fn each_shared(
    sets: Vec<Option<SetRef<'_>>>,
    hasher: &KeyHasher,
    visit: &mut dyn FnMut(Entry<'_>) -> bool,
) {
    let Some(mut sets) = sets.into_iter().collect::<Option<Vec<_>>>() else { return };
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in smallest.iter() {
        if others.iter().all(|set| set.contains(member, hasher)) && !visit(member) {
            return;
        }
    }
}

fn sinter(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sources = Sources::read(cx, args, 1..args.len(), 0)?;
    let mut found = 0;
    let header = reply.set_deferred();
    each_shared(sources.sets(cx), &cx.turn.hasher, &mut |member| {
        reply_member(reply, member);
        found += 1;
        true
    });
    reply.finish(header, found);
    Ok(())
}

fn sinterstore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sources = Sources::read(cx, args, 2..args.len(), 1)?;
    let room = take_room(cx);
    let sets = sources.sets(cx);
    let smallest = sets.iter().flatten().min_by_key(|set| set.len());
    let mut result = match smallest {
        Some(SetRef::Ints(_)) => NewSet::Ints(room),
        _ => NewSet::Packed(room),
    };
    let (limits, hasher) = (cx.limits, &cx.turn.hasher);
    each_shared(sets, hasher, &mut |member| {
        result.add_absent(member, limits, hasher);
        true
    });
    result.shrink_to_ints(limits);
    store(cx, args, result, "sinterstore", reply);
    Ok(())
}

fn sintercard(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let keys = positive(args.text(1)).ok_or(Error::NotAboveZero("numkeys"))?;
    if keys > args.len() - 2 {
        return Err(Error::MoreKeysThanArguments);
    }
    let mut limit = 0;
    args.seek(2 + keys);
    while args.remaining() > 0 {
        if args.remaining() < 2 || !args.take_word("limit") {
            return Err(Error::Syntax);
        }
        limit = args.next().and_then(non_negative).ok_or(Error::Negative("LIMIT"))?;
    }
    let sources = Sources::read(cx, args, 2..2 + keys, 0)?;
    let mut found = 0;
    each_shared(sources.sets(cx), &cx.turn.hasher, &mut |_| {
        found += 1;
        found != limit
    });
    reply.len(found);
    Ok(())
}

//! The members that any of several sets has: SUNION, SUNIONSTORE.

use base::hash::KeyHasher;
use resp::{Args, Reply};
use store::{EncodingLimits, Entry, NewSet, SetRef};

use super::algebra::{
    KEYS, SOURCES, Sources, TARGET_AND_KEYS, TARGET_AND_SOURCES, store, take_room,
};
use super::{READ, reply_member, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Flags, Row, Spec};

pub(super) const SUNION: Row<Handler> = Row::new(
    union("sunion", -2)
        .summary("Returns the union of several sets.")
        .flags(READ)
        .keys(SOURCES)
        .arguments(KEYS)
        .tips(&["nondeterministic_output_order"]),
    sunion,
);

pub(super) const SUNIONSTORE: Row<Handler> = Row::new(
    union("sunionstore", -3)
        .summary("Stores the union of several sets in a key.")
        .flags(Flags::WRITE.with(Flags::DENYOOM))
        .keys(TARGET_AND_SOURCES)
        .arguments(TARGET_AND_KEYS),
    sunionstore,
);

const fn union(name: &'static str, arity: i32) -> Spec {
    spec(name, arity, "1.0.0").complexity("O(N) for the N members of all sets.")
}

/// Up to this many sets, looking a member up in the preceding sets costs less than remembering all
/// members.
const COMPARED_SETS_MAX: usize = 4;

/// Visits each member of any set once.
fn each_member(
    sets: Vec<Option<SetRef<'_>>>,
    limits: &EncodingLimits,
    hasher: &KeyHasher,
    visit: &mut dyn FnMut(Entry<'_>),
) {
    let mut sets: Vec<_> = sets.into_iter().flatten().collect();
    // The largest first: it is only looked up in afterwards, not walked through again.
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let Some((largest, _)) = sets.split_first() else { return };
    largest.iter().for_each(&mut *visit);
    if sets.len() <= COMPARED_SETS_MAX {
        for (nth, set) in sets.iter().enumerate().skip(1) {
            let is_new = |member: &Entry<'_>| {
                !sets[..nth].iter().any(|before| before.contains(*member, hasher))
            };
            set.iter().filter(is_new).for_each(&mut *visit);
        }
        return;
    }
    let mut met = NewSet::Ints(Vec::new());
    for member in sets[1..].iter().flat_map(|set| set.iter()) {
        if !largest.contains(member, hasher) && met.add(member, limits, hasher) {
            visit(member);
        }
    }
}

fn sunion(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sources = Sources::read(cx, args, 1..args.len(), 0)?;
    let mut found = 0;
    let header = reply.set_deferred();
    each_member(sources.sets(cx), cx.limits, &cx.turn.hasher, &mut |member| {
        reply_member(reply, member);
        found += 1;
    });
    reply.finish(header, found);
    Ok(())
}

fn sunionstore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sources = Sources::read(cx, args, 2..args.len(), 1)?;
    let room = take_room(cx);
    let (limits, hasher) = (cx.limits, &cx.turn.hasher);
    let mut sets = sources.sets(cx).into_iter().flatten();
    let mut result = match sets.next() {
        Some(first) => NewSet::with_members_of(first, limits, hasher, room),
        None => NewSet::Ints(room),
    };
    for member in sets.flat_map(SetRef::iter) {
        result.add(member, limits, hasher);
    }
    store(cx, args, result, "sunionstore", reply);
    Ok(())
}

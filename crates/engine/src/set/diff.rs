//! The members that only the first of several sets has: SDIFF, SDIFFSTORE.
//!
//! There are two methods. Looking up each member of the first set in the others costs the first
//! set's size times the number of sets; walking through the others costs their size. The choice is
//! that of Redis, because with SDIFFSTORE it shows in the result's encoding.

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

pub(super) const SDIFF: Row<Handler> = Row::new(
    diff("sdiff", -2)
        .summary("Returns the difference between the first set and all others.")
        .flags(READ)
        .keys(SOURCES)
        .arguments(KEYS)
        .tips(&["nondeterministic_output_order"]),
    sdiff,
);

pub(super) const SDIFFSTORE: Row<Handler> = Row::new(
    diff("sdiffstore", -3)
        .summary("Stores the difference between the first set and all others in a key.")
        .flags(Flags::WRITE.with(Flags::DENYOOM))
        .keys(TARGET_AND_SOURCES)
        .arguments(TARGET_AND_KEYS),
    sdiffstore,
);

const fn diff(name: &'static str, arity: i32) -> Spec {
    spec(name, arity, "1.0.0").complexity("O(N) for the N members of all sets.")
}

/// The set to subtract from and those to subtract, or nothing if the result is empty.
struct SetDifference<'a> {
    first: SetRef<'a>,
    others: Vec<SetRef<'a>>,
    /// Whether to walk through the others instead of looking members up in them.
    by_others: bool,
}

impl<'a> SetDifference<'a> {
    fn of(sources: &Sources<'_>, cx: &'a Cx<'_>) -> Option<Self> {
        let mut sets = sources.sets(cx).into_iter();
        let first = sets.next().flatten()?;
        if sources.repeat_first() {
            return None;
        }
        let mut others: Vec<_> = sets.flatten().collect();
        // A lookup is worth two steps, since it may end before the last set.
        let lookups = first.len().saturating_mul(others.len() + 1) / 2;
        let steps = others.iter().fold(first.len(), |sum, set| sum.saturating_add(set.len()));
        let by_others = lookups > steps;
        if !by_others {
            // A larger set is more likely to have the member.
            others.sort_by_key(|set| std::cmp::Reverse(set.len()));
        }
        Some(Self { first, others, by_others })
    }

    /// Visits each remaining member.
    fn each(&self, limits: &EncodingLimits, hasher: &KeyHasher, visit: &mut dyn FnMut(Entry<'_>)) {
        if !self.by_others {
            for member in self.first.iter() {
                if !self.others.iter().any(|set| set.contains(member, hasher)) {
                    visit(member);
                }
            }
            return;
        }
        let mut removed = NewSet::Ints(Vec::new());
        for member in self.others.iter().flat_map(|set| set.iter()) {
            if self.first.contains(member, hasher)
                && removed.add(member, limits, hasher)
                && removed.view().len() == self.first.len()
            {
                return;
            }
        }
        let removed = removed.view();
        self.first.iter().filter(|member| !removed.contains(*member, hasher)).for_each(visit);
    }

    /// The remaining members, in the form that they have in Redis: walking through the others
    /// starts from all members of the first set, and a set never returns to a smaller form.
    fn collect(&self, limits: &EncodingLimits, hasher: &KeyHasher, room: Vec<u8>) -> NewSet {
        if !self.by_others {
            let mut result = NewSet::Ints(room);
            let keep = &mut |member: Entry<'_>| result.add_absent(member, limits, hasher);
            self.each(limits, hasher, keep);
            return result;
        }
        let mut result = NewSet::with_members_of(self.first, limits, hasher, room);
        for member in self.others.iter().flat_map(|set| set.iter()) {
            result.remove(member, hasher);
            if result.view().is_empty() {
                break;
            }
        }
        result
    }
}

fn sdiff(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sources = Sources::read(cx, args, 1..args.len(), 0)?;
    let Some(difference) = SetDifference::of(&sources, cx) else {
        reply.set(0);
        return Ok(());
    };
    let mut found = 0;
    let header = reply.set_deferred();
    difference.each(cx.limits, &cx.turn.hasher, &mut |member| {
        reply_member(reply, member);
        found += 1;
    });
    reply.finish(header, found);
    Ok(())
}

fn sdiffstore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let sources = Sources::read(cx, args, 2..args.len(), 1)?;
    let room = take_room(cx);
    let result = match SetDifference::of(&sources, cx) {
        Some(difference) => difference.collect(cx.limits, &cx.turn.hasher, room),
        None => NewSet::Ints(room),
    };
    store(cx, args, result, "sdiffstore", reply);
    Ok(())
}

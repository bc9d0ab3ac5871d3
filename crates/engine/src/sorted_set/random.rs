//! ZRANDMEMBER: random members.

use std::collections::HashSet;

use base::random::Random;
use resp::{Args, Reply};
use store::{SortedSetRef, SortedSetValue};

use super::{READ, READ_KEY, reply_member, reply_pairs, spec};
use crate::args::count::SampleCount;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use crate::sampling::Selection;
use command::{Argument, Row, Shape};

/// The most members that a reply may repeat: a small set can produce a large reply, which is built
/// as a whole.
const REPEATED_MAX: usize = 1 << 28;
/// In a set of at least this many times the wanted members, ranks are drawn one by one until enough
/// different ones were found; in a smaller set a walk over all members is cheaper.
const DRAWN_SHARE: usize = 3;

pub(super) const ZRANDMEMBER: Row<Handler> = Row::new(
    spec("zrandmember", -2, "6.2.0")
        .summary("Returns random members of a sorted set.")
        .complexity("O(N) for N members returned.")
        .flags(READ)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new(
                "options",
                Shape::Block(&[
                    Argument::new("count", Shape::Integer),
                    Argument::word("withscores", "WITHSCORES").optional(),
                ]),
            )
            .optional(),
        ])
        .tips(&["nondeterministic_output"]),
    zrandmember,
);

fn zrandmember(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let wanted = SampleCount::parse_with(args, "WITHSCORES")?;
    let mut random = Random::new(cx.random.next_u64());
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    match (set, wanted) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(set), None) => match set.random(&mut random) {
            Some(pair) => reply_member(reply, pair.member),
            None => reply.null(),
        },
        (Some(set), Some((count, with_scores))) => {
            if !count.repeats {
                reply_different(reply, set, count.len, with_scores, &mut random);
            } else if count.len <= REPEATED_MAX {
                let drawn = (0..count.len).filter_map(|_| set.random(&mut random));
                reply_pairs(reply, count.len, drawn, with_scores);
            } else {
                return Err(Error::OutOfRange);
            }
        }
    }
    Ok(())
}

/// Replies `wanted` different members, or all.
fn reply_different(
    reply: &mut Reply<'_>,
    set: SortedSetRef<'_>,
    wanted: usize,
    with_scores: bool,
    random: &mut Random,
) {
    let len = set.len();
    if wanted >= len {
        return reply_pairs(reply, len, set.walk(0..len, false), with_scores);
    }
    if wanted > len / DRAWN_SHARE || matches!(set, SortedSetRef::Packed(_)) {
        let mut selection = Selection::new(len, wanted);
        let drawn = set.walk(0..len, false).filter(|_| selection.takes_next(random));
        return reply_pairs(reply, wanted, drawn, with_scores);
    }
    let mut ranks = HashSet::with_capacity(wanted);
    while ranks.len() < wanted {
        ranks.insert(random.below(len as u64) as usize);
    }
    reply_pairs(reply, wanted, ranks.iter().filter_map(|rank| set.nth(*rank)), with_scores);
}

//! Members at random: ZRANDMEMBER.

use std::collections::HashSet;

use base::random::Random;
use resp::{Args, Reply};
use store::SortedSet;
use store::sorted_set::SortedSetRef;

use super::error::SortedSetError;
use super::{READ, READ_KEY, integer, reply_member, reply_pairs, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::Row;
use command::{Argument, Shape};

/// The most members that a reply may repeat: the set may be small, and the reply is made whole.
const REPEATED_MAX: usize = 1 << 28;
/// From so many times the wanted number of members on, ranks are drawn one by one until enough
/// different ones were met; for smaller sets walking over all of them takes less.
const DRAWN_SHARE: usize = 3;

pub(super) const ZRANDMEMBER: Row<Handler> = Row::new(
    spec("zrandmember", -2, "6.2.0")
        .summary("Replies members at random.")
        .complexity("O(N) for N members replied.")
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
    let wanted = match args.at(2) {
        None => None,
        Some(arg) => Some(count_of(arg, args)?),
    };
    let mut random = Random::new(cx.random.next_u64());
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSet>(turn, key)?;
    match (set, wanted) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(set), None) => match set.random(&mut random) {
            Some(pair) => reply_member(reply, pair.member),
            None => reply.null(),
        },
        (Some(set), Some((count, with_scores))) => {
            let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
            if count >= 0 {
                reply_different(reply, set, wanted, with_scores, &mut random);
            } else if wanted <= REPEATED_MAX {
                let drawn = (0..wanted).filter_map(|_| set.random(&mut random));
                reply_pairs(reply, wanted, drawn, with_scores);
            } else {
                return Err(SortedSetError::OutOfRange.into());
            }
        }
    }
    Ok(())
}

/// How many members are wanted, as different ones or, when negative, as such that may repeat; and
/// whether with their scores.
fn count_of(arg: &[u8], args: &Args<'_>) -> Result<(i64, bool), Error> {
    let count = integer(arg)?;
    if count == i64::MIN {
        return Err(Error::NotBetween(-i64::MAX, i64::MAX));
    }
    let with_scores = match args.at(3) {
        None => false,
        Some(word) if args.len() == 4 && word.eq_ignore_ascii_case(b"withscores") => true,
        Some(_) => return Err(Error::Syntax),
    };
    if with_scores && count.unsigned_abs() > (i64::MAX / 2).unsigned_abs() {
        return Err(SortedSetError::OutOfRange.into());
    }
    Ok((count, with_scores))
}

/// Replies that many different members, or all.
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
        // Each member is taken as likely as it is still needed (Knuth, Algorithm S).
        let (mut left, mut needed) = (len as u64, wanted as u64);
        let drawn = set.walk(0..len, false).filter(|_| {
            let taken = random.below(left) < needed;
            left -= 1;
            needed -= u64::from(taken);
            taken
        });
        return reply_pairs(reply, wanted, drawn, with_scores);
    }
    let mut ranks = HashSet::with_capacity(wanted);
    while ranks.len() < wanted {
        ranks.insert(random.below(len as u64) as usize);
    }
    reply_pairs(reply, wanted, ranks.iter().filter_map(|rank| set.nth(*rank)), with_scores);
}

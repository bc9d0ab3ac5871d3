//! Removing members: by name with ZREM, in ranges with ZREMRANGEBYRANK and similar commands.

use resp::{Args, Reply};
use store::{Key, SortedSetValue};

use super::bounds::{By, SortedSetBounds};
use super::range::has_one_score;
use super::{DELETE_KEY, MEMBER, event, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape, Spec};

pub(super) const ZREM: Row<Handler> = Row::new(
    spec("zrem", -3, "1.2.0")
        .member(2)
        .summary("Removes members from a sorted set.")
        .complexity("O(M*log(N)) for M members to remove of N.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(DELETE_KEY)
        .arguments(&[Argument::key(), MEMBER.multiple()])
        .history(&[("2.4.0", "Several members may be given.")]),
    zrem,
);

pub(super) const ZREMRANGEBYRANK: Row<Handler> = Row::new(
    ranged(
        "zremrangebyrank",
        "2.0.0",
        &[
            Argument::key(),
            Argument::new("start", Shape::Integer),
            Argument::new("stop", Shape::Integer),
        ],
    )
    .summary("Removes the members of a sorted set within a range of ranks."),
    |cx, args, reply| remove_range(cx, args, reply, By::Rank, "zremrangebyrank"),
);

pub(super) const ZREMRANGEBYSCORE: Row<Handler> = Row::new(
    ranged(
        "zremrangebyscore",
        "1.2.0",
        &[
            Argument::key(),
            Argument::new("min", Shape::Double),
            Argument::new("max", Shape::Double),
        ],
    )
    .summary("Removes the members of a sorted set within a range of scores."),
    |cx, args, reply| remove_range(cx, args, reply, By::Score, "zremrangebyscore"),
);

pub(super) const ZREMRANGEBYLEX: Row<Handler> = Row::new(
    ranged(
        "zremrangebylex",
        "2.8.9",
        &[
            Argument::key(),
            Argument::new("min", Shape::String),
            Argument::new("max", Shape::String),
        ],
    )
    .summary("Removes the members of a sorted set within a lexicographical range."),
    |cx, args, reply| remove_range(cx, args, reply, By::Lex, "zremrangebylex"),
);

const fn ranged(name: &'static str, since: &'static str, arguments: &'static [Argument]) -> Spec {
    spec(name, 4, since)
        .complexity("O(log(N)+M) for M members to remove of N.")
        .flags(Flags::WRITE)
        .keys(DELETE_KEY)
        .arguments(arguments)
}

fn zrem(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(mut set) = db.edit::<SortedSetValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    args.seek(2);
    let removed = args.filter(|member| set.remove(member)).count();
    let emptied = set.set().len() == 0;
    drop(set);
    removed_from(cx, key, "zrem", removed, emptied);
    reply.len(removed);
    Ok(())
}

fn remove_range(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    by: By,
    name: &'static str,
) -> Result<(), Error> {
    let bounds = SortedSetBounds::parse(by, args.text(2), args.text(3))?;
    let key = cx.first_key(args, 1);
    let is_consumed = cx.turn.effects.is_consumed();
    let (db, turn) = cx.db(key);
    let Some(mut set) = db.edit::<SortedSetValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let ranks = bounds.ranks(set.set(), false);
    // Among members of different scores, such a range is what the encoding and the server make of
    // it: members are replayed, not the range.
    let names_members = is_consumed && by == By::Lex && !has_one_score(set.set());
    let members: Vec<Vec<u8>> = match names_members {
        true => set.set().walk(ranks.clone(), false).map(|pair| pair.member.to_vec()).collect(),
        false => Vec::new(),
    };
    let removed = set.remove_ranks(ranks);
    let emptied = set.set().len() == 0;
    drop(set);
    if !members.is_empty() {
        cx.turn.effects.replay_as(|replay| {
            replay.args([b"ZREM", key.bytes]);
            replay.args(&members);
        });
    }
    removed_from(cx, key, name, removed, emptied);
    reply.len(removed);
    Ok(())
}

/// Records that one edit removed members, and the key if it became empty.
pub(super) fn removed_from(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    name: &'static str,
    removed: usize,
    emptied: bool,
) {
    if removed > 0 {
        cx.count_elements(1, removed);
        cx.wrote_removal(event(name), key.bytes, emptied);
    }
}

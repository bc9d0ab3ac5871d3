//! Reading ranges of members: ZRANGE, the older commands that are special cases of it, and
//! ZRANGESTORE.

use std::ops::Range;

use resp::{Args, Reply};
use store::{Digits, NewSortedSet, SortedSetRef, SortedSetValue};

use super::bounds::{By, SortedSetBounds};
use super::result::{replay_result, store};
use super::{READ, READ_ACCESS, READ_KEY, STORE, WITHSCORES, reply_pairs, spec};
use crate::args::limit::{LIMIT, LimitClause};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::sorted_set::SortedSetError;
use crate::exec::Handler;
use command::{Argument, Flags, KeySpec, Row, Shape, Spec};

pub(super) const ZRANGE: Row<Handler> = Row::new(
    reading("zrange", "1.2.0")
        .summary("Returns the members of a sorted set within a range of ranks, scores or members.")
        .arguments(&[
            Argument::key(),
            Argument::new("start", Shape::String),
            Argument::new("stop", Shape::String),
            SORT_BY.since("6.2.0"),
            REV.since("6.2.0"),
            LIMIT.since("6.2.0"),
            WITHSCORES,
        ])
        .history(&[("6.2.0", "The options `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")]),
    |cx, args, reply| range(cx, args, reply, None, None),
);

pub(super) const ZRANGESTORE: Row<Handler> = Row::new(
    spec("zrangestore", -5, "6.2.0")
        .summary("Stores the members of a sorted set within a range as another sorted set.")
        .complexity("O(log(N)+M) for M members stored of N.")
        .flags(Flags::WRITE.with(Flags::DENYOOM))
        .keys(&[KeySpec::one(1, STORE), KeySpec::one(2, READ_ACCESS)])
        .arguments(&[
            Argument::new("dst", Shape::Key),
            Argument::new("src", Shape::Key),
            Argument::new("min", Shape::String),
            Argument::new("max", Shape::String),
            SORT_BY,
            REV,
            LIMIT,
        ]),
    zrangestore,
);

const SORT_BY: Argument = Argument::new(
    "sortby",
    Shape::OneOf(&[Argument::word("byscore", "BYSCORE"), Argument::word("bylex", "BYLEX")]),
)
.optional();
const REV: Argument = Argument::word("rev", "REV").optional();

pub(super) const ZREVRANGE: Row<Handler> = Row::new(
    reading("zrevrange", "1.2.0")
        .summary("Returns the members of a sorted set within a range of ranks, in reverse order.")
        .arguments(&[
            Argument::key(),
            Argument::new("start", Shape::Integer),
            Argument::new("stop", Shape::Integer),
            WITHSCORES,
        ])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` argument"),
    |cx, args, reply| range(cx, args, reply, Some(By::Rank), Some(true)),
);

pub(super) const ZRANGEBYSCORE: Row<Handler> = Row::new(
    reading("zrangebyscore", "1.0.5")
        .summary("Returns the members of a sorted set within a range of scores.")
        .arguments(&[
            Argument::key(),
            Argument::new("min", Shape::Double),
            Argument::new("max", Shape::Double),
            WITHSCORES.since("2.0.0"),
            LIMIT,
        ])
        .history(&[("2.0.0", "The option `WITHSCORES`.")])
        .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
    |cx, args, reply| range(cx, args, reply, Some(By::Score), Some(false)),
);

pub(super) const ZREVRANGEBYSCORE: Row<Handler> = Row::new(
    reading("zrevrangebyscore", "2.2.0")
        .summary("Returns the members of a sorted set within a range of scores, in reverse order.")
        .arguments(&[
            Argument::key(),
            Argument::new("max", Shape::Double),
            Argument::new("min", Shape::Double),
            WITHSCORES,
            LIMIT,
        ])
        .history(&[("2.1.6", "An end may be left out of the range.")])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
    |cx, args, reply| range(cx, args, reply, Some(By::Score), Some(true)),
);

pub(super) const ZRANGEBYLEX: Row<Handler> = Row::new(
    reading("zrangebylex", "2.8.9")
        .summary("Returns the members of a sorted set within a lexicographical range.")
        .arguments(&[
            Argument::key(),
            Argument::new("min", Shape::String),
            Argument::new("max", Shape::String),
            LIMIT,
        ])
        .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
    |cx, args, reply| range(cx, args, reply, Some(By::Lex), Some(false)),
);

pub(super) const ZREVRANGEBYLEX: Row<Handler> = Row::new(
    reading("zrevrangebylex", "2.8.9")
        .summary(
            "Returns the members of a sorted set within a lexicographical range, in reverse order.",
        )
        .arguments(&[
            Argument::key(),
            Argument::new("max", Shape::String),
            Argument::new("min", Shape::String),
            LIMIT,
        ])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
    |cx, args, reply| range(cx, args, reply, Some(By::Lex), Some(true)),
);

const fn reading(name: &'static str, since: &'static str) -> Spec {
    spec(name, -4, since)
        .complexity("O(log(N)+M) for M members returned of N.")
        .flags(READ)
        .keys(READ_KEY)
}

/// A range, and the part and order to return.
struct RangeQuery<'a> {
    bounds: SortedSetBounds<'a>,
    back: bool,
    limit: LimitClause,
    with_scores: bool,
}

impl<'a> RangeQuery<'a> {
    /// Parses the arguments after the key at index `key_at`. If the command implies `by` or `back`,
    /// the options for it are a syntax error.
    fn parse(
        args: &mut Args<'a>,
        key_at: usize,
        by: Option<By>,
        back: Option<bool>,
    ) -> Result<Self, Error> {
        let (mut said_by, mut said_back) = (by, back);
        let (mut limit, mut with_scores) = (LimitClause::default(), false);
        let stores = key_at > 1;
        args.seek(key_at + 3);
        while args.remaining() > 0 {
            if !stores && args.take_word("withscores") {
                with_scores = true;
            } else if args.remaining() > 2 && args.take_word("limit") {
                limit = LimitClause::parse(args)?;
            } else if back.is_none() && said_back.is_none() && args.take_word("rev") {
                said_back = Some(true);
            } else if said_by.is_none() && args.take_word("bylex") {
                said_by = Some(By::Lex);
            } else if said_by.is_none() && args.take_word("byscore") {
                said_by = Some(By::Score);
            } else {
                return Err(Error::Syntax);
            }
        }
        let (by, back) = (said_by.unwrap_or(By::Rank), said_back.unwrap_or(false));
        if limit.count != -1 && by == By::Rank {
            return Err(SortedSetError::LimitOfRanks.into());
        }
        if with_scores && by == By::Lex {
            return Err(SortedSetError::ScoresOfLex.into());
        }
        let (first, second) = (args.text(key_at + 1), args.text(key_at + 2));
        let swap = back && by != By::Rank;
        let (min, max) = if swap { (second, first) } else { (first, second) };
        let bounds = SortedSetBounds::parse(by, min, max)?;
        Ok(Self { bounds, back, limit, with_scores })
    }

    /// The ranks of the members to return.
    fn ranks(&self, set: SortedSetRef<'_>) -> Range<usize> {
        let ranks = self.bounds.ranks(set, self.back);
        if matches!(self.bounds, SortedSetBounds::Ranks(..)) {
            return ranks;
        }
        let len = ranks.len();
        let left = |offset: u64| len.saturating_sub(usize::try_from(offset).unwrap_or(usize::MAX));
        let left = match self.limit.offset {
            0.. => left(self.limit.offset.unsigned_abs()),
            // As in Redis: a big set counts from the other end, a packed one finds nothing.
            _ => match set {
                SortedSetRef::Packed(_) => 0,
                SortedSetRef::Big(_) if self.limit.offset.unsigned_abs() > len as u64 => 0,
                SortedSetRef::Big(_) => self.limit.offset.unsigned_abs() as usize,
            },
        };
        let wanted = usize::try_from(self.limit.count).unwrap_or(usize::MAX).min(left);
        if self.back {
            let end = ranks.start + left;
            end - wanted..end
        } else {
            let start = ranks.end - left;
            start..start + wanted
        }
    }
}

fn range(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    by: Option<By>,
    back: Option<bool>,
) -> Result<(), Error> {
    let query = RangeQuery::parse(args, 1, by, back)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(set) = db.read::<SortedSetValue>(turn, key)? else {
        reply.array(0);
        return Ok(());
    };
    let ranks = query.ranks(set);
    reply_pairs(reply, ranks.len(), set.walk(ranks, query.back), query.with_scores);
    Ok(())
}

fn zrangestore(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let query = RangeQuery::parse(args, 2, None, None)?;
    let source = cx.nth_key(args, 1, 2);
    let (db, turn) = cx.db(source);
    let (mut new, mut is_lex_exact) = (NewSortedSet::default(), true);
    if let Some(set) = db.read::<SortedSetValue>(turn, source)? {
        let mut digits = Digits::default();
        is_lex_exact = has_one_score(set);
        // In ascending order, which is that of the new set's scores.
        for pair in set.walk(query.ranks(set), false) {
            new.push(pair.member.text(&mut digits), pair.score());
        }
    }
    let target = cx.first_key(args, 1);
    // The chosen members depend on the encoding and the server: the result is replayed.
    let is_exact = is_lex_exact || !matches!(query.bounds, SortedSetBounds::Lex(_));
    if !is_exact || query.limit.offset < 0 {
        replay_result(cx, target, &new);
    }
    store(cx, target, "zrangestore", &new, reply)
}

/// Whether all members have the same score, so that lexicographical ranges are well defined.
pub(super) fn has_one_score(set: SortedSetRef<'_>) -> bool {
    let score = |rank| set.nth(rank).map(|pair| pair.score());
    score(0) == score(set.len().saturating_sub(1))
}

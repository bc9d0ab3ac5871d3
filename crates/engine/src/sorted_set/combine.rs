//! Combining several sets: ZUNION, ZINTER and ZDIFF reply the result, their variants with STORE
//! store it, and ZINTERCARD counts it. Members of plain sets have the score 1.

use base::hash::KeyHasher;
use resp::{Args, Reply};
use store::{Digits, Entry, Lookup, NewSortedSet, SetRef, SetValue, SortedSetRef, SortedSetValue};

use super::result::store;
use super::{READ, READ_ACCESS, STORE, WITHSCORES, spec};
use crate::args::count::{NUMKEYS, non_negative};
use crate::args::number::{float, integer};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::sorted_set::SortedSetError;
use crate::exec::Handler;
use command::{Argument, Flags, KeySpec, Row, Shape, Spec};

pub(super) const ZUNION: Row<Handler> = Row::new(
    reading("zunion", "6.2.0")
        .complexity(SetOperation::Union.complexity())
        .summary("Returns the union of several sorted sets.")
        .arguments(WEIGHTED_SCORES),
    |cx, args, reply| read(cx, args, reply, SetOperation::Union, "zunion"),
);

pub(super) const ZINTER: Row<Handler> = Row::new(
    reading("zinter", "6.2.0")
        .complexity(SetOperation::Inter.complexity())
        .summary("Returns the intersection of several sorted sets.")
        .arguments(WEIGHTED_SCORES),
    |cx, args, reply| read(cx, args, reply, SetOperation::Inter, "zinter"),
);

pub(super) const ZDIFF: Row<Handler> = Row::new(
    reading("zdiff", "6.2.0")
        .complexity(SetOperation::Diff.complexity())
        .summary("Returns the difference between the first sorted set and all others.")
        .arguments(&[NUMKEYS, KEYS, WITHSCORES]),
    |cx, args, reply| read(cx, args, reply, SetOperation::Diff, "zdiff"),
);

pub(super) const ZINTERCARD: Row<Handler> = Row::new(
    reading("zintercard", "7.0.0")
        .summary("Returns the number of members in the intersection of several sorted sets.")
        .complexity("O(N*K) for K sets and N members in the smallest.")
        .arguments(&[
            NUMKEYS,
            KEYS,
            Argument::new("limit", Shape::Integer).after("LIMIT").optional(),
        ]),
    zintercard,
);

pub(super) const ZUNIONSTORE: Row<Handler> = Row::new(
    storing("zunionstore", "2.0.0")
        .complexity(SetOperation::Union.complexity())
        .summary("Stores the union of several sorted sets in a key.")
        .arguments(WEIGHTED_STORE),
    |cx, args, reply| write(cx, args, reply, SetOperation::Union, "zunionstore"),
);

pub(super) const ZINTERSTORE: Row<Handler> = Row::new(
    storing("zinterstore", "2.0.0")
        .complexity(SetOperation::Inter.complexity())
        .summary("Stores the intersection of several sorted sets in a key.")
        .arguments(WEIGHTED_STORE),
    |cx, args, reply| write(cx, args, reply, SetOperation::Inter, "zinterstore"),
);

pub(super) const ZDIFFSTORE: Row<Handler> = Row::new(
    storing("zdiffstore", "6.2.0")
        .complexity(SetOperation::Diff.complexity())
        .summary("Stores the difference between the first sorted set and all others in a key.")
        .arguments(&[TARGET, NUMKEYS, KEYS]),
    |cx, args, reply| write(cx, args, reply, SetOperation::Diff, "zdiffstore"),
);

/// The arguments of ZUNION and ZINTER.
const WEIGHTED_SCORES: &[Argument] = &[NUMKEYS, KEYS, WEIGHTS, AGGREGATE, WITHSCORES];
/// The arguments of ZUNIONSTORE and ZINTERSTORE.
const WEIGHTED_STORE: &[Argument] = &[TARGET, NUMKEYS, KEYS, WEIGHTS, AGGREGATE];
const KEYS: Argument = Argument::key().multiple();
const TARGET: Argument = Argument::new("destination", Shape::Key);
const WEIGHTS: Argument =
    Argument::new("weight", Shape::Integer).after("WEIGHTS").optional().multiple();
const AGGREGATE: Argument = Argument::new(
    "aggregate",
    Shape::OneOf(&[
        Argument::word("sum", "SUM"),
        Argument::word("min", "MIN"),
        Argument::word("max", "MAX"),
    ]),
)
.after("AGGREGATE")
.optional();

const fn reading(name: &'static str, since: &'static str) -> Spec {
    const KEYS: &[KeySpec] = &[KeySpec::counted(1, READ_ACCESS)];
    spec(name, -3, since).flags(READ.with(Flags::MOVABLE_KEYS)).keys(KEYS)
}

const fn storing(name: &'static str, since: &'static str) -> Spec {
    const KEYS: &[KeySpec] = &[KeySpec::one(1, STORE), KeySpec::counted(2, READ_ACCESS)];
    const FLAGS: Flags = Flags::WRITE.with(Flags::DENYOOM).with(Flags::MOVABLE_KEYS);
    spec(name, -4, since).flags(FLAGS).keys(KEYS)
}

/// How sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetOperation {
    Union,
    Inter,
    Diff,
}

impl SetOperation {
    const fn complexity(self) -> &'static str {
        match self {
            Self::Union => "O(N+M*log(M)) for N members in all and M in the result.",
            Self::Inter => {
                "O(N*K+M*log(M)) for K sets, N members in the smallest, M in the result."
            }
            Self::Diff => "O(N*K+M*log(M)) for K sets, N members in the first, M in the result.",
        }
    }
}

/// How the scores of a member in several sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, score: f64, other: f64) -> f64 {
        match self {
            // The sum of opposite infinities is 0.
            Self::Sum => number(score + other),
            Self::Min => {
                if other < score {
                    other
                } else {
                    score
                }
            }
            Self::Max => {
                if other > score {
                    other
                } else {
                    score
                }
            }
        }
    }
}

fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// An input set.
#[derive(Clone, Copy)]
enum SourceSet<'a> {
    Absent,
    Sorted(SortedSetRef<'a>),
    Plain(SetRef<'a>),
}

impl<'a> SourceSet<'a> {
    fn len(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Sorted(set) => set.len(),
            Self::Plain(set) => set.len(),
        }
    }

    fn score(self, member: &[u8], hasher: &KeyHasher) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::Sorted(set) => set.score(member),
            Self::Plain(set) => set.contains_text(member, hasher).then_some(1.0),
        }
    }

    /// Visits members and scores until `visit` returns false, in descending order of scores: as in
    /// Redis, since the order shows in the rounding of sums.
    fn each(self, mut visit: impl FnMut(&[u8], f64) -> bool) {
        let mut digits = Digits::default();
        match self {
            Self::Absent => {}
            Self::Sorted(set) => {
                for pair in set.walk(0..set.len(), true) {
                    if !visit(pair.member.text(&mut digits), pair.score()) {
                        return;
                    }
                }
            }
            Self::Plain(set) => {
                for member in set.iter() {
                    if !visit(Entry::text(member, &mut digits), 1.0) {
                        return;
                    }
                }
            }
        }
    }
}

/// The options after the keys.
struct Options {
    /// One for each key, or empty if all are 1.
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    /// The most members to count, or 0 for all.
    limit: usize,
}

/// The options that a command has.
#[derive(Clone, Copy)]
struct AllowedOptions {
    weights: bool,
    scores: bool,
    limit: bool,
}

impl Options {
    /// Parses the options at the cursor of a command with `keys` keys.
    fn parse(args: &mut Args<'_>, keys: usize, allowed: AllowedOptions) -> Result<Self, Error> {
        let (weights, aggregate) = (Vec::new(), Aggregate::Sum);
        let mut options = Self { weights, aggregate, with_scores: false, limit: 0 };
        while args.remaining() > 0 {
            let left = args.remaining();
            if allowed.weights && left > keys && args.take_word("weights") {
                options.weights.clear();
                for weight in args.by_ref().take(keys) {
                    options.weights.push(float(weight).map_err(|_| SortedSetError::Weight)?);
                }
            } else if allowed.weights && left >= 2 && args.take_word("aggregate") {
                options.aggregate = if args.take_word("sum") {
                    Aggregate::Sum
                } else if args.take_word("min") {
                    Aggregate::Min
                } else if args.take_word("max") {
                    Aggregate::Max
                } else {
                    return Err(Error::Syntax);
                };
            } else if allowed.scores && args.take_word("withscores") {
                options.with_scores = true;
            } else if allowed.limit && left >= 2 && args.take_word("limit") {
                let limit = args.next().and_then(non_negative);
                options.limit = limit.ok_or(Error::Negative("LIMIT"))?;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

/// Sets with their weights.
type Inputs<'a> = Vec<(SourceSet<'a>, f64)>;

/// The input under a missing key.
const ABSENT: (SourceSet<'static>, f64) = (SourceSet::Absent, 1.0);

/// The positions of a request's input keys, and its options.
struct CombineRequest {
    /// The index of the number of keys, which follow it.
    count_at: usize,
    keys: usize,
    options: Options,
}

impl CombineRequest {
    /// Parses a request. Looks up all keys before it parses the options: as in Redis, a value of
    /// another type is the first error.
    fn parse(
        cx: &mut Cx<'_>,
        args: &mut Args<'_>,
        count_at: usize,
        allowed: AllowedOptions,
        name: &'static str,
    ) -> Result<Self, Error> {
        let keys = integer(args.text(count_at))?;
        if keys < 1 {
            return Err(SortedSetError::NoInput(name).into());
        }
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        if keys > args.len() - (count_at + 1) {
            return Err(Error::Syntax);
        }
        for nth in 0..keys {
            // The destination key, if any, comes first.
            let key = cx.nth_key(args, count_at - 1 + nth, count_at + 1 + nth);
            let (db, turn) = cx.db(key);
            if let Some(stored) = db.lookup(turn, key, Lookup::Read)
                && stored.view::<SortedSetValue>().is_none()
                && stored.view::<SetValue>().is_none()
            {
                return Err(Error::WrongType);
            }
        }
        args.seek(count_at + 1 + keys);
        let options = Options::parse(args, keys, allowed)?;
        Ok(Self { count_at, keys, options })
    }

    /// The sets themselves.
    fn inputs<'a>(&self, cx: &'a Cx<'_>, args: &Args<'_>) -> Inputs<'a> {
        let input = |nth: usize| {
            let key = cx.nth_key(args, self.count_at - 1 + nth, self.count_at + 1 + nth);
            let Some(stored) = cx.lookup_shared(key) else { return SourceSet::Absent };
            match (stored.view::<SortedSetValue>(), stored.view::<SetValue>()) {
                (Some(set), _) => SourceSet::Sorted(set),
                (_, Some(set)) => SourceSet::Plain(set),
                _ => SourceSet::Absent,
            }
        };
        let weight = |nth: usize| self.options.weights.get(nth).copied().unwrap_or(1.0);
        (0..self.keys).map(|nth| (input(nth), weight(nth))).collect()
    }

    /// The result as a new set.
    fn compute(
        &self,
        operation: SetOperation,
        mut inputs: Inputs<'_>,
        hasher: &KeyHasher,
    ) -> NewSortedSet {
        let mut result = NewSortedSet::default();
        let aggregate = self.options.aggregate;
        match operation {
            SetOperation::Union => {
                inputs.sort_by_key(|(input, _)| input.len());
                for (input, weight) in inputs {
                    input.each(|member, score| {
                        let merge = |old, new| aggregate.of(old, new);
                        result.merge(member, number(score * weight), hasher, merge);
                        true
                    });
                }
            }
            SetOperation::Inter => each_of_all(inputs, aggregate, hasher, |member, score| {
                result.push(member, score);
                true
            }),
            SetOperation::Diff => {
                let (first, others) = inputs.split_first().unwrap_or((&ABSENT, &[]));
                first.0.each(|member, score| {
                    let held =
                        |other: &(SourceSet<'_>, f64)| other.0.score(member, hasher).is_some();
                    if !others.iter().any(held) {
                        result.push(member, score);
                    }
                    true
                });
            }
        }
        result.sort();
        result
    }
}

/// Visits the members that all sets have, until `visit` returns false.
fn each_of_all(
    mut inputs: Inputs<'_>,
    aggregate: Aggregate,
    hasher: &KeyHasher,
    mut visit: impl FnMut(&[u8], f64) -> bool,
) {
    // Each member of the smallest set is looked up in the others.
    inputs.sort_by_key(|(input, _)| input.len());
    let ((first, first_weight), others) = inputs.split_first().unwrap_or((&ABSENT, &[]));
    first.each(|member, score| {
        let start = Some(number(score * first_weight));
        let score = others.iter().fold(start, |score, (other, weight)| {
            Some(aggregate.of(score?, other.score(member, hasher)? * weight))
        });
        score.is_none_or(|score| visit(member, score))
    });
}

fn read(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    operation: SetOperation,
    name: &'static str,
) -> Result<(), Error> {
    let allowed =
        AllowedOptions { weights: operation != SetOperation::Diff, scores: true, limit: false };
    let request = CombineRequest::parse(cx, args, 1, allowed, name)?;
    let hasher = cx.turn.hasher;
    let result = request.compute(operation, request.inputs(cx, args), &hasher);
    let with_scores = request.options.with_scores;
    let nested = with_scores && reply.resp3();
    reply.array(if with_scores && !nested { result.len() * 2 } else { result.len() });
    for (member, score) in result.iter() {
        if nested {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(score);
        }
    }
    Ok(())
}

fn write(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    operation: SetOperation,
    name: &'static str,
) -> Result<(), Error> {
    let allowed =
        AllowedOptions { weights: operation != SetOperation::Diff, scores: false, limit: false };
    let request = CombineRequest::parse(cx, args, 2, allowed, name)?;
    let hasher = cx.turn.hasher;
    let result = request.compute(operation, request.inputs(cx, args), &hasher);
    let target = cx.first_key(args, 1);
    store(cx, target, name, &result, reply)
}

fn zintercard(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let allowed = AllowedOptions { weights: false, scores: false, limit: true };
    let request = CombineRequest::parse(cx, args, 1, allowed, "zintercard")?;
    let (hasher, limit) = (cx.turn.hasher, request.options.limit);
    let mut count = 0;
    each_of_all(request.inputs(cx, args), Aggregate::Sum, &hasher, |_, _| {
        count += 1;
        count != limit
    });
    reply.len(count);
    Ok(())
}

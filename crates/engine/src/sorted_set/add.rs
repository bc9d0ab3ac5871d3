//! Adding members and changing scores: ZADD and ZINCRBY.

use resp::{Args, Reply};
use store::{Edit, EncodingLimits, ScoreChange, SortedSetValue};

use super::{MEMBER, event, spec};
use crate::args::number::float;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::sorted_set::SortedSetError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

pub(super) const ZADD: Row<Handler> = Row::new(
    spec("zadd", -4, "1.2.0")
        .member(3)
        .summary("Adds members to a sorted set, or updates their scores.")
        .complexity("O(log(N)) for each member of a set of N.")
        .flags(Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::UPDATE))])
        .arguments(&[
            Argument::key(),
            Argument::new("condition", Shape::OneOf(CONDITION)).optional().since("3.0.2"),
            Argument::new("comparison", Shape::OneOf(COMPARISON)).optional().since("6.2.0"),
            Argument::word("change", "CH").optional().since("3.0.2"),
            Argument::word("increment", "INCR").optional().since("3.0.2"),
            Argument::new("data", Shape::Block(PAIR)).multiple(),
        ])
        .history(&[
            ("2.4.0", "Several members may be given."),
            ("3.0.2", "The options `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "The options `GT` and `LT`."),
        ]),
    zadd,
);

const CONDITION: &[Argument] = &[Argument::word("nx", "NX"), Argument::word("xx", "XX")];
const COMPARISON: &[Argument] = &[Argument::word("gt", "GT"), Argument::word("lt", "LT")];
const PAIR: &[Argument] = &[Argument::new("score", Shape::Double), MEMBER];

pub(super) const ZINCRBY: Row<Handler> = Row::new(
    spec("zincrby", 4, "1.2.0")
        .member(3)
        .summary("Adds a number to the score of a member; a missing member counts as 0.")
        .complexity("O(log(N)) for the N members of the set.")
        .flags(Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::ACCESS).with(Access::UPDATE))])
        .arguments(&[Argument::key(), Argument::new("increment", Shape::Integer), MEMBER]),
    |cx, args, reply| {
        let options = Options { incr: true, ..Options::default() };
        add(cx, args, 2, options, reply)
    },
);

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
struct Options {
    /// Do not change existing members.
    nx: bool,
    /// Do not add members.
    xx: bool,
    /// Only increase scores.
    gt: bool,
    /// Only decrease scores.
    lt: bool,
    /// Count changed members too.
    ch: bool,
    /// Add to the score, and reply it.
    incr: bool,
}

impl Options {
    /// Parses the options, and leaves the cursor at the first score.
    fn parse(args: &mut Args<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        args.seek(2);
        while let Some(word) = args.peek() {
            // A score does not begin with a letter, except infinity.
            let option = match word.len() {
                2 if word.eq_ignore_ascii_case(b"nx") => &mut options.nx,
                2 if word.eq_ignore_ascii_case(b"xx") => &mut options.xx,
                2 if word.eq_ignore_ascii_case(b"gt") => &mut options.gt,
                2 if word.eq_ignore_ascii_case(b"lt") => &mut options.lt,
                2 if word.eq_ignore_ascii_case(b"ch") => &mut options.ch,
                4 if word.eq_ignore_ascii_case(b"incr") => &mut options.incr,
                _ => break,
            };
            *option = true;
            args.next();
        }
        let left = args.remaining();
        if left == 0 || !left.is_multiple_of(2) {
            return Err(Error::Syntax);
        }
        let Self { nx, xx, gt, lt, incr, .. } = options;
        if nx && xx {
            return Err(SortedSetError::XxAndNx.into());
        }
        if nx && (gt || lt) || gt && lt {
            return Err(SortedSetError::GtLtNx.into());
        }
        if incr && left > 2 {
            return Err(SortedSetError::IncrOfMany.into());
        }
        Ok(options)
    }

    /// The new score of a member, or `None` to leave it unchanged.
    fn decide(&self, old: Option<f64>, score: f64) -> Result<Option<f64>, Error> {
        let Some(old) = old else { return Ok((!self.xx).then_some(score)) };
        if self.nx {
            return Ok(None);
        }
        let score = if self.incr { old + score } else { score };
        if score.is_nan() {
            return Err(SortedSetError::ScoreNan.into());
        }
        let refused = self.lt && score >= old || self.gt && score <= old;
        Ok((!refused).then_some(score))
    }
}

fn zadd(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args)?;
    let pairs_at = Args::position(args);
    add(cx, args, pairs_at, options, reply)
}

/// Adds the pairs from an argument on.
fn add(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    pairs_at: usize,
    options: Options,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let first_score = float(args.text(pairs_at))?;
    // All scores are read before the first is used, so the command has all its effects or none.
    for at in (pairs_at + 2..args.len()).step_by(2) {
        float(args.text(at))?;
    }
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let set = if options.xx {
        db.edit::<SortedSetValue>(turn, key)?
    } else {
        Some(db.edit_or_create::<SortedSetValue>(turn, key)?)
    };
    let done = apply(set, args, pairs_at, first_score, options, limits)?;
    if done.added + done.updated > 0 {
        cx.count_elements(1, done.added + done.updated);
        cx.wrote(event(if options.incr { "zincr" } else { "zadd" }), key.bytes);
    }
    match (options.incr, done.score) {
        (true, Some(score)) => reply.double(score),
        (true, None) => reply.null(),
        (false, _) => reply.len(done.added + if options.ch { done.updated } else { 0 }),
    }
    Ok(())
}

/// The result of a request.
#[derive(Default)]
struct AddCounts {
    added: usize,
    updated: usize,
    /// The score of the last member, unless the options excluded it.
    score: Option<f64>,
}

/// Adds the pairs from an argument on to a set, if there is one. The first score is known.
fn apply(
    set: Option<Edit<'_, SortedSetValue>>,
    args: &Args<'_>,
    pairs_at: usize,
    first_score: f64,
    options: Options,
    limits: &EncodingLimits,
) -> Result<AddCounts, Error> {
    let Some(mut set) = set else { return Ok(AddCounts::default()) };
    let pairs = (args.len() - pairs_at) / 2;
    set.expect(pairs, args.text(pairs_at + 1).len(), limits);
    let (mut done, mut score, mut failed) = (AddCounts::default(), first_score, None);
    for at in (pairs_at..args.len()).step_by(2) {
        if at > pairs_at {
            score = float(args.text(at))?;
        }
        let change = set.update(args.text(at + 1), limits, |old| {
            done.score = options.decide(old, score).unwrap_or_else(|error| {
                failed = Some(error);
                None
            });
            done.score
        });
        done.added += usize::from(change == ScoreChange::Added);
        done.updated += usize::from(change == ScoreChange::Updated);
    }
    // Only INCR can fail, and it has one pair.
    failed.map_or(Ok(done), Err)
}

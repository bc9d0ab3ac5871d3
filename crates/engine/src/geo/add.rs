//! Adding members with positions: GEOADD.
//!
//! It is replayed as ZADD.

use base::geohash::Point;
use resp::{Args, Reply};
use store::{CommandWriter, Edit, EncodingLimits, KeyspaceEvent, ScoreChange, SortedSetValue};

use super::{LATITUDE, LONGITUDE, MEMBER, WRITE, point, spec};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape};

pub(super) const GEOADD: Row<Handler> = Row::new(
    spec("geoadd", -5, "3.2.0")
        .summary("Adds members to a geospatial index, or updates their positions.")
        .complexity("O(log(N)) for each member of an index of N.")
        .flags(WRITE)
        .keys(&[KeySpec::one(1, Access::RW.with(Access::UPDATE))])
        .arguments(&[
            Argument::key(),
            Argument::new(
                "condition",
                Shape::OneOf(&[Argument::word("nx", "NX"), Argument::word("xx", "XX")]),
            )
            .optional()
            .since("6.2.0"),
            Argument::word("change", "CH").optional().since("6.2.0"),
            Argument::new("data", Shape::Block(&[LONGITUDE, LATITUDE, MEMBER])).multiple(),
        ])
        .history(&[("6.2.0", "The options `CH`, `NX` and `XX`.")]),
    geoadd,
);

/// The options of GEOADD.
#[derive(Clone, Copy, Default)]
struct Options {
    /// Do not change existing members.
    nx: bool,
    /// Do not add members.
    xx: bool,
    /// Count changed members too.
    ch: bool,
    /// The index of the first longitude.
    at: usize,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        args.seek(2);
        loop {
            let option = if args.take_word("nx") {
                &mut options.nx
            } else if args.take_word("xx") {
                &mut options.xx
            } else if args.take_word("ch") {
                &mut options.ch
            } else {
                break;
            };
            *option = true;
        }
        options.at = Args::position(args);
        let left = args.remaining();
        let both = options.nx && options.xx;
        if left == 0 || !left.is_multiple_of(3) || both { Err(Error::Syntax) } else { Ok(options) }
    }
}

fn geoadd(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args)?;
    // All positions are read before the first is used, so the command has all its effects or none.
    for at in (options.at..args.len()).step_by(3) {
        point(args.text(at), args.text(at + 1))?;
    }
    let key = cx.first_key(args, 1);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let set = if options.xx {
        db.edit::<SortedSetValue>(turn, key)?
    } else {
        Some(db.edit_or_create::<SortedSetValue>(turn, key)?)
    };
    let (added, updated) = apply(set, args, options, limits)?;
    if added + updated > 0 {
        cx.count_elements(1, added + updated);
        cx.wrote(KeyspaceEvent::new('z', "zadd"), key.bytes);
        cx.turn.effects.replay_as(|replay| as_zadd(replay, args, options));
    }
    reply.len(added + if options.ch { updated } else { 0 });
    Ok(())
}

/// Sets the positions of members in a set, if it exists. Returns the numbers of added and updated
/// members.
fn apply(
    set: Option<Edit<'_, SortedSetValue>>,
    args: &Args<'_>,
    options: Options,
    limits: &EncodingLimits,
) -> Result<(usize, usize), Error> {
    let Some(mut set) = set else { return Ok((0, 0)) };
    let positions = (options.at..args.len()).step_by(3);
    set.expect(positions.len(), args.text(options.at + 2).len(), limits);
    let (mut added, mut updated) = (0, 0);
    for at in positions {
        let score = point(args.text(at), args.text(at + 1))?.score() as f64;
        let change = set.update(args.text(at + 2), limits, |old| {
            let refused = if old.is_some() { options.nx } else { options.xx };
            (!refused).then_some(score)
        });
        added += usize::from(change == ScoreChange::Added);
        updated += usize::from(change == ScoreChange::Updated);
    }
    Ok((added, updated))
}

/// The request with scores instead of positions, which were computed before.
fn as_zadd(replay: &mut CommandWriter<'_>, args: &Args<'_>, options: Options) {
    replay.arg("ZADD");
    replay.args(args.iter().take(options.at).skip(1));
    for at in (options.at..args.len()).step_by(3) {
        let score = point(args.text(at), args.text(at + 1)).map_or(0, Point::score);
        replay.arg(score.to_string());
        replay.arg(args.text(at + 2));
    }
}

//! Properties of members: GEODIST, GEOHASH and GEOPOS.

use base::geohash::Point;
use resp::{Args, Reply};
use store::SortedSetValue;

use super::{MEMBER, READ_KEY, UNIT, reply_distance, reply_point, spec, unit};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape, Spec};

pub(super) const GEODIST: Row<Handler> = Row::new(
    spec("geodist", -4, "3.2.0")
        .summary("Returns the distance between two members of a geospatial index.")
        .complexity("O(1)")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("member1", Shape::String),
            Argument::new("member2", Shape::String),
            UNIT.optional(),
        ]),
    geodist,
);

pub(super) const GEOHASH: Row<Handler> = Row::new(
    of_members("geohash")
        .summary("Returns the positions of members of a geospatial index as geohash strings."),
    geohash,
);

pub(super) const GEOPOS: Row<Handler> = Row::new(
    of_members("geopos")
        .summary("Returns the longitudes and latitudes of members of a geospatial index."),
    geopos,
);

const fn of_members(name: &'static str) -> Spec {
    const ARGUMENTS: &[Argument] = &[Argument::key(), MEMBER.optional().multiple()];
    spec(name, -2, "3.2.0")
        .complexity("O(1) for each member.")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .arguments(ARGUMENTS)
}

fn geodist(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let metres = match args.len() {
        4 => 1.0,
        5 => unit(args.text(4))?,
        _ => return Err(Error::Syntax),
    };
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    let position = |at| set?.score(args.text(at)).map(Point::of_score);
    match (position(2), position(3)) {
        (Some(a), Some(b)) => reply_distance(reply, a.distance_m(b) / metres),
        _ => reply.null(),
    }
    Ok(())
}

fn geohash(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    each(cx, args, reply, |reply, position| match position {
        Some(position) => reply.bulk(&position.text()),
        None => reply.null(),
    })
}

fn geopos(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    each(cx, args, reply, |reply, position| match position {
        Some(position) => reply_point(reply, position),
        None => reply.null_array(),
    })
}

/// Replies an array with an element for each member.
fn each(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    show: impl Fn(&mut Reply<'_>, Option<Point>),
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        let score = set.and_then(|set| set.score(member));
        show(reply, score.map(Point::of_score));
    }
    Ok(())
}

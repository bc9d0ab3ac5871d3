//! The search of GEORADIUS, GEORADIUSBYMEMBER, GEOSEARCH and GEOSEARCHSTORE.
//!
//! The cells around the center that may contain results are ranges of scores; each member in them
//! is tested. Results are in the order of cells and scores until they are sorted.

use std::cmp::Ordering;

use base::geohash::Point;
use resp::{Args, Reply};
use store::{Digits, Key, NewSortedSet, ScoreRange, ScoredMember, SortedSetRef, SortedSetValue};

use super::query::{DistanceOrder, GeoQuery, GeoSearch, GeoTarget, parse};
use super::shape::GeoShape;
use super::{reply_distance, reply_point, rows};
use crate::cx::Cx;
use crate::error::Error;
use crate::sorted_set::{reply_member, result};

/// A member inside the shape.
struct GeoMatch<'a> {
    pair: ScoredMember<'a>,
    position: Point,
    distance_m: f64,
    /// The number of members found before it.
    nth: usize,
}

/// Runs the search of one of the commands.
pub(super) fn search(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    search: GeoSearch,
) -> Result<(), Error> {
    let (nth, at) = if search == GeoSearch::Geosearchstore { (1, 2) } else { (0, 1) };
    let key = cx.nth_key(args, nth, at);
    let (db, turn) = cx.db(key);
    let set = db.read::<SortedSetValue>(turn, key)?;
    let query =
        parse(args, search, &mut |member| set.map(|set| set.score(member).map(Point::of_score)))?;
    let found = set.map_or_else(Vec::new, |set| find(set, &query));
    let Some(target) = query.target else {
        reply_found(reply, &found, &query);
        return Ok(());
    };
    let mut new = NewSortedSet::default();
    let mut digits = Digits::default();
    for found in &found {
        let score = match target.distances {
            true => found.distance_m / query.unit_m,
            false => found.pair.score(),
        };
        new.push(found.pair.member.text(&mut digits), score);
    }
    drop(found);
    new.sort();
    let name = match search {
        GeoSearch::Geosearchstore => "geosearchstore",
        _ => "georadiusstore",
    };
    let key = target_key(cx, args, search, target)?;
    if query.shape.as_ref().is_some_and(GeoShape::is_polygon) {
        // Replicas may not know BYPOLYGON.
        result::replay_result(cx, key, &new);
    }
    result::store(cx, key, name, &new, reply)?;
    if new.len() > 0 {
        cx.count_elements(1, new.len());
    }
    Ok(())
}

/// The destination key of a result. Its shard is held because the row finds the key too: after the
/// last of the options that name one.
fn target_key<'a>(
    cx: &Cx<'_>,
    args: &Args<'a>,
    search: GeoSearch,
    target: GeoTarget,
) -> Result<Key<'a>, Error> {
    if search == GeoSearch::Geosearchstore {
        return Ok(cx.nth_key(args, 0, 1));
    }
    let specs = match search {
        GeoSearch::RadiusByMember(_) => rows::MEMBER_KEYS,
        _ => rows::RADIUS_KEYS,
    };
    let nth = specs.iter().flat_map(|spec| spec.positions(args)).position(|at| at == target.at);
    Ok(cx.nth_key(args, nth.ok_or(Error::Syntax)?, target.at))
}

/// The members that a search finds, in its order and up to its limit.
fn find<'a>(set: SortedSetRef<'a>, query: &GeoQuery) -> Vec<GeoMatch<'a>> {
    let Some(shape) = &query.shape else { return Vec::new() };
    let limit = if query.any { query.count } else { usize::MAX };
    let mut found = Vec::new();
    'cells: for cell in shape.cells() {
        let scores = cell.scores();
        let range = ScoreRange { max_open: true, ..ScoreRange::closed(scores.start, scores.end) };
        for pair in set.walk(set.ranks_in_scores(&range), false) {
            if found.len() >= limit {
                break 'cells;
            }
            let position = Point::of_score(pair.score());
            if let Some(distance_m) = shape.distance_m(position) {
                let nth = found.len();
                found.push(GeoMatch { pair, position, distance_m, nth });
            }
        }
    }
    arrange(&mut found, query);
    found
}

/// Sorts the wanted results and drops the others.
fn arrange(found: &mut Vec<GeoMatch<'_>>, query: &GeoQuery) {
    let before = |a: &GeoMatch<'_>, b: &GeoMatch<'_>| {
        let by_distance = a.distance_m.total_cmp(&b.distance_m);
        let by_distance = match query.order {
            DistanceOrder::None => Ordering::Equal,
            DistanceOrder::Ascending => by_distance,
            DistanceOrder::Descending => by_distance.reverse(),
        };
        by_distance.then(a.nth.cmp(&b.nth))
    };
    let wanted = if query.count == 0 { found.len() } else { query.count };
    if wanted < found.len() {
        found.select_nth_unstable_by(wanted, before);
        found.truncate(wanted);
    }
    if query.order != DistanceOrder::None {
        found.sort_unstable_by(before);
    }
}

fn reply_found(reply: &mut Reply<'_>, found: &[GeoMatch<'_>], query: &GeoQuery) {
    let options = [query.with_distance, query.with_hash, query.with_position];
    let options = options.into_iter().filter(|wanted| *wanted).count();
    reply.array(found.len());
    for found in found {
        if options > 0 {
            reply.array(1 + options);
        }
        reply_member(reply, found.pair.member);
        if query.with_distance {
            reply_distance(reply, found.distance_m / query.unit_m);
        }
        if query.with_hash {
            reply.int(found.pair.score() as i64);
        }
        if query.with_position {
            reply_point(reply, found.position);
        }
    }
}

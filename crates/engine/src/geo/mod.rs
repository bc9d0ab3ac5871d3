//! Geospatial indexes (<https://redis.io/docs/latest/commands/?group=geo>): the list of their rows,
//! and definitions that the family's files share.
//!
//! A position is a member of a sorted set whose score encodes the position (`base::geohash`), so
//! the commands on sorted sets remove, count and list members. `add` adds them, `read` shows them,
//! and `search` finds them, with arguments from `query` and shapes from `shape`.

use base::geohash::Point;
use resp::Reply;

use crate::args::number::float;
use crate::error::Error;
use crate::error::geo::GeoError;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

mod add;
mod query;
mod read;
mod rows;
mod search;
mod shape;

/// The geo commands.
pub const ROWS: &[Row<Handler>] = &[
    add::GEOADD,
    read::GEODIST,
    read::GEOHASH,
    read::GEOPOS,
    rows::GEORADIUS,
    rows::GEORADIUS_RO,
    rows::GEORADIUSBYMEMBER,
    rows::GEORADIUSBYMEMBER_RO,
    rows::GEOSEARCH,
    rows::GEOSEARCHSTORE,
];

const WRITE: Flags = Flags::WRITE.with(Flags::DENYOOM);
const READ_KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
const LONGITUDE: Argument = Argument::new("longitude", Shape::Double);
const LATITUDE: Argument = Argument::new("latitude", Shape::Double);
const MEMBER: Argument = Argument::new("member", Shape::String);
const UNIT: Argument = Argument::new(
    "unit",
    Shape::OneOf(&[
        Argument::word("m", "M"),
        Argument::word("km", "KM"),
        Argument::word("ft", "FT"),
        Argument::word("mi", "MI"),
    ]),
);

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Geo, since)
}

/// A position given as two arguments.
fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point, Error> {
    let point = Point { longitude: float(longitude)?, latitude: float(latitude)? };
    if point.is_valid() {
        return Ok(point);
    }
    let text = format!("{:.6},{:.6}", point.longitude, point.latitude);
    Err(GeoError::Position(text).into())
}

/// Metres in a unit.
fn unit(word: &[u8]) -> Result<f64, Error> {
    const UNITS: [(&[u8], f64); 4] =
        [(b"m", 1.0), (b"km", 1000.0), (b"ft", 0.3048), (b"mi", 1609.34)];
    let found = UNITS.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    found.map(|(_, metres)| metres).ok_or(Error::Geo(GeoError::Unit))
}

/// Replies a distance with four decimals.
fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let (whole, decimals) = (scaled / 10_000, scaled % 10_000);
    let mut text = Vec::with_capacity(24);
    base::number::push_i64(&mut text, whole);
    text.push(b'.');
    let digit = |power| b'0' + (decimals / power % 10) as u8;
    text.extend([1000, 100, 10, 1].map(digit));
    reply.bulk(&text);
}

/// Replies a position as an array of two numbers.
fn reply_point(reply: &mut Reply<'_>, point: Point) {
    reply.array(2);
    reply.double(point.longitude);
    reply.double(point.latitude);
}

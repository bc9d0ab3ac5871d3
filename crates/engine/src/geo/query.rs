//! The arguments of searches: GEORADIUS and its variants, GEOSEARCH and GEOSEARCHSTORE.

use base::geohash::Point;
use base::number::parse_i64;
use resp::Args;

use super::shape::{GeoArea, GeoShape};
use super::{point, unit};
use crate::args::count::positive;
use crate::args::number::{float, integer};
use crate::error::Error;
use crate::error::echo::echo;
use crate::error::geo::GeoError;

/// The commands that search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeoSearch {
    /// GEORADIUS, and whether it may store its result.
    Radius(bool),
    /// GEORADIUSBYMEMBER, and whether it may store its result.
    RadiusByMember(bool),
    Geosearch,
    Geosearchstore,
}

/// The order of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DistanceOrder {
    /// As found.
    None,
    Ascending,
    Descending,
}

/// The destination of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeoTarget {
    /// The index of the key argument.
    pub(super) at: usize,
    /// Whether distances become the scores.
    pub(super) distances: bool,
}

/// A search.
#[derive(Clone, Debug)]
pub(super) struct GeoQuery {
    /// The area to search, or `None` if the center is a missing member.
    pub(super) shape: Option<GeoShape>,
    /// Metres in the unit of the result's distances.
    pub(super) unit_m: f64,
    pub(super) with_distance: bool,
    pub(super) with_hash: bool,
    pub(super) with_position: bool,
    /// The most results, or 0 for all.
    pub(super) count: usize,
    /// Whether the first results found suffice.
    pub(super) any: bool,
    pub(super) order: DistanceOrder,
    pub(super) target: Option<GeoTarget>,
}

/// The state of parsing.
struct GeoDraft<'a> {
    query: GeoQuery,
    center: Option<Point>,
    area: Option<GeoArea>,
    from_member: bool,
    from_position: bool,
    search: GeoSearch,
    /// The position of a member: `None` if the key is missing, `Some(None)` if the member is.
    position_of: &'a mut dyn FnMut(&[u8]) -> Option<Option<Point>>,
}

/// Parses a search. `position_of` returns the position of a member, or `None` if the key is
/// missing: then arguments that need a position are parsed as if it existed.
pub(super) fn parse(
    args: &mut Args<'_>,
    search: GeoSearch,
    position_of: &mut dyn FnMut(&[u8]) -> Option<Option<Point>>,
) -> Result<GeoQuery, Error> {
    let query = GeoQuery {
        shape: None,
        unit_m: 1.0,
        with_distance: false,
        with_hash: false,
        with_position: false,
        count: 0,
        any: false,
        order: DistanceOrder::None,
        target: None,
    };
    let (center, area) = (None, None);
    let (from_member, from_position) = (false, false);
    let mut draft =
        GeoDraft { query, center, area, from_member, from_position, search, position_of };
    draft.positional(args)?;
    while args.remaining() > 0 {
        draft.word(args)?;
    }
    draft.finish(args.name())
}

impl GeoDraft<'_> {
    /// Parses the arguments before the options.
    fn positional(&mut self, args: &mut Args<'_>) -> Result<(), Error> {
        match self.search {
            GeoSearch::Radius(_) => {
                self.center = Some(point(args.text(2), args.text(3))?);
                self.area = Some(self.circle(args.text(4), args.text(5))?);
                args.seek(6);
            }
            GeoSearch::RadiusByMember(_) => {
                self.member(args.text(2))?;
                if self.center.is_some() {
                    self.area = Some(self.circle(args.text(3), args.text(4))?);
                }
                args.seek(5);
            }
            GeoSearch::Geosearch => args.seek(2),
            GeoSearch::Geosearchstore => {
                self.query.target = Some(GeoTarget { at: 1, distances: false });
                args.seek(3);
            }
        }
        Ok(())
    }

    /// Parses the next option and its arguments.
    fn word(&mut self, args: &mut Args<'_>) -> Result<(), Error> {
        // Arguments after the option.
        let behind = args.remaining() - 1;
        let may_store =
            matches!(self.search, GeoSearch::Radius(true) | GeoSearch::RadiusByMember(true))
                && behind > 0;
        if args.take_word("withdist") {
            self.query.with_distance = true;
        } else if args.take_word("withhash") {
            self.query.with_hash = true;
        } else if args.take_word("withcoord") {
            self.query.with_position = true;
        } else if args.take_word("any") {
            self.query.any = true;
        } else if args.take_word("asc") {
            self.query.order = DistanceOrder::Ascending;
        } else if args.take_word("desc") {
            self.query.order = DistanceOrder::Descending;
        } else if behind > 0 && args.take_word("count") {
            let count = args.next().unwrap_or_default();
            integer(count)?;
            self.query.count = positive(count).ok_or(GeoError::Count)?;
        } else if may_store && args.take_word("store") {
            self.target(args, false);
        } else if may_store && args.take_word("storedist") {
            self.target(args, true);
        } else if self.search == GeoSearch::Geosearchstore && args.take_word("storedist") {
            self.query.target = Some(GeoTarget { at: 1, distances: true });
        } else if matches!(self.search, GeoSearch::Geosearch | GeoSearch::Geosearchstore) {
            return self.center_or_shape(args, behind);
        } else {
            return Err(Error::Syntax);
        }
        Ok(())
    }

    fn target(&mut self, args: &mut Args<'_>, distances: bool) {
        self.query.target = Some(GeoTarget { at: Args::position(args), distances });
        args.next();
    }

    /// Parses the options that GEOSEARCH has instead of leading arguments.
    fn center_or_shape(&mut self, args: &mut Args<'_>, behind: usize) -> Result<(), Error> {
        let polygon = matches!(self.area, Some(GeoArea::Polygon(_)));
        let circle = matches!(self.area, Some(GeoArea::Circle(_)));
        let a_box = matches!(self.area, Some(GeoArea::Box(..)));
        let from = self.from_member || self.from_position;
        if behind > 0 && !self.from_position && !polygon && args.take_word("frommember") {
            self.member(args.next().unwrap_or_default())?;
        } else if behind > 1 && !self.from_member && !polygon && args.take_word("fromlonlat") {
            let (longitude, latitude) = (args.next(), args.next());
            let point = point(longitude.unwrap_or_default(), latitude.unwrap_or_default())?;
            self.center = Some(point);
            self.from_position = true;
        } else if behind > 1 && !a_box && !polygon && args.take_word("byradius") {
            let (radius, unit) = (args.next(), args.next());
            let circle = self.circle(radius.unwrap_or_default(), unit.unwrap_or_default())?;
            self.area = Some(circle);
        } else if behind > 2 && !circle && !polygon && args.take_word("bybox") {
            self.area = Some(self.a_box(args)?);
        } else if behind > 1 && !circle && !a_box && !from && args.take_word("bypolygon") {
            self.area = Some(polygon_of(args)?);
        } else {
            return Err(Error::Syntax);
        }
        Ok(())
    }

    /// Uses the position of a member as the center.
    fn member(&mut self, member: &[u8]) -> Result<(), Error> {
        self.from_member = true;
        if let Some(position) = (self.position_of)(member) {
            self.center = Some(position.ok_or(GeoError::NoMember)?);
        }
        Ok(())
    }

    fn circle(&mut self, radius: &[u8], word: &[u8]) -> Result<GeoArea, Error> {
        let radius = float(radius).map_err(|_| GeoError::Radius)?;
        if radius < 0.0 {
            return Err(GeoError::RadiusNegative.into());
        }
        self.query.unit_m = unit(word)?;
        Ok(GeoArea::Circle(radius * self.query.unit_m))
    }

    fn a_box(&mut self, args: &mut Args<'_>) -> Result<GeoArea, Error> {
        let width = float(args.next().unwrap_or_default()).map_err(|_| GeoError::Width)?;
        let height = float(args.next().unwrap_or_default()).map_err(|_| GeoError::Height)?;
        if height < 0.0 || width < 0.0 {
            return Err(GeoError::BoxNegative.into());
        }
        self.query.unit_m = unit(args.next().unwrap_or_default())?;
        Ok(GeoArea::Box(width * self.query.unit_m, height * self.query.unit_m))
    }

    /// Checks the options together.
    fn finish(self, name: &[u8]) -> Result<GeoQuery, Error> {
        let Self { mut query, center, area, from_member, from_position, search, .. } = self;
        let name = || echo(name);
        let shows = query.with_distance || query.with_hash || query.with_position;
        if query.target.is_some() && shows {
            let who = match search {
                GeoSearch::Geosearchstore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(GeoError::NothingToShow(who).into());
        }
        if matches!(search, GeoSearch::Geosearch | GeoSearch::Geosearchstore) {
            let polygon = matches!(area, Some(GeoArea::Polygon(_)));
            if !from_member && !from_position && !polygon {
                return Err(GeoError::From(name()).into());
            }
            if area.is_none() {
                return Err(GeoError::By(name()).into());
            }
        }
        if query.any && query.count == 0 {
            return Err(GeoError::AnyAlone.into());
        }
        // A limited search returns the nearest results, unless any will do.
        if query.count > 0 && query.order == DistanceOrder::None && !query.any {
            query.order = DistanceOrder::Ascending;
        }
        query.shape = match (center, area) {
            (_, Some(GeoArea::Polygon(vertices))) => Some(GeoShape::polygon(vertices)),
            (Some(center), Some(area)) => Some(GeoShape { center, area }),
            _ => None,
        };
        Ok(query)
    }
}

fn polygon_of(args: &mut Args<'_>) -> Result<GeoArea, Error> {
    let count = args.next().and_then(parse_i64).and_then(|count| i32::try_from(count).ok());
    let count = count.ok_or(GeoError::Vertices)?;
    let count = usize::try_from(count).ok().filter(|count| *count >= 3);
    let count = count.filter(|count| *count <= args.remaining() / 2);
    let vertices = (0..count.ok_or(GeoError::FewVertices)?).map(|_| {
        let (longitude, latitude) = (args.next(), args.next());
        point(longitude.unwrap_or_default(), latitude.unwrap_or_default())
    });
    vertices.collect::<Result<_, _>>().map(GeoArea::Polygon)
}

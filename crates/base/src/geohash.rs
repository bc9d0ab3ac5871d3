//! Geohashes: points on the earth as 52-bit numbers; numbers that are close mean points that are
//! mostly close.
//!
//! The ranges of longitude and latitude are each halved 26 times, and the bits of the halves are
//! interleaved; the lowest bit belongs to the latitude. So all points of a cell of the grid form
//! one range of numbers. A number is exact as a double, the score of a member in a sorted set.
//!
//! ```text
//! bit 51                                      bit 0
//!  lon  lat  lon  lat  ...  lon  lat  lon  lat
//!  `- the first halves: a cell of step 1
//! ```
//!
//! Numbers and distances equal those of Redis in every digit: the ranges, the radius of the earth
//! and the order of floating-point operations are the same.

use std::ops::Range;

/// The greatest longitude, in degrees; the least is its negative.
pub const LONGITUDE_MAX: f64 = 180.0;
/// The greatest latitude, in degrees; the least is its negative. A square Mercator map ends there
/// (EPSG:3857).
pub const LATITUDE_MAX: f64 = 85.051_128_78;
/// How often each range is halved.
pub const STEP_MAX: u32 = 26;

/// The radius for great circles, in metres, as in Redis.
pub const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half the width of the Mercator map at the equator, in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;

/// The bits of the latitude in an interleaved number.
const LATITUDES: u64 = 0x5555_5555_5555_5555;

/// A point on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// The sides of a cell or of a search area, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    #[allow(missing_docs)]
    pub west: f64,
    #[allow(missing_docs)]
    pub south: f64,
    #[allow(missing_docs)]
    pub east: f64,
    #[allow(missing_docs)]
    pub north: f64,
}

impl Point {
    /// Whether the point has a number.
    pub fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// The nearest point that has a number.
    pub fn clamped(self) -> Self {
        Self {
            longitude: self.longitude.clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
            latitude: self.latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
        }
    }

    /// The number of a valid point.
    pub fn score(self) -> u64 {
        Cell::of(self, STEP_MAX).bits
    }

    /// The middle of the cell with this score. Every double has one, since clients may add members
    /// with any score.
    #[inline]
    pub fn of_score(score: f64) -> Self {
        // As C compilers convert it on usual hardware: negative values wrap around, and values that
        // need more than 64 bits become 0.
        let bits = match score {
            score if score >= 18_446_744_073_709_551_616.0 => 0,
            score if score >= 9_223_372_036_854_775_808.0 => score as u64,
            score => score as i64 as u64,
        };
        let cell = Cell { bits, step: STEP_MAX }.bounds();
        let longitude = f64::midpoint(cell.west, cell.east);
        Self { longitude, latitude: f64::midpoint(cell.south, cell.north) }.clamped()
    }

    /// The distance in metres along a great circle, by haversines.
    #[inline]
    pub fn distance_m(self, other: Self) -> f64 {
        let (own, its) = (self.longitude.to_rad(), other.longitude.to_rad());
        let v = ((its - own) / 2.0).sin();
        if v == 0.0 {
            return self.north_distance_m(other);
        }
        let (own, its) = (self.latitude.to_rad(), other.latitude.to_rad());
        let u = ((its - own) / 2.0).sin();
        let a = u * u + own.cos() * its.cos() * v * v;
        // For opposite points, rounding may give more than 1.
        2.0 * EARTH_RADIUS_M * a.sqrt().min(1.0).asin()
    }

    /// The distance in metres between the latitudes.
    #[inline]
    pub fn north_distance_m(self, other: Self) -> f64 {
        EARTH_RADIUS_M * (other.latitude.to_rad() - self.latitude.to_rad()).abs()
    }

    /// The standard geohash with eleven letters, whose latitudes reach the poles. There are not
    /// enough bits for the last letter, which is always `0`.
    pub fn text(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = Cell::in_ranges(self, STEP_MAX, 90.0).bits;
        std::array::from_fn(|i| match i {
            10 => b'0',
            _ => LETTERS[(bits >> (52 - (i + 1) * 5) & 31) as usize],
        })
    }
}

/// Degrees to radians and back, with the factor of Redis, so that results are equal.
trait Degrees {
    fn to_rad(self) -> f64;
    fn to_deg(self) -> f64;
}

const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

impl Degrees for f64 {
    #[inline]
    fn to_rad(self) -> f64 {
        self * RADIANS_PER_DEGREE
    }

    #[inline]
    fn to_deg(self) -> f64 {
        self / RADIANS_PER_DEGREE
    }
}

impl Bounds {
    /// The area up to `east_m` metres east and west of a point and `north_m` metres north and
    /// south. Degrees of longitude are shorter towards the pole, so the parallel closer to the pole
    /// decides, as in Redis.
    pub fn around(center: Point, east_m: f64, north_m: f64) -> Self {
        let north = (north_m / EARTH_RADIUS_M).to_deg();
        let at = |latitude: f64| (east_m / EARTH_RADIUS_M / latitude.to_rad().cos()).to_deg();
        let pole = if center.latitude < 0.0 { -north } else { north };
        let east = at(center.latitude + pole);
        Self {
            west: center.longitude - east,
            south: center.latitude - north,
            east: center.longitude + east,
            north: center.latitude + north,
        }
    }

    /// The smallest area that contains the points.
    pub fn of(points: &[Point]) -> Self {
        let all = Self {
            west: LONGITUDE_MAX,
            south: LATITUDE_MAX,
            east: -LONGITUDE_MAX,
            north: -LATITUDE_MAX,
        };
        points.iter().fold(all, |all, point| Self {
            west: all.west.min(point.longitude),
            south: all.south.min(point.latitude),
            east: all.east.max(point.longitude),
            north: all.north.max(point.latitude),
        })
    }
}

/// The middle of the points on the sphere.
pub fn centroid(points: &[Point]) -> Point {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for point in points {
        let (longitude, latitude) = (point.longitude.to_rad(), point.latitude.to_rad());
        x += latitude.cos() * longitude.cos();
        y += latitude.cos() * longitude.sin();
        z += latitude.sin();
    }
    let latitude = z.atan2((x * x + y * y).sqrt());
    Point { longitude: y.atan2(x).to_deg(), latitude: latitude.to_deg() }
}

/// A cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    /// How often the ranges were halved.
    step: u32,
}

impl Cell {
    /// The cell of a valid point.
    pub fn of(point: Point, step: u32) -> Self {
        Self::in_ranges(point, step, LATITUDE_MAX)
    }

    fn in_ranges(point: Point, step: u32, latitude_max: f64) -> Self {
        let part = |at: f64, max: f64| (at + max) / (max + max) * (1u64 << step) as f64;
        let latitude = part(point.latitude, latitude_max) as u32;
        let longitude = part(point.longitude, LONGITUDE_MAX) as u32;
        Self { bits: spread(latitude) | spread(longitude) << 1, step }
    }

    /// Its sides.
    #[inline]
    pub fn bounds(self) -> Bounds {
        let (latitude, longitude) = (gather(self.bits), gather(self.bits >> 1));
        let side =
            |at: u32, max: f64| -max + (f64::from(at) / (1u64 << self.step) as f64) * (max + max);
        Bounds {
            west: side(longitude, LONGITUDE_MAX),
            south: side(latitude, LATITUDE_MAX),
            east: side(longitude.wrapping_add(1), LONGITUDE_MAX),
            north: side(latitude.wrapping_add(1), LATITUDE_MAX),
        }
    }

    /// The scores of its points.
    pub fn scores(self) -> Range<f64> {
        let shift = 2 * (STEP_MAX - self.step);
        (self.bits << shift) as f64..((self.bits + 1) << shift) as f64
    }

    /// The cell that is `east` cells to the east and `north` cells to the north. The grid wraps
    /// around.
    pub fn moved(self, east: i32, north: i32) -> Self {
        let mask = (1u64 << self.step) - 1;
        let go = |from: u32, by: i32| match by {
            // A point on the last side of the grid is in a cell outside it, and stays there.
            0 => from,
            by => ((i64::from(from) + i64::from(by)) as u64 & mask) as u32,
        };
        let latitude = go(gather(self.bits), north);
        let longitude = go(gather(self.bits >> 1), east);
        Self { bits: spread(latitude) | spread(longitude) << 1, step: self.step }
    }
}

/// The cells that cover a search around a point, in the order of Redis: the middle one, and then
/// those around it that can contain results.
pub fn cover(center: Point, bounds: Bounds, radius_m: f64) -> impl Iterator<Item = Cell> {
    let center = center.clamped();
    let mut step = step_for(radius_m, center.latitude);
    let mut middle = Cell::of(center, step);
    let reach = |east, north| middle.moved(east, north).bounds();
    // If the point is near the side of a cell, the next cell may be too small.
    let too_small = reach(0, 1).north < bounds.north
        || reach(0, -1).south > bounds.south
        || reach(1, 0).east < bounds.east
        || reach(-1, 0).west > bounds.west;
    if step > 1 && too_small {
        step -= 1;
        middle = Cell::of(center, step);
    }
    let own = middle.bounds();
    let useless = move |east: i32, north: i32| {
        step >= 2
            && (north < 0 && own.south < bounds.south
                || north > 0 && own.north > bounds.north
                || east < 0 && own.west < bounds.west
                || east > 0 && own.east > bounds.east)
    };
    const AROUND: [(i32, i32); 9] =
        [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
    let mut last = None;
    AROUND.into_iter().filter(move |(east, north)| !useless(*east, *north)).filter_map(
        move |(east, north)| {
            // In a coarse grid the neighbours on both sides are the same cell.
            let cell = middle.moved(east, north);
            (last.replace(cell) != Some(cell)).then_some(cell)
        },
    )
}

/// The finest grid in which three cells are at least as wide as the search.
fn step_for(mut radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEP_MAX;
    }
    let mut step = 1;
    while radius_m < MERCATOR_MAX_M {
        radius_m *= 2.0;
        step += 1;
    }
    step -= 2;
    // Degrees of longitude are shorter towards the poles.
    if latitude.abs() > 66.0 {
        step -= 1;
        if latitude.abs() > 80.0 {
            step -= 1;
        }
    }
    step.clamp(1, STEP_MAX as i32) as u32
}

/// Moves the bits of a number to the even positions.
#[inline]
fn spread(number: u32) -> u64 {
    let x = u64::from(number);
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & LATITUDES
}

/// The reverse: reads the number from the even positions.
#[inline]
fn gather(bits: u64) -> u32 {
    let x = bits & LATITUDES;
    let x = (x | x >> 1) & 0x3333_3333_3333_3333;
    let x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const PALERMO: Point = Point { longitude: 13.361_389, latitude: 38.115_556 };
    const CATANIA: Point = Point { longitude: 15.087_269, latitude: 37.502_669 };

    #[test]
    fn numbers_letters_and_distances_equal_those_of_redis() {
        assert_eq!(PALERMO.score(), 3_479_099_956_230_698);
        assert_eq!(CATANIA.score(), 3_479_447_370_796_909);
        let stored = |point: Point| Point::of_score(point.score() as f64);
        assert_eq!(stored(PALERMO).longitude, 13.361_389_338_970_184);
        assert_eq!(stored(PALERMO).latitude, 38.115_556_395_496_3);
        assert_eq!(&stored(PALERMO).text(), b"sqc8b49rny0");
        assert_eq!(&stored(CATANIA).text(), b"sqdtr74hyu0");
        let distance = stored(PALERMO).distance_m(stored(CATANIA));
        assert_eq!((distance * 10_000.0).round_ties_even(), 1_662_741_516.0);
    }

    fn anywhere(random: &mut Random) -> Point {
        let mut within =
            |max: f64| (random.below(1 << 30) as f64 / (1u64 << 30) as f64) * (max + max) - max;
        Point { longitude: within(LONGITUDE_MAX), latitude: within(LATITUDE_MAX) }
    }

    #[test]
    fn a_cell_contains_its_points_and_touches_its_neighbours() {
        let mut random = Random::new(2);
        for _ in 0..2000 {
            let point = anywhere(&mut random);
            let step = 1 + random.below(26) as u32;
            let cell = Cell::of(point, step);
            let bounds = cell.bounds();
            assert!(bounds.west <= point.longitude && point.longitude <= bounds.east);
            assert!(bounds.south <= point.latitude && point.latitude <= bounds.north);
            assert!(cell.scores().contains(&(point.score() as f64)));
            for (east, north) in [(1, 0), (0, 1), (-1, 1), (0, 0)] {
                assert_eq!(cell.moved(east, north).moved(-east, -north), cell);
            }
            let east = cell.moved(1, 0).bounds();
            assert!(east.west == bounds.east || east.west == -LONGITUDE_MAX);
            let back = Point::of_score(point.score() as f64);
            assert!(back.distance_m(point) < 1.0);
        }
    }

    #[test]
    fn the_cover_contains_all_near_points() {
        let mut random = Random::new(3);
        let mut near = 0;
        for _ in 0..20_000 {
            let center = anywhere(&mut random);
            let radius_m = 10f64.powi(random.below(7) as i32);
            // At the antimeridian and near the poles the cover has gaps, as in Redis.
            if center.latitude.abs() > 60.0 || center.longitude.abs() > 100.0 {
                continue;
            }
            let mut offset =
                || (random.below(2000) as f64 - 1000.0) / 1000.0 * radius_m / 111_000.0;
            let (east, north) = (offset(), offset());
            let place =
                Point { longitude: center.longitude + east, latitude: center.latitude + north };
            if !place.is_valid() || center.distance_m(place) > radius_m {
                continue;
            }
            near += 1;
            let bounds = Bounds::around(center, radius_m, radius_m);
            let score = place.score() as f64;
            assert!(
                cover(center, bounds, radius_m).any(|cell| cell.scores().contains(&score)),
                "{center:?} {place:?} {radius_m}"
            );
        }
        assert!(near > 1000, "{near}");
    }

    #[test]
    fn every_score_has_a_point() {
        for score in [0.0, -1.0, 1e300, -1e300, f64::INFINITY, f64::NAN, 9.3e18, 4.5e15] {
            assert!(Point::of_score(score).is_valid(), "{score}");
        }
    }

    #[test]
    fn every_search_has_a_cover() {
        for longitude in [-180.0, 0.0, 180.0] {
            for latitude in [-LATITUDE_MAX, 0.0, LATITUDE_MAX] {
                for radius_m in [0.0, 1e-300, 1.0, 1e7, 1e300, f64::INFINITY] {
                    let center = Point { longitude, latitude };
                    let bounds = Bounds::around(center, radius_m, radius_m);
                    assert!(cover(center, bounds, radius_m).count() > 0);
                }
            }
        }
    }
}

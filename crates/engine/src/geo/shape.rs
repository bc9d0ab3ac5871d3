//! The shapes of searches, and which positions are inside.

use base::geohash::{Bounds, Cell, Point, centroid, cover};

/// How much farther than its radius a circle may reach because of rounding, as a share and in
/// metres.
const ROUNDING: (f64, f64) = (1e-9, 1e-3);

/// The area to search.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GeoArea {
    /// Up to a distance from the center, in metres.
    Circle(f64),
    /// Width and height of a box around the center, in metres.
    Box(f64, f64),
    /// The positions of a polygon, independent of the center.
    Polygon(Vec<Point>),
}

/// An area and its center.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GeoShape {
    /// The point from which distances are measured.
    pub(super) center: Point,
    pub(super) area: GeoArea,
}

impl GeoShape {
    /// A polygon around its own center.
    pub(super) fn polygon(vertices: Vec<Point>) -> Self {
        Self { center: centroid(&vertices), area: GeoArea::Polygon(vertices) }
    }

    /// Whether the area is a polygon.
    pub(super) fn is_polygon(&self) -> bool {
        matches!(self.area, GeoArea::Polygon(_))
    }

    /// The cells that contain all positions inside.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        let (bounds, radius_m) = match &self.area {
            GeoArea::Circle(radius_m) => {
                (Bounds::around(self.center, *radius_m, *radius_m), *radius_m)
            }
            GeoArea::Box(width_m, height_m) => {
                let (east_m, north_m) = (width_m / 2.0, height_m / 2.0);
                let corner_m = (east_m * east_m + north_m * north_m).sqrt();
                (Bounds::around(self.center, east_m, north_m), corner_m)
            }
            GeoArea::Polygon(vertices) => {
                let bounds = Bounds::of(vertices);
                let corner =
                    |longitude, latitude| self.center.distance_m(Point { longitude, latitude });
                let radius_m = corner(bounds.west, bounds.north)
                    .max(corner(bounds.east, bounds.north))
                    .max(corner(bounds.west, bounds.south))
                    .max(corner(bounds.east, bounds.south));
                (bounds, radius_m)
            }
        };
        cover(self.center, bounds, radius_m)
    }

    /// The distance of a position from the center, in metres, if the position is inside.
    #[inline]
    pub(super) fn distance_m(&self, position: Point) -> Option<f64> {
        match &self.area {
            GeoArea::Circle(radius_m) => {
                // Most outside positions are excluded by latitude alone, without trigonometry.
                let reach_m = radius_m + radius_m * ROUNDING.0 + ROUNDING.1;
                if self.center.north_distance_m(position) > reach_m {
                    return None;
                }
                let distance_m = self.center.distance_m(position);
                (distance_m <= *radius_m).then_some(distance_m)
            }
            GeoArea::Box(width_m, height_m) => {
                if position.north_distance_m(self.center) > height_m / 2.0 {
                    return None;
                }
                let beside = Point { latitude: position.latitude, ..self.center };
                if position.distance_m(beside) > width_m / 2.0 {
                    return None;
                }
                Some(self.center.distance_m(position))
            }
            GeoArea::Polygon(vertices) => {
                is_between(vertices, position).then(|| self.center.distance_m(position))
            }
        }
    }
}

/// Whether a position is inside a polygon on the flat map: whether a line from it to the east
/// crosses an odd number of sides.
fn is_between(vertices: &[Point], position: Point) -> bool {
    let others = vertices.iter().cycle().skip(vertices.len().saturating_sub(1));
    let crossed = vertices.iter().zip(others).filter(|(a, b)| {
        let spans = (a.latitude > position.latitude) != (b.latitude > position.latitude);
        spans && {
            let run = (b.longitude - a.longitude) * (position.latitude - a.latitude);
            position.longitude < run / (b.latitude - a.latitude) + a.longitude
        }
    });
    crossed.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(longitude: f64, latitude: f64) -> Point {
        Point { longitude, latitude }
    }

    #[test]
    fn polygons_with_a_notch() {
        // A square from 0 to 4 with a triangle cut out of its top.
        let vertices = [at(0.0, 0.0), at(4.0, 0.0), at(4.0, 4.0), at(2.0, 2.0), at(0.0, 4.0)];
        for (longitude, latitude, inside) in [
            (1.0, 1.0, true),
            (2.0, 1.9, true),
            (2.0, 2.1, false),
            (0.5, 3.0, true),
            (3.9, 3.5, true),
            (-0.1, 1.0, false),
            (4.1, 1.0, false),
            (1.0, -0.1, false),
            (1.0, 4.1, false),
        ] {
            assert_eq!(is_between(&vertices, at(longitude, latitude)), inside);
        }
    }

    #[test]
    fn a_circle_ends_at_its_radius() {
        let center = at(10.0, 50.0);
        for (east, north) in [(0.3, 0.0), (0.0, 0.3), (0.2, -0.2), (-0.1, 0.25)] {
            let position = at(10.0 + east, 50.0 + north);
            let distance_m = center.distance_m(position);
            let circle = |radius_m| GeoShape { center, area: GeoArea::Circle(radius_m) };
            assert_eq!(circle(distance_m).distance_m(position), Some(distance_m));
            assert_eq!(circle(distance_m * (1.0 - 1e-12)).distance_m(position), None);
        }
    }
}

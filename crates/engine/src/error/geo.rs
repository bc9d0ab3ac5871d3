//! What is wrong with a request on places.

use std::fmt;

use super::Error;

/// Why a geo command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeoError {
    /// A place beyond the map, as it was given.
    Place(String),
    /// A unit of length that is none.
    Unit,
    /// A radius that is no number.
    Radius,
    /// A radius below zero.
    RadiusNegative,
    /// A width that is no number.
    Width,
    /// A height that is no number.
    Height,
    /// A box whose sides are below zero.
    BoxNegative,
    /// The member to search around is not there.
    NoMember,
    /// A count that is not above zero.
    Count,
    /// ANY without COUNT.
    AnyAlone,
    /// Distances and the like are wanted by a command, by its name, that stores its result.
    NothingToShow(&'static str),
    /// A search, by the name it was called, without a place to search around.
    From(String),
    /// A search, by the name it was called, without a shape.
    By(String),
    /// A number of vertices that is none.
    Vertices,
    /// A polygon of fewer vertices than a triangle, or than it says.
    FewVertices,
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Place(place) => return write!(f, "ERR invalid longitude,latitude pair {place}"),
            Self::Unit => "ERR unsupported unit provided. please use M, KM, FT, MI",
            Self::Radius => "ERR need numeric radius",
            Self::RadiusNegative => "ERR radius cannot be negative",
            Self::Width => "ERR need numeric width",
            Self::Height => "ERR need numeric height",
            Self::BoxNegative => "ERR height or width cannot be negative",
            Self::NoMember => "ERR could not decode requested zset member",
            Self::Count => "ERR COUNT must be > 0",
            Self::AnyAlone => "ERR the ANY argument requires COUNT argument",
            Self::NothingToShow(who) => {
                let options = "WITHDIST, WITHHASH and WITHCOORD options";
                return write!(f, "ERR {who} is not compatible with {options}");
            }
            Self::From(name) => {
                let words = "FROMMEMBER or FROMLONLAT";
                return write!(f, "ERR exactly one of {words} can be specified for {name}");
            }
            Self::By(name) => {
                let words = "BYRADIUS and BYBOX";
                return write!(f, "ERR exactly one of {words} can be specified for {name}");
            }
            Self::Vertices => "ERR invalid number of vertices",
            Self::FewVertices => "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices",
        })
    }
}

impl From<GeoError> for Error {
    fn from(error: GeoError) -> Self {
        Self::Geo(error)
    }
}

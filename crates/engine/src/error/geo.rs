//! The errors of geo commands.

use std::fmt;

/// Why a geo command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeoError {
    /// A position outside the valid range, as `longitude,latitude`.
    Position(String),
    /// An unknown unit of length.
    Unit,
    /// A radius that is not a number.
    Radius,
    /// A negative radius.
    RadiusNegative,
    /// A width that is not a number.
    Width,
    /// A height that is not a number.
    Height,
    /// A box with a negative width or height.
    BoxNegative,
    /// The member to search around does not exist.
    NoMember,
    /// A COUNT that is not positive.
    Count,
    /// ANY without COUNT.
    AnyAlone,
    /// WITHDIST, WITHHASH or WITHCOORD for a command, by its name, that stores its result.
    NothingToShow(&'static str),
    /// A search, by the name of its command, without a center.
    From(String),
    /// A search, by the name of its command, without a shape.
    By(String),
    /// A number of vertices that is not an integer.
    Vertices,
    /// A polygon with fewer than three vertices, or fewer than announced.
    FewVertices,
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Position(pair) => return write!(f, "ERR invalid longitude,latitude pair {pair}"),
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

//! The rows of the searching commands.

use super::query::GeoSearch;
use super::search::search;
use super::{LATITUDE, LONGITUDE, MEMBER, READ_KEY, UNIT, WRITE, spec};
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape, Spec};

const COMPLEXITY: &str =
    "O(N+log(M)) for the N members in the cells around the shape and all M of the set.";
const UPPERCASE_CAME: (&str, &str) = ("7.0.0", "Units may be written in upper case.");
const ANY_CAME: (&str, &str) = ("6.2.0", "The option `ANY` of `COUNT`.");

pub(super) const GEORADIUS: Row<Handler> = Row::new(
    radius("georadius", -6, "3.2.0")
        .summary(
            "Returns or stores the members of a geospatial index within a distance of a position.",
        )
        .flags(WRITE.with(Flags::MOVABLE_KEYS))
        .keys(RADIUS_KEYS)
        .arguments(&[
            Argument::key(),
            LONGITUDE,
            LATITUDE,
            RADIUS,
            UNIT,
            WITH_COORD,
            WITH_DIST,
            WITH_HASH,
            COUNT_ANY_LATER,
            ORDER,
            STORE,
        ])
        .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"),
    |cx, args, reply| search(cx, args, reply, GeoSearch::Radius(true)),
);

pub(super) const GEORADIUS_RO: Row<Handler> = Row::new(
    radius("georadius_ro", -6, "3.2.10")
        .summary("Returns the members of a geospatial index within a distance of a position.")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            LONGITUDE,
            LATITUDE,
            RADIUS,
            UNIT,
            WITH_COORD,
            WITH_DIST,
            WITH_HASH,
            COUNT_ANY_LATER,
            ORDER,
        ])
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument"),
    |cx, args, reply| search(cx, args, reply, GeoSearch::Radius(false)),
);

pub(super) const GEORADIUSBYMEMBER: Row<Handler> = Row::new(
    radius("georadiusbymember", -5, "3.2.0")
        .summary(
            "Returns or stores the members of a geospatial index within a distance of a member.",
        )
        .flags(WRITE.with(Flags::MOVABLE_KEYS))
        .keys(MEMBER_KEYS)
        .arguments(&[
            Argument::key(),
            MEMBER,
            RADIUS,
            UNIT,
            WITH_COORD,
            WITH_DIST,
            WITH_HASH,
            COUNT,
            ORDER,
            STORE,
        ])
        .deprecated(
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        ),
    |cx, args, reply| search(cx, args, reply, GeoSearch::RadiusByMember(true)),
);

pub(super) const GEORADIUSBYMEMBER_RO: Row<Handler> = Row::new(
    radius("georadiusbymember_ro", -5, "3.2.10")
        .summary("Returns the members of a geospatial index within a distance of a member.")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            MEMBER,
            RADIUS,
            UNIT,
            WITH_COORD,
            WITH_DIST,
            WITH_HASH,
            COUNT,
            ORDER,
        ])
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
    |cx, args, reply| search(cx, args, reply, GeoSearch::RadiusByMember(false)),
);

pub(super) const GEOSEARCH: Row<Handler> = Row::new(
    shapes("geosearch", -7)
        .summary("Returns the members of a geospatial index inside a circle, a box or a polygon.")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .arguments(&[Argument::key(), FROM, BY, ORDER, COUNT, WITH_COORD, WITH_DIST, WITH_HASH]),
    |cx, args, reply| search(cx, args, reply, GeoSearch::Geosearch),
);

pub(super) const GEOSEARCHSTORE: Row<Handler> = Row::new(
    shapes("geosearchstore", -8)
        .summary("Stores the members of a geospatial index inside a circle, a box or a polygon.")
        .flags(WRITE)
        .keys(&[
            KeySpec::one(1, Access::OW.with(Access::UPDATE)),
            KeySpec::one(2, Access::RO.with(Access::ACCESS)),
        ])
        .arguments(&[
            Argument::new("destination", Shape::Key),
            Argument::new("source", Shape::Key),
            FROM,
            BY,
            ORDER,
            COUNT,
            Argument::word("storedist", "STOREDIST").optional(),
        ]),
    |cx, args, reply| search(cx, args, reply, GeoSearch::Geosearchstore),
);

/// A search by radius under one of its older names.
const fn radius(name: &'static str, arity: i32, since: &'static str) -> Spec {
    spec(name, arity, since).complexity(COMPLEXITY).history(&[ANY_CAME, UPPERCASE_CAME])
}

/// A search by any shape.
const fn shapes(name: &'static str, arity: i32) -> Spec {
    const HISTORY: &[(&str, &str)] =
        &[UPPERCASE_CAME, ("9.0.0", "The shape `BYPOLYGON`, as Valkey has it.")];
    spec(name, arity, "6.2.0").complexity(COMPLEXITY).history(HISTORY)
}

/// The keys of GEORADIUS.
pub(super) const RADIUS_KEYS: &[KeySpec] = &storing(6);
/// The keys of GEORADIUSBYMEMBER.
pub(super) const MEMBER_KEYS: &[KeySpec] = &storing(5);

/// The key that is searched, and those after STORE and STOREDIST, searched from an argument on.
/// Only the last of these is written.
const fn storing(from: i32) -> [KeySpec; 3] {
    const STORED: Access = Access::OW.with(Access::UPDATE);
    [
        KeySpec::one(1, Access::RO.with(Access::ACCESS)),
        KeySpec::after_last("STORE", &["STOREDIST"], from, STORED),
        KeySpec::after_last("STOREDIST", &["STORE"], from, STORED),
    ]
}

const RADIUS: Argument = Argument::new("radius", Shape::Double);
const WITH_COORD: Argument = Argument::word("withcoord", "WITHCOORD").optional();
const WITH_DIST: Argument = Argument::word("withdist", "WITHDIST").optional();
const WITH_HASH: Argument = Argument::word("withhash", "WITHHASH").optional();
const ORDER: Argument = Argument::new(
    "order",
    Shape::OneOf(&[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")]),
)
.optional();

const LIMIT: Argument = Argument::new("count", Shape::Integer).after("COUNT");
const ANY: Argument = Argument::word("any", "ANY").optional();
const COUNT: Argument = Argument::new("count-block", Shape::Block(&[LIMIT, ANY])).optional();
const COUNT_ANY_LATER: Argument =
    Argument::new("count-block", Shape::Block(&[LIMIT, ANY.since("6.2.0")])).optional();
const STORE: Argument = Argument::new(
    "store",
    Shape::OneOf(&[
        Argument::new("storekey", Shape::Key).display("key").after("STORE"),
        Argument::new("storedistkey", Shape::Key).display("key").after("STOREDIST"),
    ]),
)
.optional();

const FROM: Argument = Argument::new(
    "from",
    Shape::OneOf(&[
        MEMBER.after("FROMMEMBER"),
        Argument::new("fromlonlat", Shape::Block(&[LONGITUDE, LATITUDE])).after("FROMLONLAT"),
    ]),
)
.optional();

const BY: Argument = Argument::new(
    "by",
    Shape::OneOf(&[
        Argument::new("circle", Shape::Block(&[RADIUS.after("BYRADIUS"), UNIT])),
        Argument::new(
            "box",
            Shape::Block(&[
                Argument::new("width", Shape::Double).after("BYBOX"),
                Argument::new("height", Shape::Double),
                UNIT,
            ]),
        ),
        Argument::new(
            "polygon",
            Shape::Block(&[
                Argument::new("num-vertices", Shape::Integer).after("BYPOLYGON"),
                Argument::new("vertices", Shape::Block(&[LONGITUDE, LATITUDE])).multiple(),
            ]),
        )
        .since("9.0.0"),
    ]),
);

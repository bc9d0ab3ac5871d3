//! The kind of value for an argument, by the argument's name.
//!
//! A new command whose arguments have the usual names needs no row; other arguments get values of
//! their type. The first row that fits counts.

use command::{Argument, Shape};

/// A kind of value; [`super::values`] holds the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Class {
    Key,
    /// A key for ranges by name.
    LevelKey,
    /// Any string that is stored.
    Value,
    /// A string of a small pool, so that requests meet: a member, field or element.
    Member,
    Integer,
    Double,
    Score,
    /// The length of the next list.
    ListLength,
    Count,
    /// An index of an element, from either end.
    Index,
    /// A bound of a range of scores, of names, or of either or of an index.
    ScoreBound,
    NameBound,
    AnyBound,
    ByteOffset,
    BitOffset,
    /// A bit offset that may count fields: `#3`.
    FieldOffset,
    BitValue,
    BitType,
    /// A subcommand of PFDEBUG.
    HllView,
    Seconds,
    Milliseconds,
    /// The same, or 1: then the next request waits for the expiry.
    MillisecondsOrOne,
    UnixSeconds,
    UnixMilliseconds,
    /// Time to wait in seconds, with a fraction; in whole milliseconds.
    Wait,
    WaitMilliseconds,
    Pattern,
    SortBy,
    SortGet,
    Cursor,
    TypeName,
    Database,
    Longitude,
    Latitude,
    Distance,
    /// The id of a new entry, of an entry that may exist, and of a bound.
    NewId,
    EntryId,
    IdBound,
    /// The start of a read: an id, `$`, `>` or `+`.
    ReadFrom,
    /// The last delivered id of a group: an id or `$`.
    DeliveredUpTo,
    /// The threshold of a trim: a length or an id.
    Threshold,
    GroupName,
    Consumer,
    /// Milliseconds of idle time.
    Idle,
    /// A payload of DUMP.
    Payload,
}

/// Commands (a name, a prefix with `*`, or all), arguments of that name, and their kind of value.
const HINTS: &[(&str, &str, Class)] = &[
    ("*", "numkeys", Class::ListLength),
    ("*", "numfields", Class::ListLength),
    ("*", "numids", Class::ListLength),
    // Times.
    ("*", "seconds", Class::Seconds),
    ("xread*", "milliseconds", Class::WaitMilliseconds),
    // The fields of a hash are counted for a while after their expiry.
    ("h*", "milliseconds", Class::Milliseconds),
    ("*", "milliseconds", Class::MillisecondsOrOne),
    ("*", "unix-time-seconds", Class::UnixSeconds),
    ("*", "unix-time-milliseconds", Class::UnixMilliseconds),
    ("*", "timeout", Class::Wait),
    // Streams.
    ("xadd", "id", Class::NewId),
    ("xread*", "id", Class::ReadFrom),
    ("xgroup*", "id", Class::DeliveredUpTo),
    ("x*", "id", Class::EntryId),
    ("x*", "start", Class::IdBound),
    ("x*", "end", Class::IdBound),
    ("x*", "lastid", Class::EntryId),
    ("x*", "last-id", Class::EntryId),
    ("x*", "max-deleted-id", Class::EntryId),
    ("x*", "threshold", Class::Threshold),
    ("x*", "group", Class::GroupName),
    ("x*", "consumer", Class::Consumer),
    ("x*", "min-idle-time", Class::Idle),
    ("x*", "ms", Class::Idle),
    ("x*", "entriesread", Class::Count),
    ("x*", "entries-read", Class::Count),
    ("x*", "entries-added", Class::Count),
    // Bits.
    ("bitfield*", "offset", Class::FieldOffset),
    ("bitfield*", "encoding", Class::BitType),
    ("*bit", "offset", Class::BitOffset),
    ("setbit", "value", Class::BitValue),
    ("bitpos", "bit", Class::BitValue),
    ("setrange", "offset", Class::ByteOffset),
    ("pfdebug", "subcommand", Class::HllView),
    // Sorted sets and geo.
    ("zrangestore", "min", Class::AnyBound),
    ("zrangestore", "max", Class::AnyBound),
    ("zrange", "start", Class::AnyBound),
    ("zrange", "stop", Class::AnyBound),
    ("*lex*", "min", Class::NameBound),
    ("*lex*", "max", Class::NameBound),
    ("z*", "min", Class::ScoreBound),
    ("z*", "max", Class::ScoreBound),
    ("z*", "score", Class::Score),
    ("zincrby", "increment", Class::Score),
    ("*", "weight", Class::Score),
    ("geo*", "longitude", Class::Longitude),
    ("geo*", "latitude", Class::Latitude),
    ("geo*", "radius", Class::Distance),
    ("geo*", "width", Class::Distance),
    ("geo*", "height", Class::Distance),
    // Keys and patterns.
    ("sort*", "by-pattern", Class::SortBy),
    ("sort*", "get-pattern", Class::SortGet),
    ("*", "cursor", Class::Cursor),
    ("scan", "type", Class::TypeName),
    ("*", "db", Class::Database),
    ("*", "destination-db", Class::Database),
    // Positions and counts.
    ("*", "start", Class::Index),
    ("*", "stop", Class::Index),
    ("*", "end", Class::Index),
    ("*", "index", Class::Index),
    ("*", "offset", Class::Index),
    ("*", "rank", Class::Index),
    ("*", "count", Class::Count),
    ("*", "num-matches", Class::Count),
    ("*", "len", Class::Count),
    ("*", "limit", Class::Count),
    ("*", "min-match-len", Class::Count),
    // Strings.
    ("restore", "ttl", Class::Milliseconds),
    ("restore", "serialized-value", Class::Payload),
    ("hset*", "value", Class::Value),
    ("hmset", "value", Class::Value),
    ("x*", "value", Class::Member),
    ("*", "value", Class::Value),
];

/// The kind of value for an argument of a command.
pub fn class(command: &str, argument: &Argument) -> Class {
    let fits = |(commands, name, _): &&(&str, &str, Class)| {
        *name == argument.name
            && base::glob::matches(commands.as_bytes(), command.as_bytes(), false)
    };
    let by_shape = match argument.shape {
        Shape::Key if base::glob::matches(b"z*lex*", command.as_bytes(), false) => {
            return Class::LevelKey;
        }
        Shape::Key => return Class::Key,
        Shape::Integer => Class::Integer,
        Shape::Double => Class::Double,
        Shape::Pattern => Class::Pattern,
        Shape::UnixTime => Class::UnixMilliseconds,
        _ => Class::Member,
    };
    HINTS.iter().find(fits).map_or(by_shape, |(_, _, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_counts_before_the_shape() {
        let of = |command, name, shape| class(command, &Argument::new(name, shape));
        assert_eq!(of("zadd", "score", Shape::Double), Class::Score);
        assert_eq!(of("set", "value", Shape::String), Class::Value);
        assert_eq!(of("sadd", "member", Shape::String), Class::Member);
        assert_eq!(of("zlexcount", "min", Shape::String), Class::NameBound);
        assert_eq!(of("zcount", "min", Shape::Double), Class::ScoreBound);
        assert_eq!(of("incrby", "increment", Shape::Integer), Class::Integer);
        assert_eq!(of("xreadgroup", "id", Shape::String), Class::ReadFrom);
    }
}

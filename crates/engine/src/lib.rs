//! Floor 4: what commands mean. One file per family, one row per command beside its handler.
//!
//! A handler reads its arguments, touches data through `Db`, and replies once or returns an
//! [`Error`]. It knows nothing of sockets, threads or sessions: which shards it holds was decided
//! from its row before it runs.
#![forbid(unsafe_code)]

pub mod bitmap;
pub mod cx;
pub mod digest;
pub mod error;
pub mod exec;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod help;
pub mod hyperloglog;
pub mod keys;
pub mod keyspace;
pub mod list;
pub mod row;
pub mod set;
pub mod sorted_set;
pub mod spec;
pub mod stream;
pub mod string;
pub mod wait;

pub use cx::{Cx, Held, Hold, ShardMap, Visit, Whole};
pub use error::{
    BitsError, ConnectionError, Error, GeoError, ServerError, SortedSetError, StreamError,
    StringError, WaitError,
};
pub use row::{Handler, Row};
pub use spec::{
    Access, Argument, Begin, Category, Find, Flags, Group, KeySpec, Reach, Shape, Spec, Spread,
};
pub use wait::{Asked, Attempt, Awaits, Serve, Wait};

/// The rows of all families that work on data, family by family.
pub const FAMILIES: &[&[Row<Handler>]] = &[
    bitmap::ROWS,
    generic::ROWS,
    generic::expire::ROWS,
    generic::object::ROWS,
    generic::scan::ROWS,
    generic::sort::ROWS,
    generic::transfer::ROWS,
    hash::ROWS,
    geo::ROWS,
    hyperloglog::ROWS,
    keyspace::ROWS,
    list::ROWS,
    set::ROWS,
    sorted_set::ROWS,
    stream::ROWS,
    string::ROWS,
];

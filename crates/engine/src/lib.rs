//! Layer 4: the meaning of commands, with a folder for each family and a row next to each handler.
//!
//! A handler reads its arguments, touches data through `Db`, and replies once or returns an
//! [`Error`]. It knows no sockets, threads or sessions. Its row decides which shards it holds
//! before it runs.
#![forbid(unsafe_code)]

mod args;
pub mod bitmap;
pub mod blocking;
pub mod cursor;
mod cx;
pub mod digest;
pub mod error;
mod event;
pub mod exec;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod help;
pub mod hyperloglog;
pub mod keyspace;
pub mod list;
mod locked_shards;
mod multi_pop;
mod sampling;
pub mod set;
mod shard_map;
pub mod sorted_set;
pub mod stream;
pub mod string;

pub use blocking::{BlockRequest, BlockedOn, Serve, ServeOutcome};
pub use cx::{Cx, CxParts};
pub use error::Error;
pub use error::acl::AclError;
pub use error::connection::ConnectionError;
pub use error::echo::{echo, echo_start};
pub use error::hotkeys::HotkeysError;
pub use error::script::ScriptError;
pub use error::server::ServerError;
pub use error::tracking::TrackingError;
pub use error::transaction::TransactionError;
pub use error::wait::WaitError;
pub use exec::{BlockingHandler, Handler};
pub use locked_shards::{HeldShards, LockedShards, ShardAccess, Visited};
pub use shard_map::ShardMap;

pub use args::timeout::timeout_ms;

use command::Row;

/// The rows of all families that work on data, family by family.
pub const FAMILIES: &[&[Row<Handler>]] = &[
    bitmap::ROWS,
    generic::ROWS,
    generic::dump::ROWS,
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

/// The rows of commands that may wait for a key.
pub const BLOCKING_FAMILIES: &[&[Row<BlockingHandler>]] =
    &[list::BLOCKING_ROWS, sorted_set::BLOCKING_ROWS, stream::BLOCKING_ROWS];

//! Floor 6: all input and output: event loops, threads, the router, the real files, signals.
//!
//! The road of a request through this crate: `accept` gives a connection to a `thread`; its `inbox`
//! reads and parses; `execute` runs `node::dispatch` on the shards that `router` locks, and sends.
#![forbid(unsafe_code)]

mod accept;
mod clock;
mod connection;
mod control;
mod deadlines;
mod execute;
mod files;
mod handover;
mod host;
mod inbox;
mod listener;
mod load;
pub mod log;
mod message;
mod notify;
mod partial;
mod router;
mod shared;
mod shim;
mod slots;
mod start;
mod stream;
mod thread;
mod tick;
mod tls;
mod transport;
mod waiting;

pub use start::run;

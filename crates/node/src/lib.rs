//! Floor 5: one server as a state machine: sessions, configuration, dispatch.
//!
//! It decides what a request means for this client at this moment and runs it; it opens no socket
//! or file, starts no thread and reads no clock. Shards come through [`Router`], everything else
//! that needs the outside through [`Host`].
#![forbid(unsafe_code)]

pub mod client;
pub mod commands;
pub mod config;
pub mod dispatch;
mod ground;
pub mod host;
#[allow(clippy::module_inception)]
pub mod node;
pub mod session;
pub mod slowlog;
pub mod statistics;
pub mod stats;
pub mod table;
pub mod wait;
pub mod worker;

pub use client::{ClientRecord, Registry};
pub use dispatch::{Step, dispatch};
pub use host::{Host, Router};
pub use node::Node;
pub use session::Session;
pub use stats::ThreadStats;
pub use table::{Entry, Table, table};
pub use wait::Waiter;
pub use worker::Worker;

/// The version of Redis whose behaviour clients find here: they choose commands by it.
pub const COMPAT_VERSION: &str = "8.0.6";
/// The version of Weft.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

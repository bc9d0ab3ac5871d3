//! Layer 5: one server as a state machine: sessions, configuration, dispatch.
//!
//! It decides what a request means for this client at this moment and runs it; it opens no socket
//! or file, starts no thread and reads no clock. Shards come through [`ShardLocks`], everything
//! else that needs the outside through [`Host`].
#![forbid(unsafe_code)]

pub mod blocking;
pub mod clients;
pub mod command_table;
pub mod commands;
pub mod config;
pub mod eviction;
pub mod execution;
pub mod host;
pub mod metrics;
mod persistence;
pub mod propagation;
pub mod replication;
pub mod scripting;
pub mod state;
pub mod stats;
pub mod transactions;
pub mod version;

pub use clients::{ClientRecord, Registry, Session, UserRegistry};
pub use command_table::entry::Entry;
pub use command_table::index::Table;
pub use command_table::request::Request;
pub use commands::table;
pub use execution::after_grace::AfterGrace;
pub use execution::executor::Executor;
pub use execution::outcome::Outcome;
pub use execution::worker::Worker;
pub use host::{Host, ShardLocks};
pub use pubsub::{PendingClient, WrittenMessages};
pub use replication::{Applier, ApplyOutcome, StreamOrigin};
pub use state::client_line::client_line;
pub use state::deliveries::Deliveries;
pub use state::inboxes::Inboxes;
pub use state::node::Node;
pub use state::waiter::Waiter;
pub use stats::ThreadCounters;
pub use version::{COMPAT_VERSION, VERSION};

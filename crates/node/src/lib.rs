//! Layer 5: one server as a state machine: sessions, configuration, dispatch.
//!
//! It decides what a request means for this client at this moment and runs it; it opens no socket
//! or file, starts no thread and reads no clock. Shards come through [`ShardLocks`], everything
//! else that needs the outside through [`Host`].
#![forbid(unsafe_code)]

pub mod blocking;
pub mod clients;
pub mod commands;
pub mod config;
pub mod eviction;
pub mod execution;
pub mod host;
#[allow(clippy::module_inception)]
pub mod node;
pub mod persistence;
pub mod propagation;
pub mod scripting;
pub mod stats;
pub mod transactions;
pub mod version;

pub use blocking::Waiter;
pub use clients::{ClientRecord, Registry, Session, UserRegistry};
pub use commands::{client_line, table};
pub use execution::after_grace::AfterGrace;
pub use execution::executor::Executor;
pub use execution::outcome::Outcome;
pub use execution::replay::{Replayed, Replayer};
pub use execution::request::Request;
pub use execution::table::{Entry, Table};
pub use execution::worker::Worker;
pub use host::{Host, ShardLocks};
pub use node::Node;
pub use propagation::{Deliveries, Inboxes};
pub use pubsub::PendingClient;
pub use stats::ThreadCounters;
pub use version::{COMPAT_VERSION, VERSION};

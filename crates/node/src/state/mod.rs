//! The state that all features of a server share: plain values, without the features' logic.

pub mod append_only_figures;
pub mod busy_scripts;
pub mod client_line;
pub mod client_memory;
pub mod deliveries;
#[cfg(test)]
mod deliveries_tests;
pub mod durability;
pub(crate) mod eviction_pool;
pub mod inboxes;
pub mod memory_limit;
pub mod node;
pub mod refusals;
pub mod retry_times;
pub(crate) mod script_log;
pub mod script_registry;
pub(crate) mod shard_figures;
pub(crate) mod shown_requests;
pub mod snapshots;
pub mod trackers;
pub(crate) mod user_changes;
pub mod waiter;
pub mod waits;

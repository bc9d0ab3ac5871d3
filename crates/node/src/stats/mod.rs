//! What the server counts: each thread for itself, all together, the slow log, latencies, and the
//! keys that are used most.

pub mod counters;
pub mod hot_keys;
pub mod latency_events;
pub mod latency_histogram;
pub mod slowlog;
pub mod top_keys;
pub mod totals;
pub mod used_memory;

pub use counters::ThreadCounters;
pub use used_memory::{ThreadMemory, UsedMemory};

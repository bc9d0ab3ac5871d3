//! Statistics: counters of each thread and their totals, used memory, the slow log, latencies, and
//! the most used keys.

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

//! What the server counts: each thread for itself, all together, and the slow log.

pub mod counters;
pub mod slowlog;
pub mod totals;

pub use counters::ThreadCounters;

//! What outlives the process: the log, and files.

#[allow(dead_code)]
pub(crate) mod left_log;
#[allow(dead_code)]
pub(crate) mod log_ring;
#[allow(dead_code)]
pub(crate) mod log_slot;
#[cfg(test)]
mod log_tests;

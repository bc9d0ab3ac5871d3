//! The log: what writers append, in one order, and how a reader follows it. It exists while
//! something reads it, and knows neither its readers nor the threads that append.

pub(crate) mod left_log;
pub(crate) mod log_slot;
pub(crate) mod places;
pub(crate) mod ring;
pub(crate) mod ring_layout;
pub(crate) mod ring_reader;
#[cfg(test)]
mod ring_tests;

//! The clients of a run, and the promises that each of them checks.

pub mod bank;
pub mod cache;
pub mod counter;
pub mod disturber;
pub mod publishing;
pub mod queues;
pub mod scratch;

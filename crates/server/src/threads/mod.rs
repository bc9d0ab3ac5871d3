//! The threads: an event loop each, its clients, and what threads ask of one another.

pub(crate) mod apply;
mod blocked;
mod busy_script;
pub mod carrier_trials;
pub mod carriers;
mod client_moves;
pub(crate) mod client_state;
pub(crate) mod clock;
pub(crate) mod control;
mod cron;
pub(crate) mod cron_schedule;
pub(crate) mod deadlines;
mod deliveries;
mod execute;
mod expiry_walk;
mod grace;
mod invalidations;
pub mod io_thread;
pub(crate) mod listeners;
#[cfg(test)]
mod log_hold_tests;
pub(crate) mod log_holds;
mod log_waits;
mod memory;
pub(crate) mod message;
mod output;
pub(crate) mod shard_waits;
pub(crate) mod shared;
pub(crate) mod slots;
pub(crate) mod slow_turns;
pub(crate) mod thread_count;

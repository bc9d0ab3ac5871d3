//! The process: its start and end, its configuration file, and the signals it receives.

mod banner;
mod load;
mod notify;
mod signals;
pub(crate) mod start;

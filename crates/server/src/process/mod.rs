//! The process: its start and end, its configuration file, its log, its services for commands.

pub(crate) mod crash;
pub(crate) mod files;
pub(crate) mod garbage;
pub(crate) mod host;
mod load;
pub mod log;
pub(crate) mod notify;
pub(crate) mod oom_score;
pub(crate) mod signals;
pub mod start;

//! What outlives the process: the log, and files that the keyspace is saved to and loaded from.

pub(crate) mod append_only;
pub(crate) mod background;
pub(crate) mod begin_log;
mod complaint;
mod directory;
mod fsync_thread;
pub(crate) mod left_log;
pub(crate) mod load_aof;
pub(crate) mod load_rdb;
pub(crate) mod log_lock;
mod log_memory;
pub(crate) mod log_ring;
pub(crate) mod log_slot;
pub(crate) mod log_source;
#[cfg(test)]
mod log_tests;
pub(crate) mod log_thread;
pub(crate) mod log_writer;
#[cfg(test)]
mod log_writer_tests;
pub(crate) mod rdb_sink;
pub(crate) mod real_disk;
pub(crate) mod rewrite;
pub(crate) mod rewrite_commands;
pub(crate) mod saves;
pub(crate) mod snapshot_job;
pub(crate) mod startup;
pub(crate) mod unfinished;

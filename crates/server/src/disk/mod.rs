//! Files that survive the process: the append-only file, which reads the log, and RDB files.
//! Nothing here knows the threads that serve clients.

mod aof_ending;
mod aof_files;
pub(crate) mod aof_handle;
mod aof_lock;
mod aof_requests;
mod aof_rewrites;
pub(crate) mod aof_start;
mod aof_thread;
mod aof_writer;
#[cfg(test)]
mod aof_writer_tests;
mod check_command;
mod complaint;
mod fsync_thread;
pub(crate) mod kept_files;
mod load_aof;
mod load_rdb;
mod loaded_rdb;
pub(crate) mod rdb_file;
mod rdb_sink;
mod rewrite;
mod rewrite_commands;
#[cfg(test)]
mod save_tests;
pub(crate) mod saves;
mod snapshot_job;
pub(crate) mod startup;
pub(crate) mod unfinished;

//! The passes of the gate: one for each thread that serves clients, by its number, then those of
//! background work.

/// The most threads that serve clients, the main thread included.
pub(crate) const THREADS_MAX: usize = node::config::IO_THREADS_MAX as usize;
/// The pass of the snapshot that is being taken.
pub(crate) const SNAPSHOT_PASS: usize = THREADS_MAX;
/// The pass of the thread that replays a log.
pub(crate) const LOAD_PASS: usize = SNAPSHOT_PASS + 1;
/// Passes of the gate in all.
pub(crate) const PASSES_MAX: usize = LOAD_PASS + 1;

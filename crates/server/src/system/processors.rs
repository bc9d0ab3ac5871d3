//! The processors that the threads of the server may use.

use std::num::NonZero;

use node::config::cpus;

use super::server_log::warning;

/// Lets the calling thread, and those that it starts, run only on the processors that the parameter
/// named `parameter` lists. An empty list changes nothing.
pub(crate) fn bind_to_processors(parameter: &str, list: &str) {
    let cpus = cpus(list).unwrap_or_default();
    if cpus.is_empty() {
        return;
    }
    if let Err(error) = sys::process::set_affinity(&cpus) {
        warning!("'{parameter}' has no effect: can't run on processors {list}: {error}");
    }
}

/// Processors that the process may use: its affinity mask, and the quota of its control groups in
/// whole processors. Both can change while the process runs.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

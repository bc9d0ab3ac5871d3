//! The operating system as the rest of this crate sees it: files, clocks, the server's log, the
//! processors, and the share of each thread in the memory in use. Nothing here knows clients.

pub(crate) mod clock;
pub(crate) mod counted_thread;
pub(crate) mod crash;
mod directory;
pub(crate) mod files;
pub(crate) mod oom_score;
pub(crate) mod process_figures;
pub(crate) mod processors;
pub(crate) mod real_disk;
pub(crate) mod server_log;
pub(crate) mod thread_notifier;

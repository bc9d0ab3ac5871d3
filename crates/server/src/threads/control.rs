//! The state of the main thread: the listening sockets and the other threads.

use std::sync::Arc;
use std::thread::JoinHandle;

use node::config::{Config, process_title};
use node::host::{SaveAtEnd, Shutdown};
use rustls::ServerConfig;
use sys::epoll::Epoll;
use sys::title::ProcessTitle;

use super::active_threads::{ActiveThreads, BusySamples};
use super::slow_turns::SlowTurns;
use super::thread_count::ThreadCount;
use crate::net::listener::Listener;
use crate::system::oom_score::OomScore;
use crate::system::processors::processors;

/// Descriptors that the server needs besides those of clients.
pub const RESERVED_FILES: u64 = 32;

/// State of the process that rarely changes.
#[derive(Default)]
pub struct Control {
    pub executable: String,
    /// Path of the configuration file; empty if there is none.
    pub config_file: String,
    pub listeners: Vec<Listener>,
    /// TLS settings for new connections to the TLS port, if there is one.
    pub tls: Option<Arc<ServerConfig>>,
    /// The shutdown that a client or a signal asked for.
    pub shutdown: Option<Shutdown>,
    /// The last save has begun or is not wanted: the shutdown can no longer be cancelled.
    pub ends: bool,
    /// A signal asked for the shutdown, which waits for scripts that have written.
    pub is_signalled: bool,
    /// The process's score when memory is short.
    pub oom_score: OomScore,
    /// The process title that `ps` shows, if it can be changed, and the name of the program.
    pub title: Option<(ProcessTitle, String)>,
    /// The main thread's epoll instance.
    pub epoll: Option<Arc<Epoll>>,
    /// I/O threads by their numbers, less one.
    pub(super) threads: Vec<Option<JoinHandle<()>>>,
    /// How many threads run and how many of them are active.
    pub(super) thread_count: ThreadCount,
    pub(super) active_threads: ActiveThreads,
    pub(super) busy_samples: BusySamples,
    pub(super) slow_turns: SlowTurns,
    /// The system has refused threads of a change that was answered already: they are tried again.
    pub(super) retries_threads: bool,
    /// The value of `threads_usable` at the last look at the processors.
    pub(super) usable: usize,
    pub(super) look_at_processors_ms: i64,
    /// When to accept connections again after running out of descriptors, in milliseconds on
    /// the steady scale.
    pub(super) accept_again_ms: Option<i64>,
}

impl Control {
    /// Control of a process that has not opened anything.
    pub fn new(executable: String, config_file: String) -> Self {
        Self { executable, config_file, ..Self::default() }
    }

    /// Whether the shutdown does not wait for a script that has run for too long and has written:
    /// as in Redis, SHUTDOWN is refused while there is one.
    pub fn is_refused_when_busy(&self) -> bool {
        !self.is_signalled && self.shutdown.is_some_and(|how| how.save != SaveAtEnd::No)
    }

    /// Shows the title that a configuration asks for.
    pub fn show_title(&mut self, config: &Config) {
        if let Some((title, program)) = self.title.as_mut().filter(|_| config.set_proc_title) {
            title.set(process_title(config, program, &self.config_file).as_bytes());
        }
    }

    /// The process is about to end: no more threads are started.
    pub fn end(&mut self) {
        self.thread_count.end();
    }

    /// I/O threads that have not ended.
    pub fn threads_left(&self) -> usize {
        self.thread_count.others_running()
    }
}

/// Threads that a configuration asks for.
pub fn threads_wanted(config: &Config) -> usize {
    config.io_threads.threads(processors())
}

//! What the main thread looks after: the listening sockets and the other threads.

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
    /// Path of the running program.
    pub executable: String,
    /// Path of the configuration file; empty: there is none.
    pub config_file: String,
    /// Listening sockets.
    pub listeners: Vec<Listener>,
    /// What new connections to the TLS port need, when there is one.
    pub tls: Option<Arc<ServerConfig>>,
    /// Someone asked to end the process.
    pub shutdown: Option<Shutdown>,
    /// The last save has begun or is not wanted: nobody calls that off any more.
    pub ends: bool,
    /// A signal did, which waits for scripts that have written.
    pub is_signalled: bool,
    /// The process's score when memory is short.
    pub oom_score: OomScore,
    /// What `ps` shows of the process, if that can be changed, and the name it was started by.
    pub title: Option<(ProcessTitle, String)>,
    /// The main thread's epoll instance.
    pub epoll: Option<Arc<Epoll>>,
    /// I/O threads by their numbers, less one.
    pub(super) threads: Vec<Option<JoinHandle<()>>>,
    /// How many threads run and how many of them carry clients.
    pub(super) thread_count: ThreadCount,
    pub(super) active_threads: ActiveThreads,
    pub(super) busy_samples: BusySamples,
    pub(super) slow_turns: SlowTurns,
    /// The system has refused threads of a change that was answered already: they are tried again.
    pub(super) retries_threads: bool,
    /// What [`threads_usable`] was when the process's processors were last looked at.
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

    /// Whether the end of the server waits for no script that has run for too long and has written:
    /// as in Redis SHUTDOWN is refused beside one.
    pub fn is_refused_when_busy(&self) -> bool {
        !self.is_signalled && self.shutdown.is_some_and(|how| how.save != SaveAtEnd::No)
    }

    /// Shows the title that a configuration asks for.
    pub fn show_title(&mut self, config: &Config) {
        if let Some((title, program)) = self.title.as_mut().filter(|_| config.set_proc_title) {
            title.set(process_title(config, program, &self.config_file).as_bytes());
        }
    }

    /// The process is about to end: no thread is started any more.
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

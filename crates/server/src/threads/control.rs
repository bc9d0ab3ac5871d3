//! What the main thread looks after: the listening sockets and the other threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use node::Worker;
use node::config::{Config, IoThreads};
use node::host::Shutdown;
use rustls::ServerConfig;
use sys::epoll::Epoll;

use crate::net::listener::Listener;
use crate::threads::io_thread::{IoThread, ThreadMailbox};
use crate::threads::message::Message;
use crate::threads::shared::Shared;
use crate::threads::thread_count::{Step, ThreadCount};
use crate::warning;

/// The most threads that there can be, the main thread included.
pub const THREADS_MAX: usize = node::config::IO_THREADS_MAX as usize;
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
    /// The main thread's epoll instance.
    pub epoll: Option<Arc<Epoll>>,
    /// I/O threads by their numbers, less one.
    threads: Vec<Option<JoinHandle<()>>>,
    /// The process is about to end: no thread is started any more.
    pub ending: bool,
    /// How many threads run.
    thread_count: ThreadCount,
    /// When to accept connections again after running out of descriptors, in milliseconds on
    /// the steady scale.
    pub(super) accept_again_ms: Option<i64>,
}

impl Control {
    /// Control of a process that has not opened anything.
    pub fn new(executable: String, config_file: String) -> Self {
        Self { executable, config_file, ..Self::default() }
    }

    /// I/O threads that have not ended.
    pub fn threads_left(&self) -> usize {
        self.thread_count.others_running()
    }

    /// Starts or ends threads until there are `wanted`, the main thread included. While threads
    /// leave, that waits until they have: their clients are on the way to the others.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn set_threads(&mut self, shared: &Shared, wanted: usize) -> Result<(), String> {
        if self.ending {
            return Ok(());
        }
        let steps = self.thread_count.set(wanted);
        self.take_steps(shared, steps).map_err(|error| error.to_string())
    }

    fn take_steps(&mut self, shared: &Shared, steps: Vec<Step>) -> io::Result<()> {
        for step in steps {
            match step {
                Step::Publish(active) => shared.threads_active.store(active, Ordering::Release),
                Step::Leave(thread) => shared.send(thread, Message::Leave),
                Step::Start(thread) => {
                    let started = start_thread(shared, thread);
                    let handle = started.inspect_err(|_| self.thread_count.start_failed(thread))?;
                    self.threads.truncate(thread - 1);
                    self.threads.push(Some(handle));
                }
                Step::Unlink(active) => shared.handles.write().truncate(active),
                Step::Rebalance(before) => {
                    shared.send(0, Message::MoveAll);
                    (1..before).for_each(|thread| shared.send(thread, Message::MoveSurplus));
                }
            }
        }
        Ok(())
    }

    /// Joins a thread that has ended.
    pub fn thread_left(&mut self, shared: &Shared, index: usize) {
        if let Some(thread) = self.threads.get_mut(index - 1).and_then(Option::take) {
            let _ = thread.join();
        }
        let steps = self.thread_count.ended();
        if let Err(error) = self.take_steps(shared, steps) {
            warning!("Can't start a thread: {error}");
        }
    }
}

fn start_thread(shared: &Shared, index: usize) -> io::Result<JoinHandle<()>> {
    let shared = shared.me.upgrade().ok_or(io::ErrorKind::NotFound)?;
    let post = ThreadMailbox::new()?;
    let worker = Worker::new(
        Arc::clone(&shared.node),
        index,
        node::table(),
        base::random::entropy_seed(),
        sys::clock::tsc_per_micro(),
    );
    let handle = post.handle();
    let mut thread = IoThread::new(Arc::clone(&shared), worker, post)?;
    {
        let mut handles = shared.handles.write();
        handles.truncate(index);
        handles.push(handle);
    }
    std::thread::Builder::new().name(format!("weft-io-{index}")).spawn(move || {
        thread.run();
        // All it holds is given back before anyone hears of its end.
        drop(thread);
        shared.send(0, Message::Left(index));
    })
}

/// Threads that a configuration asks for. `auto` takes the processors that the process may use, one
/// of them for the main thread's own work.
pub fn threads_wanted(config: &Config) -> usize {
    match config.io_threads {
        IoThreads::Count(count) => usize::from(count),
        IoThreads::Auto => match sys::process::available_cpus().len() {
            0 | 1 => 1,
            cpus => (cpus + 1).min(THREADS_MAX),
        },
    }
}

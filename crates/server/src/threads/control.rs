//! What the main thread looks after: the listening sockets and the other threads.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use node::Worker;
use node::config::{Config, SignalShutdown, process_title};
use node::host::{SaveAtEnd, Shutdown};
use rustls::ServerConfig;
use sys::epoll::Epoll;
use sys::signal::Signal;
use sys::title::ProcessTitle;

use crate::net::listener::Listener;
use crate::net::tls;
use crate::process::oom_score::OomScore;
use crate::threads::carriers::{BusySamples, Carriers};
use crate::threads::io_thread::{IoThread, ThreadMailbox};
use crate::threads::message::Message;
use crate::threads::shared::Shared;
use crate::threads::slow_turns::SlowTurns;
use crate::threads::thread_count::{Step, ThreadCount};
use crate::{notice, warning};

/// The most threads that there can be, the main thread included.
pub const THREADS_MAX: usize = node::config::IO_THREADS_MAX as usize;
/// The pass of the gate that the snapshot has which is being taken.
pub const SNAPSHOT_PASS: usize = THREADS_MAX;
/// The pass of the thread that replays a log.
pub const LOAD_PASS: usize = SNAPSHOT_PASS + 1;
/// Passes of the gate in all.
pub const PASSES_MAX: usize = LOAD_PASS + 1;
/// Between two looks at the processors that the process may use.
const PROCESSORS_LOOK_MS: i64 = 1000;
/// The load of all carriers, in processors, below and above which the main thread does the
/// background work alone and with them.
const CRON_LOAD_MIN: f64 = 0.05;
const CRON_LOAD_MAX: f64 = 0.1;
/// Below this load of all carriers, in processors, none runs a slow command.
const SLOW_LOAD_MIN: f64 = 0.02;
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
    threads: Vec<Option<JoinHandle<()>>>,
    /// How many threads run and how many of them carry clients.
    thread_count: ThreadCount,
    carriers: Carriers,
    busy_samples: BusySamples,
    slow_turns: SlowTurns,
    /// The system has refused threads of a change that was answered already: they are tried again.
    retries_threads: bool,
    /// What [`threads_usable`] was when the process's processors were last looked at.
    usable: usize,
    look_at_processors_ms: i64,
    /// When to accept connections again after running out of descriptors, in milliseconds on
    /// the steady scale.
    pub(super) accept_again_ms: Option<i64>,
}

impl Control {
    /// Control of a process that has not opened anything.
    pub fn new(executable: String, config_file: String) -> Self {
        Self { executable, config_file, ..Self::default() }
    }

    /// Takes the signals that have come, which ask to end the process. One that comes while it ends
    /// may ask to do so by force.
    pub fn take_signals(&mut self, shared: &Shared) {
        if !shared.signalled.has_come() {
            return;
        }
        let config = shared.node.config();
        for signal in shared.signalled.take() {
            let how = match signal {
                Signal::Terminate => config.shutdown_on_sigterm,
                Signal::Interrupt => config.shutdown_on_sigint,
            };
            let save = match how {
                SignalShutdown { save: true, .. } => SaveAtEnd::Yes,
                SignalShutdown { nosave: true, .. } => SaveAtEnd::No,
                _ => SaveAtEnd::ByConfig,
            };
            let SignalShutdown { now, force, .. } = how;
            self.is_signalled = true;
            let shutdown = self.shutdown.get_or_insert(Shutdown { save, now, force });
            shutdown.now |= now;
            shutdown.force |= force;
        }
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

    /// Starts or ends threads until there are `wanted`, the main thread included. While threads
    /// leave, that waits until they have: their clients are on the way to the others.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn set_threads(&mut self, shared: &Shared, wanted: usize) -> Result<(), String> {
        // All that have a processor take clients, until it is seen how busy they are.
        let steps = self.thread_count.set(wanted, threads_usable(&shared.node.config()));
        let taken = self.take_steps(shared, steps).map_err(|error| error.to_string());
        self.retries_threads &= taken.is_err();
        taken
    }

    /// Goes back to so many threads. Those that the system refuses are tried again later.
    pub fn reset_threads(&mut self, shared: &Shared, wanted: usize) {
        let reset = self.set_threads(shared, wanted);
        reset.unwrap_or_else(|error| self.note_refused(&error));
    }

    fn note_refused(&mut self, error: &dyn std::fmt::Display) {
        warning!("Can't change the number of threads: {error}. It is tried again.");
        self.retries_threads = true;
    }

    /// Has as many threads carry clients as their load and the processors call for. Call it at
    /// intervals of about [`SAMPLE_MS`](crate::threads::carriers::SAMPLE_MS).
    pub fn balance(&mut self, shared: &Shared) {
        let now_tsc = sys::clock::tsc();
        // Not the time of day, which can be set back.
        let now_ms = (now_tsc as f64 / sys::clock::tsc_per_micro() / 1000.0) as i64;
        if now_ms >= self.look_at_processors_ms {
            self.look_at_processors_ms = now_ms + PROCESSORS_LOOK_MS;
            self.usable = threads_usable(&shared.node.config());
            self.start_refused(shared);
        }
        let busy = self.busy_samples.shares(now_tsc, &shared.busy_tsc(now_tsc));
        if busy.is_empty() {
            return;
        }
        let total: f64 = busy.iter().sum();
        let most = self.carriers_max();
        let carriers = match shared.node.config().io_threads_always_active {
            true => most,
            false => {
                let is_slow = self.is_slow(shared, total, now_tsc, now_ms);
                self.carriers.decide(&busy, is_slow, most, now_ms, || shared.work())
            }
        };
        self.carry(shared, carriers);
        self.share_cron(shared, total);
    }

    /// Tries again to start threads that the system has refused after others had left. That was
    /// said then.
    fn start_refused(&mut self, shared: &Shared) {
        let wanted = threads_wanted(&shared.node.config());
        if !self.retries_threads || !self.thread_count.lacks(wanted) {
            return;
        }
        // How many carry clients is decided when it is seen how busy they are.
        let steps = self.thread_count.set(wanted, self.thread_count.carrying());
        if self.take_steps(shared, steps).is_ok() {
            self.retries_threads = false;
            notice!("All of {wanted} threads run now");
        }
    }

    /// Whether a carrier has run a slow command. `load` is that of all carriers, in processors: one
    /// that runs a slow command is busy.
    fn is_slow(&mut self, shared: &Shared, load: f64, tsc: u64, now_ms: i64) -> bool {
        let seen = self.slow_turns.not_judged();
        if load < SLOW_LOAD_MIN && seen == 0 {
            self.slow_turns = SlowTurns::default();
            return false;
        }
        self.slow_turns.look(&shared.turns(tsc, seen), now_ms)
    }

    /// Has other threads carry clients, too, when all that do are stuck in slow commands.
    pub fn make_room(&mut self, shared: &Shared) {
        if shared.is_stuck() {
            self.carry(shared, self.carriers_max());
        }
    }

    /// The most threads beside the main thread that may carry clients.
    fn carriers_max(&self) -> usize {
        (self.usable.max(1) - 1).min(self.thread_count.active() - 1)
    }

    fn carry(&mut self, shared: &Shared, carriers: usize) {
        let steps = self.thread_count.carry(carriers + 1);
        // No thread is started.
        let _ = self.take_steps(shared, steps);
    }

    /// Shares the background work among the threads that carry clients, unless they do hardly
    /// anything: then the main thread alone wakes for it.
    fn share_cron(&mut self, shared: &Shared, load: f64) {
        let was_shared = shared.cron_is_shared.load(Ordering::Relaxed);
        let is_shared = load > if was_shared { CRON_LOAD_MIN } else { CRON_LOAD_MAX };
        if is_shared == was_shared {
            return;
        }
        shared.cron_is_shared.store(is_shared, Ordering::Relaxed);
        if is_shared {
            // Those that sleep learn that they tend shards.
            (1..self.thread_count.carrying())
                .for_each(|thread| shared.send(thread, Message::Resume));
        }
    }

    fn take_steps(&mut self, shared: &Shared, steps: Vec<Step>) -> io::Result<()> {
        let taken = self.take_each(shared, steps);
        shared.threads_active.store(self.thread_count.active(), Ordering::Release);
        taken
    }

    fn take_each(&mut self, shared: &Shared, steps: Vec<Step>) -> io::Result<()> {
        for step in steps {
            match step {
                Step::Publish(carrying) => {
                    shared.threads_carrying.store(carrying, Ordering::Release);
                }
                Step::Park(thread) => shared.send(thread, Message::Park),
                Step::Resume(thread) => shared.send(thread, Message::Resume),
                Step::Leave(thread) => shared.send(thread, Message::Leave),
                Step::Start(thread) => {
                    let handle = match start_thread(shared, thread) {
                        Ok(handle) => handle,
                        Err(error) => {
                            shared.handles.write().truncate(thread);
                            // It may have attached, and a rewrite waits for all that have.
                            shared.log.ended(thread);
                            let rest = self.thread_count.start_failed(thread);
                            return self.take_each(shared, rest).and(Err(error));
                        }
                    };
                    self.threads.truncate(thread - 1);
                    self.threads.push(Some(handle));
                }
                Step::Unlink(active) => shared.handles.write().truncate(active),
                Step::Rebalance => {
                    shared.send(0, Message::MoveAll);
                    // Those that have no clients yet learn that they tend shards.
                    (1..self.thread_count.carrying())
                        .for_each(|thread| shared.send(thread, Message::MoveSurplus));
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
        shared.log.ended(index);
        let steps = self.thread_count.ended();
        if let Err(error) = self.take_steps(shared, steps) {
            self.note_refused(&error);
        }
    }
}

fn start_thread(shared: &Shared, index: usize) -> io::Result<JoinHandle<()>> {
    let shared = shared.me.upgrade().ok_or(io::ErrorKind::NotFound)?;
    let post = ThreadMailbox::new()?;
    let worker = Worker::new(
        Arc::clone(&shared.node),
        index,
        shared.node.table,
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
        sys::crash::protect_thread();
        thread.run();
        // All it holds is given back before anyone hears of its end.
        drop(thread);
        node::scripting::end_thread();
        tls::end_thread();
        let used = &shared.node.used_memory;
        let bytes = sys::allocator::thread_bytes();
        sys::thread_end::count_rest(bytes);
        used.end_thread(&used.of_thread(index), bytes);
        shared.send(0, Message::Left(index));
    })
}

/// Threads that a configuration asks for.
pub fn threads_wanted(config: &Config) -> usize {
    config.io_threads.threads(processors())
}

/// Processors that the process may use: its affinity mask, and the quota of its control groups in
/// whole processors. Both can change while the process runs.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Threads that may carry clients, the main thread included: one for each processor beside it.
fn threads_usable(config: &Config) -> usize {
    if config.io_threads_always_active { THREADS_MAX } else { processors() + 1 }
}

//! The state that all threads of the process share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use node::Node;
use node::config::Config;
use parking_lot::Mutex;

use super::connection::Connection;
use super::control::Control;
use super::garbage::Garbage;
use super::message::Message;
use super::signalled::Signalled;
use super::slow_turns::{ObservedTurn, ThreadSchedule};
use super::thread_list::{STUCK_MS, ThreadList};
use super::thread_trials::ThreadWork;
use crate::disk::aof_handle::AppendOnlyFile;
use crate::disk::saves::Saves;
use crate::http::MetricsService;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::log::log_slot::LogSlot;
use crate::system::process_figures::ProcessFigures;

pub struct SharedState {
    /// The way to itself for threads that are started later.
    pub me: Weak<SharedState>,
    /// The state of the server as Redis knows it.
    pub node: Arc<Node>,
    pub keyspace: Arc<SharedKeyspace>,
    /// All threads that serve clients.
    pub threads: Arc<ThreadList>,
    /// Listening sockets and whatever else a change of configuration may touch.
    pub control: Mutex<Control>,
    pub append_only: Arc<AppendOnlyFile>,
    /// Dropped values on their way to the thread that frees them.
    pub garbage: Garbage,
    pub saves: Saves,
    pub signalled: Signalled,
    pub log: Arc<LogSlot>,
    pub metrics: MetricsService,
    /// The figures of the process, for INFO and the metrics.
    pub process: Arc<ProcessFigures>,
    /// Whether the active threads are busy enough to share the background work on shards.
    pub cron_is_shared: AtomicBool,
}

impl SharedState {
    /// Serves metrics where a configuration says.
    ///
    /// # Errors
    /// See [`MetricsService::follow`].
    pub(crate) fn follow_metrics(&self, config: &Config) -> Result<(), String> {
        self.metrics.follow(&self.node, &self.process, config)
    }

    pub fn send(&self, thread: usize, message: Message<Box<Connection>>) {
        self.threads.send(thread, message);
    }

    /// The thread for a client: the one with the fewest clients among those that are not stuck in a
    /// slow command, if there are any. The main thread owns clients only when it is the only
    /// thread. Only the main thread may rely on the result, since it is the one that ends threads.
    pub fn thread_for_client(&self) -> usize {
        let active = self.process.threads_active.load(Ordering::Acquire);
        let handles = self.threads.handles.read();
        let others = handles.iter().enumerate().take(active).skip(1);
        let tsc = sys::clock::tsc();
        let fewest = others.min_by_key(|(_, handle)| {
            (handle.turn_ms(tsc) >= STUCK_MS, handle.clients.load(Ordering::Relaxed))
        });
        fewest.map_or(0, |(thread, _)| thread)
    }

    /// Moves a client to a thread; to another than the main thread only if this is the main thread.
    pub fn move_client(&self, thread: usize, client: Box<Connection>) {
        if let Some(handle) = self.threads.handles.read().get(thread) {
            handle.clients.fetch_add(1, Ordering::Relaxed);
            handle.mailbox.send(Message::Move(client));
        }
    }

    /// The share of all clients that each thread would have if all had equally many.
    pub fn fair_share(&self) -> usize {
        let active = self.process.threads_active.load(Ordering::Acquire);
        let handles = self.threads.handles.read();
        let all: usize = handles.iter().map(|handle| handle.clients.load(Ordering::Relaxed)).sum();
        all.div_ceil(active.saturating_sub(1).max(1))
    }

    /// How many threads share the background work on shards. The main thread does it all while only
    /// one other thread is active or the others do hardly anything, so that they sleep when their
    /// clients do.
    pub fn cron_threads(&self) -> usize {
        let is_shared = self.cron_is_shared.load(Ordering::Relaxed);
        match self.process.threads_active.load(Ordering::Relaxed) {
            active @ 3.. if is_shared => active,
            _ => 1,
        }
    }

    /// The turns at this TSC of the active threads besides the main thread, and of at least `least`
    /// threads.
    pub fn turns(&self, tsc: u64, least: usize) -> Vec<ObservedTurn> {
        let active = self.process.threads_active.load(Ordering::Relaxed).max(least + 1);
        let handles = self.threads.handles.read();
        let turns = handles.iter().take(active).skip(1).map(|handle| {
            let schedule = sys::process::thread_schedule(handle.system_id.load(Ordering::Relaxed));
            let schedule = schedule.map(|(cpu_ns, waited_ns)| ThreadSchedule { cpu_ns, waited_ns });
            ObservedTurn { turn_ms: handle.turn_ms(tsc), schedule }
        });
        turns.collect()
    }

    /// Whether all active threads are stuck in slow commands, the main thread excepted.
    pub fn is_stuck(&self) -> bool {
        let tsc = sys::clock::tsc();
        let active = self.process.threads_active.load(Ordering::Relaxed);
        let handles = self.threads.handles.read();
        let mut active = handles.iter().take(active).skip(1).peekable();
        active.peek().is_some() && active.all(|handle| handle.turn_ms(tsc) >= STUCK_MS)
    }

    /// Busy ticks of each active thread besides the main thread, up to `tsc`.
    pub fn busy_tsc(&self, tsc: u64) -> Vec<u64> {
        let active = self.process.threads_active.load(Ordering::Relaxed);
        let (handles, stats) = (self.threads.handles.read(), self.node.threads.read());
        let others = handles.iter().zip(stats.iter()).take(active).skip(1);
        let busy = others.map(|(handle, stats)| {
            let counted = stats.busy_tsc.value();
            match handle.turn_tsc.load(Ordering::Relaxed) {
                0 => counted,
                began => counted + tsc.saturating_sub(began),
            }
        });
        busy.collect()
    }

    /// The work that the threads besides the main thread have done so far. `None` if the system
    /// does not report it.
    pub fn work(&self) -> Option<ThreadWork> {
        let (handles, stats) = (self.threads.handles.read(), self.node.threads.read());
        let mut work = ThreadWork::default();
        let main = sys::process::thread_id();
        for (handle, stats) in handles.iter().zip(stats.iter()).skip(1) {
            let thread = handle.system_id.load(Ordering::Relaxed);
            debug_assert_ne!(thread, main, "each thread has its own number");
            let (cpu_ns, waited_ns) = sys::process::thread_schedule(thread)?;
            work.cpu_ns += cpu_ns;
            work.waited_ns += waited_ns;
            work.in_bytes += stats.in_bytes.value();
        }
        Some(work)
    }
}

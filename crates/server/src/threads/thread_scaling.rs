//! How many threads run and are active: starts and ends them, and balances clients among them. Only
//! the main thread does this.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use node::Worker;
use node::config::Config;

use super::control::{Control, threads_wanted};
use super::io_thread::IoThread;
use super::message::Message;
use super::shared::SharedState;
use super::slow_turns::SlowTurns;
use super::thread_count::ThreadStep;
use super::thread_list::ThreadMailbox;
use crate::keyspace::gate_passes::THREADS_MAX;
use crate::net::tls;
use crate::system::processors::processors;
use crate::system::server_log::{notice, warning};

/// Between two checks of the processors that the process may use.
const PROCESSORS_LOOK_MS: i64 = 1000;
/// The load of all active threads, in processors: below the first the main thread does all the
/// background work, above the second it shares that work with them.
const CRON_LOAD_MIN: f64 = 0.05;
const CRON_LOAD_MAX: f64 = 0.1;
/// Below this load of all active threads, in processors, none runs a slow command.
const SLOW_LOAD_MIN: f64 = 0.02;

impl Control {
    /// Starts or ends threads until there are `wanted`, the main thread included. While threads
    /// leave, the change waits until they have: their clients are on the way to the others.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn set_threads(&mut self, shared: &SharedState, wanted: usize) -> Result<(), String> {
        // All that have a processor take clients, until it is seen how busy they are.
        let steps = self.thread_count.set(wanted, threads_usable(&shared.node.config()));
        let taken = self.take_steps(shared, steps).map_err(|error| error.to_string());
        self.retries_threads &= taken.is_err();
        taken
    }

    /// Returns to the former number of threads. Threads that the system refuses are tried again
    /// later.
    pub fn reset_threads(&mut self, shared: &SharedState, wanted: usize) {
        let reset = self.set_threads(shared, wanted);
        reset.unwrap_or_else(|error| self.note_refused(&error));
    }

    fn note_refused(&mut self, error: &dyn std::fmt::Display) {
        warning!("Can't change the number of threads: {error}. It is tried again.");
        self.retries_threads = true;
    }

    /// Adapts the number of active threads to their load and to the processors. Call it at
    /// intervals of about [`SAMPLE_MS`](super::active_threads::SAMPLE_MS).
    pub fn balance(&mut self, shared: &SharedState) {
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
        let most = self.active_max();
        let active = match shared.node.config().io_threads_always_active {
            true => most,
            false => {
                let is_slow = self.is_slow(shared, total, now_tsc, now_ms);
                self.active_threads.decide(&busy, is_slow, most, now_ms, || shared.work())
            }
        };
        self.set_active(shared, active);
        self.share_cron(shared, total);
    }

    /// Tries again to start threads that the system has refused after others had left. The log has
    /// reported that.
    fn start_refused(&mut self, shared: &SharedState) {
        let wanted = threads_wanted(&shared.node.config());
        if !self.retries_threads || !self.thread_count.lacks(wanted) {
            return;
        }
        // The number of active threads is decided when their load is known.
        let steps = self.thread_count.set(wanted, self.thread_count.active());
        if self.take_steps(shared, steps).is_ok() {
            self.retries_threads = false;
            notice!("All of {wanted} threads run now");
        }
    }

    /// Whether an active thread has run a slow command. `load` is that of all active threads, in
    /// processors: a thread that runs a slow command is busy.
    fn is_slow(&mut self, shared: &SharedState, load: f64, tsc: u64, now_ms: i64) -> bool {
        let seen = self.slow_turns.not_judged();
        if load < SLOW_LOAD_MIN && seen == 0 {
            self.slow_turns = SlowTurns::default();
            return false;
        }
        self.slow_turns.look(&shared.turns(tsc, seen), now_ms)
    }

    /// Activates further threads when all active ones are stuck in slow commands.
    pub fn make_room(&mut self, shared: &SharedState) {
        if shared.is_stuck() {
            self.set_active(shared, self.active_max());
        }
    }

    /// The most threads besides the main thread that may be active.
    fn active_max(&self) -> usize {
        (self.usable.max(1) - 1).min(self.thread_count.started() - 1)
    }

    fn set_active(&mut self, shared: &SharedState, active: usize) {
        let steps = self.thread_count.set_active(active + 1);
        // No thread is started.
        let _ = self.take_steps(shared, steps);
    }

    /// Shares the background work among the active threads, unless they do hardly anything: then
    /// only the main thread wakes for it.
    fn share_cron(&mut self, shared: &SharedState, load: f64) {
        let was_shared = shared.cron_is_shared.load(Ordering::Relaxed);
        let is_shared = load > if was_shared { CRON_LOAD_MIN } else { CRON_LOAD_MAX };
        if is_shared == was_shared {
            return;
        }
        shared.cron_is_shared.store(is_shared, Ordering::Relaxed);
        if is_shared {
            // Threads that sleep learn that they tend shards.
            (1..self.thread_count.active()).for_each(|thread| shared.send(thread, Message::Resume));
        }
    }

    fn take_steps(&mut self, shared: &SharedState, steps: Vec<ThreadStep>) -> io::Result<()> {
        let taken = self.take_each(shared, steps);
        shared.process.threads_started.store(self.thread_count.started(), Ordering::Release);
        taken
    }

    fn take_each(&mut self, shared: &SharedState, steps: Vec<ThreadStep>) -> io::Result<()> {
        for step in steps {
            match step {
                ThreadStep::Publish(active) => {
                    shared.process.threads_active.store(active, Ordering::Release);
                }
                ThreadStep::Park(thread) => shared.send(thread, Message::Park),
                ThreadStep::Resume(thread) => shared.send(thread, Message::Resume),
                ThreadStep::Leave(thread) => shared.send(thread, Message::Leave),
                ThreadStep::Start(thread) => {
                    let handle = match start_thread(shared, thread) {
                        Ok(handle) => handle,
                        Err(error) => {
                            shared.threads.handles.write().truncate(thread);
                            // It may have attached, and a rewrite waits for all that have.
                            shared.log.ended(thread);
                            let rest = self.thread_count.start_failed(thread);
                            return self.take_each(shared, rest).and(Err(error));
                        }
                    };
                    self.threads.truncate(thread - 1);
                    self.threads.push(Some(handle));
                }
                ThreadStep::Unlink(started) => shared.threads.handles.write().truncate(started),
                ThreadStep::Rebalance => {
                    shared.send(0, Message::MoveAll);
                    // Threads that have no clients yet learn that they tend shards.
                    (1..self.thread_count.active())
                        .for_each(|thread| shared.send(thread, Message::MoveSurplus));
                }
            }
        }
        Ok(())
    }

    /// Joins a thread that has ended.
    pub fn thread_left(&mut self, shared: &SharedState, index: usize) {
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

fn start_thread(shared: &SharedState, index: usize) -> io::Result<JoinHandle<()>> {
    let shared = shared.me.upgrade().ok_or(io::ErrorKind::NotFound)?;
    let post = ThreadMailbox::new()?;
    let worker = Worker::new(
        Arc::clone(&shared.node),
        index,
        shared.node.table,
        base::random::entropy_seed(),
        sys::clock::tsc_per_micro(),
    );
    let handle = post.handle.clone();
    let mut thread = IoThread::new(Arc::clone(&shared), worker, post)?;
    {
        let mut handles = shared.threads.handles.write();
        handles.truncate(index);
        handles.push(handle);
    }
    std::thread::Builder::new().name(format!("weft-io-{index}")).spawn(move || {
        sys::crash::protect_thread();
        thread.run();
        // Everything is returned before the main thread learns of its end.
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

/// Threads that may be active, the main thread included: one for each processor besides it.
fn threads_usable(config: &Config) -> usize {
    if config.io_threads_always_active { THREADS_MAX } else { processors() + 1 }
}

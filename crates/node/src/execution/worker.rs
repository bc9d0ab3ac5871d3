//! What one thread keeps to execute requests: its turn, its counts, its copy of the configuration.

use std::sync::Arc;

use base::random::Random;
use base::room::clear;
use store::{Time, Turn};

use crate::blocking::WakeEvent;
use crate::config::{Config, Execute};
use crate::execution::place;
use crate::execution::table::Table;
use crate::node::Node;
use crate::stats::counters::ThreadCounters;

/// Memory that a thread keeps from turn to turn to build values in.
const SCRATCH_KEPT_BYTES_MAX: usize = 256 * 1024;
/// The same for the hashes and for the shards of a command's keys.
const KEYS_KEPT_BYTES_MAX: usize = 64 * 1024;
/// How old the time may be when a command begins, in microseconds.
const TIME_AGE_US_MAX: f64 = 500.0;
/// The system's clock and what is derived from the TSC differ by less, in microseconds.
const CLOCKS_DIFFER_US_MAX: i64 = 1000;

/// One thread's means of execution.
#[derive(Debug)]
pub struct Worker {
    /// The shared state.
    pub node: Arc<Node>,
    /// The configuration as of this turn.
    pub config: Arc<Config>,
    /// Time and by-products.
    pub turn: Turn,
    /// All commands.
    pub table: &'static Table,
    /// The thread's counts.
    pub stats: Arc<ThreadCounters>,
    /// The thread's number; 0 is the main thread.
    pub index: usize,
    /// Commands with one of these bits of [`place`] are handed to the main thread.
    pub remote: u8,
    /// Fresh random numbers.
    pub random: Random,
    /// The TSC when the last command ended.
    pub(crate) last_tsc: u64,
    /// The TSC when the turn's time was set.
    time_tsc: u64,
    /// After this many TSC cycles the turn's time is set anew.
    time_age_tsc_max: u64,
    /// Runs of this many TSC cycles or more go to the slow log.
    pub(crate) slow_tsc: u64,
    /// Hashes of the keys of the running command, reused.
    pub(crate) hashes: Vec<u64>,
    /// Shards of the running command, reused.
    pub(crate) shards: Vec<usize>,
    /// What the running command did to the waits of other clients.
    pub(crate) wake_events: Vec<WakeEvent>,
    generation: u64,
    tsc_per_micro: f64,
}

impl Worker {
    /// The means of thread `index`.
    pub fn new(
        node: Arc<Node>,
        index: usize,
        table: &'static Table,
        seed: u64,
        tsc_per_micro: f64,
    ) -> Self {
        let mut worker = Self {
            config: node.config(),
            turn: Turn::new(
                node.hasher,
                node.key_counts.of_thread(index),
                Arc::clone(&node.expiring_shards),
            ),
            stats: node.thread_counters(index, table.entries().len()),
            table,
            index,
            remote: 0,
            random: Random::new(seed),
            last_tsc: 0,
            time_tsc: 0,
            time_age_tsc_max: (TIME_AGE_US_MAX * tsc_per_micro) as u64,
            slow_tsc: u64::MAX,
            hashes: Vec::new(),
            shards: Vec::new(),
            wake_events: Vec::new(),
            generation: node.generation(),
            tsc_per_micro,
            node,
        };
        worker.follow_config();
        worker
    }

    /// Begins a turn: sets the time and takes over a changed configuration.
    ///
    /// A time that is slightly earlier than that of the last turn comes from another clock, and the
    /// later one stays; else the system's clock was set back, and the thread follows.
    #[inline]
    pub fn begin_turn(&mut self, time: Time, tsc: u64) {
        if !(0..CLOCKS_DIFFER_US_MAX).contains(&(self.turn.unix_us - time.unix_us)) {
            self.turn.set_time(time.unix_us);
        }
        self.turn.steady_ms = self.turn.steady_ms.max(time.steady_ms);
        self.last_tsc = tsc;
        self.time_tsc = tsc;
        self.take_over_config();
    }

    /// A command has ended, and the next begins: the time goes on if enough has passed. `time`
    /// reads the clocks.
    #[inline]
    pub(crate) fn go_on(&mut self, tsc: u64, time: impl FnOnce() -> Time) {
        self.last_tsc = tsc;
        if tsc.wrapping_sub(self.time_tsc) >= self.time_age_tsc_max {
            self.time_tsc = tsc;
            self.turn.advance_time(time());
        }
    }

    /// Takes over a changed configuration, so that what follows in the batch sees it.
    #[inline]
    pub(crate) fn take_over_config(&mut self) {
        let generation = self.node.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.node.config();
            self.follow_config();
        }
    }

    fn follow_config(&mut self) {
        self.remote = match (self.index, self.config.io_threads_execute) {
            (0, _) => 0,
            (_, Execute::All) => place::MAIN,
            (_, Execute::Simple) => place::MAIN | place::NOT_SIMPLE,
            (_, Execute::None) => place::MAIN | place::NOT_SIMPLE | place::ANY,
        };
        self.turn.unlink_expired = self.config.lazyfree_lazy_expire;
        self.turn.unlink_emptied = self.config.lazyfree_lazy_server_del;
        self.slow_tsc = match u64::try_from(self.config.slowlog_log_slower_than) {
            Ok(micros) => (micros as f64 * self.tsc_per_micro) as u64,
            Err(_) => u64::MAX,
        };
    }

    /// Microseconds in this many TSC cycles.
    pub fn micros(&self, tsc: u64) -> u64 {
        (tsc as f64 / self.tsc_per_micro) as u64
    }

    /// Adds what the turn has counted so far to the thread's counts.
    pub fn publish_counters(&mut self) {
        self.stats.add(std::mem::take(&mut self.turn.counters));
    }

    /// Ends a turn: adds its counts to the thread's, and frees memory that only a large request
    /// needed.
    pub fn end_turn(&mut self) {
        self.publish_counters();
        self.turn.lazy_free.clear();
        clear(&mut self.turn.scratch, SCRATCH_KEPT_BYTES_MAX);
        clear(&mut self.hashes, KEYS_KEPT_BYTES_MAX);
        clear(&mut self.shards, KEYS_KEPT_BYTES_MAX);
    }

    /// Bytes of memory that the reused lists occupy.
    #[cfg(test)]
    fn room_bytes(&self) -> usize {
        self.turn.scratch.capacity() + 8 * (self.hashes.capacity() + self.shards.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn large_requests_leave_a_bounded_amount_of_memory() {
        let node = Arc::new(Node::new(Config::default(), 1, 1));
        let mut worker = Worker::new(node, 0, table(), 1, 1000.0);
        worker.hashes.resize(3_000_000, 0);
        worker.shards.resize(3_000_000, 0);
        worker.turn.scratch.resize(100_000_000, 0);
        worker.end_turn();
        assert!(worker.room_bytes() <= SCRATCH_KEPT_BYTES_MAX + 2 * KEYS_KEPT_BYTES_MAX);
    }
}

//! Totals of all threads' counters since the start or the last CONFIG RESETSTAT, and rates, for
//! INFO.

use std::collections::BTreeMap;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::state::node::Node;
use crate::stats::counters::{ERROR_CODES_MAX, ThreadCounters};
use crate::stats::latency_histogram::Latencies;
use crate::stats::totals::{LatencyBase, Load, SAMPLES, ThreadSums};

/// Least milliseconds between two samples.
const SAMPLE_MS: i64 = 100;
/// Weight of the last walk in the mean share of expired keys, as in Redis.
const LAST_WALK_WEIGHT: f64 = 0.05;

/// The code that replaces all codes if there are too many.
const CODES_DISABLED: &str = "ERRORSTATS_DISABLED";

impl Node {
    /// The counts of each thread that ever ran since the last reset, by the threads' numbers.
    pub fn thread_sums(&self) -> Vec<ThreadSums> {
        let statistics = self.statistics.lock();
        let none = ThreadSums::default();
        let bases = statistics.base.iter().chain(std::iter::repeat(&none));
        let threads = self.threads.read();
        let now = threads.iter().map(|stats| ThreadSums::read(stats));
        now.zip(bases).map(|(now, base)| now.since(base)).collect()
    }

    /// Latencies of a command on all threads since the last reset, in TSC cycles.
    pub fn latencies(&self, command: usize) -> Latencies {
        let base = Arc::clone(&self.latency_base.lock());
        let mut all = Latencies::default();
        for (thread, stats) in self.threads.read().iter().enumerate() {
            let counters = stats.commands.get(command);
            let Some(latencies) = counters.and_then(|count| count.latencies()) else { continue };
            match base.get(&(thread, command)) {
                Some(base) => all.add(&latencies.since(base)),
                None => all.add(&latencies),
            }
        }
        all
    }

    /// Error replies of all threads by code since the last reset. As in Redis, too many codes are
    /// replaced by one.
    pub fn error_codes(&self) -> BTreeMap<Box<str>, u64> {
        let codes = self.all_error_codes();
        match codes.len() > ERROR_CODES_MAX {
            true => BTreeMap::from([(CODES_DISABLED.into(), 1)]),
            false => codes,
        }
    }

    /// All error codes if there are too many, once after each reset. On the main thread only.
    pub fn excess_error_codes(&self) -> Option<Vec<Box<str>>> {
        let count: u64 = self.threads.read().iter().map(|stats| stats.code_count()).sum();
        if count <= ERROR_CODES_MAX as u64 || self.statistics.lock().has_excess_codes {
            return None;
        }
        let codes = self.all_error_codes();
        if codes.len() <= ERROR_CODES_MAX {
            return None;
        }
        self.statistics.lock().has_excess_codes = true;
        Some(codes.into_keys().collect())
    }

    fn all_error_codes(&self) -> BTreeMap<Box<str>, u64> {
        let mut all = BTreeMap::new();
        for stats in self.threads.read().iter() {
            for (code, count) in stats.error_codes() {
                *all.entry(code).or_default() += count;
            }
        }
        all
    }

    /// CONFIG RESETSTAT: resets the counts as readers see them. On the main thread only.
    pub fn reset_totals(&self, steady_ms: i64) {
        let threads = self.threads.read();
        let mut statistics = self.statistics.lock();
        statistics.base = threads.iter().map(|stats| ThreadSums::read(stats)).collect();
        statistics.rates = Default::default();
        statistics.expired_share = 0.0;
        statistics.has_excess_codes = false;
        for stats in threads.iter() {
            stats.forget_error_codes();
        }
        *self.latency_base.lock() = Arc::new(latencies(&threads));
        self.connections_received.store(0, Ordering::Relaxed);
        self.connections_rejected.store(0, Ordering::Relaxed);
        self.lazy_freed.store(0, Ordering::Relaxed);
        self.eviction.reset(steady_ms);
        self.scripting.reset_totals();
        let mut snapshots = self.snapshots.figures.lock();
        snapshots.saves_before = snapshots.saves;
    }

    /// Takes a sample for the rates, on the main thread's tick. Does nothing within a tenth of a
    /// second after the last sample.
    pub fn sample(&self, now_ms: i64) {
        let mut statistics = self.statistics.lock();
        let elapsed_ms = statistics.last.map(|(then_ms, _)| now_ms.saturating_sub(then_ms));
        if elapsed_ms.is_some_and(|elapsed_ms| (0..SAMPLE_MS).contains(&elapsed_ms)) {
            return;
        }
        let now = self.load();
        let last = statistics.last.replace((now_ms, now));
        // No rate can be computed if the clock was set back.
        let Some(elapsed_ms) = elapsed_ms.filter(|elapsed_ms| *elapsed_ms > 0) else { return };
        if let Some((_, then)) = last {
            let next = statistics.next;
            statistics.rates[next] = now.rate_since(then, elapsed_ms);
            statistics.next = (next + 1) % SAMPLES;
        }
    }

    /// Adds an expiry walk to the mean share of expired keys.
    pub fn note_expiry_walk(&self, looked_at: usize, expired: usize) {
        let share = if looked_at == 0 { 0.0 } else { expired as f64 / looked_at as f64 };
        let mean = &mut self.statistics.lock().expired_share;
        *mean += (share - *mean) * LAST_WALK_WEIGHT;
    }

    /// Estimated share of keys with an expiry that have expired and are still stored, 0 to 1.
    pub fn expired_share(&self) -> f64 {
        self.statistics.lock().expired_share
    }

    /// The rates per second by the last samples.
    pub fn rates(&self) -> Load {
        let rates = self.statistics.lock().rates;
        let sum = rates.into_iter().fold(Load::default(), |sum, rate| sum.combine(rate, u64::add));
        sum.combine(sum, |amount, _| amount / SAMPLES as u64)
    }

    fn load(&self) -> Load {
        let mut load = Load::default();
        for stats in self.threads.read().iter() {
            load.commands += stats.commands.iter().map(|count| count.calls.value()).sum::<u64>();
            load.in_bytes += stats.in_bytes.value();
            load.out_bytes += stats.out_bytes.value();
            load.turns += stats.turns.value();
            load.busy_tsc += stats.busy_tsc.value();
        }
        load
    }
}

/// Latencies of all commands on all threads.
fn latencies(threads: &[Arc<ThreadCounters>]) -> LatencyBase {
    let mut all = LatencyBase::new();
    for (thread, stats) in threads.iter().enumerate() {
        for (command, counters) in stats.commands.iter().enumerate() {
            all.extend(counters.latencies().map(|latencies| ((thread, command), latencies)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_reset_hides_earlier_counts() {
        let node = Node::new(Config::default(), 1, 1);
        let stats = node.thread_counters(0, 4);
        stats.commands[0].calls.add(3);
        stats.commands[0].record_latency(100);
        stats.clients.set(2);
        stats.note_error("ERR no");
        node.reset_totals(0);
        stats.commands[0].calls.add(4);
        stats.commands[0].record_latency(50);
        stats.note_error("NOAUTH no");
        let late = node.thread_counters(1, 4);
        late.commands[0].calls.add(1);
        late.commands[0].record_latency(60);
        assert_eq!(node.latencies(0).iter().collect::<Vec<_>>(), [(50.0, 1), (60.0, 1)]);
        assert_eq!(node.latencies(1).runs(), 0);
        let sums = node.thread_sums();
        let calls: Vec<_> = sums.iter().map(ThreadSums::calls).collect();
        assert_eq!(calls, [4, 1]);
        assert_eq!((sums[0].sums.clients, sums[0].sums.errors), (2, 1));
        assert_eq!(node.error_codes().into_iter().collect::<Vec<_>>(), [("NOAUTH".into(), 1)]);
        assert_eq!(stats.commands[0].calls.value(), 7);
    }

    #[test]
    fn too_many_error_codes_are_shown_as_one() {
        let node = Node::new(Config::default(), 1, 1);
        let threads = [0, 1].map(|index| node.thread_counters(index, 4));
        for number in 0..ERROR_CODES_MAX {
            threads[number % 2].note_error(format!("E{number} made up"));
            threads[0].note_error("E1 made up");
        }
        assert_eq!(node.error_codes().len(), ERROR_CODES_MAX);
        assert_eq!(node.excess_error_codes(), None);
        threads[1].note_error("MORE made up");
        let disabled = [("ERRORSTATS_DISABLED".into(), 1)];
        assert_eq!(node.error_codes().into_iter().collect::<Vec<_>>(), disabled);
        assert_eq!(node.excess_error_codes().map(|codes| codes.len()), Some(ERROR_CODES_MAX + 1));
        assert_eq!(node.excess_error_codes(), None, "reported twice");
        node.reset_totals(0);
        threads[0].note_error("ERR no");
        assert_eq!(node.error_codes().into_iter().collect::<Vec<_>>(), [("ERR".into(), 1)]);
    }

    #[test]
    fn the_share_of_expired_keys_is_a_running_mean() {
        let node = Node::new(Config::default(), 1, 1);
        node.note_expiry_walk(20, 10);
        assert!((node.expired_share() - 0.025).abs() < 1e-9);
        node.note_expiry_walk(0, 0);
        assert!((node.expired_share() - 0.02375).abs() < 1e-9);
        for _ in 0..1000 {
            node.note_expiry_walk(10, 10);
        }
        assert!((node.expired_share() - 1.0).abs() < 1e-6);
        node.reset_totals(0);
        assert_eq!(node.expired_share(), 0.0);
    }

    #[test]
    fn rates_are_means_of_sixteen_samples() {
        let node = Node::new(Config::default(), 1, 1);
        let stats = node.thread_counters(0, 4);
        node.sample(1000);
        stats.commands[0].calls.add(16);
        stats.in_bytes.add(1600);
        stats.turns.add(32);
        stats.busy_tsc.add(320);
        node.sample(1050);
        assert_eq!(node.rates(), Load::default(), "too soon");
        node.sample(1200);
        let load = Load { commands: 5, in_bytes: 500, out_bytes: 0, turns: 10, busy_tsc: 100 };
        assert_eq!(node.rates(), load);
        for tick in 0..16 {
            node.sample(1300 + tick * 100);
        }
        assert_eq!(node.rates(), Load::default());
        stats.commands[0].calls.add(100);
        node.sample(50);
        assert_eq!(node.rates(), Load::default(), "the clock was set back");
    }
}

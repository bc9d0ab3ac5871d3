//! How many I/O threads are active, that is, take clients: at most one for each processor that the
//! process may use. Under a light load of quick commands, no more than the load needs.
//!
//! Each further active thread costs: requests are spread over more turns, so fewer requests share
//! the cost of each wait and each thread switch. On two processors a GET takes 2.05 us of processor
//! time with one active thread and 2.5 us with two when 10 clients send one after another, 2.0 and
//! 2.2 us with 50 clients. On the other hand, a slow command stops all clients of its thread, and
//! no other thread may take them over. So clients share a thread only where that saves something
//! and where no slow command has been seen. The main thread samples how busy the active threads
//! were and whether one of them ran a slow command, and [`ActiveThreads::decide`] returns their
//! number from now on:
//!
//! ```text
//!     fewer processors than active threads                 as many as processors
//!     a command of 20 ms was seen within 10 minutes        as many as processors
//!     one is over 70% busy, all together over 50%          as many as would be 50% busy
//!     for 5 s all together less than 2% of a processor     as many as processors
//!     for 5 s none is over 50%, fewer would be at most
//!     40% busy, and all together over 5% of a processor    as many as would be 40% busy
//!     they wait for processors that others use             fewest that do as much: `thread_trials`
//! ```
//!
//! The thresholds are apart, so a number that was just chosen is not left again under the same
//! load. A single client that keeps its thread busy with quick commands does not spread the other
//! clients.
//!
//! This module neither moves clients nor reads clocks: `ThreadCount` knows the steps.

use crate::threads::thread_trials::{ThreadTrials, ThreadWork};

/// An active thread that is busy for more than this share of the time needs another one.
const BUSY_SHARE: f64 = 0.7;
/// The average busy share of active threads after their number was raised.
const RAISED_SHARE: f64 = 0.5;
/// The same after their number was lowered.
const LOWERED_SHARE: f64 = 0.4;
/// How long the load must be low before the number is lowered.
const CALM_MS: i64 = 5000;
/// How long a raised number stays before it is raised again.
const RAISE_AGAIN_MS: i64 = 300;
/// Below this load, in processors, the cost of further active threads does not matter.
const QUIET_LOAD: f64 = 0.02;
/// Above this load clients are brought together.
const LIGHT_LOAD: f64 = 0.05;
/// How long clients stay apart after a slow command.
const APART_MS: i64 = 600_000;
/// Between two samples.
pub const SAMPLE_MS: i64 = 100;

/// Decides how many threads are active.
#[derive(Debug, Default)]
pub struct ActiveThreads {
    /// Since when the load has been low, and whether hardly anything has been done.
    calm_since_ms: Option<(i64, bool)>,
    /// Until when clients stay apart, because of a slow command.
    apart_until_ms: Option<i64>,
    /// When the number was raised.
    raised_ms: i64,
    trials: ThreadTrials,
}

impl ActiveThreads {
    /// Returns the number of active threads from now on. `busy` has the busy share of each present
    /// active thread since the last sample; `is_slow` says that one has run a slow command; `most`
    /// is the number of active threads that have a processor; `now_ms` is the time on any monotonic
    /// scale; `work` returns what the active threads have done so far.
    pub fn decide(
        &mut self,
        busy: &[f64],
        is_slow: bool,
        most: usize,
        now_ms: i64,
        work: impl FnOnce() -> Option<ThreadWork>,
    ) -> usize {
        let (now, most) = (busy.len().max(1), most.max(1));
        if is_slow {
            self.apart_until_ms = Some(now_ms + APART_MS);
        }
        let total: f64 = busy.iter().sum();
        let is_apart = self.apart_until_ms.is_some_and(|until_ms| now_ms < until_ms);
        let is_quiet = total < QUIET_LOAD;
        let most = match is_apart || is_quiet {
            true => most,
            false => most.min(self.trials.limit(now, now_ms, work)),
        };
        if now > most || is_apart {
            self.calm_since_ms = None;
            return most;
        }
        let peak = busy.iter().copied().fold(0.0, f64::max);
        let threads_at = |share: f64| (total / share).ceil() as usize;
        if now < most && peak > BUSY_SHARE && total > RAISED_SHARE * now as f64 {
            self.calm_since_ms = None;
            if now_ms - self.raised_ms < RAISE_AGAIN_MS {
                return now;
            }
            self.raised_ms = now_ms;
            return threads_at(RAISED_SHARE).clamp(now + 1, most);
        }
        let fewer = threads_at(LOWERED_SHARE).max(1);
        let is_calm = peak <= RAISED_SHARE && fewer < now && total > LIGHT_LOAD;
        if !(is_calm || is_quiet && now < most) {
            self.calm_since_ms = None;
            return now;
        }
        let since_ms = match self.calm_since_ms {
            Some((since_ms, was_quiet)) if was_quiet == is_quiet => since_ms,
            _ => now_ms,
        };
        self.calm_since_ms = Some((since_ms, is_quiet));
        if now_ms - since_ms < CALM_MS {
            return now;
        }
        self.calm_since_ms = None;
        if is_quiet { most } else { fewer }
    }
}

/// The shares of time that threads were busy between two samples.
#[derive(Debug, Default)]
pub struct BusySamples {
    last_tsc: u64,
    last: Vec<u64>,
}

impl BusySamples {
    /// Takes a sample at a TSC: the busy ticks of each thread so far. Returns the share of time of
    /// each since the last sample; 0 for one that was not in it.
    pub fn shares(&mut self, tsc: u64, busy_tsc: &[u64]) -> Vec<f64> {
        let elapsed = tsc.wrapping_sub(self.last_tsc).max(1) as f64;
        let last = self.last.iter().copied().map(Some).chain(std::iter::repeat(None));
        let shares = busy_tsc.iter().zip(last).map(|(busy, last)| {
            let ticks = last.map_or(0, |last| busy.saturating_sub(last));
            (ticks as f64 / elapsed).min(1.0)
        });
        let shares = shares.collect();
        self.last_tsc = tsc;
        self.last = busy_tsc.to_vec();
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten samples a second for `seconds`, of a load of `total` processors that is spread evenly.
    /// Returns each number of active threads that was decided, when it changed.
    fn changes(
        threads: &mut ActiveThreads,
        (mut count, most): (usize, usize),
        start_ms: i64,
        seconds: i64,
        load: impl Fn(i64, usize) -> Vec<f64>,
    ) -> Vec<usize> {
        let mut changes = Vec::new();
        for step in 0..seconds * 10 {
            let now_ms = start_ms + step * SAMPLE_MS;
            let decided = threads.decide(&load(step, count), false, most, now_ms, || None);
            if decided != count {
                count = decided;
                changes.push(count);
            }
        }
        changes
    }

    fn even(total: f64) -> impl Fn(i64, usize) -> Vec<f64> {
        move |_, count| vec![(total / count as f64).min(1.0); count]
    }

    #[test]
    fn no_more_are_active_than_there_are_processors() {
        let mut threads = ActiveThreads::default();
        assert_eq!(changes(&mut threads, (7, 2), 1000, 1, even(7.0)), [2]);
        assert_eq!(changes(&mut threads, (2, 2), 2000, 20, even(7.0)), []);
        // One is the least, whatever the quota.
        assert_eq!(changes(&mut threads, (2, 0), 30_000, 1, even(2.0)), [1]);
    }

    #[test]
    fn the_number_follows_the_load() {
        let mut threads = ActiveThreads::default();
        assert_eq!(changes(&mut threads, (1, 16), 1000, 10, even(5.0)), [2, 4, 8]);
        assert_eq!(changes(&mut threads, (8, 16), 20_000, 4, even(0.1)), []);
        assert_eq!(changes(&mut threads, (8, 16), 30_000, 20, even(0.1)), [1]);
        // A raise takes a sample, not a second.
        assert_eq!(threads.decide(&[0.9], false, 16, 60_000, || None), 2);
        assert_eq!(threads.decide(&[0.9, 0.9], false, 16, 60_100, || None), 2);
    }

    #[test]
    fn a_quiet_server_spreads_its_clients() {
        let mut threads = ActiveThreads::default();
        assert_eq!(changes(&mut threads, (1, 16), 1000, 4, even(0.01)), []);
        assert_eq!(changes(&mut threads, (1, 16), 5000, 20, even(0.01)), [16]);
        assert_eq!(changes(&mut threads, (16, 16), 30_000, 20, even(0.03)), []);
        assert_eq!(changes(&mut threads, (16, 16), 60_000, 20, even(0.1)), [1]);
        assert_eq!(changes(&mut threads, (1, 16), 90_000, 20, even(0.03)), []);
    }

    #[test]
    fn slow_commands_keep_clients_apart() {
        let mut threads = ActiveThreads::default();
        assert_eq!(threads.decide(&[0.2], true, 16, 1000, || None), 16);
        assert_eq!(changes(&mut threads, (16, 16), 1100, 500, even(0.2)), []);
        assert_eq!(changes(&mut threads, (16, 16), 1000 + APART_MS, 20, even(0.2)), [1]);
    }

    #[test]
    fn no_load_moves_clients_back_and_forth() {
        for most in [2, 3, 8] {
            for percent in (0..most * 100).step_by(3) {
                let total = percent as f64 / 100.0;
                for start in [1, most] {
                    // A tenth more or less from sample to sample.
                    let noisy = |step: i64, count: usize| {
                        let factor = [0.9, 1.1, 1.0, 0.95, 1.05][step as usize % 5];
                        even(total * factor)(step, count)
                    };
                    let mut threads = ActiveThreads::default();
                    let all = changes(&mut threads, (start, most), 1000, 60, noisy);
                    let is_one_way = all.is_sorted() || all.is_sorted_by(|a, b| a >= b);
                    assert!(is_one_way && all.len() < 8, "{total} of {most}: {all:?}");
                }
            }
        }
    }

    #[test]
    fn one_hot_client_spreads_no_others_for_long() {
        let hot = |_, count: usize| {
            let mut busy = vec![0.01; count];
            busy[0] = 1.0;
            busy
        };
        let mut threads = ActiveThreads::default();
        assert_eq!(changes(&mut threads, (1, 8), 1000, 60, hot), [2, 3]);
    }

    #[test]
    fn shares_are_of_the_time_between_samples() {
        let mut samples = BusySamples::default();
        samples.shares(1000, &[100]);
        assert_eq!(samples.shares(2000, &[600, 300]), [0.5, 0.0]);
        assert_eq!(samples.shares(3000, &[600, 9300]), [0.0, 1.0]);
    }
}

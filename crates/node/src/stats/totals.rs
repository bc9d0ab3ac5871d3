//! Totals of all threads' counters since the start or the last CONFIG RESETSTAT, and rates.
//!
//! A reset changes no counter of another thread: it stores all values, and reports show the
//! difference. Rates come from samples that the main thread's tick takes ten times a second.

use std::collections::BTreeMap;

use crate::stats::counters::{CommandSums, Sums, ThreadCounters};
use crate::stats::latency_histogram::Latencies;

/// A rate is the mean of this many samples.
pub(crate) const SAMPLES: usize = 16;

/// The counters at the last reset, and the samples of rates.
#[derive(Debug, Default)]
pub struct Totals {
    /// Counters at the last reset, by number of the thread.
    pub(crate) base: Vec<ThreadSums>,
    /// Time and counters of the last sample.
    pub(crate) last: Option<(i64, Load)>,
    pub(crate) rates: [Load; SAMPLES],
    pub(crate) next: usize,
    /// Whether the excess of error codes has been reported.
    pub(crate) has_excess_codes: bool,
    /// Running mean over the expiry walks of the share of expired keys.
    pub(crate) expired_share: f64,
}

/// Latencies at the last reset, by the numbers of the thread and of the command.
pub(crate) type LatencyBase = BTreeMap<(usize, usize), Latencies>;

/// Values of one thread's counters.
#[derive(Clone, Debug, Default)]
pub struct ThreadSums {
    /// One for each entry of the table.
    pub commands: Vec<CommandSums>,
    /// Counters that do not belong to a command.
    pub sums: Sums,
}

/// Amounts of work: in total, or per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Commands.
    pub commands: u64,
    /// Bytes received.
    pub in_bytes: u64,
    /// Bytes sent.
    pub out_bytes: u64,
    /// Turns of event loops.
    pub turns: u64,
    /// TSC cycles in turns.
    pub busy_tsc: u64,
}

impl ThreadSums {
    /// Reads a thread's counters.
    pub(crate) fn read(stats: &ThreadCounters) -> Self {
        let commands = stats.commands.iter().map(|count| count.read()).collect();
        Self { commands, sums: stats.read() }
    }

    pub(crate) fn since(&self, base: &Self) -> Self {
        let none = CommandSums::default();
        let bases = base.commands.iter().chain(std::iter::repeat(&none));
        let commands = self.commands.iter().zip(bases).map(|(now, base)| now.since(base)).collect();
        let all = self.sums;
        // Clients are not a sum over time. As in Redis, a reset does not hide denials.
        let sums = Sums {
            clients: all.clients,
            auth_failures: all.auth_failures,
            denied_commands: all.denied_commands,
            denied_keys: all.denied_keys,
            denied_channels: all.denied_channels,
            ..all.since(&base.sums)
        };
        Self { commands, sums }
    }

    /// Calls of all commands.
    pub fn calls(&self) -> u64 {
        self.commands.iter().map(|command| command.calls).sum()
    }

    /// TSC cycles in calls of all commands.
    pub fn command_tsc(&self) -> u64 {
        self.commands.iter().map(|command| command.tsc).sum()
    }

    /// Adds the values of another thread.
    pub fn add(&mut self, other: &Self) {
        self.commands.resize(self.commands.len().max(other.commands.len()), CommandSums::default());
        for (all, one) in self.commands.iter_mut().zip(&other.commands) {
            all.add(one);
        }
        self.sums.add(&other.sums);
    }
}

impl Load {
    pub(crate) fn rate_since(self, then: Self, elapsed_ms: i64) -> Self {
        let elapsed_ms = u128::try_from(elapsed_ms).unwrap_or(0).max(1);
        self.combine(then, |now, then| {
            let rate = u128::from(now.saturating_sub(then)) * 1000 / elapsed_ms;
            u64::try_from(rate).unwrap_or(u64::MAX)
        })
    }

    /// Combines each amount with that of another load.
    pub(crate) fn combine(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            commands: with(self.commands, other.commands),
            in_bytes: with(self.in_bytes, other.in_bytes),
            out_bytes: with(self.out_bytes, other.out_bytes),
            turns: with(self.turns, other.turns),
            busy_tsc: with(self.busy_tsc, other.busy_tsc),
        }
    }
}

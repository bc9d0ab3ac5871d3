//! Metrics for monitoring systems in the text format of Prometheus, and whether the server serves.
//!
//! Everything is read as INFO reads it, without a shard, on any thread. Counters count since the
//! start: CONFIG RESETSTAT only resets the codes of errors, the connections and the time over
//! `maxmemory` here, as a restart does. Names and units follow
//! <https://prometheus.io/docs/practices/naming/>.

mod metric;
pub mod node_totals;
mod page;
mod several;
mod single;

use std::sync::Arc;

use engine::ScriptError;
use store::Time;

use self::page::MetricsPage;
use crate::config::Config;
use crate::host::ProcessInfo;
use crate::state::append_only_figures::AppendOnlyFigures;
use crate::state::node::Node;
use crate::state::snapshots::SnapshotFigures;
use crate::stats::totals::ThreadSums;

/// The data from which metrics are written.
struct MetricsInput<'a> {
    node: &'a Node,
    process: &'a ProcessInfo,
    config: Arc<Config>,
    time: Time,
    /// The counts of the threads, by their numbers.
    threads: Vec<ThreadSums>,
    /// The sum over all threads.
    total: ThreadSums,
    snapshots: SnapshotFigures,
    append_only: AppendOnlyFigures,
}

impl MetricsInput<'_> {
    /// Converts TSC cycles to seconds.
    fn seconds(&self, tsc: f64) -> f64 {
        tsc / self.process.tsc_per_micro / 1e6
    }
}

/// Why a server does not serve all commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwell {
    /// Keys are being loaded.
    Loading,
    /// It shuts down.
    Ending,
    /// A script has run for longer than `busy-reply-threshold`: clients get this error.
    Busy(ScriptError),
    /// Commands that change keys are refused, with this error.
    WritesRefused(String),
    /// Memory is over `maxmemory`, and `maxmemory-policy` evicts no key.
    OutOfMemory,
}

impl std::fmt::Display for Unwell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Loading => f.write_str("keys are being loaded"),
            Self::Ending => f.write_str("the server is shutting down"),
            Self::Busy(error) => write!(f, "not all clients are served: {error}"),
            Self::WritesRefused(error) => write!(f, "writes are refused: {error}"),
            Self::OutOfMemory => f.write_str(
                "writes are refused: memory exceeds maxmemory, and maxmemory-policy is noeviction",
            ),
        }
    }
}

impl Node {
    /// All metrics, as text.
    pub fn metrics(&self, process: &ProcessInfo, time: Time) -> String {
        let counters = self.threads.read().clone();
        let threads: Vec<_> = counters.iter().map(|counters| ThreadSums::read(counters)).collect();
        let mut total = ThreadSums::default();
        for thread in &threads {
            total.add(thread);
        }
        let snapshot = MetricsInput {
            node: self,
            process,
            config: self.config(),
            time,
            threads,
            total,
            snapshots: self.snapshots.figures.lock().clone(),
            append_only: self.append_only.lock().clone(),
        };
        let mut page = MetricsPage::default();
        single::write(&snapshot, &mut page);
        several::write(&snapshot, &counters, &mut page);
        page.text
    }

    /// Whether the server serves all commands.
    ///
    /// # Errors
    /// The most severe reason why it does not.
    pub fn health(&self) -> Result<(), Unwell> {
        if self.is_shutting_down() {
            return Err(Unwell::Ending);
        }
        if self.is_loading() {
            return Err(Unwell::Loading);
        }
        if self.scripting.busy.any() {
            return Err(Unwell::Busy(self.scripting.busy.error(None)));
        }
        if let Some(error) = self.refusal() {
            return Err(Unwell::WritesRefused(error.to_string()));
        }
        let eviction = &self.config().eviction;
        let limit = i64::try_from(eviction.maxmemory).unwrap_or(i64::MAX);
        let used = self.used_memory.total() + self.used_memory.beyond_uncounted(limit);
        let is_over = limit != 0 && used > limit;
        if is_over && eviction.maxmemory_policy.choice().is_none() {
            return Err(Unwell::OutOfMemory);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

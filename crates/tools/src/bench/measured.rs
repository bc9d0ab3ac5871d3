//! The runs of one workload on one server, and their means.

use hdrhistogram::Histogram;

use crate::Error;
use crate::load::latency::latency_histogram;
use crate::load::latency::percentile_us;
use crate::load::outcome::WindowOutcome;
use crate::load::spec::LoadSpec;
use crate::load::workload::Workload;
use crate::statistics::{Interval, mean_interval};

/// The confidence of all intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The seed of the resamples: a constant, so that the same runs have the same intervals.
pub(crate) const RESAMPLING_SEED: u64 = 1;

/// The runs of one workload.
#[derive(Debug, Clone)]
pub struct MeasuredWorkload {
    pub row: &'static Workload,
    pub load: LoadSpec,
    /// The server's process, if known.
    pub pid: Option<u32>,
    /// One for each run, at least one.
    pub outcomes: Vec<WindowOutcome>,
}

/// A figure of a run, with its names for people and programs.
pub(super) struct RunFigure {
    pub(super) label: &'static str,
    pub(super) key: &'static str,
    pub(super) digits: usize,
    pub(super) of: fn(&WindowOutcome) -> Option<f64>,
}

const fn figure(
    label: &'static str,
    key: &'static str,
    digits: usize,
    of: fn(&WindowOutcome) -> Option<f64>,
) -> RunFigure {
    RunFigure { label, key, digits, of }
}

/// The figures whose means are shown.
pub(super) const FIGURES: [RunFigure; 6] = [
    figure("requests/s", "requests_per_second", 0, |o| Some(o.per_second())),
    figure("p50 us", "p50_us", 1, |o| Some(percentile_us(&o.latency, 50.0))),
    figure("p99 us", "p99_us", 1, |o| Some(percentile_us(&o.latency, 99.0))),
    figure("p99.9 us", "p99_9_us", 1, |o| Some(percentile_us(&o.latency, 99.9))),
    figure("server CPU us", "server_cpu_us", 3, WindowOutcome::server_us),
    figure("load CPU us", "load_cpu_us", 3, |o| Some(o.load.us_per_request(o.requests))),
];

impl MeasuredWorkload {
    /// The workload's name, or the commands that were sent.
    pub fn name(&self) -> String {
        name(self.row, &self.load)
    }

    /// The latencies of all runs.
    pub fn latency(&self) -> Histogram<u64> {
        let mut all = latency_histogram();
        for outcome in &self.outcomes {
            // All histograms have the same bounds, so adding cannot fail.
            let _ = all.add(&outcome.latency);
        }
        all
    }

    /// The mean of a figure over the runs, if all have it.
    pub(super) fn interval(&self, figure: &RunFigure) -> Option<Interval> {
        let samples: Option<Vec<f64>> = self.outcomes.iter().map(figure.of).collect();
        Some(mean_interval(&samples?, CONFIDENCE, RESAMPLING_SEED))
    }

    /// Refuses runs with error replies, whose figures mean nothing.
    pub fn refuse_errors(&self) -> Result<(), Error> {
        let name = self.name();
        self.outcomes.iter().try_for_each(|outcome| outcome.refuse_errors(&name))
    }
}

/// The name of a workload, or the commands that a load sends instead.
pub(super) fn name(row: &Workload, load: &LoadSpec) -> String {
    let command = |command: &crate::load::spec::LoadCommand| {
        let words: Vec<_> =
            command.words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        words.join(" ")
    };
    match load.commands.is_empty() {
        true => row.name.to_owned(),
        false => load.commands.iter().map(command).collect::<Vec<_>>().join("; "),
    }
}

//! Warnings that a reader needs to interpret the figures of a workload, over all of its runs: no
//! form of the output shows figures without them.

use std::fmt;

use crate::load::latency::percentile_us;
use crate::load::noise::MachineNoise;
use crate::load::outcome::WindowOutcome;
use crate::load::spec::LoadSpec;
use crate::printable::grouped;

/// The kernel updates CPU time at every tick, so in a window shorter than this it is imprecise.
const WINDOW_SECONDS_MIN: f64 = 0.5;

/// A load thread above this share of its core may itself be what limits throughput.
const LOAD_BUSY_PERCENT: f64 = 97.0;

/// A rate counts as reached from this share of it on.
const REACHED_SHARE: f64 = 0.95;

/// Nulls per reply without a note.
const NULLS_MAX: f64 = 0.001;

/// A warning; `Display` is its line in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    label: &'static str,
    pub(super) text: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", self.label, self.text)
    }
}

/// The warnings of one or more runs; a figure in them is the mean of the runs.
pub(super) fn remarks(load: &LoadSpec, outcomes: &[WindowOutcome]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut remark = |label, text| remarks.push(Remark { label, text });
    let mean = |of: &dyn Fn(&WindowOutcome) -> f64| {
        outcomes.iter().map(of).sum::<f64>() / outcomes.len().max(1) as f64
    };
    let errors = outcomes.iter().map(|outcome| outcome.errors).sum();
    if let Some(first) = outcomes.iter().find(|outcome| outcome.errors > 0) {
        let (errors, first) = (grouped(errors), &first.first_error);
        remark("ERRORS", format!("{errors} replies were errors; the first: {first}"));
    }
    if outcomes.iter().any(|outcome| outcome.interrupted) {
        remark("interrupted", "the figures end at the interruption".into());
    }
    let per_second = mean(&WindowOutcome::per_second);
    if let Some(rate) = load.rate.filter(|_| outcomes.iter().any(|run| misses_rate(load, run))) {
        remark("RATE", missed(rate, per_second));
        let unsent: u64 = outcomes.iter().map(|outcome| outcome.unsent).sum();
        if unsent > 0 {
            remark("", never_sent(unsent));
        }
    }
    if let Some(wanted) = load.rate {
        let late = |at: &dyn Fn(&WindowOutcome) -> f64| outcomes.iter().map(at).fold(0.0, f64::max);
        let text = format!(
            "{:.1}% of what was due is answered within the window; the load threads sent p99 \
             {:.0} us, max {:.0} us after it was due",
            100.0 * per_second / wanted,
            late(&|outcome| percentile_us(&outcome.lateness, 99.0)),
            late(&|outcome| outcome.lateness.max() as f64 / 1000.0)
        );
        remark("rate", text);
    }
    let aborted = mean(&|outcome| outcome.aborted_per_request) * 100.0;
    if aborted > 0.0 {
        let text = format!("{aborted:.2}% of the transactions, by a change of a watched key");
        remark("aborted", text);
    }
    if let Some(nulls) = nulls_percent(outcomes) {
        let remedy = "--prefill writes the whole key range first";
        remark("note", format!("{nulls:.1} nulls per 100 replies: {remedy}"));
    }
    let is_short = |outcome: &WindowOutcome| {
        outcome.server.is_some() && outcome.wall.as_secs_f64() < WINDOW_SECONDS_MIN
    };
    if outcomes.iter().any(is_short) {
        remark("note", "the window is too short for CPU times to be exact".into());
    }
    if outcomes.iter().map(WindowOutcome::load_percent).fold(0.0, f64::max) > LOAD_BUSY_PERCENT {
        let text = "a load thread used its whole core: throughput may be its; add --threads";
        remark("note", text.into());
    }
    let mut noise = MachineNoise::default();
    noise.add_runs(outcomes);
    noise.warnings().into_iter().for_each(|warning| remark("note", warning));
    remarks
}

/// Nulls per 100 replies, if they are so many that reads are cheaper than they should be.
pub(super) fn nulls_percent(outcomes: &[WindowOutcome]) -> Option<f64> {
    let all: f64 = outcomes.iter().map(|outcome| outcome.nulls_per_reply).sum();
    let nulls = all / outcomes.len().max(1) as f64;
    (nulls > NULLS_MAX).then_some(nulls * 100.0)
}

/// Whether fewer requests were answered than the rate asks for.
pub(super) fn misses_rate(load: &LoadSpec, outcome: &WindowOutcome) -> bool {
    let reached = |rate| outcome.per_second() >= REACHED_SHARE * rate;
    outcome.unsent > 0 || !load.rate.is_none_or(reached)
}

fn missed(rate: f64, per_second: f64) -> String {
    format!(
        "{} of the {} requests/s that were due were answered: server or load threads could not do \
         more",
        grouped(per_second as u64),
        grouped(rate as u64)
    )
}

fn never_sent(unsent: u64) -> String {
    let count = grouped(unsent);
    format!("{count} requests were due and never sent; their latency is how long they had waited")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measured::MeasuredWorkload;
    use crate::bench::report;
    use crate::bench::significance::tests::outcome;
    use crate::load::workload::table::TABLE;

    /// Runs in which so many of 100 replies were nulls.
    fn measured(nulls: &[f64]) -> MeasuredWorkload {
        let run = |nulls: &f64| WindowOutcome { nulls_per_reply: nulls / 100.0, ..outcome(100) };
        let outcomes = nulls.iter().map(run).collect();
        MeasuredWorkload { row: &TABLE[0], load: LoadSpec::default(), pid: None, outcomes }
    }

    #[test]
    fn every_text_of_runs_without_keys_says_so() {
        let (one, several) = (measured(&[100.0]), measured(&[100.0, 80.0]));
        let note = "nulls per 100 replies: --prefill";
        let text = report::text(&one, &one.outcomes[0], false);
        assert!(text.contains(&format!("\n  note         100.0 {note}")), "{text}");
        let text = report::summary(&several);
        assert!(text.contains(&format!("\n  note         90.0 {note}")), "{text}");
        let text = report::line(&several, &several.outcomes[1]);
        assert!(text.ends_with(", 80.0% NULLS\n"), "{text}");
        let text = report::summary(&measured(&[0.0, 0.1]));
        assert!(!text.contains("nulls"), "{text}");
    }

    #[test]
    fn a_missed_rate_and_error_replies_of_one_run_are_in_the_summary() {
        let mut measured = measured(&[0.0, 0.0]);
        measured.load.rate = Some(100.0);
        measured.outcomes[1].unsent = 7;
        measured.outcomes[1].errors = 3;
        measured.outcomes[1].first_error = "ERR no".into();
        let text = report::summary(&measured);
        for part in ["ERRORS       3 replies were errors; the first: ERR no", "RATE  ", " 7 req"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

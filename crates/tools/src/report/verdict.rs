//! The conclusions in sentences: the limit of a server, the best `io-threads`, the gain from one
//! more thread, and the reasons to doubt the figures.

use super::machine::MachineFacts;
use super::measure::{CONFIDENCE, MeasuredExperiment, PointCell};
use crate::load::noise::{MachineNoise, OTHERS_MAX};
use crate::printable::grouped;
use crate::statistics::{MeanRatio, compare};

/// A thread above this share of a core, in percent, is fully busy.
const FULL_PERCENT: f64 = 90.0;

/// A load thread above this may itself be what limits throughput.
const LOAD_FULL_PERCENT: f64 = 95.0;

/// A thread above this takes part in the work.
const WORKING_PERCENT: f64 = 20.0;

/// With a lower idle share of the processors, the machine is fully busy.
const IDLE_SHARE_MIN: f64 = 0.05;

/// The least gain that justifies a setting.
const WORTH: f64 = 1.03;

/// Half of an interval over its mean, above which settings cannot be distinguished.
const VAGUE: f64 = 0.15;

/// The share of missing keys above which reads are too cheap.
const NULLS_MAX: f64 = 0.01;

/// The limit of throughput.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PointLimit {
    /// One thread of the server, while others are idle.
    OneThread(String),
    /// All threads of the server that take part in the work.
    AllThreads(usize),
    LoadGenerator,
    /// Server and load use all processors together.
    Machine,
    /// No processor: each request waits for the reply before it.
    RoundTrips,
    /// The server's process is not known.
    Unknown,
}

/// The limit of a server at a point, if measured.
pub(super) fn limit(cell: &PointCell) -> Option<PointLimit> {
    let load = cell.mean(|sample| Some(sample.load_percent))?;
    let threads = cell.threads();
    let count = |percent: f64| threads.iter().filter(|thread| thread.1 >= percent).count();
    let (full, working) = (count(FULL_PERCENT), count(WORKING_PERCENT));
    let idle = cell.mean(|sample| sample.idle_share);
    Some(match threads.first() {
        Some(_) if full > 1 && full == working => PointLimit::AllThreads(full),
        Some((name, _)) if full > 0 => PointLimit::OneThread(name.clone()),
        _ if load >= LOAD_FULL_PERCENT => PointLimit::LoadGenerator,
        _ if idle.is_some_and(|idle| idle < IDLE_SHARE_MIN) => PointLimit::Machine,
        Some(_) => PointLimit::RoundTrips,
        None => PointLimit::Unknown,
    })
}

/// Access to the results by name.
pub(super) struct Results<'a> {
    pub measured: &'a [MeasuredExperiment],
    pub machine: &'a MachineFacts,
}

impl Results<'_> {
    /// A point of an experiment on a server, if measured.
    pub fn cell(
        &self,
        experiment: &str,
        series: &str,
        label: &str,
        server: usize,
    ) -> Option<&PointCell> {
        let measured = self.measured.iter().find(|part| part.experiment.name == experiment)?;
        let at = |point: &super::experiments::ExperimentPoint| {
            (point.series, point.label) == (series, label)
        };
        let cell = measured.cells.get(measured.points.iter().position(at)?)?.get(server)?;
        (!cell.samples.is_empty()).then_some(cell)
    }

    /// The sentences about one server.
    pub fn conclusions(&self, server: usize, name: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        sentences.extend(self.limit_sentence(server, name));
        match self.thread_sentences(server, name) {
            sentence if sentence.is_empty() => sentences.push(format!(
                "Which io-threads suit {name} was not measured: that needs the experiment \
                 'threads' and a server that the report starts."
            )),
            sentence => sentences.extend(sentence),
        }
        sentences
    }

    /// The limit of the server at its highest rate without a pipeline.
    fn limit_sentence(&self, server: usize, name: &str) -> Option<String> {
        let mut best: Option<(f64, String, &PointCell)> = None;
        for part in self.measured {
            for (point, cells) in part.points.iter().zip(&part.cells) {
                let Some(rate) = cells[server].rate() else { continue };
                let is_most = best.as_ref().is_none_or(|(most, _, _)| rate.mean > *most);
                if point.pipeline == 1 && is_most {
                    let place = part.place(point);
                    best = Some((rate.mean, place, &cells[server]));
                }
            }
        }
        let (rate, place, cell) = best?;
        let begin = format!(
            "{name} answers at most {} requests a second without pipelining ({place}).",
            grouped(rate as u64)
        );
        let load = cell.mean(|sample| Some(sample.load_percent)).unwrap_or(0.0);
        let end = match limit(cell)? {
            PointLimit::OneThread(thread) => format!(
                "One of its threads limits it there: {thread} is fully busy, and the others are \
                 not."
            ),
            PointLimit::AllThreads(count) => format!(
                "Its {count} working threads limit it there: all are fully busy, so it needs more \
                 of them and processors for them."
            ),
            PointLimit::LoadGenerator => format!(
                "The load generator is the limit there and not the server: its busiest thread \
                 uses {load:.0}% of a core. Give it more threads with --threads, or a machine of \
                 its own."
            ),
            PointLimit::Machine => self.machine_sentence(cell),
            PointLimit::RoundTrips => "No processor is the limit there: each client waits for its \
                reply before it asks again. More clients or pipelining bring more."
                .to_owned(),
            PointLimit::Unknown => "Its process is not on this machine or not known, so its \
                limit there is unknown; it is not the load generator."
                .to_owned(),
        };
        Some(format!("{begin} {end}"))
    }

    fn machine_sentence(&self, cell: &PointCell) -> String {
        let total: f64 = cell.threads().iter().map(|thread| thread.1).sum();
        let others = cell.mean(|sample| sample.others).unwrap_or(0.0) * 100.0;
        let others = match others > OTHERS_MAX * 100.0 {
            true => format!(" with other programs ({others:.0}%)"),
            false => String::new(),
        };
        format!(
            "The machine is the limit there: server ({total:.0}% of a core) and load generator \
             share {} processors{others}, which are all fully busy. On its own machine the server \
             answers more.",
            self.machine.processors
        )
    }

    /// The setting to choose, and the gain from the next one.
    fn thread_sentences(&self, server: usize, name: &str) -> Vec<String> {
        let settings: Vec<(usize, &PointCell)> = self.settings("reading", server);
        let Some((chosen, at)) = recommended(&settings) else { return Vec::new() };
        let processors = self.machine.processors;
        let mut sentences = vec![format!(
            "Set io-threads {chosen} for {name} on this machine ({processors} processors, shared \
             with the load generator here): of the settings measured it is the smallest that is \
             as fast as any."
        )];
        if settings.iter().any(|(_, cell)| is_vague(cell)) {
            sentences.push(
                "The windows scatter too much for this to be certain: measure again on a quiet \
                 machine, or with --preset full."
                    .to_owned(),
            );
        }
        sentences.push(match settings.get(at + 1) {
            None => format!("{chosen} is the most that was measured; more threads may bring more."),
            Some((next, cell)) => {
                let change = difference(cell, settings[at].1);
                let each = (change.ratio.powf(1.0 / (next - chosen) as f64) - 1.0) * 100.0;
                let meaning = match change.is_significant {
                    true => "",
                    false => ", which may be noise",
                };
                format!(
                    "From io-threads {chosen} to {next}, reading changes by {}, {each:+.0}% for \
                     each thread more{meaning}.",
                    percent(&change)
                )
            }
        });
        sentences
    }

    /// The measured settings of io-threads with their results.
    pub fn settings(&self, series: &str, server: usize) -> Vec<(usize, &PointCell)> {
        let part = self.measured.iter().find(|part| part.experiment.name == "threads");
        let points = part.map(|part| part.points.as_slice()).unwrap_or_default();
        let of = |label: &'static str| {
            Some((label.parse().ok()?, self.cell("threads", series, label, server)?))
        };
        let points = points.iter().filter(|point| point.series == series);
        points.filter_map(|point| of(point.label)).collect()
    }

    /// The reasons to doubt the figures.
    pub fn warnings(&self, names: &[String]) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut limited = Vec::new();
        let mut noise = MachineNoise::default();
        for part in self.measured {
            for ((point, cells), keys) in part.points.iter().zip(&part.cells).zip(&part.keys) {
                for (cell, name) in cells.iter().zip(names) {
                    let place = format!("{}, {name}", part.place(point));
                    if limit(cell) == Some(PointLimit::LoadGenerator) {
                        limited.push(place.clone());
                    }
                    let nulls = cell.mean(|sample| Some(sample.nulls_per_reply));
                    if let Some(nulls) = nulls.filter(|nulls| *nulls > NULLS_MAX) {
                        warnings.push(format!(
                            "{place}: {:.0}% of the replies found nothing ({keys} keys).",
                            nulls * 100.0
                        ));
                    }
                    let others = cell.samples.iter().filter_map(|sample| sample.others);
                    noise.add(&cell.rates(), others);
                }
            }
        }
        if !limited.is_empty() {
            warnings.push(format!(
                "The load generator was the limit, and not the server, at: {}.",
                limited.join("; ")
            ));
        }
        warnings.extend(noise.warnings());
        warnings
    }
}

/// Whether the interval of a cell is too wide to distinguish settings.
fn is_vague(cell: &PointCell) -> bool {
    let error = cell.rate().and_then(|rate| rate.relative_error());
    error.is_none_or(|error| error > VAGUE)
}

/// The smallest setting that is as fast as the fastest, with its index.
fn recommended(settings: &[(usize, &PointCell)]) -> Option<(usize, usize)> {
    let mean = |cell: &PointCell| cell.rate().map_or(0.0, |rate| rate.mean);
    let (_, best) = settings.iter().max_by(|a, b| mean(a.1).total_cmp(&mean(b.1)))?;
    let as_fast = |setting: &(usize, &PointCell)| {
        let gain = difference(best, setting.1);
        gain.ratio < WORTH || !gain.is_significant
    };
    let at = settings.iter().position(as_fast)?;
    Some((settings[at].0, at))
}

/// The throughput of one cell over that of another.
pub(super) fn difference(cell: &PointCell, base: &PointCell) -> MeanRatio {
    compare(&cell.rates(), &base.rates(), CONFIDENCE, 1)
}

/// A ratio as a change, with its interval if known.
pub(super) fn percent(change: &MeanRatio) -> String {
    let of = |ratio: f64| (ratio - 1.0) * 100.0;
    let MeanRatio { ratio, low, high, .. } = *change;
    match high.is_finite() {
        true => format!("{:+.0}% ({:+.0} to {:+.0}%)", of(ratio), of(low), of(high)),
        false => format!("{:+.0}%", of(ratio)),
    }
}

//! Measures the experiments: setups, data, and windows in turn over the servers.
//!
//! Noise drifts over minutes, so each point goes round the servers several times, and neighbours in
//! time are compared. A failed window removes the figures of its point: results never include
//! errors. An interrupt takes effect between two windows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::args::ReportExtent;
use super::experiments::{Experiment, ExperimentPoint, ServerSetup};
use super::machine::available_bytes;
use super::progress::ReportProgress;
use super::servers::{Fleet, Live, ServerState};
use crate::Error;
use crate::load::drive::drive;
use crate::load::latency::percentile_us;
use crate::load::outcome::WindowOutcome;
use crate::load::outcome::unobserved;
use crate::load::shape::RequestShape;
use crate::load::spec;
use crate::load::spec::LoadSpec;
use crate::servers::pin::Cpus;
use crate::servers::processors::Ticks;
use crate::servers::target::{Role, ServerTarget, TargetOrigin};
use crate::statistics::{Interval, mean_interval};

/// The confidence of all intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The length of a sustained window, in windows.
const SUSTAINED: u32 = 3;

/// The share of the remaining time for windows; the rest is for starts and data.
const WINDOWS_SHARE: f64 = 0.7;

/// Warm-up, as a share of its window.
const WARM_UP_SHARE: f64 = 0.2;

/// The windows of each point that are measured even if time is short.
const ROUNDS_MIN: usize = 3;

/// The share of the time by which the measurement may be late.
const LAG_MAX: f64 = 0.03;

/// The share of the free memory that the data of all servers may take.
const MEMORY_SHARE: f64 = 0.4;

/// The memory of a key without its value, an upper bound.
const KEY_BYTES: u64 = 150;

/// One window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowSample {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU of the server per request, if its process is known.
    pub cpu_us: Option<f64>,
    /// The server's threads, in percent of a core, busiest first.
    pub threads: Vec<(String, f64)>,
    /// The busiest load thread, in percent of a core.
    pub load_percent: f64,
    /// Cores that other programs used.
    pub others: Option<f64>,
    /// The idle share of all processors.
    pub idle_share: Option<f64>,
    pub nulls_per_reply: f64,
}

/// The results of one server at one point.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PointCell {
    pub samples: Vec<WindowSample>,
    pub failure: Option<String>,
}

impl PointCell {
    /// Requests per second; `None` without samples.
    pub fn rate(&self) -> Option<Interval> {
        let rates = self.rates();
        (!rates.is_empty()).then(|| mean_interval(&rates, CONFIDENCE, 1))
    }

    pub fn rates(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.per_second).collect()
    }

    /// The mean of a figure, if all samples have it.
    pub fn mean(&self, figure: impl Fn(&WindowSample) -> Option<f64>) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.samples.iter().map(figure).collect();
        let figures = figures.filter(|figures| !figures.is_empty())?;
        Some(figures.iter().sum::<f64>() / figures.len() as f64)
    }

    /// The server's threads with their mean shares of a core in percent, busiest first.
    pub fn threads(&self) -> Vec<(String, f64)> {
        let count = self.samples.len().max(1) as f64;
        let mut threads: Vec<(String, f64)> = Vec::new();
        for (name, percent) in self.samples.iter().flat_map(|sample| &sample.threads) {
            match threads.iter_mut().find(|thread| thread.0 == *name) {
                Some(thread) => thread.1 += percent / count,
                None => threads.push((name.clone(), percent / count)),
            }
        }
        threads.sort_by(|a, b| b.1.total_cmp(&a.1));
        threads
    }
}

/// An experiment with its results.
#[derive(Debug)]
pub(super) struct MeasuredExperiment {
    pub experiment: &'static Experiment,
    pub points: Vec<ExperimentPoint>,
    /// The keys of each point.
    pub keys: Vec<u64>,
    /// The cells of each point, by server.
    pub cells: Vec<Vec<PointCell>>,
}

impl MeasuredExperiment {
    /// The name of a point.
    pub fn place(&self, point: &ExperimentPoint) -> String {
        format!("{}: {}, {}", self.experiment.title, point.series, point.label)
    }
}

/// The whole measurement.
pub(super) struct ReportPlan<'a> {
    pub targets: &'a [ServerTarget],
    pub experiments: Vec<&'static Experiment>,
    pub extent: ReportExtent,
    pub threads: usize,
    pub cpus: Cpus,
    pub stop: &'a AtomicBool,
}

/// Measures everything in the order of the plan. An interrupt ends with the results so far.
pub(super) fn measure(
    plan: &ReportPlan<'_>,
    fleet: &mut Fleet<'_>,
    progress: &mut ReportProgress,
) -> Result<Vec<MeasuredExperiment>, Error> {
    let mut schedule = WindowSchedule::new(plan);
    let (mut measured, available) = (Vec::new(), available_bytes());
    for (index, experiment) in plan.experiments.iter().enumerate() {
        if plan.is_stopped() {
            break;
        }
        progress.begin_experiment(experiment.title, index + 1, plan.experiments.len());
        let points = experiment.points();
        let keys = points.iter().map(|point| plan.keys(point, available)).collect();
        let cells = vec![vec![PointCell::default(); plan.targets.len()]; points.len()];
        let mut part = MeasuredExperiment { experiment, points, keys, cells };
        for place in order(&part) {
            fleet.enter(part.points[place].setup)?;
            measure_point(plan, fleet, &mut part, place, &mut schedule, progress);
        }
        measured.push(part);
    }
    Ok(measured)
}

/// The indexes of all points, grouped by setup and then by data, since starts and fills take longer
/// than windows.
fn order(part: &MeasuredExperiment) -> Vec<usize> {
    let points = &part.points;
    let setup = |place: usize| points[place].setup;
    let data = |place: usize| {
        let point = &points[place];
        (point.setup, point.row.fill, point.value_bytes, part.keys[place])
    };
    let mut places: Vec<usize> = (0..points.len()).collect();
    places.sort_by_key(|place| {
        let with_setup = (0..points.len()).find(|other| setup(*other) == setup(*place));
        let with_data = (0..points.len()).find(|other| data(*other) == data(*place));
        (with_setup, with_data, *place)
    });
    places
}

fn measure_point(
    plan: &ReportPlan<'_>,
    fleet: &mut Fleet<'_>,
    part: &mut MeasuredExperiment,
    at: usize,
    schedule: &mut WindowSchedule,
    progress: &mut ReportProgress,
) {
    let point = part.points[at].clone();
    let load = plan.load(&point, part.keys[at]);
    for round in 0..plan.extent.iterations {
        if round >= ROUNDS_MIN && schedule.is_behind() {
            let servers = plan.servers_at(part.experiment, &point);
            let left = (plan.extent.iterations - round) * servers;
            return schedule.skip(left as u64 * u64::from(point.weight()));
        }
        for (index, state) in fleet.states.iter_mut().enumerate() {
            if !plan.takes_part(part.experiment, index, &point) {
                continue;
            }
            if plan.is_stopped() {
                return;
            }
            let weight = point.weight();
            let (warm_up, window) = schedule.next(weight);
            let name = &plan.targets[index].name;
            let place = format!("{}, {name}", part.place(&point));
            progress.begin_window(&place, schedule.share(), schedule.time_left());
            let cell = &mut part.cells[at][index];
            let live = match state {
                ServerState::Runs(live) => live,
                ServerState::LeftOut => continue,
                ServerState::Failed(reason) => {
                    cell.failure.get_or_insert_with(|| reason.clone());
                    continue;
                }
            };
            if cell.failure.is_some() {
                continue;
            }
            let load = LoadSpec {
                warm_up,
                extent: spec::WindowExtent::Time(window),
                seed: 1 + (round * load.threads) as u64,
                ..load.clone()
            };
            live.server.resume();
            let sample = measure_window(live, &point, &load, round == 0);
            live.server.pause();
            match sample {
                Ok(sample) => cell.samples.push(sample),
                // An interrupt of the terminal may also end a server that runs there.
                Err(_) if plan.is_stopped() => return,
                Err(error) => {
                    cell.samples.clear();
                    cell.failure = Some(error.to_string());
                    if !matches!(error, Error::Refused { .. } | Error::ErrorReplies { .. }) {
                        *state = ServerState::Failed(error.to_string());
                    }
                }
            }
        }
    }
}

fn measure_window(
    live: &mut Live,
    point: &ExperimentPoint,
    load: &LoadSpec,
    is_first: bool,
) -> Result<WindowSample, Error> {
    // A running server's data belongs to its users, and is filled only once.
    if is_first || (point.is_used_up() && live.is_own) {
        live.fill(point.row, load, point.is_used_up())?;
    }
    let server = &live.server;
    let outcome = drive(&server.endpoint, point.row, load, server.pid, &mut unobserved)?;
    outcome.refuse_errors(point.row.name)?;
    Ok(sample(&outcome))
}

fn sample(outcome: &WindowOutcome) -> WindowSample {
    let server = outcome.server.as_ref();
    let mut threads: Vec<(String, f64)> = Vec::new();
    for (name, percent) in server
        .iter()
        .flat_map(|used| used.threads.iter().map(|t| (&t.name, used.busy_percent(t.cpu))))
    {
        match threads.iter_mut().find(|thread| thread.0 == *name) {
            Some(thread) => thread.1 += percent,
            None => threads.push((name.clone(), percent)),
        }
    }
    WindowSample {
        per_second: outcome.per_second(),
        p50_us: percentile_us(&outcome.latency, 50.0),
        p99_us: percentile_us(&outcome.latency, 99.0),
        cpu_us: outcome.server_us(),
        threads,
        load_percent: outcome.load_percent(),
        others: outcome.others(),
        idle_share: outcome.machine.map(Ticks::idle_share),
        nulls_per_reply: outcome.nulls_per_reply,
    }
}

impl ExperimentPoint {
    /// The length of its windows, in usual windows.
    fn weight(&self) -> u32 {
        if self.sustained { SUSTAINED } else { 1 }
    }
}

impl ReportPlan<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn takes_part(&self, experiment: &Experiment, server: usize, point: &ExperimentPoint) -> bool {
        let target = &self.targets[server];
        match target.role {
            Role::Floor => experiment.with_floor && point.setup == ServerSetup::default(),
            Role::Subject | Role::Peer => {
                matches!(target.origin, TargetOrigin::Command(_))
                    || point.setup == ServerSetup::default()
            }
        }
    }

    /// The number of servers that take part at a point.
    fn servers_at(&self, experiment: &Experiment, point: &ExperimentPoint) -> usize {
        let part = |server: &usize| self.takes_part(experiment, *server, point);
        (0..self.targets.len()).filter(part).count()
    }

    /// The keys of a point: those of the preset, or fewer if they would take too much memory.
    fn keys(&self, point: &ExperimentPoint, available: u64) -> u64 {
        let wanted = if point.many_keys { self.extent.many_keys } else { self.extent.keys };
        let servers = self.targets.len().max(1) as f64;
        let room = available as f64 * MEMORY_SHARE / servers;
        let room = if room > 0.0 { room as u64 } else { u64::MAX };
        let room = room.min(self.extent.data_bytes_max);
        wanted.min((room / (point.value_bytes as u64 + KEY_BYTES)).max(1))
    }

    fn load(&self, point: &ExperimentPoint, keys: u64) -> LoadSpec {
        LoadSpec {
            clients: point.clients,
            threads: point.generators.unwrap_or(self.threads),
            pipeline: point.pipeline,
            shape: RequestShape { keys, value_bytes: point.value_bytes, ..RequestShape::default() },
            ratio: point.ratio,
            cpus: self.cpus.clone(),
            ..LoadSpec::default()
        }
    }
}

/// The length of windows, and how many remain.
struct WindowSchedule {
    extent: ReportExtent,
    began: Instant,
    /// Windows, each counted by its weight.
    total: u64,
    done: u64,
}

impl WindowSchedule {
    fn new(plan: &ReportPlan<'_>) -> WindowSchedule {
        let mut windows = 0;
        for experiment in &plan.experiments {
            for point in experiment.points() {
                let servers = plan.servers_at(experiment, &point) as u64;
                windows += servers * u64::from(point.weight());
            }
        }
        let total = windows * plan.extent.iterations as u64;
        WindowSchedule { extent: plan.extent, began: Instant::now(), total, done: 0 }
    }

    /// Warm-up and length of the next window.
    fn next(&mut self, weight: u32) -> (Duration, Duration) {
        let ReportExtent { window, window_min, budget, .. } = self.extent;
        let left = self.total.saturating_sub(self.done).max(1);
        let length = budget.map_or(window, |budget| {
            let time = budget.saturating_sub(self.began.elapsed()).as_secs_f64();
            let fair = time * WINDOWS_SHARE / (1.0 + WARM_UP_SHARE) / left as f64;
            Duration::from_secs_f64(fair).clamp(window_min, window)
        });
        self.done += u64::from(weight);
        (length.mul_f64(WARM_UP_SHARE), length * weight)
    }

    /// Whether the measurement is late.
    fn is_behind(&self) -> bool {
        self.extent.budget.is_some_and(|budget| {
            let time = self.began.elapsed().as_secs_f64() / budget.as_secs_f64();
            time > self.share() + LAG_MAX
        })
    }

    /// Leaves windows out.
    fn skip(&mut self, windows: u64) {
        self.done += windows;
    }

    fn share(&self) -> f64 {
        self.done as f64 / self.total.max(1) as f64
    }

    /// How long the rest takes at this pace.
    fn time_left(&self) -> Duration {
        let pace = self.began.elapsed().as_secs_f64() / self.done.max(1) as f64;
        Duration::from_secs_f64(pace * self.total.saturating_sub(self.done) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::experiments::TABLE;

    /// Series and label of each point in the order of measuring.
    fn ordered(name: &str) -> Vec<String> {
        let experiment = TABLE.iter().find(|row| row.name == name).unwrap_or(&TABLE[0]);
        let points = experiment.points();
        let (keys, cells) = (vec![1; points.len()], Vec::new());
        let part = MeasuredExperiment { experiment, points, keys, cells };
        let words = |place: usize| [part.points[place].series, part.points[place].label].join(" ");
        order(&part).into_iter().map(words).collect()
    }

    #[test]
    fn starts_and_fills_are_shared() {
        let tls = ordered("tls");
        assert_eq!(tls, ["GET off", "SET off", "GET on", "SET on"]);
        let values = ordered("values");
        assert_eq!(values[..5], ["1:0 32", "0:1 32", "1:1 32", "1:10 32", "1:0 512"]);
        assert_eq!(values.len(), 16);
    }
}

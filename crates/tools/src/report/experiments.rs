//! The table of experiments.
//!
//! An experiment is a base and two lists of steps: the steps along its axis, and its series, each
//! of which is measured at every step. A step changes the base, so each row of the table can be
//! measured separately, and a new question is a new row.

use crate::load::workload::Ratio;
use crate::load::workload::{Workload, WorkloadSettings};

/// Keys of lists that LPOP takes from.
const POPPED: Option<&str> = Some("RPUSH pop:{key} 10*({value})");
const SET: Option<&str> = Some("SET {key} {value}");

const fn row(name: &'static str) -> Workload {
    let settings = WorkloadSettings { clients: None, pipeline: None, ratio: None };
    Workload { fill: SET, settings, ..Workload::new(name) }
}

const GET_ROW: Workload = Workload { read: Some("GET {key}"), ..row("GET") };
const SET_ROW: Workload = Workload { write: Some("SET {key} {value}"), ..row("SET") };
const MIXED_ROW: Workload =
    Workload { read: Some("GET {key}"), write: Some("SET {key} {value}"), ..row("GET and SET") };
const LPUSH_ROW: Workload =
    Workload { write: Some("LPUSH list:{key} {value}"), fill: None, ..row("LPUSH") };
const LPOP_ROW: Workload = Workload { write: Some("LPOP pop:{key}"), fill: POPPED, ..row("LPOP") };
/// GET and a script, by the ratio.
const SCRIPT_ROW: Workload = Workload {
    read: Some("GET {key}"),
    write: Some("EVALSHA {sha1:get} 1 {key}"),
    prepare: Some("SCRIPT LOAD {script:get}"),
    ..row("GET and EVALSHA")
};

/// Whether writes reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Persistence {
    Off,
    EverySecond,
    Always,
}

/// The options that a server is started with, in addition to its command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerSetup {
    pub io_threads: Option<usize>,
    pub tls: bool,
    pub persistence: Option<Persistence>,
}

/// The effect of a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepChange {
    Workload(&'static Workload),
    Clients(usize),
    Pipeline(usize),
    ValueBytes(usize),
    /// Reads to writes; of scripts, GET to EVALSHA.
    Ratio(u32, u32),
    /// Load threads, instead of those of the command line.
    Generators(usize),
    /// The many keys of the preset.
    ManyKeys,
    /// Windows several times as long.
    Sustained,
    IoThreads(usize),
    Tls,
    Persistence(Persistence),
}

/// A position on the axis, or a series.
#[derive(Debug)]
pub(super) struct ExperimentStep {
    pub label: &'static str,
    pub changes: &'static [StepChange],
}

/// How an experiment is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawn {
    Lines,
    Bars,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// Its question in a sentence.
    pub about: &'static str,
    /// The quantity that the steps vary.
    pub axis: &'static str,
    pub base: &'static [StepChange],
    pub series: &'static [ExperimentStep],
    pub steps: &'static [ExperimentStep],
    /// Whether the canned-reply server takes part.
    pub with_floor: bool,
    pub drawn: Drawn,
}

/// One point of an experiment, with all changes applied.
#[derive(Debug, Clone)]
pub(super) struct ExperimentPoint {
    pub series: &'static str,
    pub label: &'static str,
    pub row: &'static Workload,
    pub clients: usize,
    pub pipeline: usize,
    pub value_bytes: usize,
    pub ratio: Ratio,
    pub generators: Option<usize>,
    pub many_keys: bool,
    pub sustained: bool,
    pub setup: ServerSetup,
}

impl Experiment {
    /// Every step of every series.
    pub fn points(&self) -> Vec<ExperimentPoint> {
        let of = |series: &'static ExperimentStep| {
            self.steps.iter().map(move |step| self.point(series, step))
        };
        self.series.iter().flat_map(of).collect()
    }

    fn point(
        &self,
        series: &'static ExperimentStep,
        step: &'static ExperimentStep,
    ) -> ExperimentPoint {
        let mut point = ExperimentPoint {
            series: series.label,
            label: step.label,
            row: &GET_ROW,
            clients: 50,
            pipeline: 1,
            value_bytes: 256,
            ratio: Ratio::default(),
            generators: None,
            many_keys: false,
            sustained: false,
            setup: ServerSetup::default(),
        };
        for change in [self.base, series.changes, step.changes].into_iter().flatten() {
            point.change(*change);
        }
        point
    }
}

impl ExperimentPoint {
    fn change(&mut self, change: StepChange) {
        match change {
            StepChange::Workload(row) => self.row = row,
            StepChange::Clients(clients) => self.clients = clients,
            StepChange::Pipeline(depth) => self.pipeline = depth,
            StepChange::ValueBytes(bytes) => self.value_bytes = bytes,
            StepChange::Ratio(reads, writes) => self.ratio = Ratio { reads, writes },
            StepChange::Generators(threads) => self.generators = Some(threads),
            StepChange::ManyKeys => self.many_keys = true,
            StepChange::Sustained => self.sustained = true,
            StepChange::IoThreads(threads) => self.setup.io_threads = Some(threads),
            StepChange::Tls => self.setup.tls = true,
            StepChange::Persistence(policy) => self.setup.persistence = Some(policy),
        }
    }

    /// Whether each window needs new data, because requests use it up or add to it.
    pub fn is_used_up(&self) -> bool {
        [&LPOP_ROW, &LPUSH_ROW].contains(&self.row)
    }
}

const fn step(label: &'static str, changes: &'static [StepChange]) -> ExperimentStep {
    ExperimentStep { label, changes }
}

const GET: ExperimentStep = step("GET", &[StepChange::Workload(&GET_ROW)]);
const SET_STEP: ExperimentStep = step("SET", &[StepChange::Workload(&SET_ROW)]);

/// All experiments; the last three start the servers with further options.
pub(super) static TABLE: &[Experiment] = &[
    Experiment {
        name: "operations",
        title: "Basic operations",
        about: "The most common commands, with 50 clients and values of 256 bytes.",
        axis: "command",
        base: &[],
        series: &[step("50 clients", &[])],
        steps: &[
            SET_STEP,
            GET,
            step("LPUSH", &[StepChange::Workload(&LPUSH_ROW)]),
            step("LPOP", &[StepChange::Workload(&LPOP_ROW)]),
        ],
        with_floor: true,
        drawn: Drawn::Bars,
    },
    Experiment {
        name: "clients",
        title: "Scaling with clients",
        about: "Throughput by the number of connections, each of which waits for its reply.",
        axis: "clients",
        base: &[],
        series: &[GET, SET_STEP],
        steps: &[
            step("1", &[StepChange::Clients(1)]),
            step("10", &[StepChange::Clients(10)]),
            step("50", &[StepChange::Clients(50)]),
            step("100", &[StepChange::Clients(100)]),
            step("400", &[StepChange::Clients(400)]),
        ],
        with_floor: true,
        drawn: Drawn::Lines,
    },
    Experiment {
        name: "pipelining",
        title: "Pipelining",
        about: "The gain from sending 16 requests at once instead of one.",
        axis: "requests sent at once",
        base: &[],
        series: &[GET, SET_STEP],
        steps: &[step("1", &[StepChange::Pipeline(1)]), step("16", &[StepChange::Pipeline(16)])],
        with_floor: true,
        drawn: Drawn::Bars,
    },
    Experiment {
        name: "values",
        title: "Sizes of values and writes to reads",
        about: "400 clients over many keys, by size of the value and writes:reads.",
        axis: "bytes of a value",
        base: &[StepChange::Clients(400), StepChange::ManyKeys, StepChange::Workload(&MIXED_ROW)],
        series: &[
            step("1:0", &[StepChange::Workload(&SET_ROW)]),
            step("0:1", &[StepChange::Workload(&GET_ROW)]),
            step("1:1", &[StepChange::Ratio(1, 1)]),
            step("1:10", &[StepChange::Ratio(10, 1)]),
        ],
        steps: &[
            step("32", &[StepChange::ValueBytes(32)]),
            step("512", &[StepChange::ValueBytes(512)]),
            step("1024", &[StepChange::ValueBytes(1024)]),
            step("10240", &[StepChange::ValueBytes(10240)]),
        ],
        with_floor: false,
        drawn: Drawn::Lines,
    },
    Experiment {
        name: "scripts",
        title: "Share of complex commands",
        about: "GET, with a share sent as a script that does the same (EVALSHA).",
        axis: "scripts, %",
        base: &[StepChange::Workload(&SCRIPT_ROW)],
        series: &[step("GET and EVALSHA", &[])],
        steps: &[
            step("0", &[StepChange::Ratio(1, 0)]),
            step("20", &[StepChange::Ratio(4, 1)]),
            step("50", &[StepChange::Ratio(1, 1)]),
        ],
        with_floor: false,
        drawn: Drawn::Bars,
    },
    Experiment {
        name: "generators",
        title: "Sustained load from several generators",
        about: "Longer windows with 200 clients, driven by 1, 2 and 4 load threads.",
        axis: "load threads",
        base: &[StepChange::Clients(200), StepChange::Sustained],
        series: &[GET, SET_STEP],
        steps: &[
            step("1", &[StepChange::Generators(1)]),
            step("2", &[StepChange::Generators(2)]),
            step("4", &[StepChange::Generators(4)]),
        ],
        with_floor: false,
        drawn: Drawn::Lines,
    },
    Experiment {
        name: "threads",
        title: "I/O threads",
        about: "Servers started with io-threads from 1 to 8; 100 clients read or write.",
        axis: "io-threads",
        base: &[StepChange::Clients(100)],
        series: &[step("reading", GET.changes), step("writing", SET_STEP.changes)],
        steps: &[
            step("1", &[StepChange::IoThreads(1)]),
            step("2", &[StepChange::IoThreads(2)]),
            step("4", &[StepChange::IoThreads(4)]),
            step("8", &[StepChange::IoThreads(8)]),
        ],
        with_floor: false,
        drawn: Drawn::Lines,
    },
    Experiment {
        name: "tls",
        title: "TLS",
        about: "The same connections without and with TLS.",
        axis: "TLS",
        base: &[],
        series: &[GET, SET_STEP],
        steps: &[step("off", &[]), step("on", &[StepChange::Tls])],
        with_floor: false,
        drawn: Drawn::Bars,
    },
    Experiment {
        name: "persistence",
        title: "Persistence",
        about: "SET without an append-only file, and with one: appendfsync everysec and always.",
        axis: "append-only file",
        base: &[StepChange::Workload(&SET_ROW)],
        series: &[SET_STEP],
        steps: &[
            step("off", &[StepChange::Persistence(Persistence::Off)]),
            step("everysec", &[StepChange::Persistence(Persistence::EverySecond)]),
            step("always", &[StepChange::Persistence(Persistence::Always)]),
        ],
        with_floor: false,
        drawn: Drawn::Bars,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::batch::Batches;
    use crate::load::keys::ThreadIndex;
    use crate::load::shape::RequestShape;
    use crate::load::spec::LoadSpec;

    #[test]
    fn every_point_can_be_sent() {
        for experiment in TABLE {
            let points = experiment.points();
            assert_eq!(points.len(), experiment.series.len() * experiment.steps.len());
            for point in points {
                let shape =
                    RequestShape { value_bytes: point.value_bytes, ..RequestShape::default() };
                let (ratio, pipeline) = (point.ratio, point.pipeline);
                let load = LoadSpec { shape, ratio, pipeline, ..LoadSpec::default() };
                let batches = Batches::new(point.row, &load, ThreadIndex::ONLY, None);
                assert!(batches.is_ok(), "{} {}", experiment.name, point.label);
            }
        }
    }

    #[test]
    fn names_and_places_are_unique() {
        for (index, experiment) in TABLE.iter().enumerate() {
            let later = &TABLE[index + 1..];
            assert!(later.iter().all(|other| other.name != experiment.name), "{}", experiment.name);
            let points = experiment.points();
            for (index, point) in points.iter().enumerate() {
                let same = |other: &&ExperimentPoint| {
                    (other.series, other.label) == (point.series, point.label)
                };
                assert_eq!(points[index..].iter().filter(same).count(), 1, "{}", point.label);
            }
        }
    }

    #[test]
    fn a_step_changes_its_base() {
        let values = TABLE.iter().find(|experiment| experiment.name == "values");
        let points = values.map(Experiment::points).unwrap_or_default();
        let seldom = points.iter().find(|point| (point.series, point.label) == ("1:10", "1024"));
        let values =
            seldom.map(|point| (point.clients, point.value_bytes, point.ratio.to_string()));
        assert_eq!(values, Some((400, 1024, "1:10".to_owned())));
    }
}

//! How a server is loaded.

use std::time::Duration;

use super::keys::{KeyPatterns, Law};
use super::shape::RequestShape;
use super::workload::Ratio;
use crate::servers::pin::Cpus;

/// How long a server may answer nothing before it has stalled, where the spec does not say.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// When the measured window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowExtent {
    /// After this time, but not before a request is answered.
    Time(Duration),
    /// After this many requests, all begun in the window; the last batch of a thread may be
    /// smaller.
    Requests(u64),
}

/// A command of the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadCommand {
    /// Its name and arguments, with the placeholders `__key__`, `__data__` and `__rand_int__`.
    pub words: Vec<Vec<u8>>,
    /// How often it is sent, relative to the others.
    pub weight: u32,
    /// How its keys are chosen.
    pub law: Law,
}

/// How a server is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSpec {
    /// Connections, all threads together.
    pub clients: usize,
    /// Load threads.
    pub threads: usize,
    /// Requests sent at once on each connection; the workload says how many commands each has.
    pub pipeline: usize,
    /// Keys and values.
    pub shape: RequestShape,
    /// Writes to reads, for workloads that do both.
    pub ratio: Ratio,
    /// How keys are chosen.
    pub patterns: KeyPatterns,
    /// Commands to send instead of the requests of the workload.
    pub commands: Vec<LoadCommand>,
    /// The most requests each second, all connections together.
    pub rate: Option<f64>,
    /// Each batch has a new connection, whose set-up counts to its latency.
    pub reconnects: bool,
    /// The first request of each connection, after the workload's own greeting.
    pub greeting: Option<&'static str>,
    /// The server is a node of a cluster, all nodes of which are loaded.
    pub cluster: bool,
    /// Cores for the load threads, one each in turn.
    pub cpus: Cpus,
    /// The seed of the random keys.
    pub seed: u64,
    /// Load before the window.
    pub warm_up: Duration,
    /// The window.
    pub extent: WindowExtent,
    /// How long the server may answer nothing before that is an error.
    pub stall_time_max: Duration,
}

impl Default for LoadSpec {
    /// 50 clients, one thread, no pipeline, five seconds after half a second of warm-up.
    fn default() -> Self {
        LoadSpec {
            clients: 50,
            threads: 1,
            pipeline: 1,
            shape: RequestShape::default(),
            ratio: Ratio::default(),
            patterns: KeyPatterns::default(),
            commands: Vec::new(),
            rate: None,
            reconnects: false,
            greeting: None,
            cluster: false,
            cpus: Cpus::default(),
            seed: 1,
            warm_up: Duration::from_millis(500),
            extent: WindowExtent::Time(Duration::from_secs(5)),
            stall_time_max: STALL_TIME_MAX,
        }
    }
}

impl LoadSpec {
    /// Whether the window counts the requests begun in it, and not those answered in it: where it
    /// has a number of requests, and where a rate decides what is due.
    pub fn counts_begun(&self) -> bool {
        self.rate.is_some() || matches!(self.extent, WindowExtent::Requests(_))
    }
}

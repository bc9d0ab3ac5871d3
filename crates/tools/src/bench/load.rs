//! What a load is, what one window of it shows, and how the load threads are set up.
//!
//! How they are led through the window is in `conduct`.

use std::ops::ControlFlow;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::account::CpuUse;
use super::batch::{Batches, Command, Ratio};
use super::cluster::{Node, discover};
use super::conduct::{Conductor, WorkerEvent};
use super::dial::Dialer;
use super::keys::Patterns;
use super::pin::{Cpus, allow_open_files};
use super::schedule::Schedule;
use super::series::Sample;
use super::session::{Endpoint, Session};
use super::signals::{Phase, Signals};
use super::subscribers::Listeners;
use super::template::{Shape, Template};
use super::worker::{Counts, Setup, Worker};
use super::workload::Row;
use crate::Error;

/// A server that answers nothing for this long has stalled, if nothing else is said.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// Files beside the clients' sockets that the process has open.
const SPARE_FILES: u64 = 64;

/// The most connections that are subscribed while a row runs.
const SUBSCRIBERS_MAX: u64 = 1000;

/// When the measured window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// After this time, and not before a request is answered.
    Time(Duration),
    /// After this many requests, which are begun in the window; the last batch of a thread may be
    /// a smaller one.
    Requests(u64),
}

/// How a server is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Connections, all threads together.
    pub clients: usize,
    /// Load threads.
    pub threads: usize,
    /// Requests sent at once on each connection, of as many commands each as the row says.
    pub pipeline: usize,
    /// Keys and values.
    pub shape: Shape,
    /// Writes to reads, for rows that do both.
    pub ratio: Ratio,
    /// How keys are chosen.
    pub patterns: Patterns,
    /// What is sent instead of the requests of the row.
    pub commands: Vec<Command>,
    /// The most requests each second, all connections together.
    pub rate: Option<f64>,
    /// A new connection for each batch, which counts to its latency.
    pub reconnects: bool,
    /// What each connection sends first, beside what the row says.
    pub greeting: Option<&'static str>,
    /// The server is one of a cluster, of which all nodes are loaded.
    pub cluster: bool,
    /// Cores for the load threads, one each in turn.
    pub cpus: Cpus,
    /// The seed of the random keys.
    pub seed: u64,
    /// Load before the window.
    pub warm_up: Duration,
    /// The window.
    pub extent: Extent,
    /// A server that answers nothing for this long has stalled, which is an error.
    pub stall_time_max: Duration,
}

impl Default for Load {
    /// 50 clients, one thread, no pipeline, five seconds after a half of warm-up.
    fn default() -> Self {
        Load {
            clients: 50,
            threads: 1,
            pipeline: 1,
            shape: Shape::default(),
            ratio: Ratio::default(),
            patterns: Patterns::default(),
            commands: Vec::new(),
            rate: None,
            reconnects: false,
            greeting: None,
            cluster: false,
            cpus: Cpus::default(),
            seed: 1,
            warm_up: Duration::from_millis(500),
            extent: Extent::Time(Duration::from_secs(5)),
            stall_time_max: STALL_TIME_MAX,
        }
    }
}

impl Load {
    /// Whether the window counts what is begun in it, and not what is answered in it: where a
    /// number of requests is asked for, and where the rate says what is due.
    pub fn counts_begun(&self) -> bool {
        self.rate.is_some() || matches!(self.extent, Extent::Requests(_))
    }
}

/// What one measured window showed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Requests answered within the window; one of several commands counts once. With a number of
    /// requests or a limit of the rate only those that were begun in it.
    pub requests: u64,
    /// Requests of the warm-up, which are beside those.
    pub warm_up: u64,
    /// The length of the window.
    pub wall: Duration,
    /// Latencies in nanoseconds; each request has that of its batch. Requests that were in flight
    /// at the end of the window are among them, and with a limit of the rate all that were due in
    /// it.
    pub latency: Histogram<u64>,
    /// Requests that were due within the window and never sent, because the connections were still
    /// waiting for replies; nothing without a limit of the rate.
    pub unsent: u64,
    /// Error replies, warm-up included, of all commands of a request: no figure counts when there
    /// is one.
    pub errors: u64,
    /// The text of the first error.
    pub first_error: String,
    /// Nulls for each reply, warm-up included: for a read, the share of keys that were missing.
    pub nulls_per_reply: f64,
    /// Transactions that EXEC aborted because a watched key had changed, for each request, warm-up
    /// included.
    pub aborted_per_request: f64,
    /// CPU time of the server, when its process is known.
    pub server: Option<CpuUse>,
    /// CPU time of the load threads.
    pub load: CpuUse,
    /// How late the load threads were to send what was due, in nanoseconds; nothing without a limit
    /// of the rate.
    pub lateness: Histogram<u64>,
    /// How throughput and latencies went.
    pub series: Vec<Sample>,
    /// Whether the window ended early because the observer wanted it.
    pub interrupted: bool,
}

impl Outcome {
    /// Requests per second.
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Server CPU in microseconds per request.
    pub fn server_us(&self) -> Option<f64> {
        Some(self.server.as_ref()?.us_per_request(self.requests))
    }
}

/// How far a window has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// From 0 to 1.
    pub share: f64,
    /// Requests answered so far.
    pub requests: u64,
    /// How long it has lasted.
    pub elapsed: Duration,
    /// What was seen last of the series.
    pub last: Option<Sample>,
}

impl Progress {
    /// How long the rest takes if it goes on like this.
    pub fn left(&self) -> Option<Duration> {
        let rest = (1.0 - self.share) / self.share;
        Duration::try_from_secs_f64(self.elapsed.as_secs_f64() * rest).ok()
    }
}

/// Sees how far a window has come, and may end it.
pub type Observer<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Lets a window go to its end.
pub fn unobserved(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Whether a workload can be sent under a load: what can be known without a server.
///
/// # Errors
/// Why not.
pub fn check(row: &Row, load: &Load) -> Result<(), Error> {
    if load.clients == 0 || load.threads == 0 || load.pipeline == 0 {
        return Err(Error::Usage("clients, threads and pipeline must be at least 1".into()));
    }
    if load.extent == Extent::Requests(0) {
        return Err(Error::Usage("there must be at least 1 request".into()));
    }
    for text in [row.prepare, row.fill].into_iter().flatten() {
        Template::compile(text, &load.shape)?;
    }
    Batches::new(row, load, (0, 1), None).map(drop)
}

/// Loads a server with one workload and measures one window. `pid` is the server's process if its
/// CPU time is to be read.
///
/// # Errors
/// When options make no sense, a connection fails, or the server stalls. Error replies are not
/// errors here: see [`Outcome::errors`].
pub fn drive(
    endpoint: &Endpoint,
    row: &Row,
    load: &Load,
    pid: Option<u32>,
    observe: Observer<'_>,
) -> Result<Outcome, Error> {
    check(row, load)?;
    let mut nodes = nodes(endpoint, load)?;
    nodes.iter_mut().for_each(|node| node.endpoint = loaded_endpoint(&node.endpoint, row));
    if load.clients < nodes.len() {
        let text = format!("the cluster has {} nodes: use as many clients", nodes.len());
        return Err(Error::Usage(text));
    }
    let files = SUBSCRIBERS_MAX + SPARE_FILES;
    allow_open_files((load.clients as u64).saturating_add(files))?;
    let _listeners = row.subscribers.map(|who| Listeners::open(endpoint, who)).transpose()?;
    let threads = load.threads.min(load.clients);
    let signals: Vec<Signals> = (0..threads).map(|_| Signals::new()).collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let (sender, events) = channel();
        let mut conductor = Conductor::new(&signals, events, pid);
        for index in 0..threads {
            let (sender, signals, nodes) = (sender.clone(), &signals[index], &nodes);
            let spawned = std::thread::Builder::new().name(format!("load-{index}")).spawn_scoped(
                scope,
                move || {
                    let result = work(nodes, row, load, (index, threads), signals, &sender);
                    let _ = sender.send(WorkerEvent::Finished(result.map(Box::new)));
                },
            );
            if let Err(source) = spawned {
                conductor.enter(Phase::Stop, Instant::now());
                return Err(Error::io("start a load thread")(source));
            }
        }
        let outcome = conductor.conduct(load, observe);
        conductor.enter(Phase::Stop, Instant::now());
        outcome
    })
}

/// Prepares a server for a workload and, if `fill` is set, makes the data that it expects.
///
/// # Errors
/// When the connection fails or the server refuses.
pub fn make_ready(endpoint: &Endpoint, row: &Row, load: &Load, fill: bool) -> Result<(), Error> {
    make_ready_observed(endpoint, row, load, fill, &mut |_| ControlFlow::Continue(()))
}

/// The same while `observe` sees which share of the data is made, and may end that.
///
/// # Errors
/// As of [`make_ready`], or it was ended.
pub fn make_ready_observed(
    endpoint: &Endpoint,
    row: &Row,
    load: &Load,
    fill: bool,
    observe: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let nodes = nodes(endpoint, load)?;
    let count = nodes.len() as f64;
    for (index, Node { endpoint, slots }) in nodes.into_iter().enumerate() {
        let mut observe = |share| observe((index as f64 + share) / count);
        if let Some(text) = row.prepare {
            Session::open(&endpoint)?.prepare(text, &load.shape, load.seed)?;
        }
        if let Some(text) = row.fill.filter(|_| fill) {
            let mut session = Session::open(&endpoint)?;
            session.fill_owned(text, &load.shape, load.seed, slots.as_ref(), &mut observe)?;
        }
    }
    Ok(())
}

/// The servers under load.
fn nodes(endpoint: &Endpoint, load: &Load) -> Result<Vec<Node>, Error> {
    match load.cluster {
        true => discover(endpoint),
        false => Ok(vec![Node::alone(endpoint)]),
    }
}

/// The endpoint as the connections under load see it: as the user of the row.
fn loaded_endpoint(endpoint: &Endpoint, row: &Row) -> Endpoint {
    let mut endpoint = endpoint.clone();
    if let Some(user) = row.user {
        endpoint.user = Some(user.name.into());
        endpoint.password = Some(user.password.into());
    }
    endpoint
}

/// The body of a load thread.
fn work(
    nodes: &[Node],
    row: &Row,
    load: &Load,
    place: (usize, usize),
    signals: &Signals,
    sender: &Sender<WorkerEvent>,
) -> Result<Counts, Error> {
    load.cpus.one(place.0).pin_thread()?;
    let worker = Worker::new(signals, set_up(nodes, row, load, place)?)?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let _ = sender.send(WorkerEvent::Ready(tid));
    worker.run(|| {
        let _ = sender.send(WorkerEvent::Spent);
    })
}

/// What the `index`-th of `threads` load threads sends, and on which connections.
fn set_up(
    nodes: &[Node],
    row: &Row,
    load: &Load,
    (index, threads): (usize, usize),
) -> Result<Setup, Error> {
    // The first threads take one more of what does not divide evenly.
    let share =
        |total: u64| total / threads as u64 + u64::from((index as u64) < total % threads as u64);
    let links = share(load.clients as u64) as usize;
    // All connections in a row, the nodes take turns.
    let before = load.clients / threads * index + (load.clients % threads).min(index);
    let greetings = || [row.greeting, load.greeting].into_iter().flatten();
    let open = |link: usize| {
        let node = (before + link) % nodes.len();
        let mut session = Session::open(&nodes[node].endpoint)?;
        for text in greetings() {
            session.prepare(text, &load.shape, load.seed)?;
        }
        Ok((session.into_stream(), node))
    };
    let streams = (0..links).map(open).collect::<Result<Vec<_>, Error>>()?;
    let batches =
        nodes.iter().map(|node| Batches::new(row, load, (index, threads), node.slots.as_ref()));
    let greeting = greetings().collect::<Vec<_>>().join(" ; ");
    let greeting = (!greeting.is_empty()).then_some(greeting.as_str());
    let dialers = nodes.iter().filter(|_| load.reconnects);
    let dialers = dialers.map(|node| Dialer::new(&node.endpoint, greeting, &load.shape));
    let schedule = load.rate.map(|rate| {
        let batches = rate / load.pipeline as f64 * links as f64 / load.clients as f64;
        Schedule::new(links, batches, index as f64 / threads as f64)
    });
    Ok(Setup {
        streams,
        batches: batches.collect::<Result<_, _>>()?,
        dialers: dialers.collect::<Result<_, _>>()?,
        schedule,
        pipeline: load.pipeline,
        quota: match load.extent {
            Extent::Time(_) => None,
            Extent::Requests(count) => Some(share(count)),
        },
    })
}

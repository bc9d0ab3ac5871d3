//! Conducts the load threads through set-up, warm-up and the measured window.
//!
//! The counters of requests and of CPU time are read at both ends of the window, so warm-up costs
//! are in neither. The conductor itself sleeps in between.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::account::{CpuSnapshot, CpuUse};
use super::batch::{Batches, Command, Ratio};
use super::cluster::{Node, discover};
use super::dial::Dialer;
use super::keys::Patterns;
use super::pin::{Cpus, allow_open_files};
use super::replies::Tally;
use super::schedule::Schedule;
use super::series::{Sample, Series};
use super::session::{Endpoint, Session};
use super::subscribers::Listeners;
use super::template::Shape;
use super::worker::{Counts, Phase, Setup, Signals, Worker, latency_histogram};
use super::workload::Row;
use crate::Error;

/// How often progress is reported.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// A server that answers nothing for this long has stalled.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// Files beside the clients' sockets that the process has open.
const SPARE_FILES: u64 = 64;

/// The most connections that are subscribed while a row runs.
const SUBSCRIBERS_MAX: u64 = 1000;

/// When the measured window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// After this time.
    Time(Duration),
    /// After this many answered requests, rounded up to whole batches on every thread.
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
        }
    }
}

/// What one measured window showed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Requests answered within the window; one of several commands counts once.
    pub requests: u64,
    /// The length of the window.
    pub wall: Duration,
    /// Latencies in nanoseconds; each request has that of its batch.
    pub latency: Histogram<u64>,
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

/// What a load thread reports to the main thread.
enum WorkerEvent {
    /// Connected, under this kernel thread id.
    Ready(u32),
    /// Its part of the requested number is answered.
    Spent,
    /// Ended.
    Finished(Result<Box<Counts>, Error>),
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
    if load.clients == 0 || load.threads == 0 || load.pipeline == 0 {
        return Err(Error::Usage("clients, threads and pipeline must be at least 1".into()));
    }
    let mut nodes = nodes(endpoint, load)?;
    nodes.iter_mut().for_each(|node| node.endpoint = loaded_endpoint(&node.endpoint, row));
    if load.clients < nodes.len() {
        let text = format!("the cluster has {} nodes: use as many clients", nodes.len());
        return Err(Error::Usage(text));
    }
    allow_open_files(load.clients as u64 + SUBSCRIBERS_MAX + SPARE_FILES)?;
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
                conductor.enter(Phase::Stop);
                return Err(Error::io("start a load thread")(source));
            }
        }
        let outcome = conductor.conduct(load, observe);
        conductor.enter(Phase::Stop);
        outcome
    })
}

/// Prepares a server for a workload and, if `fill` is set, makes the data that it expects.
///
/// # Errors
/// When the connection fails or the server refuses.
pub fn make_ready(endpoint: &Endpoint, row: &Row, load: &Load, fill: bool) -> Result<(), Error> {
    for Node { endpoint, slots } in nodes(endpoint, load)? {
        if let Some(text) = row.prepare {
            Session::open(&endpoint)?.prepare(text, &load.shape, load.seed)?;
        }
        if let Some(text) = row.fill.filter(|_| fill) {
            let mut session = Session::open(&endpoint)?;
            session.fill_owned(text, &load.shape, load.seed, slots.as_ref())?;
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

struct Conductor<'a> {
    signals: &'a [Signals],
    events: Receiver<WorkerEvent>,
    pid: Option<u32>,
    tids: Vec<u32>,
    /// Threads that have nothing left to send.
    spent: usize,
    finished: Vec<Counts>,
    series: Series<'a>,
    interrupted: bool,
}

/// The counters at one end of the window.
struct Mark {
    at: Instant,
    answered: u64,
    server: Option<CpuSnapshot>,
    load: CpuSnapshot,
}

impl<'a> Conductor<'a> {
    fn new(signals: &'a [Signals], events: Receiver<WorkerEvent>, pid: Option<u32>) -> Self {
        let (tids, finished, series) = (Vec::new(), Vec::new(), Series::new(signals));
        Conductor { signals, events, pid, tids, spent: 0, finished, series, interrupted: false }
    }

    fn conduct(&mut self, load: &Load, observe: Observer<'_>) -> Result<Outcome, Error> {
        let patience = stall_time_max(load);
        while self.tids.len() < self.signals.len() {
            self.listen(STALL_TIME_MAX)?;
        }
        if !load.warm_up.is_zero() {
            self.enter(Phase::WarmUp);
            self.watch(Extent::Time(load.warm_up), self.answered(), patience, &mut |progress| {
                observe(&Progress { share: 0.0, requests: 0, ..*progress })
            })?;
            if self.interrupted {
                return Err(Error::Interrupted);
            }
        }
        let start = self.mark()?;
        self.enter(Phase::Measure);
        self.series.begin(start.at, start.answered);
        self.watch(load.extent, start.answered, patience, observe)?;
        let end = self.mark()?;
        if load.rate.is_some() && !self.interrupted {
            self.drain(patience)?;
        }
        self.enter(Phase::Stop);
        while self.finished.len() < self.signals.len() {
            self.listen(STALL_TIME_MAX)?;
        }
        Ok(self.sum_up(&start, &end))
    }

    /// Waits for the replies to all that was due within the window: what a stalled server has not
    /// answered at its end has waited the longest.
    fn drain(&mut self, patience: Duration) -> Result<(), Error> {
        self.enter(Phase::Drain);
        let start = Instant::now();
        while self.spent < self.signals.len() {
            if start.elapsed() > patience {
                return Err(stalled(patience));
            }
            self.listen(PROGRESS_PERIOD)?;
        }
        Ok(())
    }

    fn enter(&self, phase: Phase) {
        self.signals.iter().for_each(|signals| signals.enter(phase));
    }

    fn answered(&self) -> u64 {
        self.signals.iter().map(Signals::answered).sum()
    }

    fn mark(&self) -> Result<Mark, Error> {
        let snapshot = |pid: u32| {
            CpuSnapshot::take(pid).map_err(Error::io(format!("read the CPU time of process {pid}")))
        };
        Ok(Mark {
            at: Instant::now(),
            answered: self.answered(),
            server: self.pid.map(snapshot).transpose()?,
            load: snapshot(std::process::id())?,
        })
    }

    /// Waits out one phase and reports its progress; a failing thread or a stall ends it, and the
    /// observer may.
    fn watch(
        &mut self,
        extent: Extent,
        base: u64,
        stall_max: Duration,
        observe: Observer<'_>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let (mut seen, mut moved) = (base, start);
        loop {
            let elapsed = start.elapsed();
            let answered = self.answered();
            let requests = answered - base;
            let (done, patience) = match extent {
                Extent::Time(time) => {
                    let left = time.saturating_sub(elapsed);
                    let share = elapsed.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
                    (share, left.min(PROGRESS_PERIOD))
                }
                Extent::Requests(count) => (requests as f64 / count.max(1) as f64, PROGRESS_PERIOD),
            };
            self.series.look(answered);
            let last = self.series.last();
            let progress = Progress { share: done.min(1.0), requests, elapsed, last };
            if observe(&progress).is_break() {
                self.interrupted = true;
                return Ok(());
            }
            if patience.is_zero() || self.spent == self.signals.len() {
                return Ok(());
            }
            self.listen(patience)?;
            if answered != seen {
                (seen, moved) = (answered, Instant::now());
            } else if moved.elapsed() > stall_max {
                return Err(stalled(stall_max));
            }
        }
    }

    /// Takes one message of a load thread, or none within `patience`.
    fn listen(&mut self, patience: Duration) -> Result<(), Error> {
        match self.events.recv_timeout(patience) {
            Ok(WorkerEvent::Ready(tid)) => self.tids.push(tid),
            Ok(WorkerEvent::Spent) => self.spent += 1,
            Ok(WorkerEvent::Finished(result)) => self.finished.push(*result?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Protocol("a load thread ended without a word".into()));
            }
        }
        Ok(())
    }

    fn sum_up(&mut self, start: &Mark, end: &Mark) -> Outcome {
        let mut tally = Tally::default();
        let (mut latency, mut lateness) = (latency_histogram(), latency_histogram());
        for part in &self.finished {
            tally.replies += part.tally.replies;
            tally.requests += part.tally.requests;
            tally.errors += part.tally.errors;
            tally.nulls += part.tally.nulls;
            tally.aborted += part.tally.aborted;
            if tally.first_error.is_empty() {
                tally.first_error.clone_from(&part.tally.first_error);
            }
            // All histograms have the same bounds, so adding cannot fail.
            let _ = latency.add(&part.latency);
            let _ = lateness.add(&part.lateness);
        }
        Outcome {
            requests: end.answered - start.answered,
            wall: end.at.duration_since(start.at),
            latency,
            errors: tally.errors,
            first_error: String::from_utf8_lossy(&tally.first_error).into_owned(),
            nulls_per_reply: tally.nulls as f64 / tally.replies.max(1) as f64,
            aborted_per_request: tally.aborted as f64 / tally.requests.max(1) as f64,
            server: start.server.as_ref().zip(end.server.as_ref()).map(|(s, e)| s.until(e)),
            load: start.load.until(&end.load).only(&self.tids),
            lateness,
            series: self.series.take(),
            interrupted: self.interrupted,
        }
    }
}

/// How long a server may answer nothing; where the rate is low there is nothing to answer at times.
fn stall_time_max(load: &Load) -> Duration {
    let gap = load.rate.map_or(0.0, |rate| 2.0 * load.pipeline as f64 / rate);
    STALL_TIME_MAX + Duration::try_from_secs_f64(gap).unwrap_or_default()
}

fn stalled(time: Duration) -> Error {
    Error::Io {
        what: "measure".into(),
        source: std::io::Error::other(format!(
            "the server has not replied for {} s",
            time.as_secs()
        )),
    }
}

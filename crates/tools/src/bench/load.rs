//! Conducts the load threads through set-up, warm-up and the measured window.
//!
//! The counters of requests and of CPU time are read at both ends of the window, so warm-up costs
//! are in neither. The conductor itself sleeps in between.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::account::{CpuSnapshot, CpuUse};
use super::batch::{Batches, Ratio};
use super::pin::{Cpus, allow_open_files};
use super::replies::Tally;
use super::session::{Endpoint, Session};
use super::stream::Stream;
use super::subscribers::Listeners;
use super::template::Shape;
use super::worker::{Phase, Signals, Worker, latency_histogram};
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Connections, all threads together.
    pub clients: usize,
    /// Load threads.
    pub threads: usize,
    /// Requests sent at once on each connection, of as many commands each as the row says.
    pub pipeline: usize,
    /// Keys and values.
    pub shape: Shape,
    /// Reads to writes, for rows that do both.
    pub ratio: Ratio,
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
    Finished(Result<(Tally, Histogram<u64>), Error>),
}

/// How far the window has come, from 0 to 1, and the requests answered so far.
pub type Observer<'a> = &'a mut dyn FnMut(f64, u64);

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
    allow_open_files(load.clients as u64 + SUBSCRIBERS_MAX + SPARE_FILES)?;
    let _listeners = row.subscribers.map(|who| Listeners::open(endpoint, who)).transpose()?;
    let threads = load.threads.min(load.clients);
    let signals: Vec<Signals> = (0..threads).map(|_| Signals::new()).collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let (sender, events) = channel();
        let (tids, finished) = (Vec::new(), Vec::new());
        let mut conductor = Conductor { signals: &signals, events, pid, tids, spent: 0, finished };
        for index in 0..threads {
            let (sender, signals) = (sender.clone(), &signals[index]);
            let spawned = std::thread::Builder::new().name(format!("load-{index}")).spawn_scoped(
                scope,
                move || {
                    let result = work(endpoint, row, load, (index, threads), signals, &sender);
                    let _ = sender.send(WorkerEvent::Finished(result));
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
    if let Some(text) = row.prepare {
        Session::open(endpoint)?.prepare(text, &load.shape, load.seed)?;
    }
    match row.fill.filter(|_| fill) {
        Some(text) => Session::open(endpoint)?.fill(text, &load.shape, load.seed),
        None => Ok(()),
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
    endpoint: &Endpoint,
    row: &Row,
    load: &Load,
    (index, threads): (usize, usize),
    signals: &Signals,
    sender: &Sender<WorkerEvent>,
) -> Result<(Tally, Histogram<u64>), Error> {
    load.cpus.one(index).pin_thread()?;
    // The first threads take one more of what does not divide evenly.
    let share =
        |total: u64| total / threads as u64 + u64::from((index as u64) < total % threads as u64);
    let endpoint = loaded_endpoint(endpoint, row);
    let streams = (0..share(load.clients as u64))
        .map(|_| {
            let mut session = Session::open(&endpoint)?;
            if let Some(text) = row.greeting {
                session.prepare(text, &load.shape, load.seed)?;
            }
            Ok(session.into_stream())
        })
        .collect::<Result<Vec<Stream>, Error>>()?;
    let seed = load.seed.wrapping_add(index as u64);
    let batches = Batches::new(row, load.ratio, &load.shape, load.pipeline, seed)?;
    let quota = match load.extent {
        Extent::Time(_) => None,
        Extent::Requests(count) => Some(share(count)),
    };
    let worker = Worker::new(signals, streams, batches, load.pipeline, quota)?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let _ = sender.send(WorkerEvent::Ready(tid));
    worker.run(|| {
        let _ = sender.send(WorkerEvent::Spent);
    })
}

struct Conductor<'a> {
    signals: &'a [Signals],
    events: Receiver<WorkerEvent>,
    pid: Option<u32>,
    tids: Vec<u32>,
    /// Threads that have nothing left to send.
    spent: usize,
    finished: Vec<(Tally, Histogram<u64>)>,
}

/// The counters at one end of the window.
struct Mark {
    at: Instant,
    answered: u64,
    server: Option<CpuSnapshot>,
    load: CpuSnapshot,
}

impl Conductor<'_> {
    fn conduct(&mut self, load: &Load, observe: Observer<'_>) -> Result<Outcome, Error> {
        while self.tids.len() < self.signals.len() {
            self.listen(STALL_TIME_MAX)?;
        }
        if !load.warm_up.is_zero() {
            self.enter(Phase::WarmUp);
            self.watch(Extent::Time(load.warm_up), self.answered(), &mut |_, _| {})?;
        }
        let start = self.mark()?;
        self.enter(Phase::Measure);
        self.watch(load.extent, start.answered, observe)?;
        let end = self.mark()?;
        self.enter(Phase::Stop);
        while self.finished.len() < self.signals.len() {
            self.listen(STALL_TIME_MAX)?;
        }
        Ok(self.sum_up(&start, &end))
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

    /// Waits out one phase and reports its progress; a failing thread or a stall ends it.
    fn watch(&mut self, extent: Extent, base: u64, observe: Observer<'_>) -> Result<(), Error> {
        let start = Instant::now();
        let (mut seen, mut moved) = (base, start);
        loop {
            let elapsed = start.elapsed();
            let answered = self.answered() - base;
            let (done, patience) = match extent {
                Extent::Time(time) => {
                    let left = time.saturating_sub(elapsed);
                    let share = elapsed.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
                    (share, left.min(PROGRESS_PERIOD))
                }
                Extent::Requests(count) => (answered as f64 / count.max(1) as f64, PROGRESS_PERIOD),
            };
            observe(done.min(1.0), answered);
            if patience.is_zero() || self.spent == self.signals.len() {
                return Ok(());
            }
            self.listen(patience)?;
            if answered != seen {
                (seen, moved) = (answered, Instant::now());
            } else if moved.elapsed() > STALL_TIME_MAX {
                let seconds = STALL_TIME_MAX.as_secs();
                return Err(Error::Protocol(format!("no reply for {seconds} seconds")));
            }
        }
    }

    /// Takes one message of a load thread, or none within `patience`.
    fn listen(&mut self, patience: Duration) -> Result<(), Error> {
        match self.events.recv_timeout(patience) {
            Ok(WorkerEvent::Ready(tid)) => self.tids.push(tid),
            Ok(WorkerEvent::Spent) => self.spent += 1,
            Ok(WorkerEvent::Finished(result)) => self.finished.push(result?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Protocol("a load thread ended without a word".into()));
            }
        }
        Ok(())
    }

    fn sum_up(&self, start: &Mark, end: &Mark) -> Outcome {
        let (mut tally, mut latency) = (Tally::default(), latency_histogram());
        for (part, part_latency) in &self.finished {
            tally.replies += part.replies;
            tally.requests += part.requests;
            tally.errors += part.errors;
            tally.nulls += part.nulls;
            tally.aborted += part.aborted;
            if tally.first_error.is_empty() {
                tally.first_error.clone_from(&part.first_error);
            }
            // All histograms have the same bounds, so adding cannot fail.
            let _ = latency.add(part_latency);
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
        }
    }
}

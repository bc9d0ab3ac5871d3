//! Leads the load threads through set-up, warm-up, the measured window, and the replies in flight
//! at its end.
//!
//! The counters of requests and of CPU time are read at both ends of the window, so the warm-up is
//! in neither; in between the conductor sleeps. The window ends with its time, the measurement with
//! the last reply: a server that stalls never looks like a result.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::latency::latency_histogram;
use super::outcome::{Observer, WindowOutcome, WindowProgress};
use super::series::LatencySeries;
use super::signals::{LoadPhase, ThreadSignals};
use super::spec::{LoadSpec, WindowExtent};
use super::worker::Counts;
use crate::Error;
use crate::client::replies::ReplyTally;
use crate::servers::account::CpuSnapshot;
use crate::servers::processors::Ticks;

/// How often progress is reported.
const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// The time between two checks for the first reply, once the time of the window is over.
const LOOK_PERIOD: Duration = Duration::from_millis(5);

/// How long the threads may take to connect, and to end.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);

/// How long requests that were due within the window may still be sent after it. A server that
/// cannot keep the rate would never answer all of them.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);

/// A report of a load thread to the conductor.
pub(super) enum WorkerEvent {
    /// Connected, under this kernel thread id.
    Ready(u32),
    /// Nothing is left to send, and all is answered.
    Spent,
    /// Ended.
    Finished(Result<Box<Counts>, Error>),
}

/// Leads the load threads.
pub(super) struct Conductor<'a> {
    signals: &'a [ThreadSignals],
    events: Receiver<WorkerEvent>,
    pid: Option<u32>,
    tids: Vec<u32>,
    /// Threads that have nothing left to send.
    spent: usize,
    /// See [`LoadSpec::counts_begun`].
    counts_begun: bool,
    finished: Vec<Counts>,
    series: LatencySeries<'a>,
    /// The number of replies at the last change of that number, and the time of that change.
    seen: (u64, Instant),
    interrupted: bool,
}

/// The counters at one end of the window.
struct WindowMark {
    at: Instant,
    /// All answered requests, and those that the window counts.
    answered: u64,
    counted: u64,
}

/// When a phase is over.
struct PhaseGoal {
    extent: WindowExtent,
    /// It lasts until so many requests are answered, whatever its extent.
    requests_min: u64,
    /// Requests that were counted before it.
    base: u64,
}

/// CPU time at one end of the window: of the server, if its process is known, of this process, and
/// of the machine.
struct WindowCpu {
    server: Option<CpuSnapshot>,
    load: CpuSnapshot,
    machine: Option<Ticks>,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        signals: &'a [ThreadSignals],
        events: Receiver<WorkerEvent>,
        pid: Option<u32>,
    ) -> Self {
        Conductor {
            signals,
            events,
            pid,
            tids: Vec::new(),
            spent: 0,
            counts_begun: false,
            finished: Vec::new(),
            series: LatencySeries::new(signals),
            seen: (0, Instant::now()),
            interrupted: false,
        }
    }

    /// Waits until the threads are connected, then measures.
    pub(super) fn conduct(
        &mut self,
        load: &LoadSpec,
        observe: Observer<'_>,
    ) -> Result<WindowOutcome, Error> {
        while self.tids.len() < self.signals.len() {
            self.listen(CONNECT_TIME_MAX)?;
        }
        self.counts_begun = load.counts_begun();
        let stall_max = stall_time_max(load);
        self.seen.1 = Instant::now();
        if !load.warm_up.is_zero() {
            self.enter(LoadPhase::WarmUp, Instant::now());
            let extent = WindowExtent::Time(load.warm_up);
            let goal = PhaseGoal { extent, requests_min: 0, base: self.counted() };
            self.watch(goal, stall_max, &mut |progress| {
                observe(&WindowProgress { share: 0.0, requests: 0, ..*progress })
            })?;
            if self.interrupted {
                return Err(Error::Interrupted);
            }
        }
        let before = self.cpu_time()?;
        let start = self.mark();
        self.enter(LoadPhase::Measure, start.at);
        self.series.begin(start.at, start.counted);
        // A window without a reply has no figures, so it lasts until there is one.
        let goal = PhaseGoal { extent: load.extent, requests_min: 1, base: start.counted };
        self.watch(goal, stall_max, observe)?;
        let end = self.mark();
        let after = self.cpu_time()?;
        self.series.end();
        if load.rate.is_some() {
            self.await_answers(LoadPhase::Drain, end.at, DRAIN_TIME_MAX, stall_max, observe)?;
        }
        let now = Instant::now();
        self.await_answers(LoadPhase::Finish, now, Duration::MAX, stall_max, observe)?;
        self.enter(LoadPhase::Stop, Instant::now());
        while self.finished.len() < self.signals.len() {
            self.listen(CONNECT_TIME_MAX)?;
        }
        match end.counted == start.counted {
            // Only an interruption ends a window before its first reply.
            true => Err(Error::Interrupted),
            false => Ok(self.sum_up(&start, &end, &before, &after)),
        }
    }

    /// Waits for the replies to all requests in flight, and while the threads drain also to those
    /// that they still send: the requests that a stalled server has not answered at the end have
    /// waited the longest. An interruption ends the wait.
    fn await_answers(
        &mut self,
        phase: LoadPhase,
        since: Instant,
        time_max: Duration,
        stall_max: Duration,
        observe: Observer<'_>,
    ) -> Result<(), Error> {
        if self.interrupted || self.spent == self.signals.len() {
            return Ok(());
        }
        self.enter(phase, since);
        let extent = WindowExtent::Time(time_max);
        let goal = PhaseGoal { extent, requests_min: 0, base: self.counted() };
        self.watch(goal, stall_max, &mut |progress| {
            observe(&WindowProgress { share: 1.0, last: None, ..*progress })
        })
    }

    pub(super) fn enter(&self, phase: LoadPhase, since: Instant) {
        self.signals.iter().for_each(|signals| signals.enter(phase, since));
    }

    fn answered(&self) -> u64 {
        self.signals.iter().map(ThreadSignals::answered).sum()
    }

    /// Those of them that the window counts; only differences have a meaning.
    fn counted(&self) -> u64 {
        match self.counts_begun {
            true => self.signals.iter().map(ThreadSignals::measured).sum(),
            false => self.answered(),
        }
    }

    fn mark(&self) -> WindowMark {
        WindowMark { at: Instant::now(), answered: self.answered(), counted: self.counted() }
    }

    fn cpu_time(&self) -> Result<WindowCpu, Error> {
        let snapshot = |pid: u32| {
            CpuSnapshot::take(pid).map_err(Error::io(format!("read the CPU time of process {pid}")))
        };
        Ok(WindowCpu {
            server: self.pid.map(snapshot).transpose()?,
            load: snapshot(std::process::id())?,
            machine: Ticks::now(),
        })
    }

    /// Waits for the end of a phase and reports its progress. A failing thread or a stall ends it,
    /// and the observer may end it.
    fn watch(
        &mut self,
        goal: PhaseGoal,
        stall_max: Duration,
        observe: Observer<'_>,
    ) -> Result<(), Error> {
        let PhaseGoal { extent, requests_min, base } = goal;
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            let answered = self.answered();
            let counted = self.counted();
            let requests = counted - base;
            let (done, wait) = match extent {
                WindowExtent::Time(time) => {
                    let left = time.saturating_sub(elapsed);
                    let share = elapsed.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
                    match left.is_zero() && requests < requests_min {
                        true => (share, LOOK_PERIOD),
                        false => (share, left.min(PROGRESS_PERIOD)),
                    }
                }
                WindowExtent::Requests(count) => {
                    (requests as f64 / count.max(1) as f64, PROGRESS_PERIOD)
                }
            };
            self.series.look(counted);
            let last = self.series.last();
            let progress = WindowProgress { share: done.min(1.0), requests, elapsed, last };
            if observe(&progress).is_break() {
                self.interrupted = true;
                return Ok(());
            }
            if wait.is_zero() || self.spent == self.signals.len() {
                return Ok(());
            }
            self.listen(wait)?;
            let (seen, since) = self.seen;
            if answered != seen {
                self.seen = (answered, Instant::now());
            } else if since.elapsed() > stall_max {
                return Err(stalled(stall_max));
            }
        }
    }

    /// Takes one event of a load thread, if one comes within this time.
    fn listen(&mut self, time_max: Duration) -> Result<(), Error> {
        match self.events.recv_timeout(time_max) {
            Ok(WorkerEvent::Ready(tid)) => self.tids.push(tid),
            Ok(WorkerEvent::Spent) => self.spent += 1,
            Ok(WorkerEvent::Finished(result)) => self.finished.push(*result?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Protocol("a load thread ended without a report".into()));
            }
        }
        Ok(())
    }

    fn sum_up(
        &mut self,
        start: &WindowMark,
        end: &WindowMark,
        before: &WindowCpu,
        after: &WindowCpu,
    ) -> WindowOutcome {
        let mut tally = ReplyTally::default();
        let (mut latency, mut lateness) = (latency_histogram(), latency_histogram());
        let (mut unsent, mut measured) = (0u64, 0);
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
            unsent = unsent.saturating_add(part.unsent);
            measured += part.measured;
        }
        WindowOutcome {
            requests: end.counted - start.counted,
            warm_up: match self.counts_begun {
                true => tally.requests - measured,
                false => start.answered,
            },
            wall: end.at.duration_since(start.at),
            latency,
            unsent,
            errors: tally.errors,
            first_error: String::from_utf8_lossy(&tally.first_error).into_owned(),
            nulls_per_reply: tally.nulls as f64 / tally.replies.max(1) as f64,
            aborted_per_request: tally.aborted as f64 / tally.requests.max(1) as f64,
            server: before.server.as_ref().zip(after.server.as_ref()).map(|(s, e)| s.until(e)),
            load: before.load.until(&after.load).only(&self.tids),
            machine: before.machine.zip(after.machine).map(|(start, end)| end.since(start)),
            lateness,
            series: self.series.take(),
            interrupted: self.interrupted,
        }
    }
}

/// How long a server may answer nothing. At a low rate, times without a request are added.
fn stall_time_max(load: &LoadSpec) -> Duration {
    let gap = load.rate.map_or(0.0, |rate| 2.0 * load.pipeline as f64 / rate);
    load.stall_time_max.saturating_add(Duration::try_from_secs_f64(gap).unwrap_or_default())
}

fn stalled(time: Duration) -> Error {
    Error::Io {
        what: "measure".into(),
        source: std::io::Error::other(format!(
            "the server has not replied for {:.0} s",
            time.as_secs_f64()
        )),
    }
}

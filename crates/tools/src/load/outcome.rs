//! The result of one window of load, and its progress.

use std::ops::ControlFlow;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Error;
use crate::servers::account::CpuUse;
use crate::servers::processors::Ticks;

/// The result of one measured window.
#[derive(Debug, Clone)]
pub struct WindowOutcome {
    /// Requests answered within the window; one of several commands counts once. With a number of
    /// requests or a limit of the rate, only those that were begun in it.
    pub requests: u64,
    /// Requests of the warm-up, which are not among those.
    pub warm_up: u64,
    /// The length of the window.
    pub wall: Duration,
    /// Latencies in nanoseconds; each request has that of its batch. They include requests in
    /// flight at the end of the window, and with a limit of the rate all that were due in it.
    pub latency: Histogram<u64>,
    /// Requests that were due within the window and never sent, because the connections were still
    /// waiting for replies; 0 without a limit of the rate.
    pub unsent: u64,
    /// Error replies to any command, warm-up included: with one, no figure counts.
    pub errors: u64,
    /// The text of the first error.
    pub first_error: String,
    /// Nulls per reply, warm-up included: for a read, the share of keys that were missing.
    pub nulls_per_reply: f64,
    /// Transactions that EXEC aborted because a watched key had changed, per request, warm-up
    /// included.
    pub aborted_per_request: f64,
    /// CPU time of the server, when its process is known.
    pub server: Option<CpuUse>,
    /// CPU time of the load threads.
    pub load: CpuUse,
    /// The time of this host's processors within the window, if the kernel counts it.
    pub machine: Option<Ticks>,
    /// How late the load threads sent what was due, in nanoseconds; empty without a limit of the
    /// rate.
    pub lateness: Histogram<u64>,
    /// Throughput and latencies over time.
    pub series: Vec<SeriesSample>,
    /// Whether the observer ended the window early.
    pub interrupted: bool,
}

impl WindowOutcome {
    /// Requests per second.
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Server CPU in microseconds per request.
    pub fn server_us(&self) -> Option<f64> {
        Some(self.server.as_ref()?.us_per_request(self.requests))
    }

    /// The busiest load thread, in percent of a core.
    pub fn load_percent(&self) -> f64 {
        self.load.threads.first().map_or(0.0, |thread| self.load.busy_percent(thread.cpu))
    }

    /// Cores that other programs than the server and the load threads used; `None` if the server's
    /// process is not known.
    pub fn others(&self) -> Option<f64> {
        let own = self.server.as_ref()?.total() + self.load.total();
        let others = self.machine?.busy - own.as_secs_f64();
        Some(others.max(0.0) / self.wall.as_secs_f64().max(f64::MIN_POSITIVE))
    }

    /// Refuses an outcome with error replies, whose figures mean nothing.
    ///
    /// # Errors
    /// [`Error::ErrorReplies`].
    pub fn refuse_errors(&self, workload: &str) -> Result<(), Error> {
        match self.errors {
            0 => Ok(()),
            count => Err(Error::ErrorReplies {
                workload: workload.into(),
                count,
                first: self.first_error.clone(),
            }),
        }
    }
}

/// Figures of the time since the sample before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesSample {
    /// Seconds from the start of the window.
    pub seconds: f64,
    /// Requests per second.
    pub per_second: f64,
    /// The median latency in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of latency in microseconds.
    pub p99_us: f64,
}

/// How far a window has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowProgress {
    /// From 0 to 1.
    pub share: f64,
    /// Requests answered so far.
    pub requests: u64,
    /// How long it has lasted.
    pub elapsed: Duration,
    /// The last sample of the series.
    pub last: Option<SeriesSample>,
}

impl WindowProgress {
    /// How long the rest takes at this pace.
    pub fn left(&self) -> Option<Duration> {
        let rest = (1.0 - self.share) / self.share;
        Duration::try_from_secs_f64(self.elapsed.as_secs_f64() * rest).ok()
    }
}

/// Sees how far a window has come, and may end it.
pub type Observer<'a> = &'a mut dyn FnMut(&WindowProgress) -> ControlFlow<()>;

/// Lets a window go to its end.
pub fn unobserved(_: &WindowProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

//! Throughput and latencies over the time of a window: a sample each half second.
//!
//! On request, a load thread lays out a copy of its latencies at the end of its turn, so that it
//! shares its histogram with no other thread. The difference of two copies has the latencies of the
//! time between them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::latency::latency_histogram;
use super::latency::percentile_us;
use super::outcome::SeriesSample;
use super::signals::ThreadSignals;

/// The time between two samples.
const SAMPLE_PERIOD: Duration = Duration::from_millis(500);

/// The samples of one window.
#[derive(Debug)]
pub(super) struct LatencySeries<'a> {
    signals: &'a [ThreadSignals],
    start: Option<Instant>,
    /// When the last sample was taken, and the requests answered until then.
    last: (Instant, u64),
    is_asked: bool,
    /// The last copy of each thread's latencies, and the latencies of all threads at the last
    /// sample.
    laid_out: Vec<Histogram<u64>>,
    before: Histogram<u64>,
    samples: Vec<SeriesSample>,
}

impl<'a> LatencySeries<'a> {
    pub(super) fn new(signals: &'a [ThreadSignals]) -> Self {
        LatencySeries {
            signals,
            start: None,
            last: (Instant::now(), 0),
            is_asked: false,
            laid_out: signals.iter().map(|_| latency_histogram()).collect(),
            before: latency_histogram(),
            samples: Vec::new(),
        }
    }

    /// The window has begun.
    pub(super) fn begin(&mut self, now: Instant, answered: u64) {
        self.start = Some(now);
        self.last = (now, answered);
    }

    /// The window is over.
    pub(super) fn end(&mut self) {
        self.start = None;
    }

    /// Takes a sample if it is time.
    pub(super) fn look(&mut self, answered: u64) {
        let (Some(start), now) = (self.start, Instant::now()) else { return };
        let (last, answered_before) = self.last;
        if now.duration_since(last) < SAMPLE_PERIOD {
            return;
        }
        if !self.is_asked {
            self.is_asked = true;
            self.signals.iter().for_each(ThreadSignals::ask_latencies);
            return;
        }
        self.is_asked = false;
        let mut all = latency_histogram();
        for (signals, laid_out) in self.signals.iter().zip(&mut self.laid_out) {
            if let Some(newer) = signals.take_latencies() {
                *laid_out = newer;
            }
            // All histograms have the same bounds, and counts only grow: neither can fail.
            let _ = all.add(&*laid_out);
        }
        let mut between = all.clone();
        let _ = between.subtract(&self.before);
        let seconds = now.duration_since(last).as_secs_f64();
        self.samples.push(SeriesSample {
            seconds: now.duration_since(start).as_secs_f64(),
            per_second: (answered - answered_before) as f64 / seconds,
            p50_us: percentile_us(&between, 50.0),
            p99_us: percentile_us(&between, 99.0),
        });
        self.before = all;
        self.last = (now, answered);
    }

    pub(super) fn last(&self) -> Option<SeriesSample> {
        self.samples.last().copied()
    }

    pub(super) fn take(&mut self) -> Vec<SeriesSample> {
        std::mem::take(&mut self.samples)
    }
}

//! When a load thread sends at a limited rate: each connection at fixed times.
//!
//! ```text
//! tick        0   1   2   3   4   5   6 ...     one step apart
//! connection  0   1   2   0   1   2   0 ...     of three
//! ```
//!
//! A connection whose last batch is not answered at such a time sends when it is, and the latency
//! of the batch runs from when it was due: a stall of the server counts for all requests that
//! should have been sent meanwhile (no coordinated omission). Late sends do not use more
//! connections.
//!
//! No operation takes time per tick: even if the rate is far too high, the search for due batches
//! visits each connection once.

use std::time::{Duration, Instant};

/// The sending times of one thread.
#[derive(Debug, Clone)]
pub struct SendSchedule {
    /// When tick 0 is due.
    start: Option<Instant>,
    /// The delay of tick 0, which differs between threads, so that they do not send together.
    lead: f64,
    /// Seconds between ticks.
    step: f64,
    links: u64,
    /// The next tick.
    tick: u64,
    /// The first tick that is never due.
    end: u64,
}

impl SendSchedule {
    /// For `links` connections of one thread, which send `per_second` batches together. This thread
    /// starts by a `share` of a step later than the first.
    pub fn new(links: usize, per_second: f64, share: f64) -> SendSchedule {
        let step = 1.0 / per_second.max(f64::MIN_POSITIVE);
        SendSchedule {
            start: None,
            lead: step * share,
            step,
            links: links as u64,
            tick: 0,
            end: u64::MAX,
        }
    }

    /// The first tick is due now, or a part of a step later.
    pub fn begin(&mut self, now: Instant) {
        self.start = Some(now + seconds(self.lead));
    }

    /// Drops all batches that were due until this moment and are not sent.
    pub fn skip(&mut self, now: Instant) {
        self.tick = self.tick.max(self.ticks_due(now));
    }

    /// Nothing is due after this moment.
    pub fn end(&mut self, now: Instant) {
        // Ticks that are due and not taken yet stay due.
        self.end = self.ticks_due(now).max(self.tick);
    }

    /// How many ticks may be taken now: of the due ticks, the last one of each connection. The
    /// earlier ones count as taken.
    pub fn take_due(&mut self, now: Instant) -> u64 {
        let due = self.ticks_due(now).max(self.tick);
        self.tick = self.tick.max(due.saturating_sub(self.links));
        due - self.tick
    }

    /// Takes a tick and returns its connection.
    pub fn take(&mut self) -> usize {
        let link = self.tick % self.links;
        self.tick += 1;
        link as usize
    }

    /// How many batches of a connection became due in the ticks taken so far.
    pub fn batches_due(&self, link: usize) -> u64 {
        self.tick.saturating_add(self.links - 1).saturating_sub(link as u64) / self.links
    }

    /// Takes all ticks before the end, which is set.
    pub fn take_rest(&mut self) {
        self.tick = self.end;
    }

    /// When the `turn`-th batch of a connection is due.
    pub fn due(&self, link: usize, turn: u64) -> Instant {
        self.at(turn.saturating_mul(self.links).saturating_add(link as u64))
    }

    /// The time until the next tick; `None` after the last.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        let is_over = self.start.is_none() || self.tick >= self.end;
        (!is_over).then(|| self.at(self.tick).saturating_duration_since(now))
    }

    /// The ticks until now, or until the end.
    fn ticks_due(&self, now: Instant) -> u64 {
        let since = self.start.and_then(|start| now.checked_duration_since(start));
        // The cast saturates.
        let ticks =
            since.map_or(0, |since| ((since.as_secs_f64() / self.step) as u64).saturating_add(1));
        ticks.min(self.end)
    }

    fn at(&self, tick: u64) -> Instant {
        let start = self.start.unwrap_or_else(Instant::now);
        start.checked_add(seconds(tick as f64 * self.step)).unwrap_or(start)
    }
}

/// The time, or the longest one that a clock can have.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connections of all ticks that may be taken.
    fn taken(schedule: &mut SendSchedule, now: Instant) -> Vec<usize> {
        let count = schedule.take_due(now);
        (0..count).map(|_| schedule.take()).collect()
    }

    #[test]
    fn connections_take_turns_at_fixed_times() {
        let (mut schedule, start) = (SendSchedule::new(3, 1000.0, 0.5), Instant::now());
        assert_eq!((schedule.take_due(start), schedule.time_left(start)), (0, None));
        schedule.begin(start);
        let after = |micros| start + Duration::from_micros(micros);
        assert_eq!(schedule.take_due(after(499)), 0);
        assert_eq!(schedule.time_left(after(0)), Some(Duration::from_micros(500)));
        assert_eq!(taken(&mut schedule, after(2600)), [0, 1, 2]);
        assert_eq!(taken(&mut schedule, after(4600)), [0, 1]);
        assert_eq!([0, 1, 2].map(|link| schedule.batches_due(link)), [2, 2, 1]);
        assert_eq!(schedule.due(1, 2), after(7500));
    }

    #[test]
    fn ticks_due_at_the_end_stay_due() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut schedule = SendSchedule::new(1, 100.0, 0.0);
        schedule.begin(start);
        assert_eq!(taken(&mut schedule, after(0)), [0]);
        schedule.end(after(35));
        schedule.take_due(after(1000));
        schedule.take();
        assert_eq!((schedule.batches_due(0), schedule.time_left(after(1000))), (4, None));
        let mut schedule = SendSchedule::new(1, 100.0, 0.0);
        schedule.begin(after(10));
        schedule.end(after(5));
        assert_eq!(schedule.take_due(after(1000)), 0);
    }

    #[test]
    fn due_ticks_can_be_skipped() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut schedule = SendSchedule::new(2, 100.0, 0.0);
        schedule.skip(start);
        schedule.begin(start);
        schedule.skip(after(35));
        assert_eq!((schedule.batches_due(0), schedule.batches_due(1)), (2, 2));
        assert_eq!(schedule.take_due(after(35)), 0);
        assert_eq!((taken(&mut schedule, after(45)), schedule.due(0, 2)), (vec![0], after(40)));
    }

    #[test]
    fn an_excessive_rate_visits_each_connection_once() {
        let start = Instant::now();
        let now = start + Duration::from_secs(10);
        for rate in [1e9, 1e30] {
            let mut schedule = SendSchedule::new(3, rate, 0.0);
            schedule.begin(start);
            let mut links = taken(&mut schedule, now);
            links.sort_unstable();
            assert_eq!(links, [0, 1, 2]);
            assert!(schedule.batches_due(0) >= 3_333_333_333);
        }
        // All unsent batches are counted without a visit to each.
        let mut schedule = SendSchedule::new(3, 1e9, 0.0);
        schedule.begin(start);
        schedule.end(now);
        schedule.take_rest();
        let due: u64 = (0..3).map(|link| schedule.batches_due(link)).sum();
        assert!((9_999_999_999..=10_000_000_001).contains(&due), "{due}");
    }
}

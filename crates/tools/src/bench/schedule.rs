//! When a load thread sends, where the rate is limited: each connection at times that are fixed
//! before.
//!
//! ```text
//! tick        0   1   2   3   4   5   6 ...     one step apart
//! connection  0   1   2   0   1   2   0 ...     of three
//! ```
//!
//! A connection whose last batch is not answered at such a time sends when it is, and the batch has
//! waited since it was due: a server that stalls pays for all that should have been sent meanwhile
//! (no coordinated omission). Sends are not caught up with more connections than there are.

use std::time::{Duration, Instant};

/// The sending times of one thread.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// When tick 0 is due.
    start: Option<Instant>,
    /// Before it, so that threads do not send at once.
    lead: f64,
    /// Seconds between ticks.
    step: f64,
    links: u64,
    /// The next tick.
    tick: u64,
    /// The first tick that is not due any more.
    end: u64,
}

impl Schedule {
    /// For `links` connections of one thread, which send `per_second` batches together. `share` is
    /// the part of a step by which this thread is behind the first.
    pub fn new(links: usize, per_second: f64, share: f64) -> Schedule {
        let step = 1.0 / per_second.max(f64::MIN_POSITIVE);
        Schedule {
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

    /// Nothing is due after this moment.
    pub fn end(&mut self, now: Instant) {
        // Ticks that are due and not taken yet stay due.
        self.end = match now.checked_duration_since(self.at(self.tick)) {
            Some(late) => self.tick + (late.as_secs_f64() / self.step) as u64 + 1,
            None => self.tick,
        };
    }

    /// The connection of the next tick that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<usize> {
        if self.start.is_none() || self.tick >= self.end || self.at(self.tick) > now {
            return None;
        }
        self.tick += 1;
        Some(((self.tick - 1) % self.links) as usize)
    }

    /// When the `turn`-th batch of a connection is due.
    pub fn due(&self, link: usize, turn: u64) -> Instant {
        self.at(turn.saturating_mul(self.links).saturating_add(link as u64))
    }

    /// How long nothing more is due; nothing if nothing ever is.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        let is_over = self.start.is_none() || self.tick >= self.end;
        (!is_over).then(|| self.at(self.tick).saturating_duration_since(now))
    }

    fn at(&self, tick: u64) -> Instant {
        let start = self.start.unwrap_or_else(Instant::now);
        start.checked_add(seconds(tick as f64 * self.step)).unwrap_or(start)
    }
}

/// A time of any length that a clock can have.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_at_fixed_times() {
        let (mut schedule, start) = (Schedule::new(3, 1000.0, 0.5), Instant::now());
        assert_eq!((schedule.take_due(start), schedule.time_left(start)), (None, None));
        schedule.begin(start);
        let after = |micros| start + Duration::from_micros(micros);
        assert_eq!(schedule.take_due(after(499)), None);
        assert_eq!(schedule.time_left(after(0)), Some(Duration::from_micros(500)));
        let due: Vec<usize> = std::iter::from_fn(|| schedule.take_due(after(4500))).collect();
        assert_eq!(due, [0, 1, 2, 0, 1]);
        assert_eq!(schedule.due(1, 2), after(7500));
    }

    #[test]
    fn what_is_due_at_the_end_stays_due() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut schedule = Schedule::new(1, 100.0, 0.0);
        schedule.begin(start);
        assert_eq!(schedule.take_due(after(0)), Some(0));
        schedule.end(after(35));
        let due = std::iter::from_fn(|| schedule.take_due(after(1000))).count();
        assert_eq!((due, schedule.time_left(after(1000))), (3, None));
        let mut schedule = Schedule::new(1, 100.0, 0.0);
        schedule.begin(after(10));
        schedule.end(after(5));
        assert_eq!(schedule.take_due(after(1000)), None);
    }
}

//! A worker's time: the time of a turn, how it advances, and how much of it a client has used.

use store::Time;

use super::worker::Worker;

/// How old the time may be when a command begins, in microseconds. Its milliseconds are those of
/// that moment.
const TIME_AGE_US_MAX: i64 = 500;
/// Microseconds after which a request is slow: then its client is held for a while when a thread
/// wants to stop all others in vain.
const SLOW_US: u64 = 5000;
/// The system's clock and what is derived from the TSC differ by less, in microseconds.
const CLOCKS_DIFFER_US_MAX: i64 = 1000;

impl Worker {
    /// Begins a turn: sets the time and takes over a changed configuration.
    ///
    /// A time that is slightly earlier than that of the last turn comes from another clock, and the
    /// later one stays; else the system's clock was set back, and the thread follows.
    #[inline]
    pub fn begin_turn(&mut self, time: Time, tsc: u64) {
        if !(0..CLOCKS_DIFFER_US_MAX).contains(&(self.turn.unix_us - time.unix_us)) {
            self.turn.set_time(time.unix_us);
        }
        self.turn.steady_ms = self.turn.steady_ms.max(time.steady_ms);
        self.last_tsc = tsc;
        self.turns += 1;
        self.keep_time(time, tsc);
        self.take_over_config();
    }

    /// A command has ended, or requests were received, and the next begins: the time goes on if
    /// enough has passed. `time` reads the clock.
    ///
    /// A client that was answered on another thread finds no earlier millisecond here: all threads
    /// have the same clock, and its next request is executed by a time from after it was received.
    #[inline]
    pub fn go_on(&mut self, tsc: u64, time: impl FnOnce() -> Time) {
        self.last_tsc = tsc;
        if tsc >= self.time_end_tsc {
            self.advance_time(time(), tsc);
        }
    }

    #[cold]
    fn advance_time(&mut self, time: Time, tsc: u64) {
        self.turn.advance_time(time);
        self.keep_time(time, tsc);
    }

    /// This is the time at this TSC, and for a while.
    fn keep_time(&mut self, time: Time, tsc: u64) {
        self.time_tsc = tsc;
        let left_us = (1000 - time.unix_us.rem_euclid(1000)).min(TIME_AGE_US_MAX);
        self.time_end_tsc = tsc.saturating_add((left_us as f64 * self.tsc_per_micro) as u64);
    }

    /// The TSC when the last command ended, or when the turn began.
    #[inline]
    pub fn last_tsc(&self) -> u64 {
        self.last_tsc
    }

    /// Whether a client whose requests began at this TSC has used its time in this turn, and others
    /// come first.
    #[inline]
    pub fn has_used_turn(&self, since_tsc: u64) -> bool {
        self.is_turn_used(since_tsc, self.last_tsc)
    }

    /// Sets how many TSC cycles a client may use in a turn, for tests: whether a request takes
    /// longer than usual depends on the machine.
    pub fn limit_client_time(&mut self, tsc: u64) {
        self.client_tsc_max = tsc;
    }

    /// The same at this TSC.
    #[inline]
    pub fn is_turn_used(&self, since_tsc: u64, tsc: u64) -> bool {
        tsc.wrapping_sub(since_tsc) >= self.client_tsc_max
    }

    /// Microseconds of the last request, which began at this TSC, if it was slow: a thread that
    /// stops all others may wait for it in vain. Otherwise 0. Time in which the thread waited for a
    /// processor counts, because other threads wait for it as well.
    #[inline]
    pub fn slow_us_since(&self, since_tsc: u64) -> u32 {
        if !self.has_used_turn(since_tsc) {
            return 0;
        }
        let us = self.micros(self.last_tsc.wrapping_sub(since_tsc));
        if us < SLOW_US { 0 } else { u32::try_from(us).unwrap_or(u32::MAX) }
    }

    /// Microseconds in this many TSC cycles.
    pub fn micros(&self, tsc: u64) -> u64 {
        (tsc as f64 / self.tsc_per_micro) as u64
    }

    /// The system's time at a TSC of this turn, in microseconds since 1970.
    pub(crate) fn unix_us_at(&self, tsc: u64) -> i64 {
        let since = self.micros(tsc.saturating_sub(self.time_tsc));
        self.turn.unix_us.saturating_add_unsigned(since)
    }

    /// The same with what is less than a microsecond.
    pub(crate) fn fractional_micros(&self, tsc: f64) -> f64 {
        tsc / self.tsc_per_micro
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Config;
    use crate::state::node::Node;

    #[test]
    fn a_request_is_slow_from_five_milliseconds_on() {
        let node = Arc::new(Node::new(Config::default(), 1, 1));
        let mut worker = Worker::new(node, 0, crate::table(), 1, 1000.0);
        let time = Time { unix_us: 0, steady_ms: 0 };
        for (us, slow_us) in [(4999, 0), (5000, 5000), (9000, 9000)] {
            worker.go_on(us * 1000, || time);
            assert_eq!(worker.slow_us_since(0), slow_us, "{us}");
        }
        // The time before it began, at a closed gate, does not count.
        worker.go_on(10_000_000, || time);
        let began_tsc = worker.last_tsc();
        worker.go_on(10_500_000, || time);
        assert_eq!(worker.slow_us_since(began_tsc), 0);
    }
}

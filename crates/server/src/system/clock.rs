//! The time, from the processor's time stamp counter (TSC): a reading costs a few nanoseconds, and
//! the system's clocks are asked only now and then to correct it.
//!
//! There are two scales. Keys expire by the system's clock, which may be set. Timers and timeouts
//! run by the steady clock, which is not.
//!
//! Invariants:
//! - All threads derive the time from the same base, a moment on all scales, so that an event on
//!   one thread that follows one on another never has an earlier time: a client that has a reply
//!   from one thread finds no earlier time on another. This takes a TSC that is the same on all
//!   processors, as an invariant one is.
//! - One thread at a time replaces the base, and the time continues from its old value: it jumps
//!   forward to the system's time, or slows down until that has caught up. It goes back only when
//!   the system's clock is set back.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use store::Time;
use sys::clock::{ClockReading, tsc, tsc_per_micro};

/// How long the TSC is trusted between two readings of the system's clocks, in microseconds.
const TRUSTED_US: f64 = 50_000.0;
/// The time goes no slower than by the part of this that it is ahead, in microseconds.
const CATCH_UP_US: f64 = 100_000.0;
/// The system's clock was set back if it lags by more, in microseconds.
const SET_BACK_US_MIN: i64 = 5000;
/// The pace of the TSC is measured over at least this time, in microseconds, and again after
/// `PACE_US_MAX`.
const PACE_US_MIN: i64 = 10_000;
const PACE_US_MAX: i64 = 10_000_000;

/// A clock of one thread.
#[derive(Debug)]
pub struct Clock {
    shared: &'static SharedClock,
    base: Base,
    generation: u64,
}

/// A moment on all scales.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub tsc: u64,
    /// The time by both clocks.
    pub time: Time,
}

/// The base from which the time is derived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    tsc: u64,
    unix_us: i64,
    steady_us: i64,
    /// Microseconds in a tick.
    pace: f64,
    /// The same for the time since 1970, when it lets the system catch up.
    unix_pace: f64,
}

/// The clock that all threads share.
#[derive(Debug)]
pub(crate) struct SharedClock {
    base: Mutex<Base>,
    /// How often `base` was replaced.
    generation: AtomicU64,
    /// Since when the pace is measured; locked by the thread that replaces `base`.
    measured_from: Mutex<ClockReading>,
}

/// The time at this TSC, on the clock that all threads share. For a thread that is not at the
/// beginning of its turn.
pub fn time_at(tsc: u64) -> Time {
    shared().base_at(tsc, sys::clock::reading).at(tsc)
}

fn shared() -> &'static SharedClock {
    static SHARED: OnceLock<SharedClock> = OnceLock::new();
    SHARED.get_or_init(|| SharedClock::new(sys::clock::reading(), 1.0 / tsc_per_micro()))
}

impl Clock {
    /// A clock that agrees with those of all other threads.
    pub fn new() -> Self {
        let shared = shared();
        let generation = shared.generation.load(Ordering::Acquire);
        Self { shared, base: *shared.base.lock(), generation }
    }

    #[inline]
    pub fn now(&mut self) -> Moment {
        let tsc = tsc();
        // After the TSC was read, so that the base is not one that was replaced before.
        let generation = self.shared.generation.load(Ordering::Acquire);
        if generation != self.generation || !self.base.is_trusted(tsc) {
            self.generation = generation;
            self.base = self.shared.base_at(tsc, sys::clock::reading);
        }
        Moment { tsc, time: self.base.at(tsc) }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Base {
    /// Microseconds since the base, on a scale of this pace.
    fn elapsed_us(&self, tsc: u64, pace: f64) -> i64 {
        // A thread may have read the TSC just before the base was replaced.
        let ticks = tsc.wrapping_sub(self.tsc).cast_signed();
        (ticks as f64 * pace).floor() as i64
    }

    pub(crate) fn at(&self, tsc: u64) -> Time {
        let steady_us = self.steady_us + self.elapsed_us(tsc, self.pace);
        let unix_us = self.unix_us + self.elapsed_us(tsc, self.unix_pace);
        Time { unix_us, steady_ms: steady_us / 1000 }
    }

    fn is_trusted(&self, tsc: u64) -> bool {
        (tsc.wrapping_sub(self.tsc).cast_signed() as f64) * self.pace <= TRUSTED_US
    }

    /// The next base, when the system's clocks say this.
    fn follow(&self, reading: &ClockReading, pace: f64) -> Self {
        let ClockReading { tsc, .. } = *reading;
        let unix_us = self.unix_us + self.elapsed_us(tsc, self.unix_pace);
        let steady_us = self.steady_us + self.elapsed_us(tsc, self.pace);
        let ahead_us = unix_us - reading.unix_us;
        let (unix_us, unix_pace) = match ahead_us {
            1..SET_BACK_US_MIN => (unix_us, pace * (1.0 - ahead_us as f64 / CATCH_UP_US)),
            _ => (reading.unix_us, pace),
        };
        Self { tsc, unix_us, steady_us: steady_us.max(reading.steady_us), pace, unix_pace }
    }
}

impl SharedClock {
    pub(crate) fn new(reading: ClockReading, pace: f64) -> Self {
        let ClockReading { tsc, unix_us, steady_us } = reading;
        let base = Base { tsc, unix_us, steady_us, pace, unix_pace: pace };
        Self {
            base: Mutex::new(base),
            generation: AtomicU64::new(0),
            measured_from: Mutex::new(reading),
        }
    }

    /// The base for this TSC; another than before if that was used for long. `read` reads the
    /// system's clocks.
    pub(crate) fn base_at(&self, tsc: u64, read: impl FnOnce() -> ClockReading) -> Base {
        let base = *self.base.lock();
        if base.is_trusted(tsc) {
            return base;
        }
        // If another thread replaces it, the old one is good enough for a moment.
        let Some(mut measured_from) = self.measured_from.try_lock() else { return base };
        let base = *self.base.lock();
        if base.is_trusted(tsc) {
            return base;
        }
        let reading = read();
        let ticks = reading.tsc.wrapping_sub(measured_from.tsc) as f64;
        let micros = reading.steady_us - measured_from.steady_us;
        let pace = if micros >= PACE_US_MIN { micros as f64 / ticks } else { base.pace };
        if micros >= PACE_US_MAX {
            *measured_from = reading;
        }
        let next = base.follow(&reading, pace);
        *self.base.lock() = next;
        // Release: a thread that sees the number finds this base, or a later one.
        self.generation.fetch_add(1, Ordering::Release);
        next
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    const START_US: i64 = 1_700_000_000_000_000;

    /// The system's clocks are read with errors, the pace differs a little from the first
    /// measurement, and each thread asks at times of its own.
    #[test]
    fn no_thread_has_an_earlier_time_than_another_has_seen() {
        const RATE: f64 = 2.5;
        const ERROR_US: u64 = 40;
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let error_ppm = random.below(2000) as f64 - 1000.0;
            let read = |now_us: f64, random: &mut Random| {
                let late_us = random.below(ERROR_US) as i64;
                let steady_us = START_US + now_us as i64 + late_us;
                ClockReading { tsc: (now_us * RATE) as u64, unix_us: steady_us, steady_us }
            };
            let mut now_us = 0.0;
            let pace = (1.0 + error_ppm / 1e6) / RATE;
            let clock = SharedClock::new(read(now_us, &mut random), pace);
            let mut cached = [*clock.base.lock(); 3];
            let mut generations = [0; 3];
            let (mut last, mut farthest_us) = (Time::default(), 0);
            for _ in 0..20_000 {
                now_us += random.below(200) as f64 / 2.0;
                let tsc = (now_us * RATE) as u64;
                let thread = random.below(4) as usize;
                let time = match cached.get_mut(thread) {
                    // As a thread does at the beginning of a turn.
                    Some(base) => {
                        let generation = clock.generation.load(Ordering::Acquire);
                        if generation != generations[thread] || !base.is_trusted(tsc) {
                            *base = clock.base_at(tsc, || read(now_us, &mut random));
                            generations[thread] = generation;
                        }
                        base.at(tsc)
                    }
                    None => clock.base_at(tsc, || read(now_us, &mut random)).at(tsc),
                };
                assert!(
                    time.unix_us >= last.unix_us,
                    "{seed}: {} us back",
                    last.unix_us - time.unix_us
                );
                assert!(time.steady_ms >= last.steady_ms, "{seed}: the steady clock goes back");
                last = time;
                farthest_us = (time.unix_us - START_US - now_us as i64).abs().max(farthest_us);
            }
            assert!(farthest_us < 200, "{seed}: off by {farthest_us} us");
        }
    }
}

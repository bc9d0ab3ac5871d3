//! The time of a turn, from the processor's tick counter: a reading costs a few nanoseconds, and
//! the system's clock is asked only now and then to correct it.

use sys::clock::{ticks, ticks_per_micro, unix_micros};

/// How long the tick counter is trusted between two readings of the system's clock.
const TRUSTED_MICROS: f64 = 50_000.0;

/// A clock of one thread.
#[derive(Debug)]
pub struct Clock {
    rate: f64,
    base_tick: u64,
    base_us: i64,
}

/// A moment on both scales.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The processor's ticks.
    pub tick: u64,
    /// Microseconds since 1970.
    pub unix_us: i64,
}

impl Clock {
    /// A clock that agrees with the system's.
    pub fn new() -> Self {
        Self { rate: ticks_per_micro(), base_tick: ticks(), base_us: unix_micros() }
    }

    /// Now.
    #[inline]
    pub fn now(&mut self) -> Moment {
        let tick = ticks();
        let micros = tick.wrapping_sub(self.base_tick) as f64 / self.rate;
        if micros > TRUSTED_MICROS {
            self.base_tick = tick;
            self.base_us = unix_micros();
            return Moment { tick, unix_us: self.base_us };
        }
        Moment { tick, unix_us: self.base_us + micros as i64 }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

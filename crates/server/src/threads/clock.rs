//! The time of a turn, from the processor's time stamp counter (TSC): a reading costs a few
//! nanoseconds, and the system's clock is asked only now and then to correct it.

use sys::clock::{tsc, tsc_per_micro, unix_micros};

/// How long the TSC is trusted between two readings of the system's clock.
const TRUSTED_MICROS: f64 = 50_000.0;

/// A clock of one thread.
#[derive(Debug)]
pub struct Clock {
    rate: f64,
    base_tsc: u64,
    base_us: i64,
}

/// A moment on both scales.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The TSC.
    pub tsc: u64,
    /// Microseconds since 1970.
    pub unix_us: i64,
}

impl Clock {
    /// A clock that agrees with the system's.
    pub fn new() -> Self {
        Self { rate: tsc_per_micro(), base_tsc: tsc(), base_us: unix_micros() }
    }

    /// Now.
    #[inline]
    pub fn now(&mut self) -> Moment {
        let tsc = tsc();
        let micros = tsc.wrapping_sub(self.base_tsc) as f64 / self.rate;
        if micros > TRUSTED_MICROS {
            self.base_tsc = tsc;
            self.base_us = unix_micros();
            return Moment { tsc, unix_us: self.base_us };
        }
        Moment { tsc, unix_us: self.base_us + micros as i64 }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

//! The time of a turn, from the processor's time stamp counter (TSC): a reading costs a few
//! nanoseconds, and the system's clocks are asked only now and then to correct it.
//!
//! There are two scales. Keys expire by the system's clock, which may be set. Timers and timeouts
//! run by the steady clock, which is not.

use store::Time;
use sys::clock::{steady_micros, tsc, tsc_per_micro, unix_micros};

/// How long the TSC is trusted between two readings of the system's clocks.
const TRUSTED_MICROS: f64 = 50_000.0;

/// A clock of one thread.
#[derive(Debug)]
pub struct Clock {
    rate: f64,
    base_tsc: u64,
    base_us: i64,
    base_steady_us: i64,
}

/// A moment on all scales.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The TSC.
    pub tsc: u64,
    /// The time by both clocks.
    pub time: Time,
}

impl Clock {
    /// A clock that agrees with the system's.
    pub fn new() -> Self {
        Self {
            rate: tsc_per_micro(),
            base_tsc: tsc(),
            base_us: unix_micros(),
            base_steady_us: steady_micros(),
        }
    }

    /// Now.
    #[inline]
    pub fn now(&mut self) -> Moment {
        self.at(tsc(), || (unix_micros(), steady_micros()))
    }

    /// The moment of a reading of the TSC. `read` reads the system's clock and the steady clock, in
    /// microseconds.
    #[inline]
    fn at(&mut self, tsc: u64, read: impl FnOnce() -> (i64, i64)) -> Moment {
        let mut micros = tsc.wrapping_sub(self.base_tsc) as f64 / self.rate;
        if micros > TRUSTED_MICROS {
            self.base_tsc = tsc;
            (self.base_us, self.base_steady_us) = read();
            micros = 0.0;
        }
        let micros = micros as i64;
        let steady_ms = (self.base_steady_us + micros) / 1000;
        Moment { tsc, time: Time { unix_us: self.base_us + micros, steady_ms } }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::cron_schedule::Cron;
    use crate::threads::deadlines::Deadlines;

    #[test]
    fn timers_go_on_when_the_system_clock_is_set_back() {
        const START_US: i64 = 1_700_000_000_000_000;
        let mut clock =
            Clock { rate: 1.0, base_tsc: 0, base_us: START_US, base_steady_us: START_US };
        let (mut cron, mut deadlines, mut kept) = (Cron::default(), Deadlines::default(), None);
        let (mut ticks, mut due_at) = (0, None);
        deadlines.move_to(Some(START_US / 1000 + 500), &mut kept, 1, 0);
        for ms in 0..=1000 {
            // After a tenth of a second the clock is set back by ten minutes.
            let set_back_us = if ms < 100 { 0 } else { 600_000_000 };
            let elapsed_us = ms * 1000;
            let read = || (START_US + elapsed_us - set_back_us, START_US + elapsed_us);
            let now = clock.at(elapsed_us as u64, read).time;
            assert_eq!(now.steady_ms, START_US / 1000 + ms);
            assert!(ms < 200 || now.unix_us < START_US, "the jump is noticed");
            if cron.is_due(now.steady_ms, true) {
                cron.schedule(now.steady_ms, 100);
                ticks += 1;
            }
            assert!(cron.wait_ms(now.steady_ms, true, true) <= 100);
            if deadlines.pop_due(now.steady_ms).is_some() {
                due_at = Some(ms);
            }
        }
        assert_eq!((ticks, due_at), (11, Some(500)));
    }
}

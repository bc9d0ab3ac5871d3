//! The clocks. Only `server` and the tools read them; lower layers get the time as an argument.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Microseconds of a clock that never jumps. It starts with the system's clock at the first
/// reading, all threads share it, and setting the system's clock does not change it.
pub fn steady_micros() -> i64 {
    static START: OnceLock<(Instant, i64)> = OnceLock::new();
    let (start, start_us) = START.get_or_init(|| (Instant::now(), unix_micros()));
    start_us + i64::try_from(start.elapsed().as_micros()).unwrap_or(i64::MAX - start_us)
}

/// The processor's tick counter. A reading takes a few nanoseconds. It is monotonic if the
/// machine's counter is invariant; values of different machines cannot be compared.
#[inline]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// The same moment, read on all clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The tick counter.
    pub tsc: u64,
    /// Microseconds since 1970.
    pub unix_us: i64,
    /// Microseconds of the steady clock.
    pub steady_us: i64,
}

/// How often the clocks are read until one reading is not interrupted.
const READINGS_MAX: usize = 8;
/// The duration of an uninterrupted reading, in ticks.
const READING_TICKS_MAX: u64 = 3000;

/// Reads all clocks at one moment, and reads them again if the thread was interrupted.
pub fn reading() -> ClockReading {
    let read = || {
        let before = tsc();
        let (unix_us, steady_us) = (unix_micros(), steady_micros());
        let ticks = tsc().wrapping_sub(before);
        (ticks, ClockReading { tsc: before.wrapping_add(ticks / 2), unix_us, steady_us })
    };
    let mut best = read();
    for _ in 1..READINGS_MAX {
        if best.0 <= READING_TICKS_MAX {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// Ticks in a microsecond, measured once against the system's monotonic clock over 10 ms.
pub fn tsc_per_micro() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (start, first) = (Instant::now(), reading());
        while start.elapsed() < Duration::from_millis(10) {
            std::hint::spin_loop();
        }
        let last = reading();
        let micros = (last.steady_us - first.steady_us).max(1) as f64;
        (last.tsc.wrapping_sub(first.tsc) as f64 / micros).max(f64::MIN_POSITIVE)
    })
}

/// A civil date and time of day in the machine's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Year, as in 2026.
    pub year: i32,
    /// Month, 0 for January.
    pub month: usize,
    /// Day of the month, from 1.
    pub day: i32,
    /// Hour, 0 to 23.
    pub hour: i32,
    /// Minute, 0 to 59.
    pub minute: i32,
    /// Second, 0 to 60.
    pub second: i32,
}

/// Converts seconds since 1970 to the machine's time zone (localtime_r(3)).
pub fn local_time(unix_seconds: i64) -> LocalTime {
    // SAFETY: all fields of `tm` may be zero; `localtime_r` writes only there.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        libc::localtime_r(&unix_seconds, &mut tm);
        tm
    };
    LocalTime {
        year: tm.tm_year + 1900,
        month: tm.tm_mon.clamp(0, 11) as usize,
        day: tm.tm_mday,
        hour: tm.tm_hour,
        minute: tm.tm_min,
        second: tm.tm_sec,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_the_monotonic_clock() {
        let rate = tsc_per_micro();
        let (start, tsc_start) = (Instant::now(), tsc());
        while start.elapsed() < Duration::from_millis(20) {}
        let micros = (tsc() - tsc_start) as f64 / rate;
        let truth = start.elapsed().as_nanos() as f64 / 1e3;
        assert!((micros / truth - 1.0).abs() < 0.2, "{micros} for {truth}");
    }

    #[test]
    fn a_date_has_its_parts() {
        let time = local_time(1_700_000_000);
        assert_eq!((time.year, time.month), (2023, 10));
    }
}

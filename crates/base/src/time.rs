//! Time as a value.
//!
//! The event loop reads the clock once per turn and passes the value down. So everything in one
//! turn happens at the same time, tests choose the time, and commands need no system call. Nothing
//! here reads a clock.

/// The time at which a turn began.
///
/// The wall clock (`unix_*`) may jump in either direction and is for times that clients see:
/// expiry, LASTSAVE, stream IDs. The monotonic clock never goes back and measures durations. The
/// difference of values of different clocks means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Milliseconds since 1970-01-01 00:00 UTC; always `unix_us` rounded down.
    pub unix_ms: i64,
    /// Microseconds since 1970-01-01 00:00 UTC.
    pub unix_us: i64,
    /// Microseconds since a moment before the server started.
    pub mono_us: u64,
}

impl Now {
    /// Both clocks in microseconds; the milliseconds follow.
    pub const fn from_micros(unix_us: i64, mono_us: u64) -> Now {
        Now { unix_ms: unix_us.div_euclid(1_000), unix_us, mono_us }
    }

    /// Whole seconds since 1970-01-01 00:00 UTC, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.unix_us.div_euclid(1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarser_units_round_down() {
        let now = Now::from_micros(1_234_567_899, 5);
        assert_eq!((now.unix_ms, now.unix_seconds()), (1_234_567, 1_234));
        let before_1970 = Now::from_micros(-1, 9);
        assert_eq!((before_1970.unix_ms, before_1970.unix_seconds()), (-1, -1));
    }
}

//! The shared state of MONITOR lines of all threads: their time, and the bytes of lines that wait.

use std::io::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A time in a line: seconds and microseconds since 1970 in so many digits.
pub(crate) const TIME_BYTES: usize = "1700000000.000000".len();
/// Where it begins.
pub(crate) const TIME_AT: usize = 1;

#[derive(Debug, Default)]
pub(crate) struct ShownRequests {
    /// The time of the last line, in microseconds since 1970. Written while no other line is.
    last_us: AtomicI64,
    /// Bytes of all lines.
    pub(crate) bytes: AtomicU64,
    /// Bytes of the longest line that may be waiting.
    pub(crate) longest: AtomicU64,
    /// The bytes that waited for all watching clients when they were last added up, and the bytes
    /// of all lines then.
    pub(crate) waiting: AtomicU64,
    pub(crate) waiting_at: AtomicU64,
}

impl ShownRequests {
    /// Writes the time into a line: `unix_us`, unless the last line's is later.
    pub(crate) fn stamp(&self, line: &mut [u8], unix_us: i64) {
        let unix_us = unix_us.max(self.last_us.load(Ordering::Relaxed));
        self.last_us.store(unix_us, Ordering::Relaxed);
        if let Some(mut place) = line.get_mut(TIME_AT..TIME_AT + TIME_BYTES) {
            let (seconds, micros) = (unix_us.div_euclid(1_000_000), unix_us.rem_euclid(1_000_000));
            let written = write!(place, "{seconds:010}.{micros:06}");
            debug_assert!(written.is_ok(), "there are ten digits of seconds until 2286");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_lines_never_fall() {
        let shown = ShownRequests::default();
        let stamped = |unix_us| {
            let mut line = b"+0000000000.000000 rest".to_vec();
            shown.stamp(&mut line, unix_us);
            String::from_utf8_lossy(&line).into_owned()
        };
        assert_eq!(stamped(1_700_000_000_000_042), "+1700000000.000042 rest");
        assert_eq!(stamped(1_600_000_000_000_000), "+1700000000.000042 rest");
        assert_eq!(stamped(1_700_000_001_500_000), "+1700000001.500000 rest");
    }
}

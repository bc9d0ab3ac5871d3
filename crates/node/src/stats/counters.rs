//! The counters of one thread, which only that thread writes and all threads read.
//!
//! Counters are never reset: CONFIG RESETSTAT stores their values, and [`totals`](super::totals)
//! reports the difference.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use store::KeyspaceCounters;

use super::hot_keys::HotKeys;
use super::latency_histogram::{Latencies, LatencyHistogram};

/// Error codes that are counted separately, at most. If there are more, which only scripts can
/// cause, none is shown until the next reset.
pub const ERROR_CODES_MAX: usize = 128;
/// The longest error code, in bytes. Scripts can make longer words.
const ERROR_CODE_BYTES_MAX: usize = 30;

/// A counter with one writer: adding is a load and a store, not a locked instruction.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds. Only the owning thread may do this.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// The value, which may be a moment old.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Replaces the value. Only the owning thread may do this.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Declares a group of counters and the struct of their plain values.
macro_rules! counts {
    (
        $(#[$of:meta])* $counts:ident,
        $(#[$as:meta])* $sums:ident,
        { $($(#[$doc:meta])* $name:ident),+ $(,)? }
    ) => {
        $(#[$of])*
        #[derive(Debug, Default)]
        pub struct $counts { $($(#[$doc])* pub $name: Count),+ }

        $(#[$as])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $sums { $($(#[$doc])* pub $name: u64),+ }

        impl $counts {
            /// The values, which may be a moment old.
            pub fn read(&self) -> $sums {
                $sums { $($name: self.$name.value()),+ }
            }
        }

        impl $sums {
            /// Adds the values of another thread.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }

            /// The difference to `base`.
            pub fn since(&self, base: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(base.$name)),+ }
            }
        }
    };
}

counts!(
    /// Counters of one command on one thread.
    CommandCount,
    /// Values of one command's counters.
    CommandSums,
    {
        /// Calls.
        calls,
        /// TSC cycles in calls.
        tsc,
        /// Requests refused before execution.
        rejected,
        /// Calls with an error reply.
        failed,
    }
);

counts!(
    /// Counters of one thread that do not belong to a command.
    Counts,
    /// Values of these counters, of one thread or of all.
    Sums,
    {
        /// Reads from sockets.
        reads,
        /// Writes to sockets.
        writes,
        /// Bytes read.
        in_bytes,
        /// Bytes written.
        out_bytes,
        /// Clients that the thread owns now; not a sum over time.
        clients,
        /// Turns of the event loop.
        turns,
        /// TSC cycles in turns, without the time waiting for events.
        busy_tsc,
        /// Reads of existing keys.
        hits,
        /// Reads of missing keys.
        misses,
        /// Expired keys.
        expired,
        /// Expired fields of hashes.
        expired_fields,
        /// Evicted keys.
        evicted,
        /// Clients closed because of `maxmemory-clients`.
        evicted_clients,
        /// Changes of the keyspace.
        changes,
        /// Error replies.
        errors,
        /// Failed authentications.
        auth_failures,
        /// Denials of commands.
        denied_commands,
        /// Denials of keys.
        denied_keys,
        /// Denials of channels.
        denied_channels,
        /// Clients closed because of `client-output-buffer-limit`.
        output_limit_closes,
        /// Clients closed because of `client-query-buffer-limit`.
        query_limit_closes,
        /// Expiry walks that used up their time.
        expiry_timeouts,
        /// Microseconds in expiry walks.
        expiry_us,
    }
);

/// Counters and latencies of one command on one thread.
#[derive(Debug, Default)]
pub struct CommandCounters {
    count: CommandCount,
    /// Latencies of calls; allocated by the first call.
    latencies: OnceLock<Box<LatencyHistogram>>,
}

impl std::ops::Deref for CommandCounters {
    type Target = CommandCount;

    #[inline]
    fn deref(&self) -> &CommandCount {
        &self.count
    }
}

impl CommandCounters {
    /// Records the latency of a call, in TSC cycles.
    #[inline]
    pub(crate) fn record_latency(&self, tsc: u64) {
        self.latencies.get_or_init(Box::default).record(tsc);
    }

    /// The recorded latencies; `None` if there are none.
    pub(crate) fn latencies(&self) -> Option<Latencies> {
        self.latencies.get().map(|histogram| histogram.read())
    }
}

/// All counters of one thread.
#[derive(Debug)]
pub struct ThreadCounters {
    /// One for each entry of the table.
    pub commands: Box<[CommandCounters]>,
    counts: Counts,
    /// The keys of sampled requests.
    pub hot_keys: Mutex<HotKeys>,
    /// Error replies by code. Errors are rare enough for an uncontended lock.
    codes: Mutex<BTreeMap<Box<str>, u64>>,
    /// Number of codes; written under the lock of `codes`.
    code_count: Count,
}

/// Makes the counters without a command accessible as fields.
impl std::ops::Deref for ThreadCounters {
    type Target = Counts;

    #[inline]
    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl ThreadCounters {
    /// Creates counters for a table of so many entries.
    pub fn new(entries: usize) -> Self {
        Self {
            commands: (0..entries).map(|_| CommandCounters::default()).collect(),
            counts: Counts::default(),
            hot_keys: Mutex::default(),
            codes: Mutex::default(),
            code_count: Count::default(),
        }
    }

    /// Adds the counters of a turn.
    #[inline]
    pub fn add(&self, counters: KeyspaceCounters) {
        let counts = [
            (&self.hits, counters.hits),
            (&self.misses, counters.misses),
            (&self.expired, counters.expired),
            (&self.expired_fields, counters.expired_fields),
            (&self.evicted, counters.evicted),
            (&self.changes, counters.changes),
        ];
        for (count, n) in counts {
            if n != 0 {
                count.add(n);
            }
        }
    }

    /// Counts an error reply by the code at the start of its text.
    pub fn note_error(&self, text: impl AsRef<[u8]>) {
        self.errors.add(1);
        let code = String::from_utf8_lossy(code_of(text.as_ref()));
        let mut codes = self.codes.lock();
        if let Some(count) = codes.get_mut(&*code) {
            *count += 1;
        } else if codes.len() <= ERROR_CODES_MAX {
            // One code above the limit marks the excess.
            codes.insert(code.into(), 1);
            self.code_count.set(codes.len() as u64);
        }
    }

    /// Number of error codes.
    pub(crate) fn code_count(&self) -> u64 {
        self.code_count.value()
    }

    /// Error replies by code.
    pub fn error_codes(&self) -> BTreeMap<Box<str>, u64> {
        self.codes.lock().clone()
    }

    /// Removes the error codes. Any thread may do this, because they have a lock.
    pub(crate) fn forget_error_codes(&self) {
        let mut codes = self.codes.lock();
        codes.clear();
        self.code_count.set(0);
    }
}

/// The code at the start of an error's text. As in Redis, the code is `ERR` if the first word is
/// too long or the only one.
fn code_of(text: &[u8]) -> &[u8] {
    let end = text.iter().take(ERROR_CODE_BYTES_MAX + 1).position(|byte| *byte == b' ');
    end.map_or(b"ERR", |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_code_up_to_a_limit() {
        let stats = ThreadCounters::new(0);
        stats.note_error("ERR syntax error");
        stats.note_error("ERR no such key");
        stats.note_error("WRONGTYPE Operation");
        let codes: Vec<_> = stats.error_codes().into_iter().collect();
        assert_eq!(codes, [("ERR".into(), 2), ("WRONGTYPE".into(), 1)]);
        for number in 0..200 {
            stats.note_error(format!("E{number} made up"));
        }
        assert_eq!(stats.error_codes().len(), ERROR_CODES_MAX + 1);
        assert_eq!(stats.code_count(), ERROR_CODES_MAX as u64 + 1);
        assert_eq!(stats.errors.value(), 203);
    }

    #[test]
    fn a_long_error_code_counts_as_err() {
        let stats = ThreadCounters::new(0);
        for nth in 0..3 {
            stats.note_error(format!("x{}{nth} made up", "\u{20ac}".repeat(1 << 20)));
        }
        assert_eq!(stats.error_codes().into_iter().collect::<Vec<_>>(), [("ERR".into(), 3)]);
    }

    #[test]
    fn a_code_ends_at_the_first_space() {
        let long = "x".repeat(ERROR_CODE_BYTES_MAX);
        let cases: [(&[u8], &[u8]); 7] = [
            (b"WRONGTYPE Operation", b"WRONGTYPE"),
            (b" x", b""),
            (b"", b"ERR"),
            (b"word", b"ERR"),
            (long.as_bytes(), b"ERR"),
            (&[long.as_bytes(), b" x"].concat(), long.as_bytes()),
            (&[long.as_bytes(), b"x x"].concat(), b"ERR"),
        ];
        for (text, code) in cases {
            assert_eq!(code_of(text), code, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn sums_are_added_and_subtracted() {
        let stats = ThreadCounters::new(1);
        stats.commands[0].calls.add(3);
        stats.hits.add(5);
        let base = stats.read();
        stats.add(KeyspaceCounters { hits: 2, ..KeyspaceCounters::default() });
        let mut sums = stats.read().since(&base);
        assert_eq!(sums, Sums { hits: 2, ..Sums::default() });
        sums.add(&base);
        assert_eq!(sums.hits, 7);
        assert_eq!(stats.commands[0].read().calls, 3);
    }
}

//! Counts of one thread, written by it alone and read by all.
//!
//! Nobody sets a count back: CONFIG RESETSTAT remembers what the counts were, and
//! [`totals`](super::totals) reports the difference.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use store::KeyspaceCounters;

use super::hot_keys::HotKeys;
use super::latency_histogram::{Latencies, LatencyHistogram};

/// The most error codes that are counted one by one. When there are more, which only scripts can
/// cause, none is until the next reset.
pub const ERROR_CODES_MAX: usize = 128;
/// The longest error code, in bytes: scripts can make a word as long as a string.
const ERROR_CODE_BYTES_MAX: usize = 30;

/// A count with one writer: adding is a load and a store, no locked instruction.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds; only the thread that owns the count does.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// The value, possibly a moment old.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Replaces the value; only the thread that owns the count does.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Declares the counts of a group and the plain numbers that are read from them.
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
            /// The values, each possibly a moment old.
            pub fn read(&self) -> $sums {
                $sums { $($name: self.$name.value()),+ }
            }
        }

        impl $sums {
            /// Adds those of another thread.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }

            /// What was counted since the values were `base`.
            pub fn since(&self, base: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(base.$name)),+ }
            }
        }
    };
}

counts!(
    /// Counts of one command on one thread.
    CommandCount,
    /// What was counted of one command.
    CommandSums,
    {
        /// Runs.
        calls,
        /// Time in runs, in TSC cycles.
        tsc,
        /// Refused before they ran.
        rejected,
        /// Runs that replied an error.
        failed,
    }
);

counts!(
    /// Counts of one thread that are not of a command.
    Counts,
    /// What a thread, or all of them, counted.
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
        /// Clients owned: no sum over time, but how many there are.
        clients,
        /// Turns of the event loop.
        turns,
        /// TSC cycles in turns, that is not spent waiting for events.
        busy_tsc,
        /// Reads of keys that were there.
        hits,
        /// Reads of keys that were not.
        misses,
        /// Keys expired.
        expired,
        /// Fields of hashes expired.
        expired_fields,
        /// Keys evicted.
        evicted,
        /// Clients closed because all of them took more memory than they may.
        evicted_clients,
        /// Changes of the keyspace.
        changes,
        /// Error replies.
        errors,
        /// Authentications that failed.
        auth_failures,
        /// Commands denied to users.
        denied_commands,
        /// Keys denied to users.
        denied_keys,
        /// Channels denied to users.
        denied_channels,
        /// Clients closed because their unsent replies were over the limit.
        output_limit_closes,
        /// Clients closed because their unfinished requests were over the limit.
        query_limit_closes,
        /// Walks over expired keys that ended because their time was over.
        expiry_timeouts,
        /// Microseconds in walks over expired keys.
        expiry_us,
    }
);

/// What one thread counts of one command.
#[derive(Debug, Default)]
pub struct CommandCounters {
    count: CommandCount,
    /// How long its runs take; there is none before the first.
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
    /// Counts how long a run took, in TSC cycles.
    #[inline]
    pub(crate) fn record_latency(&self, tsc: u64) {
        self.latencies.get_or_init(Box::default).record(tsc);
    }

    /// How long runs took; none: no run was recorded.
    pub(crate) fn latencies(&self) -> Option<Latencies> {
        self.latencies.get().map(|histogram| histogram.read())
    }
}

/// All counts of one thread.
#[derive(Debug)]
pub struct ThreadCounters {
    /// One for each entry of the table.
    pub commands: Box<[CommandCounters]>,
    counts: Counts,
    /// The keys of a sample of its requests.
    pub hot_keys: Mutex<HotKeys>,
    /// Error replies by their code. Errors are rare enough for a lock that nobody else wants.
    codes: Mutex<BTreeMap<Box<str>, u64>>,
    /// How many these are; written under their lock.
    code_count: Count,
}

/// The counts that are not of a command are at hand as if they were the thread's own fields.
impl std::ops::Deref for ThreadCounters {
    type Target = Counts;

    #[inline]
    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl ThreadCounters {
    /// Zeros for a table of so many entries.
    pub fn new(entries: usize) -> Self {
        Self {
            commands: (0..entries).map(|_| CommandCounters::default()).collect(),
            counts: Counts::default(),
            hot_keys: Mutex::default(),
            codes: Mutex::default(),
            code_count: Count::default(),
        }
    }

    /// Adds what was counted in a turn.
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

    /// Counts an error reply, by the code that its text begins with.
    pub fn note_error(&self, text: impl AsRef<[u8]>) {
        self.errors.add(1);
        let code = String::from_utf8_lossy(code_of(text.as_ref()));
        let mut codes = self.codes.lock();
        if let Some(count) = codes.get_mut(&*code) {
            *count += 1;
        } else if codes.len() <= ERROR_CODES_MAX {
            // One too many says that there are too many.
            codes.insert(code.into(), 1);
            self.code_count.set(codes.len() as u64);
        }
    }

    /// Error codes that were counted.
    pub(crate) fn code_count(&self) -> u64 {
        self.code_count.value()
    }

    /// Error replies by code.
    pub fn error_codes(&self) -> BTreeMap<Box<str>, u64> {
        self.codes.lock().clone()
    }

    /// Forgets the error codes: they have a lock, so that others than the owner may.
    pub(crate) fn forget_error_codes(&self) {
        let mut codes = self.codes.lock();
        codes.clear();
        self.code_count.set(0);
    }
}

/// The code at the beginning of an error's text. As in Redis, one that begins with a long word or
/// is a word has none.
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
    fn nothing_is_kept_of_a_long_error_code() {
        let stats = ThreadCounters::new(0);
        for nth in 0..3 {
            stats.note_error(format!("x{}{nth} made up", "\u{20ac}".repeat(1 << 20)));
        }
        assert_eq!(stats.error_codes().into_iter().collect::<Vec<_>>(), [("ERR".into(), 3)]);
    }

    #[test]
    fn a_code_is_what_comes_before_the_first_space() {
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
    fn sums_add_up_and_count_from_a_base() {
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

//! Counts of one thread, written by it alone and read by all.

use std::sync::atomic::{AtomicU64, Ordering};

use store::Tally;

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

/// Counts of one command on one thread.
#[derive(Debug, Default)]
pub struct CommandCount {
    /// Runs.
    pub calls: Count,
    /// Time in runs, in ticks of the processor.
    pub ticks: Count,
    /// Refused before they ran.
    pub rejected: Count,
    /// Runs that replied an error.
    pub failed: Count,
}

/// All counts of one thread.
#[derive(Debug)]
pub struct ThreadStats {
    /// One for each entry of the table.
    pub commands: Box<[CommandCount]>,
    /// Requests executed.
    pub processed: Count,
    /// Reads from sockets.
    pub reads: Count,
    /// Writes to sockets.
    pub writes: Count,
    /// Bytes read.
    pub in_bytes: Count,
    /// Bytes written.
    pub out_bytes: Count,
    /// Clients owned.
    pub clients: Count,
    /// Ticks not spent waiting.
    pub busy_ticks: Count,
    /// Reads of keys that were there.
    pub hits: Count,
    /// Reads of keys that were not.
    pub misses: Count,
    /// Keys expired.
    pub expired: Count,
    /// Changes of the keyspace.
    pub changes: Count,
    /// Error replies.
    pub errors: Count,
    /// Authentications that failed.
    pub auth_failures: Count,
}

impl ThreadStats {
    /// Zeros for a table of so many entries.
    pub fn new(entries: usize) -> Self {
        Self {
            commands: (0..entries).map(|_| CommandCount::default()).collect(),
            processed: Count::default(),
            reads: Count::default(),
            writes: Count::default(),
            in_bytes: Count::default(),
            out_bytes: Count::default(),
            clients: Count::default(),
            busy_ticks: Count::default(),
            hits: Count::default(),
            misses: Count::default(),
            expired: Count::default(),
            changes: Count::default(),
            errors: Count::default(),
            auth_failures: Count::default(),
        }
    }

    /// Adds what a turn counted.
    pub fn add(&self, tally: Tally) {
        let counts = [
            (&self.hits, tally.hits),
            (&self.misses, tally.misses),
            (&self.expired, tally.expired),
            (&self.changes, tally.changes),
        ];
        for (count, n) in counts {
            if n != 0 {
                count.add(n);
            }
        }
    }
}

//! How many keys each database has in all shards together: what DBSIZE replies.
//!
//! Every thread counts what it adds and removes, on its own cache lines, so that counting takes no
//! lock and moves nothing between cores; a database's keys are the sum over all threads. The count
//! of one thread means nothing alone, and may be negative. While others write, the sum adds counts
//! that were right at different moments.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The least number of counts of a thread: fewer would share a cache line with another thread's.
const COUNTS_MIN: usize = 16;

/// The counts of all threads that ever ran, by their numbers.
#[derive(Debug)]
pub struct KeyCounts {
    databases: usize,
    threads: RwLock<Vec<Arc<[AtomicI64]>>>,
}

/// The counts as one thread sees them.
#[derive(Debug)]
pub struct KeyCount {
    own: Arc<[AtomicI64]>,
    all: Arc<KeyCounts>,
}

impl KeyCounts {
    /// The counts of this many empty databases.
    pub fn new(databases: usize) -> Self {
        Self { databases, threads: RwLock::default() }
    }

    /// The counts for thread number `thread`, which goes on where one of that number had ended.
    pub fn of_thread(self: &Arc<Self>, thread: usize) -> KeyCount {
        let mut threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
        while threads.len() <= thread {
            let databases = self.databases.max(COUNTS_MIN);
            threads.push((0..databases).map(|_| AtomicI64::new(0)).collect());
        }
        KeyCount { own: Arc::clone(&threads[thread]), all: Arc::clone(self) }
    }

    fn total(&self, database: usize) -> i64 {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        let counts = threads.iter().filter_map(|counts| counts.get(database));
        counts.map(|count| count.load(Ordering::Acquire)).sum()
    }
}

impl KeyCount {
    /// Counts `keys` keys that this thread has added to a database, or removed when negative.
    #[inline]
    pub(crate) fn add(&self, database: u32, keys: i64) {
        if let Some(count) = self.own.get(database as usize) {
            // No other thread writes to it.
            count.store(count.load(Ordering::Relaxed) + keys, Ordering::Release);
        }
    }

    /// Keys in a database, expired ones that are not removed yet included.
    pub fn total(&self, database: usize) -> usize {
        // A key that was added on one thread and removed on another may be seen removed only.
        usize::try_from(self.all.total(database)).unwrap_or(0)
    }

    /// Exchanges the counts of two databases whose contents were exchanged. No other thread may
    /// write meanwhile.
    pub fn swap(&self, a: usize, b: usize) {
        let more = self.all.total(b) - self.all.total(a);
        // `databases` is at most 2^31.
        self.add(a as u32, more);
        self.add(b as u32, -more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_what_all_threads_left_in_it() {
        let all = Arc::new(KeyCounts::new(2));
        let (first, second) = (all.of_thread(0), all.of_thread(2));
        first.add(1, 5);
        second.add(1, -3);
        second.add(0, 7);
        assert_eq!([first.total(0), second.total(1), first.total(2)], [7, 2, 0]);
        first.swap(0, 1);
        assert_eq!([first.total(0), second.total(1)], [2, 7]);
        drop(second);
        all.of_thread(2).add(0, -2);
        assert_eq!(first.total(0), 0);
    }
}

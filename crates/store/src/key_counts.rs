//! How many keys each database has in all shards together: what DBSIZE replies.
//!
//! Every thread counts what it adds and removes, on its own cache lines, so that counting takes no
//! lock and moves nothing between cores; a database's keys are the sum over all threads. The count
//! of one thread means nothing alone, and may be negative.
//!
//! What several keys or commands change together is seen together: a thread that has locked shards
//! for them [keeps](KeyCount::keep) its differences to itself and [publishes](KeyCount::publish)
//! their sum before it unlocks them. So RENAME never shows one key too few. The sum still adds
//! counts that were right at different moments: it may be that of no moment while several threads
//! add and remove keys.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The least number of counts of a thread: fewer would share a cache line with another thread's.
const COUNTS_MIN: usize = 16;

/// Counts of generations: databases beyond these share them.
const GENERATIONS: usize = 16;

/// The counts of all threads that ever ran, by their numbers.
#[derive(Debug)]
pub struct KeyCounts {
    databases: usize,
    /// See [`KeyCount::generation`].
    generations: Generations,
    threads: RwLock<Vec<Arc<[AtomicI64]>>>,
}

/// How often databases were swapped, emptied or loaded as a whole.
#[derive(Debug, Default)]
struct Generations {
    /// Any of them.
    any: AtomicU64,
    /// All at once.
    all: AtomicU64,
    /// One alone, by its number.
    one: [AtomicU64; GENERATIONS],
}

/// The counts as one thread sees them.
#[derive(Debug)]
pub struct KeyCount {
    own: Arc<[AtomicI64]>,
    all: Arc<KeyCounts>,
    /// Differences are kept until they are published.
    keeps: Cell<bool>,
    /// The database that has changed last, and its difference.
    kept: Cell<(u32, i64)>,
    /// Those of other databases.
    kept_of_others: RefCell<BTreeMap<u32, i64>>,
}

impl KeyCounts {
    /// The counts of this many empty databases.
    pub fn new(databases: usize) -> Self {
        Self { databases, generations: Generations::default(), threads: RwLock::default() }
    }

    /// The counts for thread number `thread`, which goes on where one of that number had ended.
    pub fn of_thread(self: &Arc<Self>, thread: usize) -> KeyCount {
        let mut threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
        while threads.len() <= thread {
            let databases = self.databases.max(COUNTS_MIN);
            threads.push((0..databases).map(|_| AtomicI64::new(0)).collect());
        }
        KeyCount {
            own: Arc::clone(&threads[thread]),
            all: Arc::clone(self),
            keeps: Cell::default(),
            kept: Cell::default(),
            kept_of_others: RefCell::default(),
        }
    }

    /// Adds up all databases, by number. What a command on several keys has added so far, and has
    /// not published, is not in it.
    pub fn totals(&self) -> Vec<i64> {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        let mut totals = vec![0; self.databases];
        for counts in threads.iter() {
            for (total, count) in totals.iter_mut().zip(counts.iter()) {
                *total += count.load(Ordering::Acquire);
            }
        }
        totals
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
    pub fn add(&self, database: u32, keys: i64) {
        match self.keeps.get() {
            false => self.store(database, keys),
            true => self.note(database, keys),
        }
    }

    fn note(&self, database: u32, keys: i64) {
        let (last, sum) = self.kept.get();
        if last == database {
            self.kept.set((database, sum + keys));
            return;
        }
        let mut others = self.kept_of_others.borrow_mut();
        *others.entry(last).or_default() += sum;
        let sum = others.remove(&database).unwrap_or(0);
        self.kept.set((database, sum + keys));
    }

    #[inline]
    fn store(&self, database: u32, keys: i64) {
        if let Some(count) = self.own.get(database as usize) {
            // No other thread writes to it.
            count.store(count.load(Ordering::Relaxed) + keys, Ordering::Release);
        }
    }

    /// Keeps differences from here on, while the shards of all that changes are locked.
    #[inline]
    pub fn keep(&self) {
        self.keeps.set(true);
    }

    /// Ends that: the differences are seen by others. The shards are still locked.
    #[inline]
    pub fn publish(&self) {
        self.keeps.set(false);
        let (database, keys) = self.kept.take();
        if keys != 0 {
            self.store(database, keys);
        }
        if !self.kept_of_others.borrow().is_empty() {
            for (database, keys) in self.kept_of_others.take() {
                self.store(database, keys);
            }
        }
    }

    /// What this thread keeps of a database.
    fn kept(&self, database: usize) -> i64 {
        let (last, sum) = self.kept.get();
        let of_others = || self.kept_of_others.borrow().get(&(database as u32)).copied();
        if last as usize == database { sum } else { of_others().unwrap_or(0) }
    }

    /// Keys in a database, expired ones that are not removed yet included.
    pub fn total(&self, database: usize) -> usize {
        keys_of(self.exact_total(database))
    }

    fn exact_total(&self, database: usize) -> i64 {
        self.all.total(database) + self.kept(database)
    }

    /// The same for all databases, by number.
    pub fn totals(&self) -> impl Iterator<Item = usize> {
        let totals = self.all.totals().into_iter().enumerate();
        totals.map(|(database, total)| keys_of(total + self.kept(database)))
    }

    /// How often a database was, or without a number any of them were, swapped, emptied or loaded
    /// as a whole: who visits one shard after another has seen one state if this is the same in
    /// all.
    pub fn generation(&self, database: Option<usize>) -> u64 {
        let Generations { any, all, one } = &self.all.generations;
        let load = |count: &AtomicU64| count.load(Ordering::Acquire);
        database.map_or_else(|| load(any), |number| load(all) + load(&one[number % GENERATIONS]))
    }

    /// A database is, or all are, swapped, emptied or loaded as a whole. Shards of which that is to
    /// be seen are still locked.
    pub fn begin_generation(&self, database: Option<usize>) {
        let Generations { any, all, one } = &self.all.generations;
        let own = database.map_or(all, |number| &one[number % GENERATIONS]);
        for count in [any, own] {
            count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Exchanges the counts of two databases whose contents were exchanged. No other thread may
    /// write meanwhile.
    pub fn swap(&self, a: usize, b: usize) {
        let more = self.exact_total(b) - self.exact_total(a);
        // `databases` is at most 2^31.
        self.add(a as u32, more);
        self.add(b as u32, -more);
    }
}

/// A key that was added on one thread and removed on another may be seen removed only.
fn keys_of(total: i64) -> usize {
    usize::try_from(total).unwrap_or(0)
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
        assert_eq!(first.totals().collect::<Vec<_>>(), [7, 2]);
        first.swap(0, 1);
        assert_eq!([first.total(0), second.total(1)], [2, 7]);
        drop(second);
        all.of_thread(2).add(0, -2);
        assert_eq!(first.total(0), 0);
    }

    #[test]
    fn generations_of_databases_are_their_own() {
        let all = Arc::new(KeyCounts::new(GENERATIONS));
        let count = all.of_thread(0);
        let generations = || [Some(0), Some(3), None].map(|database| count.generation(database));
        assert_eq!(generations(), [0, 0, 0]);
        count.begin_generation(Some(3));
        assert_eq!(generations(), [0, 1, 1]);
        count.begin_generation(None);
        assert_eq!(generations(), [1, 2, 2]);
    }

    #[test]
    fn what_changes_together_is_seen_together() {
        let all = Arc::new(KeyCounts::new(3));
        let (writer, reader) = (all.of_thread(0), all.of_thread(1));
        let totals = |count: &KeyCount| [0, 1, 2].map(|database| count.total(database));
        writer.add(0, 5);
        writer.add(2, 2);
        writer.keep();
        for (database, keys) in [(0, -1), (1, 4), (0, 2), (2, -1), (1, -1), (2, 1)] {
            writer.add(database, keys);
            assert_eq!(totals(&reader), [5, 0, 2]);
        }
        assert_eq!(totals(&writer), [6, 3, 2]);
        assert_eq!(writer.totals().collect::<Vec<_>>(), [6, 3, 2]);
        writer.swap(0, 1);
        assert_eq!((totals(&writer), totals(&reader)), ([3, 6, 2], [5, 0, 2]));
        writer.publish();
        assert_eq!((totals(&writer), totals(&reader)), ([3, 6, 2], [3, 6, 2]));
        writer.add(1, 1);
        assert_eq!(totals(&reader), [3, 7, 2]);
        writer.publish();
        assert_eq!(totals(&reader), [3, 7, 2], "there is nothing to publish twice");
    }
}

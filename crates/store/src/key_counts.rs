//! The number of keys of each database in all shards together: the reply of DBSIZE.
//!
//! Every thread counts the keys that it adds and removes, on its own cache lines, so counting takes
//! no lock and moves no data between cores. The keys of a database are the sum over all threads;
//! the count of one thread alone means nothing and may be negative.
//!
//! A thread that has locked shards for several keys or commands [keeps](KeyCount::keep) its
//! differences and [publishes](KeyCount::publish) their sum before it unlocks the shards, so
//! readers see the changes at once. RENAME, for example, never shows one key too few. But the sum
//! adds counts of different moments: while several threads add and remove keys, it may match no
//! single moment.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The least number of counts of a thread: with fewer, two threads would share a cache line.
const COUNTS_MIN: usize = 16;

/// Counts of generations: databases with higher numbers share them.
const GENERATIONS: usize = 16;

/// The counts of all threads that ever ran, by thread number.
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
    /// One database, by its number.
    one: [AtomicU64; GENERATIONS],
}

/// The counts as one thread sees them.
#[derive(Debug)]
pub struct KeyCount {
    own: Arc<[AtomicI64]>,
    all: Arc<KeyCounts>,
    /// Whether differences are kept until they are published.
    keeps: Cell<bool>,
    /// The database that changed last, and its difference.
    kept: Cell<(u32, i64)>,
    /// The differences of other databases.
    kept_of_others: RefCell<BTreeMap<u32, i64>>,
}

impl KeyCounts {
    /// The counts of this many empty databases.
    pub fn new(databases: usize) -> Self {
        Self { databases, generations: Generations::default(), threads: RwLock::default() }
    }

    /// The counts for thread number `thread`, which continue those of an earlier thread with this
    /// number.
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

    /// The sum over all threads for each database, by number. Differences that a running command
    /// keeps are not included.
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

    /// Keeps differences until [`publish`](Self::publish). The shards of all changes are locked.
    #[inline]
    pub fn keep(&self) {
        self.keeps.set(true);
    }

    /// Makes the kept differences visible to other threads. The shards are still locked.
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

    /// The difference that this thread keeps for a database.
    fn kept(&self, database: usize) -> i64 {
        let (last, sum) = self.kept.get();
        let of_others = || self.kept_of_others.borrow().get(&(database as u32)).copied();
        if last as usize == database { sum } else { of_others().unwrap_or(0) }
    }

    /// Keys in a database, including expired ones that are not removed yet.
    pub fn total(&self, database: usize) -> usize {
        keys_of(self.exact_total(database))
    }

    fn exact_total(&self, database: usize) -> i64 {
        self.all.total(database) + self.kept(database)
    }

    /// The keys of all databases, by number.
    pub fn totals(&self) -> impl Iterator<Item = usize> {
        let totals = self.all.totals().into_iter().enumerate();
        totals.map(|(database, total)| keys_of(total + self.kept(database)))
    }

    /// How often a database (or any, without a number) was swapped, emptied or loaded as a whole. A
    /// reader that visits one shard after another has seen one state if this count is the same in
    /// all shards.
    pub fn generation(&self, database: Option<usize>) -> u64 {
        let Generations { any, all, one } = &self.all.generations;
        let load = |count: &AtomicU64| count.load(Ordering::Acquire);
        database.map_or_else(|| load(any), |number| load(all) + load(&one[number % GENERATIONS]))
    }

    /// Counts that a database, or all, is swapped, emptied or loaded as a whole. The shards
    /// concerned are still locked.
    pub fn begin_generation(&self, database: Option<usize>) {
        let Generations { any, all, one } = &self.all.generations;
        let own = database.map_or(all, |number| &one[number % GENERATIONS]);
        for count in [any, own] {
            count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Exchanges the counts of two databases whose contents were exchanged. No other thread may
    /// write at the same time.
    pub fn swap(&self, a: usize, b: usize) {
        let more = self.exact_total(b) - self.exact_total(a);
        // `databases` is at most 2^31.
        self.add(a as u32, more);
        self.add(b as u32, -more);
    }
}

/// If one thread adds a key and another removes it, a reader may see only the removal.
fn keys_of(total: i64) -> usize {
    usize::try_from(total).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_counts_the_keys_of_all_threads() {
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
    fn each_database_has_its_own_generation() {
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
    fn changes_of_one_command_become_visible_together() {
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

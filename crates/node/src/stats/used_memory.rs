//! Memory in use: the bytes that all threads have allocated minus those they have freed.
//!
//! Each thread knows its own part exactly, and may need the sum before each command. A shared total
//! gets the parts of the threads with a delay:
//!
//! ```text
//!             read before a command                     add the unshared part
//!   total  ---------------------------->  thread  -------------------------------------> total
//!             + own unshared part          every 64 KB; with `maxmemory` also at the end of a
//!                                          turn, and every 1/4096 of the limit
//! ```
//!
//! Invariants: the error of the total is less than the unshared parts of all threads, which is 0.1%
//! of the limit with four threads. If all other threads sleep, a thread knows the exact sum. A
//! thread can announce memory before it allocates it, so that threads that check the limit at the
//! same time see each other. INFO adds up the parts as they were at the end of each thread's last
//! turn.
//!
//! Uncounted memory ([`base::uncounted`]) is in use but not in the total, so that no key is evicted
//! for it. A thread excludes it from its part immediately, and shares its amount at the end of a
//! turn. Of the memory of messages, the part that exceeds a limit counts. Memory that only a
//! snapshot still needs never counts, as in Redis, where the child process has it: an evicted key
//! is room for others at once.
//!
//! Locks are taken only when threads start and end, and for INFO.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base::uncounted;
use parking_lot::{Mutex, RwLock};
use store::lazy_free::FreeBacklog;

/// Bytes that a thread may leave unshared.
const UNSHARED_BYTES_MAX: i64 = 64 * 1024;
/// One of this many parts of the limit may stay unshared.
const UNSHARED_PER_LIMIT: i64 = 4096;

/// Uncounted bytes of all threads at most, or one of [`UNCOUNTED_PER_LIMIT`] parts of the limit if
/// that is more. Further bytes count, so that memory is bounded even if clients do not read their
/// messages.
const UNCOUNTED_BYTES_MAX: i64 = 128 << 20;
const UNCOUNTED_PER_LIMIT: i64 = 4;

/// The memory in use by all threads.
#[derive(Debug, Default)]
pub struct UsedMemory {
    total: OwnLine<AtomicI64>,
    /// Bytes that will be freed in the background.
    pub backlog: FreeBacklog,
    /// Bytes in the total that threads are about to allocate.
    announced: OwnLine<AtomicI64>,
    /// Bytes that wait to be written to the log. They are in use but not in the total, so that no
    /// key is evicted for them.
    logged: OwnLine<AtomicI64>,
    /// Uncounted bytes of messages of all threads, at the end of their last turns.
    uncounted: OwnLine<AtomicI64>,
    /// The same for bytes that only a snapshot still needs.
    snapshot: OwnLine<AtomicI64>,
    /// Bytes that threads allocated after they were counted as ended; negative, because they free.
    rest: AtomicI64,
    /// The highest value of the total.
    peak: AtomicI64,
    /// The part of the thread that frees memory in the background.
    pub background: ThreadMemory,
    threads: RwLock<Vec<Arc<ThreadMemory>>>,
    others: Mutex<Others>,
}

/// The parts of threads without a number.
#[derive(Debug, Default)]
struct Others {
    all: Vec<Arc<ThreadMemory>>,
    /// The parts whose threads have ended.
    free: Vec<Arc<ThreadMemory>>,
}

/// A value with cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

/// The part of one thread, and of ended threads with the same number. Only its thread writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadMemory {
    /// Bytes of ended threads with this number.
    ended: AtomicI64,
    /// Bytes at the end of the last turn.
    latest: AtomicI64,
    /// Uncounted bytes of messages.
    messages: ExcludedPart,
    /// Uncounted bytes that only a snapshot still needs.
    snapshot: ExcludedPart,
    /// Bytes that are in the total.
    shared: AtomicI64,
    /// Bytes that the thread is about to allocate.
    announced: AtomicI64,
}

/// A thread's part in bytes that do not count.
#[derive(Debug, Default)]
struct ExcludedPart {
    /// Bytes of ended threads with this number.
    ended: AtomicI64,
    /// Bytes at the end of the last turn, which are in the sum over all threads.
    shared: AtomicI64,
}

impl ExcludedPart {
    #[inline]
    fn now(&self, thread_bytes: i64) -> i64 {
        self.ended.load(Ordering::Relaxed) + thread_bytes
    }

    fn share(&self, thread_bytes: i64, sum: &AtomicI64) {
        let (now, before) = (self.now(thread_bytes), self.shared.load(Ordering::Relaxed));
        if now != before {
            self.shared.store(now, Ordering::Relaxed);
            sum.fetch_add(now - before, Ordering::Relaxed);
        }
    }

    fn end(&self, thread_bytes: i64) {
        self.ended.fetch_add(thread_bytes, Ordering::Relaxed);
    }
}

impl ThreadMemory {
    fn add_shared(&self, bytes: i64, total: &AtomicI64) -> i64 {
        self.shared.store(self.shared.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        total.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Bytes that are not in the total yet; `thread_bytes` is the allocator's count for this
    /// thread.
    #[inline]
    fn unshared(&self, thread_bytes: i64) -> i64 {
        let value = |count: &AtomicI64| count.load(Ordering::Relaxed);
        let counted = value(&self.ended) + thread_bytes - self.uncounted_now();
        counted + value(&self.announced) - value(&self.shared)
    }

    #[inline]
    fn uncounted_now(&self) -> i64 {
        self.messages.now(uncounted::thread_bytes())
            + self.snapshot.now(uncounted::thread_snapshot_bytes())
    }
}

impl UsedMemory {
    /// The part of thread number `thread`, which continues that of an ended thread.
    pub fn of_thread(&self, thread: usize) -> Arc<ThreadMemory> {
        let mut threads = self.threads.write();
        while threads.len() <= thread {
            threads.push(Arc::default());
        }
        Arc::clone(&threads[thread])
    }

    /// The part of a thread without a number, which serves no clients, until it
    /// [ends](Self::end_other).
    pub fn of_other(&self) -> Arc<ThreadMemory> {
        let mut others = self.others.lock();
        others.free.pop().unwrap_or_else(|| {
            let own = Arc::<ThreadMemory>::default();
            others.all.push(Arc::clone(&own));
            own
        })
    }

    /// Releases the part of a thread without a number, which ends.
    pub fn end_other(&self, own: Arc<ThreadMemory>, thread_bytes: i64) {
        self.end_thread(&own, thread_bytes);
        self.others.lock().free.push(own);
    }

    /// Adds bytes that ended threads allocated after they were counted; negative for freed bytes.
    pub fn add_rest(&self, bytes: i64) {
        if bytes != 0 {
            self.rest.fetch_add(bytes, Ordering::Relaxed);
            self.total.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The shared total.
    pub fn total(&self) -> i64 {
        self.total.0.load(Ordering::Relaxed)
    }

    /// Adds this thread's unshared bytes to the total if they exceed what `limit` permits; 0 means
    /// no limit. Returns the bytes in use as far as this thread knows.
    #[inline]
    pub fn look(&self, own: &ThreadMemory, thread_bytes: i64, limit: i64) -> i64 {
        let unshared = own.unshared(thread_bytes);
        let unshared_max = match limit {
            0 => UNSHARED_BYTES_MAX,
            limit => (limit / UNSHARED_PER_LIMIT).min(UNSHARED_BYTES_MAX),
        };
        if unshared.abs() > unshared_max {
            return self.share(own, unshared);
        }
        self.total.0.load(Ordering::Relaxed) + unshared
    }

    #[inline(never)]
    fn share(&self, own: &ThreadMemory, bytes: i64) -> i64 {
        let total = own.add_shared(bytes, &self.total.0);
        self.note_peak(total);
        total
    }

    fn note_peak(&self, total: i64) {
        let uncounted = [&self.uncounted, &self.snapshot].map(|sum| sum.0.load(Ordering::Relaxed));
        let total = total + uncounted.iter().sum::<i64>();
        if total > self.peak.load(Ordering::Relaxed) {
            let taken = total - self.announced.0.load(Ordering::Relaxed);
            self.peak.fetch_max(taken, Ordering::Relaxed);
        }
    }

    /// Shares the uncounted bytes of this thread.
    fn share_uncounted(&self, own: &ThreadMemory) {
        own.messages.share(uncounted::thread_bytes(), &self.uncounted.0);
        own.snapshot.share(uncounted::thread_snapshot_bytes(), &self.snapshot.0);
    }

    /// Bytes that only a snapshot still needs.
    pub fn kept_for_snapshot(&self) -> u64 {
        u64::try_from(self.snapshot.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Uncounted bytes of messages of all threads.
    pub fn uncounted(&self) -> u64 {
        u64::try_from(self.uncounted.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The uncounted bytes of messages that count anyway because they exceed their maximum under
    /// this limit.
    pub fn beyond_uncounted(&self, limit: i64) -> i64 {
        let uncounted_max = (limit / UNCOUNTED_PER_LIMIT).max(UNCOUNTED_BYTES_MAX);
        (self.uncounted.0.load(Ordering::Relaxed) - uncounted_max).max(0)
    }

    /// Shares this thread's bytes at the end of a turn or a task. Returns the bytes in use.
    pub fn end_turn(&self, own: &ThreadMemory, thread_bytes: i64, limit: i64) -> i64 {
        own.latest.store(own.ended.load(Ordering::Relaxed) + thread_bytes, Ordering::Relaxed);
        self.share_uncounted(own);
        let unshared = own.unshared(thread_bytes);
        if limit != 0 && unshared != 0 {
            return self.share(own, unshared);
        }
        self.look(own, thread_bytes, limit)
    }

    /// Counts this thread as ended. Another one may start with its number.
    pub fn end_thread(&self, own: &ThreadMemory, thread_bytes: i64) {
        self.share(own, own.unshared(thread_bytes));
        self.share_uncounted(own);
        own.latest.store(own.ended.load(Ordering::Relaxed) + thread_bytes, Ordering::Relaxed);
        own.ended.fetch_add(thread_bytes, Ordering::Relaxed);
        own.messages.end(uncounted::thread_bytes());
        own.snapshot.end(uncounted::thread_snapshot_bytes());
    }

    /// Announces that this thread is about to allocate so many bytes; 0 after it has allocated
    /// them. Returns the bytes in use, including announced bytes.
    pub fn announce(&self, own: &ThreadMemory, thread_bytes: i64, bytes: i64) -> i64 {
        let more = bytes - own.announced.load(Ordering::Relaxed);
        own.announced.store(bytes, Ordering::Relaxed);
        // This order keeps announced bytes out of the peak.
        if more > 0 {
            self.announced.0.fetch_add(more, Ordering::Relaxed);
        }
        let used = self.share(own, own.unshared(thread_bytes));
        if more < 0 {
            self.announced.0.fetch_add(more, Ordering::Relaxed);
            self.note_peak(used);
        }
        used
    }

    /// The bytes in use at the end of each thread's last turn. `thread_bytes` is the present count
    /// of the calling thread.
    pub fn sum(&self, own: &ThreadMemory, thread_bytes: i64) -> u64 {
        own.latest.store(own.ended.load(Ordering::Relaxed) + thread_bytes, Ordering::Relaxed);
        let threads = self.threads.read();
        let latest = |thread: &ThreadMemory| thread.latest.load(Ordering::Relaxed);
        let sum: i64 = threads.iter().map(|thread| latest(thread)).sum();
        drop(threads);
        let others: i64 = self.others.lock().all.iter().map(|thread| latest(thread)).sum();
        let rest = self.rest.load(Ordering::Relaxed);
        let sum = sum + others + latest(&self.background) + rest;
        self.peak.fetch_max(sum, Ordering::Relaxed);
        u64::try_from(sum).unwrap_or(0)
    }

    /// The highest use of memory that any thread has observed.
    pub fn peak(&self) -> u64 {
        u64::try_from(self.peak.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Adds bytes that wait to be written to the log; negative for bytes that were written, which
    /// must already be freed.
    pub fn keep_for_log(&self, bytes: i64) {
        self.logged.0.fetch_add(bytes, Ordering::Relaxed);
        self.total.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that wait to be written to the log.
    pub fn kept_for_log(&self) -> u64 {
        u64::try_from(self.logged.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes that will be freed in the background.
    #[inline]
    pub fn doomed(&self) -> i64 {
        self.backlog.bytes()
    }
}

#[cfg(test)]
mod tests {
    use base::uncounted::{SnapshotBytes, Uncounted};

    use super::*;

    const LIMIT: i64 = 100 << 20;

    #[test]
    fn a_thread_shares_its_bytes_above_the_permitted_amount() {
        let used = UsedMemory::default();
        let (first, second) = (used.of_thread(0), used.of_thread(3));
        for (limit, kept) in [(0, 64 << 10), (LIMIT, LIMIT / 4096), (1, 0)] {
            let (used, other) = (UsedMemory::default(), ThreadMemory::default());
            let own = used.of_thread(0);
            assert_eq!(used.look(&own, kept, limit), kept);
            assert_eq!(used.look(&other, 0, limit), 0, "{limit}");
            assert_eq!(used.look(&own, kept + 1, limit), kept + 1);
            assert_eq!(used.look(&other, 0, limit), kept + 1, "{limit}");
        }
        assert_eq!(used.end_turn(&first, 1000, LIMIT), 1000);
        assert_eq!(used.end_turn(&second, -300, LIMIT), 700);
        assert_eq!((used.sum(&first, 1000), used.sum(&second, -400)), (700, 600));
        assert_eq!((used.look(&first, 1000, LIMIT), used.peak()), (700, 1000));
    }

    #[test]
    fn a_thread_continues_the_part_of_an_ended_one_with_its_number() {
        let used = UsedMemory::default();
        let own = used.of_thread(1);
        used.end_turn(&own, 5000, 0);
        used.end_thread(&own, 4000);
        let next = used.of_thread(1);
        assert_eq!(used.sum(&next, 10), 4010);
        assert_eq!(used.look(&next, 10, 0), 4010);
        used.end_thread(&next, -3000);
        assert_eq!(used.sum(&used.of_thread(1), 0), 1000);
    }

    #[test]
    fn threads_without_a_number_have_parts_while_they_run() {
        let used = UsedMemory::default();
        let (first, second, own) = (used.of_other(), used.of_other(), used.of_thread(0));
        used.end_turn(&first, 500, LIMIT);
        used.end_turn(&second, -200, LIMIT);
        assert_eq!((used.sum(&own, 1000), used.total()), (1300, 300));
        used.end_other(first, 400);
        used.end_other(second, -300);
        let next = used.of_other();
        used.end_turn(&next, 50, LIMIT);
        assert_eq!((used.sum(&own, 1000), used.total()), (1150, 150));
        used.end_turn(&used.of_other(), 7, LIMIT);
        assert_eq!((used.sum(&own, 1000), used.others.lock().all.len()), (1157, 2));
    }

    #[test]
    fn bytes_freed_after_the_end_of_a_thread_are_subtracted_once() {
        let used = UsedMemory::default();
        let (own, other) = (used.of_thread(0), used.of_other());
        used.end_turn(&own, 1000, LIMIT);
        used.end_other(other, 500);
        used.add_rest(-300);
        assert_eq!((used.sum(&own, 1000), used.look(&own, 1000, LIMIT)), (1200, 1200));
        // Another thread, which takes over the part.
        used.end_other(used.of_other(), 50);
        used.add_rest(-50);
        assert_eq!((used.sum(&own, 1000), used.total()), (1200, 1200));
    }

    #[test]
    fn bytes_of_the_log_are_in_use_but_not_in_the_total() {
        let used = UsedMemory::default();
        let (own, log) = (used.of_thread(0), used.of_other());
        used.end_turn(&own, 1000, LIMIT);
        used.keep_for_log(700);
        assert_eq!((used.look(&own, 1000, LIMIT), used.sum(&own, 1000)), (300, 1000));
        assert_eq!(used.kept_for_log(), 700);
        used.end_turn(&log, -700, LIMIT);
        used.keep_for_log(-700);
        assert_eq!((used.look(&own, 1000, LIMIT), used.sum(&own, 1000)), (300, 300));
    }

    #[test]
    fn uncounted_bytes_are_in_use_but_not_in_the_total() {
        let used = UsedMemory::default();
        let own = used.of_thread(0);
        let value = Uncounted::new(700);
        assert_eq!((used.look(&own, 1000, LIMIT), used.end_turn(&own, 1000, LIMIT)), (300, 300));
        assert_eq!((used.sum(&own, 1000), used.uncounted()), (1000, 700));
        // Another thread frees the value, and ends.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = used.of_thread(1);
                drop(value);
                assert_eq!(used.look(&other, -700, LIMIT), 300);
                used.end_thread(&other, -700);
            });
        });
        assert_eq!((used.sum(&own, 1000), used.total(), used.uncounted()), (300, 300, 0));
        // The next thread with its number starts.
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(used.look(&used.of_thread(1), 0, LIMIT), 300));
        });
    }

    #[test]
    fn uncounted_bytes_above_the_maximum_count() {
        let used = UsedMemory::default();
        let own = used.of_thread(0);
        let _value = Uncounted::new(200 << 20);
        used.end_turn(&own, 200 << 20, LIMIT);
        assert_eq!((used.total(), used.beyond_uncounted(LIMIT)), (0, 72 << 20));
        let beyond = [10, 512, 600, 800, 1000].map(|mb| used.beyond_uncounted(mb << 20) >> 20);
        assert_eq!(beyond, [72, 72, 50, 0, 0]);
    }

    #[test]
    fn bytes_that_only_a_snapshot_needs_never_count() {
        let used = UsedMemory::default();
        let own = used.of_thread(0);
        let kept = SnapshotBytes::new(200 << 20);
        assert_eq!(used.look(&own, 200 << 20, LIMIT), 0);
        used.end_turn(&own, 200 << 20, LIMIT);
        assert_eq!((used.total(), used.beyond_uncounted(LIMIT), used.uncounted()), (0, 0, 0));
        assert_eq!((used.kept_for_snapshot(), used.sum(&own, 200 << 20)), (200 << 20, 200 << 20));
        assert_eq!(used.peak(), 200 << 20);
        // The thread of the snapshot frees them.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = used.of_other();
                drop(kept);
                used.end_other(other, -200 << 20);
            });
        });
        assert_eq!((used.total(), used.kept_for_snapshot(), used.sum(&own, 200 << 20)), (0, 0, 0));
    }

    #[test]
    fn announced_bytes_count_once() {
        let used = UsedMemory::default();
        let (own, other) = (used.of_thread(0), used.of_thread(1));
        assert_eq!(used.announce(&own, 100, 1 << 20), 100 + (1 << 20));
        assert_eq!(used.look(&other, 0, LIMIT), 100 + (1 << 20));
        assert_eq!(used.look(&own, 200, LIMIT), 200 + (1 << 20));
        // It has allocated less than announced.
        assert_eq!(used.announce(&own, 600, 0), 600);
        assert_eq!(used.end_turn(&own, 600, LIMIT), 600);
        assert_eq!((used.look(&other, 0, LIMIT), used.peak()), (600, 600));
    }
}

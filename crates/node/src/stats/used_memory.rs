//! How much memory is in use: what all threads have taken from the allocator less what they have
//! given back.
//!
//! Each thread knows its own part exactly, and may have to act on the sum before each command. So
//! there is one shared total, to which a thread adds its part only now and then:
//!
//! ```text
//!              read before a command                   adds what it has not shared yet
//!   total  ------------------------------>  thread  ------------------------------------> total
//!             + what it has not shared       every 64 KB; with `maxmemory` also when its turn
//!                                            ends, and every 1/4096 of the limit
//! ```
//!
//! Invariants: the total is wrong by less than what the threads may keep to themselves, 0.1% of the
//! limit with four threads; where all threads but one sleep, that one knows the sum exactly. What a
//! thread is about to take can be shared ahead, so that several that look at the same moment see
//! each other. INFO adds up what the threads were at the end of their last turns.
//!
//! What threads leave out ([`base::uncounted`]) is in use and not in the total, so that nothing is
//! evicted for it. A thread leaves it out of its own part in the moment in which it takes the
//! memory; how much it is all in all is shared when turns end, and what is more than may be left
//! out counts then.
//!
//! It does not know why memory is in use, and takes no lock but when threads begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base::uncounted;
use parking_lot::{Mutex, RwLock};

/// What a thread may keep to itself, in bytes.
const UNSHARED_BYTES_MAX: i64 = 64 * 1024;
/// The part of the limit that it may keep to itself.
const UNSHARED_PER_LIMIT: i64 = 4096;

/// What is left out in all, at most, in bytes, or the part of the limit if that is more. The rest
/// counts: memory has a bound, whatever clients are told and do not read.
const UNCOUNTED_BYTES_MAX: i64 = 128 << 20;
const UNCOUNTED_PER_LIMIT: i64 = 4;

/// The memory in use by all threads.
#[derive(Debug, Default)]
pub struct UsedMemory {
    total: OwnLine<AtomicI64>,
    /// Bytes that wait to be freed in the background.
    doomed: OwnLine<AtomicI64>,
    /// Bytes in the total that threads are about to take.
    announced: OwnLine<AtomicI64>,
    /// Bytes that the log keeps until they are written. They are in use and not in the total, so
    /// that nothing is evicted for them.
    logged: OwnLine<AtomicI64>,
    /// Bytes that threads have left out of the total, at the end of their last turns.
    uncounted: OwnLine<AtomicI64>,
    /// What threads have taken while they ended, after they were counted: negative, as they free.
    rest: AtomicI64,
    /// The most that the total has been.
    peak: AtomicI64,
    /// The part of the thread that frees in the background.
    pub background: ThreadMemory,
    threads: RwLock<Vec<Arc<ThreadMemory>>>,
    others: Mutex<Others>,
}

/// The parts of threads that have no number.
#[derive(Debug, Default)]
struct Others {
    all: Vec<Arc<ThreadMemory>>,
    /// Those whose threads have ended.
    free: Vec<Arc<ThreadMemory>>,
}

/// Alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLine<T>(T);

/// The part of one thread, which alone writes it, and of those of its number before it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadMemory {
    /// Of threads of this number that have ended.
    ended: AtomicI64,
    /// The same of what they have left out.
    ended_uncounted: AtomicI64,
    /// At the end of the last turn.
    latest: AtomicI64,
    /// What it had left out then.
    uncounted: AtomicI64,
    /// What is in the total.
    shared: AtomicI64,
    /// What it is about to take.
    announced: AtomicI64,
}

impl ThreadMemory {
    fn add_shared(&self, bytes: i64, total: &AtomicI64) -> i64 {
        self.shared.store(self.shared.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        total.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// What is not in the total yet, when the allocator has `thread_bytes` for this thread.
    #[inline]
    fn unshared(&self, thread_bytes: i64) -> i64 {
        let value = |count: &AtomicI64| count.load(Ordering::Relaxed);
        let counted = value(&self.ended) + thread_bytes - self.uncounted_now();
        counted + value(&self.announced) - value(&self.shared)
    }

    #[inline]
    fn uncounted_now(&self) -> i64 {
        self.ended_uncounted.load(Ordering::Relaxed) + uncounted::thread_bytes()
    }
}

impl UsedMemory {
    /// The part of thread number `thread`, which goes on where one of that number had ended.
    pub fn of_thread(&self, thread: usize) -> Arc<ThreadMemory> {
        let mut threads = self.threads.write();
        while threads.len() <= thread {
            threads.push(Arc::default());
        }
        Arc::clone(&threads[thread])
    }

    /// The part of a thread that serves no clients and has no number, until it
    /// [ends](Self::end_other).
    pub fn of_other(&self) -> Arc<ThreadMemory> {
        let mut others = self.others.lock();
        others.free.pop().unwrap_or_else(|| {
            let own = Arc::<ThreadMemory>::default();
            others.all.push(Arc::clone(&own));
            own
        })
    }

    /// Such a thread ends.
    pub fn end_other(&self, own: Arc<ThreadMemory>, thread_bytes: i64) {
        self.end_thread(&own, thread_bytes);
        self.others.lock().free.push(own);
    }

    /// Threads that are gone have taken so many bytes after they were counted; negative for those
    /// that they have given back.
    pub fn add_rest(&self, bytes: i64) {
        if bytes != 0 {
            self.rest.fetch_add(bytes, Ordering::Relaxed);
            self.total.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// What the threads have shared.
    pub fn total(&self) -> i64 {
        self.total.0.load(Ordering::Relaxed)
    }

    /// Adds what this thread has not shared to the total, if it is more than it may keep to itself
    /// under this limit; 0 means no limit. Returns the bytes in use as far as this thread knows.
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
        let total = total + self.uncounted.0.load(Ordering::Relaxed);
        if total > self.peak.load(Ordering::Relaxed) {
            let taken = total - self.announced.0.load(Ordering::Relaxed);
            self.peak.fetch_max(taken, Ordering::Relaxed);
        }
    }

    /// Lets everyone see what this thread leaves out.
    fn share_uncounted(&self, own: &ThreadMemory) {
        let (now, before) = (own.uncounted_now(), own.uncounted.load(Ordering::Relaxed));
        if now != before {
            own.uncounted.store(now, Ordering::Relaxed);
            self.uncounted.0.fetch_add(now - before, Ordering::Relaxed);
        }
    }

    /// Bytes that are in use and not in the total.
    pub fn uncounted(&self) -> u64 {
        u64::try_from(self.uncounted.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// How many of these count nevertheless under this limit.
    pub fn beyond_uncounted(&self, limit: i64) -> i64 {
        let uncounted_max = (limit / UNCOUNTED_PER_LIMIT).max(UNCOUNTED_BYTES_MAX);
        (self.uncounted.0.load(Ordering::Relaxed) - uncounted_max).max(0)
    }

    /// A turn ends, or a thread has done something: everyone may see it. Returns the bytes in use.
    pub fn end_turn(&self, own: &ThreadMemory, thread_bytes: i64, limit: i64) -> i64 {
        own.latest.store(own.ended.load(Ordering::Relaxed) + thread_bytes, Ordering::Relaxed);
        self.share_uncounted(own);
        let unshared = own.unshared(thread_bytes);
        if limit != 0 && unshared != 0 {
            return self.share(own, unshared);
        }
        self.look(own, thread_bytes, limit)
    }

    /// This thread ends: another of its number may begin.
    pub fn end_thread(&self, own: &ThreadMemory, thread_bytes: i64) {
        self.share(own, own.unshared(thread_bytes));
        self.share_uncounted(own);
        own.latest.store(own.ended.load(Ordering::Relaxed) + thread_bytes, Ordering::Relaxed);
        own.ended.fetch_add(thread_bytes, Ordering::Relaxed);
        own.ended_uncounted.fetch_add(uncounted::thread_bytes(), Ordering::Relaxed);
    }

    /// Lets everyone see that this thread is about to take so many bytes more; none when it has
    /// taken them. Returns the bytes in use with these.
    pub fn announce(&self, own: &ThreadMemory, thread_bytes: i64, bytes: i64) -> i64 {
        let more = bytes - own.announced.load(Ordering::Relaxed);
        own.announced.store(bytes, Ordering::Relaxed);
        // Nobody takes what is announced for what is taken.
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

    /// The bytes in use, as the threads were at the end of their last turns. The thread that asks
    /// has `thread_bytes` now.
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

    /// The most that has been in use, as far as anyone has seen.
    pub fn peak(&self) -> u64 {
        u64::try_from(self.peak.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The log keeps so many bytes more that wait to be written; fewer when negative. Those that
    /// are free by now have been given back before.
    pub fn keep_for_log(&self, bytes: i64) {
        self.logged.0.fetch_add(bytes, Ordering::Relaxed);
        self.total.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that the log keeps until they are written.
    pub fn kept_for_log(&self) -> u64 {
        u64::try_from(self.logged.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// So many bytes more wait to be freed in the background; fewer when negative. Those that are
    /// free by now have been given back before.
    pub fn doom(&self, bytes: i64) {
        self.doomed.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that wait to be freed in the background.
    #[inline]
    pub fn doomed(&self) -> i64 {
        self.doomed.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use base::uncounted::Uncounted;

    use super::*;

    const LIMIT: i64 = 100 << 20;

    #[test]
    fn a_thread_shares_what_is_more_than_it_may_keep() {
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
    fn threads_of_a_number_go_on_where_others_ended() {
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
    fn others_have_parts_of_their_own_while_they_run() {
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
    fn what_threads_free_after_they_were_counted_is_taken_off_once() {
        let used = UsedMemory::default();
        let (own, other) = (used.of_thread(0), used.of_other());
        used.end_turn(&own, 1000, LIMIT);
        used.end_other(other, 500);
        used.add_rest(-300);
        assert_eq!((used.sum(&own, 1000), used.look(&own, 1000, LIMIT)), (1200, 1200));
        // Another one, which takes over the part.
        used.end_other(used.of_other(), 50);
        used.add_rest(-50);
        assert_eq!((used.sum(&own, 1000), used.total()), (1200, 1200));
    }

    #[test]
    fn what_the_log_keeps_is_in_use_and_not_in_the_total() {
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
    fn what_threads_leave_out_is_in_use_and_not_in_the_total() {
        let used = UsedMemory::default();
        let own = used.of_thread(0);
        let value = Uncounted::new(700);
        assert_eq!((used.look(&own, 1000, LIMIT), used.end_turn(&own, 1000, LIMIT)), (300, 300));
        assert_eq!((used.sum(&own, 1000), used.uncounted()), (1000, 700));
        // Another one frees it, and ends.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = used.of_thread(1);
                drop(value);
                assert_eq!(used.look(&other, -700, LIMIT), 300);
                used.end_thread(&other, -700);
            });
        });
        assert_eq!((used.sum(&own, 1000), used.total(), used.uncounted()), (300, 300, 0));
        // The next one of its number begins.
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(used.look(&used.of_thread(1), 0, LIMIT), 300));
        });
    }

    #[test]
    fn no_more_is_left_out_than_may_be() {
        let used = UsedMemory::default();
        let own = used.of_thread(0);
        let _value = Uncounted::new(200 << 20);
        used.end_turn(&own, 200 << 20, LIMIT);
        assert_eq!((used.total(), used.beyond_uncounted(LIMIT)), (0, 72 << 20));
        let beyond = [10, 512, 600, 800, 1000].map(|mb| used.beyond_uncounted(mb << 20) >> 20);
        assert_eq!(beyond, [72, 72, 50, 0, 0]);
    }

    #[test]
    fn what_was_announced_counts_once() {
        let used = UsedMemory::default();
        let (own, other) = (used.of_thread(0), used.of_thread(1));
        assert_eq!(used.announce(&own, 100, 1 << 20), 100 + (1 << 20));
        assert_eq!(used.look(&other, 0, LIMIT), 100 + (1 << 20));
        assert_eq!(used.look(&own, 200, LIMIT), 200 + (1 << 20));
        // It has taken less than it said.
        assert_eq!(used.announce(&own, 600, 0), 600);
        assert_eq!(used.end_turn(&own, 600, LIMIT), 600);
        assert_eq!((used.look(&other, 0, LIMIT), used.peak()), (600, 600));
    }
}

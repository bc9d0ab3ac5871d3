//! Threads that wait for the log: its reader sleeps until there is something to do, and client
//! threads have replies that wait until the log is written or synced.
//!
//! ```text
//!   a thread                                          the log reader
//!   append ... end of the turn: look() ---- wakes --> prepare_sleep(), awake()
//!   a reply waits: LogMark::wait(), urge() --- wakes -->
//!              <------- notifies the thread --------- LogMark::advance()
//! ```
//!
//! Invariants, each with a model in `tests/models`:
//! - The reader sees appended units and urgent requests before it sleeps, or it is woken.
//! - A thread that waits for a position is notified when it is reached.
//! - A policy that was configured is in force for everything that is appended later.
//!
//! Why nothing is lost: each side writes its own word, has a sequentially consistent fence, and
//! reads the other's. The two fences have an order, and the side that comes second sees what the
//! other wrote first.

use crossbeam_utils::CachePadded;

use super::shim::{AtomicBool, AtomicU64, Ordering, fence};

/// No position.
const NEVER: u64 = u64::MAX;

/// Parks and wakes the log reader.
pub struct LogSleep {
    /// It sleeps until the log ends here. [`NEVER`]: it is awake.
    wake_at: CachePadded<AtomicU64>,
    /// A thread waits for the reader.
    is_urgent: CachePadded<AtomicBool>,
}

impl Default for LogSleep {
    fn default() -> Self {
        Self {
            wake_at: CachePadded::new(AtomicU64::new(NEVER)),
            is_urgent: CachePadded::new(AtomicBool::new(false)),
        }
    }
}

impl LogSleep {
    /// Announces that the reader is about to sleep until the log ends at `wake_at`, or a thread
    /// waits for the reader. `end` returns the end of the log. Returns false if one of both is so
    /// already.
    #[must_use]
    pub fn prepare_sleep(&self, wake_at: u64, end: impl FnOnce() -> u64) -> bool {
        self.wake_at.store(wake_at.min(NEVER - 1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let sleeps = end() < wake_at && !self.is_urgent.load(Ordering::Relaxed);
        if !sleeps {
            self.awake();
        }
        sleeps
    }

    /// The reader is awake.
    pub fn awake(&self) {
        self.wake_at.store(NEVER, Ordering::Relaxed);
    }

    /// Whether a thread has waited since the last call. The reader sees everything that it had
    /// appended before.
    pub fn take_urgent(&self) -> bool {
        self.is_urgent.load(Ordering::Relaxed) && self.is_urgent.swap(false, Ordering::AcqRel)
    }

    /// A thread has appended, and the log ends at `end` or later. Returns whether the thread must
    /// wake the reader.
    #[must_use]
    pub fn look(&self, end: u64) -> bool {
        fence(Ordering::SeqCst);
        end >= self.wake_at.load(Ordering::Relaxed) && self.wake()
    }

    /// A thread waits for the reader. True: it has to wake it.
    #[must_use]
    pub fn urge(&self) -> bool {
        self.is_urgent.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.wake()
    }

    /// Ends the sleep. Returns true if the reader sleeps and no other thread wakes it.
    fn wake(&self) -> bool {
        self.wake_at.load(Ordering::Relaxed) != NEVER
            && self.wake_at.swap(NEVER, Ordering::Relaxed) != NEVER
    }
}

/// Whether replies wait until the log is synced, not only until it is written. The thread that
/// changes the configuration and the log reader set their parts of it; each takes effect at once.
///
/// The reader reads a position up to which it may release replies first, and then this: a reply to
/// a write after that position waits by the policy of its time.
pub struct SyncPolicy {
    /// `appendfsync always`.
    always: AtomicBool,
    /// `no-appendfsync-on-rewrite`.
    rests_for_rewrites: AtomicBool,
    /// There is a base, without which nothing is durable.
    has_base: AtomicBool,
    is_rewriting: AtomicBool,
}

impl Default for SyncPolicy {
    fn default() -> Self {
        let no = || AtomicBool::new(false);
        Self { always: no(), rests_for_rewrites: no(), has_base: no(), is_rewriting: no() }
    }
}

impl SyncPolicy {
    /// Sets the configured part, before the client that asked for it is answered.
    pub fn configure(&self, always: bool, rests_for_rewrites: bool) {
        self.rests_for_rewrites.store(rests_for_rewrites, Ordering::Relaxed);
        self.always.store(always, Ordering::Relaxed);
    }

    /// Sets the part of the log reader.
    pub fn follow(&self, has_base: bool, is_rewriting: bool) {
        self.is_rewriting.store(is_rewriting, Ordering::Relaxed);
        self.has_base.store(has_base, Ordering::Relaxed);
    }

    /// Whether replies wait until the log is synced.
    #[inline]
    pub fn replies_wait(&self) -> bool {
        self.always.load(Ordering::Relaxed)
            && self.has_base.load(Ordering::Relaxed)
            && !(self.rests_for_rewrites.load(Ordering::Relaxed)
                && self.is_rewriting.load(Ordering::Relaxed))
    }
}

/// How far the log has been processed in some respect, and which threads wait for that.
pub struct LogMark {
    reached: CachePadded<AtomicU64>,
    /// For each thread, the position for which it waits.
    waiting: Box<[CachePadded<AtomicU64>]>,
}

impl LogMark {
    /// The position reached. So many threads may wait.
    pub fn new(threads: usize, reached: u64) -> Self {
        let waiting = (0..threads).map(|_| CachePadded::new(AtomicU64::new(NEVER))).collect();
        Self { reached: CachePadded::new(AtomicU64::new(reached)), waiting }
    }

    /// The position reached.
    #[inline]
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// A thread waits until a position is reached, and is notified then, also of a position for
    /// which it waited before. Returns false if it is already reached.
    #[must_use]
    pub fn wait(&self, thread: usize, position: u64) -> bool {
        let Some(waiting) = self.waiting.get(thread) else { return false };
        // When it is notified of an earlier one, it checks all that it waits for.
        if position < waiting.load(Ordering::Relaxed) {
            waiting.store(position, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.reached() < position
    }

    /// Advances to a position. `notify` notifies a thread.
    pub fn advance(&self, position: u64, mut notify: impl FnMut(usize)) {
        self.reached.store(position, Ordering::Release);
        fence(Ordering::SeqCst);
        for (thread, waiting) in self.waiting.iter().enumerate() {
            if waiting.load(Ordering::Relaxed) <= position {
                waiting.store(NEVER, Ordering::Relaxed);
                notify(thread);
            }
        }
    }
}

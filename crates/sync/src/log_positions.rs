//! The positions of the log: a ring of bytes that several threads append to, and that others read.
//!
//! ```text
//!     released        readable                end
//!        |                |                    |
//!   -----+================+====....===..=====--+------> position, in bytes since the log began
//!        | whole, for     | reserved: whole (=)
//!        | whoever reads  | or being written (.)
//! ```
//!
//! A thread reserves room by one atomic addition, writes its bytes there, and says so. Bytes are
//! *readable* when everything in front of them is written as well. To know that, a reader does not
//! look at bytes: each thread says in a word of its own from where on it has not finished.
//!
//! Invariants, each with a model in `tests/models`:
//! - What is readable is written, and its writer's bytes are visible to who asked.
//! - Reservations neither overlap nor leave gaps. Their order is that in which threads reserved:
//!   two that reserve under the same lock do so in the order in which they held it.
//! - A reservation that its thread did not finish, because the process was killed, can be found
//!   afterwards: all numbers lie in words that may outlive the process.
//!
//! What it deliberately does not do: hold the bytes, wait for room, or wake who reads. A thread
//! asks for [room](LogPositions::has_room) before it takes the lock under which it reserves.

use super::shim::{AtomicU64, Ordering};

/// Words in front of those of the threads: the end, what is released, and room to keep either on a
/// cache line of its own.
const COMMON_WORDS: usize = 16;
const END: usize = 0;
const RELEASED: usize = 8;

/// Words of a thread: from where on it has not finished and how much, on a cache line of its own.
const THREAD_WORDS: usize = 8;
const LENGTH: usize = 1;

/// A thread's first word when it has finished all it reserved.
const FINISHED: u64 = u64::MAX;
/// Set in a thread's first word while it only knows that its reservation is not in front of there.
const AT_OR_BEHIND: u64 = 1 << 63;

/// The positions of one log.
pub struct LogPositions<W> {
    words: W,
    threads: usize,
    capacity: u64,
}

/// A reservation that was not finished when the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Where it begins; if not `is_exact`, it begins there or behind.
    pub position: u64,
    /// Its bytes.
    pub length: u64,
    /// The thread had learned where its reservation begins. If not, it has written none of it, and
    /// may not have made it.
    pub is_exact: bool,
}

impl<W: AsRef<[AtomicU64]>> LogPositions<W> {
    /// How many words so many threads need.
    pub const fn words(threads: usize) -> usize {
        COMMON_WORDS + threads * THREAD_WORDS
    }

    /// A log that begins at a position, for so many threads, in a ring of so many bytes.
    ///
    /// # Panics
    /// If there are too few words.
    pub fn new(words: W, threads: usize, capacity: u64, begin: u64) -> Self {
        let positions = Self::over(words, threads, capacity);
        positions.word(END).store(begin, Ordering::Relaxed);
        positions.word(RELEASED).store(begin, Ordering::Relaxed);
        for thread in 0..threads {
            positions.of_thread(thread).store(FINISHED, Ordering::Relaxed);
        }
        positions
    }

    /// The log that the words are of.
    ///
    /// # Panics
    /// If there are too few words.
    pub fn over(words: W, threads: usize, capacity: u64) -> Self {
        assert!(words.as_ref().len() >= Self::words(threads), "each thread has its words");
        Self { words, threads, capacity }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words.as_ref()[at]
    }

    fn of_thread(&self, thread: usize) -> &AtomicU64 {
        self.word(COMMON_WORDS + thread * THREAD_WORDS)
    }

    /// The position behind all that was reserved.
    #[inline]
    pub fn end(&self) -> u64 {
        self.word(END).load(Ordering::Relaxed)
    }

    /// Whether each thread can reserve so many bytes without reaching what is not released.
    #[inline]
    pub fn has_room(&self, thread_bytes_max: u64) -> bool {
        let needed = self.threads as u64 * thread_bytes_max;
        let released = self.word(RELEASED).load(Ordering::Acquire);
        self.end().saturating_sub(released) + needed <= self.capacity
    }

    /// Reserves bytes for a thread that has found [room](Self::has_room) and finished what it had
    /// reserved before. Returns the position of the first.
    #[inline]
    pub fn reserve(&self, thread: usize, bytes: u64) -> u64 {
        let (from, end) = (self.of_thread(thread), self.word(END));
        self.word(COMMON_WORDS + thread * THREAD_WORDS + LENGTH).store(bytes, Ordering::Relaxed);
        // Who sees the end behind this reservation also sees this word, or a later one.
        from.store(end.load(Ordering::Relaxed) | AT_OR_BEHIND, Ordering::Release);
        let position = end.fetch_add(bytes, Ordering::AcqRel);
        from.store(position, Ordering::Release);
        position
    }

    /// A thread has written the bytes that it reserved.
    #[inline]
    pub fn finish(&self, thread: usize) {
        self.of_thread(thread).store(FINISHED, Ordering::Release);
    }

    /// Everything in front of the returned position is written. It may be less than what was
    /// returned before, which holds all the same.
    pub fn readable_until(&self) -> u64 {
        let end = self.word(END).load(Ordering::Acquire);
        let from = |thread| self.of_thread(thread).load(Ordering::Acquire);
        (0..self.threads)
            .map(from)
            .filter(|from| *from != FINISHED)
            .fold(end, |until, from| until.min(from & !AT_OR_BEHIND))
    }

    /// What is in front of this position is needed by nobody: its room is free.
    pub fn released(&self) -> u64 {
        self.word(RELEASED).load(Ordering::Relaxed)
    }

    /// Nobody needs what is in front of a position any more.
    pub fn release(&self, until: u64) {
        self.word(RELEASED).store(until, Ordering::Release);
    }

    /// What threads had not finished, for a log whose process has ended.
    pub fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        (0..self.threads).filter_map(|thread| {
            let from = self.of_thread(thread).load(Ordering::Relaxed);
            let length = COMMON_WORDS + thread * THREAD_WORDS + LENGTH;
            (from != FINISHED).then(|| Unfinished {
                position: from & !AT_OR_BEHIND,
                length: self.word(length).load(Ordering::Relaxed),
                is_exact: from & AT_OR_BEHIND == 0,
            })
        })
    }
}

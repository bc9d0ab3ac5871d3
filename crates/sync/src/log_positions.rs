//! The positions of the log: a ring of bytes that several threads append to, and that others read.
//!
//! ```text
//!     released        readable                end
//!        |                |                    |
//!   -----+================+====....===..=====--+------> position, in bytes since the log began
//!        | whole, for     | reserved: whole (=)
//!        | whoever reads  | or being written (.)
//!
//!   the word of the end:   position (55 bits) | has overflow (1) | selected database (8)
//! ```
//!
//! The bytes appended at once are a *unit*. A thread reserves room for it by one
//! compare-and-exchange, writes its bytes there, and marks it as finished. Bytes are *readable*
//! when all bytes before them are written as well. To know that, a reader does not look at bytes:
//! each thread says in a word of its own from where on it has not finished.
//!
//! A unit for another database than the selected one begins with the command that selects it. A
//! unit for which the ring has no room is *overflow*: kept elsewhere in memory, with its place
//! among the positions all the same.
//!
//! Invariants, each with a model in `tests/models`:
//! - Readable bytes are written, and visible to the asking thread.
//! - Reservations neither overlap nor leave gaps. Their order is that in which threads reserved:
//!   two that reserve under the same lock do so in the order in which they held it.
//! - A reservation that its thread did not finish, because the process was killed, can be found
//!   afterwards and left out: all numbers lie in words that may outlive the process, and no unit
//!   relies on a database that was selected by a unit which was not finished before.
//! - A thread that reserves after an overflow unit, or sees the end after it, knows of it.
//!
//! This module does not hold the bytes, wait for room, or wake readers. A thread asks for
//! [room](LogPositions::has_room) before it takes the lock under which it reserves.

use super::shim::{AtomicU64, Ordering};

/// Words before those of the threads, each on a cache line of its own: the end, the released
/// position, and the first overflow unit.
const COMMON_WORDS: usize = 24;
const END: usize = 0;
const RELEASED: usize = 8;
const FIRST_OVERFLOW: usize = 16;

/// Words of a thread: from where on it has not finished and how much, on a cache line of its own.
const THREAD_WORDS: usize = 8;
const LENGTH: usize = 1;

/// A thread's first word when it has finished all it reserved.
const FINISHED: u64 = u64::MAX;
/// Set in a thread's first word while it does not know yet whether its reservation begins there.
const UNCONFIRMED: u64 = 1 << 63;

/// In the word of the end.
const DATABASE: u64 = 0xff;
const OVERFLOW: u64 = 1 << 8;
const POSITION_SHIFT: u32 = 9;

/// The latest position at which a log may begin: half of the positions come after it.
pub const POSITION_MAX: u64 = u64::MAX >> (POSITION_SHIFT + 1);

/// The number of no database: which one is selected is not known.
pub const UNKNOWN_DATABASE: u8 = u8::MAX;

/// The positions of one log.
pub struct LogPositions<W> {
    words: W,
    threads: usize,
    capacity: u64,
}

/// How much a thread wants to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The unit's database.
    pub db: u8,
    /// The unit's bytes when that is selected.
    pub bytes: u64,
    /// Bytes of the command that selects it.
    pub select_bytes: u64,
    /// The unit itself selects other databases: after it the selected one is unknown.
    pub selects_others: bool,
}

/// The words with which a thread reserves.
#[derive(Clone, Copy)]
struct Reserving<'a> {
    end: &'a AtomicU64,
    released: &'a AtomicU64,
    first_overflow: &'a AtomicU64,
    /// From where on the thread has not finished, and how much.
    from: &'a AtomicU64,
    length: &'a AtomicU64,
}

/// The unit that a thread has reserved and must write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Where it begins.
    pub position: u64,
    /// It begins with the command that selects its database.
    pub selects: bool,
    /// The word of the end after it, until another thread reserves.
    end: u64,
    db: u8,
}

/// A reservation that was not finished when the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedUnit {
    /// Where it begins.
    pub position: u64,
    /// Its bytes.
    pub length: u64,
    /// The thread knew that it had made the reservation. If not, it has written none of it, and
    /// another thread may have made one there.
    pub is_confirmed: bool,
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
        let end = begin << POSITION_SHIFT | u64::from(UNKNOWN_DATABASE);
        positions.word(END).store(end, Ordering::Relaxed);
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

    #[inline]
    fn reserving(&self, thread: usize) -> Reserving<'_> {
        let words = self.words.as_ref();
        let common = &words[..COMMON_WORDS];
        let own = &words[COMMON_WORDS + thread * THREAD_WORDS..][..=LENGTH];
        let [end, released, first_overflow] = [END, RELEASED, FIRST_OVERFLOW].map(|at| &common[at]);
        Reserving { end, released, first_overflow, from: &own[0], length: &own[LENGTH] }
    }

    /// Bytes of the ring.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The position after all reservations, and whether there is overflow.
    #[inline]
    pub fn end(&self) -> (u64, bool) {
        let end = self.word(END).load(Ordering::Relaxed);
        (end >> POSITION_SHIFT, end & OVERFLOW != 0)
    }

    /// Whether the ring has room for so many bytes.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        let words = &self.words.as_ref()[..COMMON_WORDS];
        let released = words[RELEASED].load(Ordering::Acquire);
        let end = words[END].load(Ordering::Relaxed) >> POSITION_SHIFT;
        end.saturating_sub(released).saturating_add(bytes) <= self.capacity
    }

    /// Reserves a unit for a thread that has finished its former one. Returns `None` if the ring
    /// has no room for it.
    #[inline]
    pub fn reserve(&self, thread: usize, wanted: Wanted) -> Option<Reservation> {
        let words = self.reserving(thread);
        let mut end = words.end.load(Ordering::Relaxed);
        loop {
            let reservation = wanted.behind(end);
            // Released bytes were read, and are not written again.
            let released = words.released.load(Ordering::Acquire);
            // It may precede an end that other threads have moved since: that is found below.
            let wanted_bytes = (reservation.end >> POSITION_SHIFT).saturating_sub(released);
            if wanted_bytes > self.capacity {
                // Another may have made the attempt before fail.
                words.from.store(FINISHED, Ordering::Release);
                return None;
            }
            words.announce(&reservation);
            match words.advance(end, reservation) {
                Ok(reserved) => return Some(reserved),
                Err(found) => end = found,
            }
        }
    }

    /// Reserves an overflow unit. Callers exclude one another, and the thread that removes units
    /// from there.
    pub fn reserve_overflow(&self, thread: usize, wanted: Wanted) -> Reservation {
        let words = self.reserving(thread);
        let mut end = words.end.load(Ordering::Relaxed);
        loop {
            let mut reservation = wanted.behind(end);
            words.announce(&reservation);
            if end & OVERFLOW == 0 {
                // It counts from the moment when the end says that there are some.
                words.first_overflow.store(reservation.position, Ordering::Relaxed);
            }
            reservation.end |= OVERFLOW;
            match words.advance(end, reservation) {
                Ok(reserved) => return reserved,
                Err(found) => end = found,
            }
        }
    }

    /// A thread has written its unit.
    #[inline]
    pub fn finish(&self, thread: usize, reservation: Reservation) {
        self.finish_word(thread);
        if reservation.selects {
            // From here on the database selected after it is certain. Threads that have reserved
            // since have selected their own.
            let selected = reservation.end & !DATABASE | u64::from(reservation.db);
            let (order, end) = (Ordering::AcqRel, reservation.end);
            let _ = self.word(END).compare_exchange(end, selected, order, Ordering::Relaxed);
        }
    }

    fn finish_word(&self, thread: usize) {
        self.of_thread(thread).store(FINISHED, Ordering::Release);
    }

    /// The selected database becomes unknown: the next unit selects its own. No thread reserves at
    /// the same time.
    pub fn forget_database(&self) {
        self.word(END).fetch_or(DATABASE, Ordering::AcqRel);
    }

    /// Everything before the returned position is written. It may be less than an earlier result,
    /// which stays valid.
    pub fn readable_until(&self) -> u64 {
        let end = self.word(END).load(Ordering::Acquire) >> POSITION_SHIFT;
        let from = |thread| self.of_thread(thread).load(Ordering::Acquire);
        (0..self.threads)
            .map(from)
            .filter(|from| *from != FINISHED)
            .fold(end, |until, from| until.min(from & !UNCONFIRMED))
    }

    /// Positions before this one are no longer needed: their room is free.
    pub fn released(&self) -> u64 {
        self.word(RELEASED).load(Ordering::Relaxed)
    }

    /// Releases everything before a position.
    pub fn release(&self, until: u64) {
        self.word(RELEASED).store(until, Ordering::Release);
    }

    /// Sets the first overflow unit. Callers exclude threads that add one.
    pub fn set_first_overflow(&self, position: u64) {
        self.word(FIRST_OVERFLOW).store(position, Ordering::Release);
    }

    /// There is no overflow left. Callers exclude threads that add one.
    pub fn end_overflow(&self) {
        let word = self.word(END);
        let mut end = word.load(Ordering::Relaxed);
        while end & OVERFLOW != 0 {
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            match word.compare_exchange(end, end & !OVERFLOW, order.0, order.1) {
                Ok(_) => return,
                Err(found) => end = found,
            }
        }
    }

    /// The first overflow unit, if there is one.
    pub fn first_overflow(&self) -> Option<u64> {
        let end = self.word(END).load(Ordering::Acquire);
        (end & OVERFLOW != 0).then(|| self.word(FIRST_OVERFLOW).load(Ordering::Relaxed))
    }

    /// The units that threads had not finished, for a log whose process has ended.
    pub fn unfinished(&self) -> impl Iterator<Item = UnfinishedUnit> {
        (0..self.threads).filter_map(|thread| {
            let from = self.of_thread(thread).load(Ordering::Relaxed);
            let length = COMMON_WORDS + thread * THREAD_WORDS + LENGTH;
            (from != FINISHED).then(|| UnfinishedUnit {
                position: from & !UNCONFIRMED,
                length: self.word(length).load(Ordering::Relaxed),
                is_confirmed: from & UNCONFIRMED == 0,
            })
        })
    }
}

impl Reserving<'_> {
    /// Announces where the thread is about to reserve. A thread that sees the end after this
    /// reservation also sees this, or a later announcement.
    #[inline]
    fn announce(&self, reservation: &Reservation) {
        let bytes = (reservation.end >> POSITION_SHIFT) - reservation.position;
        self.length.store(bytes, Ordering::Relaxed);
        self.from.store(reservation.position | UNCONFIRMED, Ordering::Release);
    }

    /// Moves the end past a reservation, unless another thread has moved it: to the returned value
    /// then.
    #[inline]
    fn advance(&self, end: u64, made: Reservation) -> Result<Reservation, u64> {
        self.end.compare_exchange(end, made.end, Ordering::AcqRel, Ordering::Relaxed)?;
        self.from.store(made.position, Ordering::Release);
        Ok(made)
    }
}

impl Wanted {
    /// The reservation if the end is here.
    #[inline]
    fn behind(self, end: u64) -> Reservation {
        let selected = end & DATABASE;
        let knows = selected == u64::from(self.db) && self.db != UNKNOWN_DATABASE;
        let bytes = if knows { self.bytes } else { self.bytes + self.select_bytes };
        // Until a unit that selects is finished, no thread may rely on it.
        let keeps = knows && !self.selects_others;
        let db = if keeps { selected } else { u64::from(UNKNOWN_DATABASE) };
        let position = end >> POSITION_SHIFT;
        let end = (position + bytes) << POSITION_SHIFT | end & OVERFLOW | db;
        let db = if self.selects_others { UNKNOWN_DATABASE } else { self.db };
        Reservation { position, selects: !knows, end, db }
    }
}

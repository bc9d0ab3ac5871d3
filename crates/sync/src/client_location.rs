//! The location of a client: which thread owns it, in which slot, and whether it must be closed.
//!
//! Any thread may ask for a client to be closed while its owner moves it to another thread. All
//! that the two must agree on is in one atomic, so its modification order decides which was first:
//!
//! ```text
//!     63       62..32   31..0
//!     killed   thread   slot
//! ```
//!
//! - A thread that kills the client sets the mark first, reads where the client is afterwards, and
//!   sends a message to that thread.
//! - A thread that takes the client writes the new location and learns in the same step whether the
//!   mark was set.
//! - A thread that has left something for the client elsewhere
//!   [reads](ClientLocation::place_after) afterwards where the client is, and sends a message to
//!   that thread.
//!
//! Invariants, with models in `tests/models`: either the thread that takes a client sees the mark,
//! or the killer sees the new location and its message finds the client there. The same holds for
//! data left before `place_after`.
//!
//! This module does not send that message.

use super::shim::{AtomicU64, Ordering};

/// The client must be closed, wherever it is.
const KILLED: u64 = 1 << 63;
const THREAD_SHIFT: u32 = 32;

/// Where a client is, as all threads may know it.
pub struct ClientLocation(AtomicU64);

impl ClientLocation {
    /// The location of a client that no thread has taken yet: thread 0, slot 0.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Its new owner takes the client. Returns whether the client must be closed instead.
    #[must_use = "a killed client must be closed"]
    pub fn take(&self, thread: u32, slot: u32) -> bool {
        let place = u64::from(thread) << THREAD_SHIFT | u64::from(slot);
        let mut found = self.0.load(Ordering::Relaxed);
        loop {
            let next = place | found & KILLED;
            // Acquires data left for the client before `place_after`. For the mark only the order
            // of changes of this one word matters, so the rest is relaxed.
            match self.0.compare_exchange(found, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return found & KILLED != 0,
                Err(changed) => found = changed,
            }
        }
    }

    /// Marks the client to be closed. Returns whether this caller was the first, which must then
    /// notify the thread of [`place`](Self::place).
    pub fn kill(&self) -> bool {
        self.0.fetch_or(KILLED, Ordering::Relaxed) & KILLED == 0
    }

    /// Whether the client must be closed.
    pub fn is_killed(&self) -> bool {
        self.0.load(Ordering::Relaxed) & KILLED != 0
    }

    /// As [`place`](Self::place), for a caller that has left data for the client: either the result
    /// is where the client is, or the thread that takes it next sees the data.
    pub fn place_after(&self) -> (u32, u32) {
        // A change that changes nothing has its place among the changes.
        let word = self.0.fetch_or(0, Ordering::AcqRel) & !KILLED;
        ((word >> THREAD_SHIFT) as u32, word as u32)
    }

    /// The thread that owns the client, or owned it last, and the slot where it keeps it.
    pub fn place(&self) -> (u32, u32) {
        let word = self.0.load(Ordering::Relaxed) & !KILLED;
        ((word >> THREAD_SHIFT) as u32, word as u32)
    }
}

impl Default for ClientLocation {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for ClientLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (thread, slot) = self.place();
        let killed = self.is_killed();
        f.debug_struct("ClientLocation")
            .field("thread", &thread)
            .field("slot", &slot)
            .field("killed", &killed)
            .finish()
    }
}

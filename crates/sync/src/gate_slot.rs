//! One pass of the gate, for its thread and all others: an atomic state, whose values and changes
//! [`gate`](super::gate) draws.

use super::shim::{AtomicU8, AtomicU64, Ordering};

/// The states of a slot: `OUTSIDE`, or a sum of the bits below.
pub(super) const OUTSIDE: u8 = 0;
/// The thread works on shared state. Set by the thread, or for it by `open`.
pub(super) const INSIDE: u8 = 1;
/// A closer has been here: no entering. Set and cleared by closers.
pub(super) const CLOSED: u8 = 2;
/// The thread sleeps in `enter`. Only together with `CLOSED`.
pub(super) const WAITING: u8 = 4;
/// A grace period waits for the end of this visit. Set while the thread is inside, and cleared by
/// the thread when it has left.
pub(super) const AWAITED: u8 = 8;

/// The shared part of one pass.
pub(super) struct GateSlot {
    pub(super) state: AtomicU8,
    /// Visits that were awaited when they ended.
    pub(super) ended: AtomicU64,
}

impl GateSlot {
    pub(super) fn new() -> Self {
        Self { state: AtomicU8::new(OUTSIDE), ended: AtomicU64::new(0) }
    }

    /// Marks the visit of this moment as awaited, if there is one. Returns the value of `ended`
    /// until its end.
    pub(super) fn await_visit(&self) -> Option<u64> {
        // Acquire: pairs with the `leave` of a thread found outside. Release, and written back
        // though nothing changes: pairs with the next `enter` of that thread.
        let mut state = self.state.fetch_or(0, Ordering::AcqRel);
        while state & INSIDE != 0 {
            // Read before the mark is there for certain, so that an end in between is not missed.
            // All ends before this visit are counted in it, for its thread counts before it clears
            // the mark, and `state` was acquired.
            let ended = self.ended.load(Ordering::Relaxed);
            let (marked, order) = (state | AWAITED, Ordering::AcqRel);
            match self.state.compare_exchange(state, marked, order, Ordering::Acquire) {
                Ok(_) => return Some(ended),
                // The visit is over, or another has begun, which need not be waited for.
                Err(found) => state = found,
            }
        }
        None
    }

    /// Opens it: its thread is inside now if it waits or is the closer itself, or was inside all
    /// the time. Returns the former state.
    pub(super) fn open(&self, is_own: bool) -> u8 {
        let mut state = CLOSED;
        loop {
            // CLOSED|WAITING: the thread says nothing more until it is put inside or gives up.
            // CLOSED|AWAITED: it is about to clear that itself.
            let goes_in = is_own || state & WAITING != 0;
            let next = if goes_in { INSIDE } else { state & !CLOSED };
            // Release: the closer's writes are visible to threads that enter. Acquire: so are
            // writes before a grace period that found the thread outside.
            match self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return state,
                Err(found) => state = found,
            }
        }
    }
}

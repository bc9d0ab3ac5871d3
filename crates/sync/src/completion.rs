//! The completion: an outcome that several threads may decide, and one does.
//!
//! ```text
//!                 settle, by the first thread        take, by the owner
//!     OPEN -------------------------------> SETTLED ----------------------> TAKEN
//! ```
//!
//! A client that waits for a key has one: a writer may serve it, its time may run out, a command
//! may unblock or kill it. The thread that settles the completion acts; `settle` reports to all
//! others that they are too late.
//!
//! Invariants, each with a model in `tests/models`:
//! - One attempt succeeds at most, and its outcome is taken at most once.
//! - An attempt that finds another one in progress waits for it, and has its turn when that leaves
//!   the completion open. So an attempt fails only when the completion is settled, or when it has
//!   nothing to settle it with.
//!
//! An attempt must not wait for anything. Then no thread waits long here, even with shards locked.
//!
//! This module does not notify the owner. The caller does, after `settle`.

use super::shim::Mutex;

enum CompletionState<T> {
    Open,
    Settled(T),
    Taken,
}

/// An outcome `T` that one of several threads settles.
pub struct Completion<T>(Mutex<CompletionState<T>>);

impl<T> Completion<T> {
    /// An open completion.
    pub fn new() -> Self {
        Self(Mutex::new(CompletionState::Open))
    }

    /// Whether it has not been settled.
    pub fn is_open(&self) -> bool {
        matches!(*self.0.lock(), CompletionState::Open)
    }

    /// Settles it with the result of `attempt`, if it is open; `attempt` may leave it open. Returns
    /// whether this call settled it.
    pub fn settle(&self, attempt: impl FnOnce() -> Option<T>) -> bool {
        let mut state = self.0.lock();
        if !matches!(*state, CompletionState::Open) {
            return false;
        }
        match attempt() {
            Some(outcome) => {
                *state = CompletionState::Settled(outcome);
                true
            }
            None => false,
        }
    }

    /// The outcome, for the first caller after it is settled.
    pub fn take(&self) -> Option<T> {
        let mut state = self.0.lock();
        if !matches!(*state, CompletionState::Settled(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, CompletionState::Taken) {
            CompletionState::Settled(outcome) => Some(outcome),
            CompletionState::Open | CompletionState::Taken => None,
        }
    }
}

impl<T> Default for Completion<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> std::fmt::Debug for Completion<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completion").field("open", &self.is_open()).finish()
    }
}

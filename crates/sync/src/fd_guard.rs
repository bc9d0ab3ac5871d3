//! The descriptor of a client's socket, for threads that do not own the client.
//!
//! The system gives a closed descriptor's number to the next socket, so a number by itself may
//! stand for another client by now. Other threads use it [under the guard's lock](FdGuard::with),
//! and the owner [ends the guard](FdGuard::end) before it closes the descriptor.
//!
//! Invariant, with a model in `tests/models`: the descriptor stays open while `with` runs its
//! function.
//!
//! This module neither closes the descriptor nor keeps it open.

use super::shim::Mutex;

/// A client's descriptor, and whether it is still the client's.
pub struct FdGuard {
    fd: i32,
    open: Mutex<bool>,
}

impl FdGuard {
    /// The guard of an open descriptor.
    pub fn new(fd: i32) -> Self {
        Self { fd, open: Mutex::new(true) }
    }

    /// The number that the descriptor has, or had: for display only.
    pub fn number(&self) -> i32 {
        self.fd
    }

    /// Uses the descriptor, briefly, unless the guard has ended.
    pub fn with(&self, work: impl FnOnce(i32)) {
        let open = self.open.lock();
        if *open {
            work(self.fd);
        }
    }

    /// Ends the guard; waits for threads that are using the descriptor.
    pub fn end(&self) {
        *self.open.lock() = false;
    }
}

impl std::fmt::Debug for FdGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FdGuard").field("fd", &self.fd).finish_non_exhaustive()
    }
}

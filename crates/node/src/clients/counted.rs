//! What counts of the memory that a client takes, while `maxmemory-clients` limits it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What is counted of a client. Its class is written under the lock of classes alone.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// [`GONE`], or the bytes that count.
    bytes: AtomicU64,
    class: AtomicU8,
}

/// A client that does not count any more, and never will.
const GONE: u64 = u64::MAX;

impl Counted {
    /// Counts so many bytes. Returns how many have counted; none: it is gone.
    pub(crate) fn replace(&self, bytes: u64) -> Option<u64> {
        let replace = |before| (before != GONE).then_some(bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, replace).ok()
    }

    /// Counts nothing any more. Returns how many bytes have counted; none: it was gone.
    pub(crate) fn take(&self, is_gone: bool) -> Option<u64> {
        self.replace(if is_gone { GONE } else { 0 })
    }

    pub(crate) fn counts(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) != GONE
    }

    pub(crate) fn class(&self) -> u8 {
        self.class.load(Ordering::Relaxed)
    }

    pub(crate) fn set_class(&self, class: u8) {
        self.class.store(class, Ordering::Relaxed);
    }
}

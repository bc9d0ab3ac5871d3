//! The counted memory of a client, while `maxmemory-clients` limits it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The counted bytes of a client, and its class, which is written only under the lock of classes.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// [`GONE`], or the bytes that count.
    bytes: AtomicU64,
    class: AtomicU8,
}

/// A client that will never count again.
const GONE: u64 = u64::MAX;

impl Counted {
    /// Counts so many bytes. Returns the bytes counted before; `None` if the client is gone.
    pub(crate) fn replace(&self, bytes: u64) -> Option<u64> {
        let replace = |before| (before != GONE).then_some(bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, replace).ok()
    }

    /// Stops counting. Returns the bytes counted before; `None` if the client was gone.
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

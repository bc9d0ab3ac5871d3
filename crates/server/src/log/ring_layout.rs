//! The memory of a log: what lies where. It is the same for the process that writes a log and for
//! the one that finds it after a kill.
//!
//! ```text
//!   header | positions (sync::log_positions) | up to a page | the ring's bytes
//!    id, capacity, where the memory is
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sync::log_positions::LogPositions;
use sys::shared_memory::SharedMemory;

/// Bytes of the ring. A power of two of them fits the mask.
pub(crate) const CAPACITY: usize = 64 << 20;
/// The most threads that append.
pub(super) const THREADS_MAX: usize = node::config::IO_THREADS_MAX as usize;

/// Where words of the header are.
pub(super) mod header {
    pub(crate) const WORDS: usize = 16;
    /// [`KNOWN`], when the rest is written.
    pub(crate) const MAGIC: usize = 0;
    /// Two words.
    pub(crate) const ID: usize = 1;
    /// Four words.
    pub(crate) const PLACE: usize = 3;
    pub(crate) const CAPACITY: usize = 7;
    pub(crate) const THREADS: usize = 8;
    /// The form of the memory. Another form has another number.
    pub(crate) const KNOWN: u64 = u64::from_le_bytes(*b"weftlog2");
}

/// Bytes in front of the ring: whole pages.
pub(super) const fn offset(threads: usize) -> usize {
    ((header::WORDS + LogPositions::<Words>::words(threads)) * 8).next_multiple_of(4096)
}

/// Memory for a log, in bytes.
pub(crate) const fn memory_bytes() -> usize {
    offset(THREADS_MAX) + CAPACITY
}

/// The words of the positions.
pub(super) struct Words {
    pub(super) memory: Arc<SharedMemory>,
    pub(super) threads: usize,
}

impl AsRef<[AtomicU64]> for Words {
    #[inline]
    fn as_ref(&self) -> &[AtomicU64] {
        let words = header::WORDS + LogPositions::<Self>::words(self.threads);
        &self.memory.words(words)[header::WORDS..]
    }
}

/// Where the memory of a log is: the start of the machine and the file. A copy of the file, which
/// may have been made while it changed, is at another place.
pub(crate) type MemoryPlace = [u64; 4];

/// Whether a place says at which start of the machine it is: otherwise a log there may be of an
/// earlier one.
pub(super) fn names_boot(place: &MemoryPlace) -> bool {
    place[..2] != [0, 0]
}

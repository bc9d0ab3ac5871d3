//! Memory in use that does not count against the memory limit, for each thread.
//!
//! The allocator counts the bytes that each thread allocates and frees; this counts the bytes among
//! them that are excluded: those of messages, and those that only a snapshot still needs. An
//! [`Excluded`] value excludes its bytes while it exists, and any thread may drop it. So the sum
//! over all threads equals the sum of the existing values, and the thread that frees such memory
//! subtracts its bytes at the same moment.

use std::cell::Cell;

thread_local! {
    static THREAD_BYTES: [Cell<i64>; 2] = const { [const { Cell::new(0) }; 2] };
}

/// Bytes of messages that this thread excluded, minus the bytes that it included again. Negative
/// for a thread that frees memory of other threads.
#[inline]
pub fn thread_bytes() -> i64 {
    bytes_of::<false>()
}

/// The same for bytes that only a snapshot still needs.
#[inline]
pub fn thread_snapshot_bytes() -> i64 {
    bytes_of::<true>()
}

#[inline]
fn bytes_of<const SNAPSHOT: bool>() -> i64 {
    THREAD_BYTES.with(|bytes| bytes[usize::from(SNAPSHOT)].get())
}

/// The number of the allocator's block sizes from a power of two to the next.
const CLASSES_A_DOUBLING: usize = 4;
/// The smallest difference between two block sizes.
const STEP_BYTES_MIN: usize = 8;

/// The size of the block that the allocator uses for `bytes`.
pub fn block_bytes(bytes: usize) -> usize {
    let step = bytes.next_power_of_two() / CLASSES_A_DOUBLING / 2;
    bytes.next_multiple_of(step.max(STEP_BYTES_MIN))
}

/// Bytes of a message that do not count while this value exists.
pub type Uncounted = Excluded<false>;

/// Bytes that left the keyspace and that only a snapshot still needs. They do not count while this
/// value exists.
pub type SnapshotBytes = Excluded<true>;

/// Bytes that do not count while this value exists. A copy excludes as many again.
#[derive(Debug, Default)]
pub struct Excluded<const SNAPSHOT: bool> {
    bytes: usize,
}

impl<const SNAPSHOT: bool> Excluded<SNAPSHOT> {
    /// Excludes so many bytes.
    pub fn new(bytes: usize) -> Self {
        let mut uncounted = Self::default();
        uncounted.set(bytes);
        uncounted
    }

    /// How many bytes are excluded.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the number of excluded bytes.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        // Both are sizes of memory and fit.
        let more = bytes as i64 - self.bytes as i64;
        THREAD_BYTES.with(|bytes| {
            let bytes = &bytes[usize::from(SNAPSHOT)];
            bytes.set(bytes.get() + more);
        });
        self.bytes = bytes;
    }
}

impl<const SNAPSHOT: bool> Clone for Excluded<SNAPSHOT> {
    fn clone(&self) -> Self {
        Self::new(self.bytes)
    }
}

impl<const SNAPSHOT: bool> Drop for Excluded<SNAPSHOT> {
    #[inline]
    fn drop(&mut self) {
        if self.bytes != 0 {
            self.set(0);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_few_sizes() {
        let blocks = [0, 1, 17, 100, 128, 5000, 65_536, 70_000, 1 << 40].map(block_bytes);
        assert_eq!(blocks, [0, 8, 24, 112, 128, 5120, 65_536, 81_920, 1 << 40]);
    }

    #[test]
    fn bytes_of_a_snapshot_are_counted_apart() {
        let message = Uncounted::new(10);
        let mut saved = SnapshotBytes::new(100);
        assert_eq!((thread_bytes(), thread_snapshot_bytes()), (10, 100));
        saved.set(60);
        drop(message);
        assert_eq!((thread_bytes(), thread_snapshot_bytes()), (0, 60));
        drop(saved);
        assert_eq!(thread_snapshot_bytes(), 0);
    }

    #[test]
    fn the_sum_over_threads_equals_that_of_the_values() {
        let mut first = Uncounted::new(100);
        let second = first.clone();
        first.set(30);
        assert_eq!((first.bytes(), second.bytes(), thread_bytes()), (30, 100, 130));
        drop(std::mem::take(&mut first));
        assert_eq!(thread_bytes(), 100);
        let of_other = std::thread::spawn(move || {
            drop(second);
            thread_bytes()
        });
        assert_eq!((of_other.join().unwrap(), thread_bytes()), (-100, 100));
    }
}

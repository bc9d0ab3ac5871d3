//! Memory in use that does not count against the memory limit, for each thread.
//!
//! The allocator counts the bytes that each thread allocates and frees; this counts the bytes among
//! them that are excluded. An [`Uncounted`] value excludes its bytes while it exists, and any
//! thread may drop it. So the sum over all threads equals the sum of the existing values, and the
//! thread that frees such memory subtracts its bytes at the same moment.

use std::cell::Cell;

thread_local! {
    static THREAD_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread excluded, minus the bytes that it included again. Negative for a thread
/// that frees memory of other threads.
#[inline]
pub fn thread_bytes() -> i64 {
    THREAD_BYTES.get()
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

/// Bytes that do not count while this value exists. A copy excludes as many again.
#[derive(Debug, Default)]
pub struct Uncounted {
    bytes: usize,
}

impl Uncounted {
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
        THREAD_BYTES.set(THREAD_BYTES.get() + bytes as i64 - self.bytes as i64);
        self.bytes = bytes;
    }
}

impl Clone for Uncounted {
    fn clone(&self) -> Self {
        Self::new(self.bytes)
    }
}

impl Drop for Uncounted {
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

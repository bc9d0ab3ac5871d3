//! Memory that is in use and does not count against the limit of memory, for each thread.
//!
//! As the allocator counts what each thread takes and gives back, this counts how much of it is
//! left out: a value says so as long as it exists, wherever it is kept, and whichever thread drops
//! it. So the sum over all threads is what the living values say, and a thread that frees such
//! memory takes off the same bytes in the same moment.

use std::cell::Cell;

thread_local! {
    static THREAD_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has begun to leave out less those that it has ended to, whoever began:
/// negative for a thread that frees what others have made.
#[inline]
pub fn thread_bytes() -> i64 {
    THREAD_BYTES.get()
}

/// Sizes of blocks that the allocator has between a power of two and the next.
const CLASSES_A_DOUBLING: usize = 4;
/// The least bytes between two of them.
const STEP_BYTES_MIN: usize = 8;

/// Bytes of the block that the allocator has for so many.
pub fn block_bytes(bytes: usize) -> usize {
    let step = bytes.next_power_of_two() / CLASSES_A_DOUBLING / 2;
    bytes.next_multiple_of(step.max(STEP_BYTES_MIN))
}

/// Bytes that do not count as long as this lives. A copy leaves out as many again.
#[derive(Debug, Default)]
pub struct Uncounted {
    bytes: usize,
}

impl Uncounted {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        let mut uncounted = Self::default();
        uncounted.set(bytes);
        uncounted
    }

    /// How many they are.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// They are so many from now on.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        // Both are sizes of memory.
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
    fn the_sum_over_threads_is_what_the_values_say() {
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

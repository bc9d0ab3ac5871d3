//! The names of keys that the clients of a thread are told, all at once, as long as some output has
//! them.
//!
//! Outputs share an array of names, so none of them knows what it takes. The thread keeps a list,
//! and looks at a few in each turn. They tell of keys, so no key goes for them: they are left out
//! of what counts against `maxmemory`, up to a bound.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::stats::ThreadMemory;

/// Arrays looked at in a turn.
const LOOKED_AT_MAX: usize = 16;

/// Arrays that some output has.
#[derive(Debug)]
pub(crate) struct ToldNames {
    memory: Arc<ThreadMemory>,
    /// With their bytes.
    arrays: VecDeque<(Weak<Vec<u8>>, usize)>,
    bytes: usize,
}

impl ToldNames {
    /// None, on a thread with this part of memory.
    pub(crate) fn new(memory: Arc<ThreadMemory>) -> Self {
        Self { memory, arrays: VecDeque::new(), bytes: 0 }
    }

    /// Some are told that are no more than so many bytes with the others; 0: however many.
    pub(crate) fn add(&mut self, names: &Arc<Vec<u8>>, bytes_max: u64) {
        let bytes = names.capacity();
        self.arrays.push_back((Arc::downgrade(names), bytes));
        self.count(bytes as i64);
        let bytes_max = match bytes_max {
            0 => usize::MAX,
            bytes_max => usize::try_from(bytes_max).unwrap_or(usize::MAX),
        };
        while self.bytes > bytes_max
            && let Some((_, bytes)) = self.arrays.pop_front()
        {
            self.count(-(bytes as i64));
        }
    }

    /// Looks for some that no output has any more.
    pub(crate) fn look(&mut self) {
        for _ in 0..self.arrays.len().min(LOOKED_AT_MAX) {
            let Some((names, bytes)) = self.arrays.pop_front() else { return };
            match names.strong_count() {
                0 => self.count(-(bytes as i64)),
                _ => self.arrays.push_back((names, bytes)),
            }
        }
    }

    fn count(&mut self, bytes: i64) {
        self.bytes = self.bytes.saturating_add_signed(bytes as isize);
        self.memory.tell(bytes);
    }
}

impl Drop for ToldNames {
    fn drop(&mut self) {
        self.memory.tell(-(self.bytes as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::UsedMemory;

    #[test]
    fn names_are_left_out_while_an_output_has_them() {
        let used = UsedMemory::default();
        let mut told = ToldNames::new(used.of_thread(1));
        let arrays: Vec<_> = (0..40).map(|_| Arc::new(vec![0; 100])).collect();
        arrays.iter().for_each(|names| told.add(names, 0));
        told.look();
        assert_eq!(used.telling(), 4000);
        let kept = arrays[7].clone();
        drop(arrays);
        (0..3).for_each(|_| told.look());
        assert_eq!(used.telling(), 100);
        // The oldest one counts again.
        let more: Vec<_> = (0..5).map(|_| Arc::new(vec![0; 100])).collect();
        more.iter().for_each(|names| told.add(names, 400));
        assert_eq!(used.telling(), 400);
        drop(kept);
        told.look();
        assert_eq!(used.telling(), 400);
        drop(told);
        assert_eq!(used.telling(), 0);
    }
}

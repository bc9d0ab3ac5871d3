//! When the waits of a thread's clients are over, soonest first.
//!
//! It holds exactly the clients that wait for a key and not for ever: who begins to wait is added,
//! and who waits no more, or is not this thread's any more, is removed.

use std::collections::BTreeMap;

/// The ends of waits.
#[derive(Debug, Default)]
pub struct Deadlines(BTreeMap<(i64, u64), usize>);

impl Deadlines {
    /// Adds client number `id` in this slot, whose wait is over at this time in milliseconds since
    /// 1970.
    pub fn add(&mut self, until_ms: i64, id: u64, slot: usize) {
        self.0.insert((until_ms, id), slot);
    }

    /// Removes a client, if it is there.
    pub fn remove(&mut self, until_ms: i64, id: u64) {
        self.0.remove(&(until_ms, id));
    }

    /// Takes out one whose time has come: its slot.
    pub fn pop_due(&mut self, unix_ms: i64) -> Option<usize> {
        let first = self.0.first_entry()?;
        (first.key().0 <= unix_ms).then(|| first.remove())
    }

    /// Milliseconds until the first is due: 0 when it is, nothing when nobody waits.
    pub fn wait_ms(&self, unix_ms: i64) -> Option<i64> {
        let ((until_ms, _), _) = self.0.first_key_value()?;
        Some(until_ms.saturating_sub(unix_ms).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_is_due_first() {
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.wait_ms(0), None);
        for (until_ms, id, slot) in [(30, 1, 11), (10, 2, 12), (10, 3, 13), (20, 4, 14)] {
            deadlines.add(until_ms, id, slot);
        }
        assert_eq!(deadlines.wait_ms(4), Some(6));
        assert_eq!(deadlines.pop_due(9), None);
        deadlines.remove(20, 4);
        deadlines.remove(20, 4);
        let due: Vec<usize> = std::iter::from_fn(|| deadlines.pop_due(29)).collect();
        assert_eq!(due, [12, 13]);
        assert_eq!(deadlines.wait_ms(40), Some(0));
        assert_eq!(deadlines.pop_due(40), Some(11));
        assert_eq!(deadlines.pop_due(i64::MAX), None);
    }
}

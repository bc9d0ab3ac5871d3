//! How far a group has read, counted in entries.
//!
//! A group counts the entries that it reads. Its count becomes unknown if it is set to an arbitrary
//! entry, or if there are deleted entries ahead; the counters of the stream then give an estimate
//! or nothing. The rules are those of Redis, because clients compare the numbers.

use crate::stream::{ConsumerGroup, Id, StreamLog};

/// An unknown number of read entries.
pub const UNKNOWN: i64 = -1;

impl StreamLog {
    /// Whether there may be a deleted entry at or after `from`.
    fn has_deleted_from(&self, from: Id) -> bool {
        !self.is_empty() && self.max_deleted_id != Id::MIN && from <= self.max_deleted_id
    }

    /// How many entries were added up to the entry `id`, inclusive; `UNKNOWN` if the counters do
    /// not show it.
    pub fn entries_until(&self, id: Id) -> i64 {
        self.position(id, self.first_id().unwrap_or(Id::MIN))
    }

    /// The same. `first` is the first entry's identifier, 0-0 without entries.
    fn position(&self, id: Id, first: Id) -> i64 {
        let added = self.entries_added as i64;
        if self.entries_added == 0 {
            return 0;
        }
        if self.is_empty() && id <= self.last_id {
            return added;
        }
        if id != Id::MIN && id < self.max_deleted_id {
            return UNKNOWN;
        }
        if id == self.last_id {
            return added;
        }
        if id > self.last_id {
            return UNKNOWN;
        }
        if self.max_deleted_id == Id::MIN || self.max_deleted_id < first {
            let before = added.wrapping_sub(self.len() as i64);
            if id < first {
                return before;
            }
            if id == first {
                return before.wrapping_add(1);
            }
        }
        UNKNOWN
    }
}

impl ConsumerGroup {
    /// Advances to an entry that the group reads. `first` is the first entry's identifier.
    pub fn advance(&mut self, log: &StreamLog, first: Id, id: Id) {
        let counts = self.entries_read != UNKNOWN && self.last_id >= first;
        if counts && !log.has_deleted_from(self.last_id) {
            // A client may have set it to any number; after the highest Redis shows the lowest.
            self.entries_read = self.entries_read.wrapping_add(1);
        } else if log.entries_added > 0 {
            self.entries_read = log.position(id, first);
        }
        self.last_id = id;
    }

    /// How many entries the group still has to read, if that is known.
    pub fn lag(&self, log: &StreamLog) -> Option<i64> {
        let Some(first) = log.first_id() else { return Some(0) };
        if log.entries_added == 0 {
            return Some(0);
        }
        if self.last_id < first && log.max_deleted_id < first {
            return Some(log.len() as i64);
        }
        let added = log.entries_added as i64;
        if self.entries_read != UNKNOWN && !log.has_deleted_from(self.last_id) {
            return Some(added.wrapping_sub(self.entries_read));
        }
        match log.position(self.last_id, first) {
            UNKNOWN => None,
            read => Some(added.wrapping_sub(read)),
        }
    }
}

//! A random key, for RANDOMKEY.

use super::Db;
use crate::turn::Turn;
use crate::value::stored::Stored;

/// The most expired keys that a search for a random one removes.
const RANDOM_TRIES_MAX: usize = 100;

impl Db {
    /// A random key: the first at or after a random slot, so keys after a gap are more likely.
    /// Removes expired keys on its way, and gives up after many.
    pub fn random(&mut self, turn: &mut Turn, random: u64) -> Option<Stored<'_>> {
        let mut start = (random % self.table.slots_len().max(1) as u64) as usize;
        for _ in 0..RANDOM_TRIES_MAX {
            let at = self.table.next_occupied(start).or_else(|| self.table.next_occupied(0))?;
            if !Stored(self.table.at(at)).is_expired(turn) {
                return Some(Stored(self.table.at(at)));
            }
            if turn.keep_expired {
                start = at + 1;
            } else {
                self.expire(turn, at);
                start = at;
            }
        }
        None
    }
}

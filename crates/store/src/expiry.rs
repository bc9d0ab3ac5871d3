//! Active expiry: keys that nobody asks for any more go as well.
//!
//! Each database keeps a place in its table. A step walks on from there, looks at records that have
//! an expiry, and removes those whose time has come. The caller decides how often and how long: when
//! many of the looked-at keys had expired, more of them are worth looking at.

use crate::db::Db;
use crate::stored::Stored;
use crate::turn::Turn;

/// What a step found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Keys with an expiry that were looked at.
    pub looked_at: usize,
    /// Of these, removed.
    pub expired: usize,
    /// The walk came to the end of the table and begins anew.
    pub wrapped: bool,
}

impl Db {
    /// Looks at up to `keys_max` keys that have an expiry.
    pub fn expire_step(&mut self, turn: &mut Turn, keys_max: usize) -> Step {
        let mut step = Step::default();
        while step.looked_at < keys_max {
            let Some(at) = self.table.next_stamped(self.expiry_at) else {
                self.expiry_at = 0;
                step.wrapped = true;
                return step;
            };
            step.looked_at += 1;
            if Stored(self.table.at(at)).is_expired(turn) {
                // The next record moves into this slot, so the place stays.
                self.expiry_at = at;
                self.expire(turn, at);
                step.expired += 1;
            } else {
                self.expiry_at = at + 1;
            }
        }
        step
    }
}

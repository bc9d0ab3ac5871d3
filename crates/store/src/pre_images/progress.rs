//! One shard's part of one database in a snapshot: how far its keys have been visited, and what of
//! the rest has changed.
//!
//! ```text
//! hash positions   0 .......... from .......................... 2^32
//! keys             | visited    | visited later, but for the changed ones |
//!                                 changed: the old key, if there was one, is saved
//! ```
//!
//! A position survives growth and shrinking of the table. Keys are told apart by their hashes:
//! those that share all 64 bits are saved together, before the first of them changes.

use std::sync::Arc;

use base::hash::ByKeyHash;

use super::queue::PreImages;

#[derive(Debug)]
pub(crate) struct DbProgress {
    pub(crate) shared: Arc<PreImages>,
    /// The number of the database at the cut, which SWAPDB may change.
    pub(crate) number: u32,
    /// The least position that has not been visited; none: all have been.
    pub(crate) from: Option<u32>,
    /// Hashes of higher positions whose keys have changed.
    pub(crate) changed: ByKeyHash<()>,
}

/// Whether what is at a hash has yet to be visited.
pub(crate) fn owes(from: Option<u32>, changed: &ByKeyHash<()>, hash: u64) -> bool {
    from.is_some_and(|from| (hash >> 32) as u32 >= from) && !changed.contains_key(&hash)
}

#[cfg(test)]
impl DbProgress {
    /// Moves the place of the walk, which is wrong.
    pub(crate) fn shift(&mut self, by: i32) {
        self.from = self.from.map(|from| from.saturating_add_signed(by));
    }

    /// Forgets what has changed, which is wrong.
    pub(crate) fn forget(&mut self) {
        self.changed.clear();
    }
}

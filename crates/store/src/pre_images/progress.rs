//! Progress of a snapshot in one shard's part of one database: how far its keys were visited, and
//! which of the rest have changed.
//!
//! ```text
//! hash positions   0 .......... from .......................... 2^32
//! keys             | visited    | visited later, except changed ones      |
//!                                 changed: the old key, if any, is saved
//! ```
//!
//! A position stays valid when the table grows or shrinks. Keys are distinguished by their hashes:
//! keys that share all 64 bits are saved together, before the first of them changes.

use std::sync::Arc;

use base::hash::ByKeyHash;

use super::queue::PreImages;

#[derive(Debug)]
pub(crate) struct DbProgress {
    pub(crate) shared: Arc<PreImages>,
    /// The number of the database at the cut, which SWAPDB may change.
    pub(crate) number: u32,
    /// The least position that was not visited, or `None` if all were.
    pub(crate) from: Option<u32>,
    /// Hashes at higher positions whose keys have changed.
    pub(crate) changed: ByKeyHash<()>,
}

/// Whether the keys with this hash were neither visited nor saved yet.
pub(crate) fn is_unsaved(from: Option<u32>, changed: &ByKeyHash<()>, hash: u64) -> bool {
    from.is_some_and(|from| (hash >> 32) as u32 >= from) && !changed.contains_key(&hash)
}

#[cfg(test)]
impl DbProgress {
    /// Moves the position of the walk, to plant a fault.
    pub(crate) fn shift(&mut self, by: i32) {
        self.from = self.from.map(|from| from.saturating_add_signed(by));
    }

    /// Forgets the changes, to plant a fault.
    pub(crate) fn forget(&mut self) {
        self.changed.clear();
    }
}

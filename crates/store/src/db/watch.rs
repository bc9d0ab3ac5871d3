//! The function that every change of a key passes, and WATCH in one database of one shard.

use std::sync::Arc;

use super::marks::TrackingNoted;
use super::{Db, Edit};
use crate::key::Key;
use crate::key_index::IndexEntry;
use crate::turn::Turn;
use crate::value::stored::{Stored, StoredType};
use crate::watchers::{Presence, Watch, WatchedChange, Watchers};

impl Db {
    /// Must be called for every change of a key, with the index entries of its value before and
    /// after. `TrackingNoted` proves that the change was recorded for tracking clients.
    #[inline]
    pub(crate) fn changed(
        &mut self,
        _: TrackingNoted,
        hash: u64,
        before: IndexEntry,
        after: IndexEntry,
    ) {
        self.key_index.changed(hash, before, after);
        if self.watched {
            let change = if after == IndexEntry::ABSENT {
                WatchedChange::Removed
            } else {
                WatchedChange::Written
            };
            self.touch_watchers(hash, change);
        }
    }

    /// Must be called for a change that leaves the value the same, such as one of the expiry.
    #[inline]
    pub(super) fn rewritten(&mut self, _: TrackingNoted, hash: u64) {
        if self.watched {
            self.touch_watchers(hash, WatchedChange::Written);
        }
    }

    /// Adds a client that does not watch the key yet. Returns the key's name, which all clients
    /// that watch it share.
    pub fn watch(&mut self, turn: &Turn, key: Key<'_>, watch: &Arc<Watch>) -> Arc<[u8]> {
        let expired = self.has_expired(turn, key);
        let mut name = None;
        self.watched = self.key_index.edit_watchers(|watchers| {
            name = Some(watchers.add(key.hash, key.bytes, watch, expired));
        });
        name.unwrap_or_else(|| key.bytes.into())
    }

    /// Removes a client that stops watching a key.
    pub fn unwatch(&mut self, hash: u64, watch: &Arc<Watch>) {
        if self.watched {
            self.watched = self.key_index.edit_watchers(|watchers| watchers.remove(hash, watch));
        }
    }

    /// Whether a key has expired since this client began to watch it, and is not removed yet.
    pub fn expired_while_watched(&self, turn: &Turn, key: Key<'_>, watch: &Arc<Watch>) -> bool {
        let watchers = self.key_index.watchers();
        self.has_expired(turn, key)
            && watchers.is_some_and(|watchers| watchers.saw_value(key.hash, watch))
    }

    /// Whether a key has expired and is not removed yet.
    fn has_expired(&self, turn: &Turn, key: Key<'_>) -> bool {
        self.expiring_len() > 0 && self.presence(turn, key.hash, key.bytes) == Presence::Expired
    }

    #[cold]
    fn touch_watchers(&mut self, hash: u64, change: WatchedChange) {
        self.key_index.edit_watchers(|watchers| watchers.touch(hash, change));
    }

    pub(super) fn put_watchers(&mut self, watchers: Watchers) {
        self.watched = !watchers.is_empty();
        if self.watched {
            self.key_index.edit_watchers(|own| *own = watchers);
        }
    }

    pub(super) fn presence(&self, turn: &Turn, hash: u64, name: &[u8]) -> Presence {
        match self.table.find(hash, name) {
            None => Presence::Absent,
            Some(at) if Stored(self.table.at(at)).is_expired(turn) => Presence::Expired,
            Some(_) => Presence::Present,
        }
    }

    /// Exchanges the watchers with another database after their contents were exchanged: a client
    /// watches a name in the database of a number.
    pub(crate) fn swap_watchers(&mut self, other: &mut Self, turn: &Turn) {
        let mut own = other.key_index.take_watchers();
        let mut others = self.key_index.take_watchers();
        let look = |before: &Self, after: &Self, hash, name: &[u8]| {
            (before.presence(turn, hash, name), after.presence(turn, hash, name))
        };
        own.touch_all(|hash, name| look(other, self, hash, name));
        others.touch_all(|hash, name| look(self, other, hash, name));
        self.put_watchers(own);
        other.put_watchers(others);
    }

    /// Whether this part of a database holds nothing that must be kept.
    pub(crate) fn is_unused(&self) -> bool {
        self.is_empty() && !self.watched && !self.in_snapshot
    }
}

impl<T: StoredType> Edit<'_, T> {
    /// Marks the key as changed for clients that watch or track it, although the value is the same.
    pub fn touch_watchers(&mut self) {
        self.rewritten();
    }
}

//! The keys that a client watches: WATCH.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::room::clear;
use engine::{LockedShards, ShardMap};
use store::{Key, Shard, Turn, Watch};

/// Memory that the emptied list of keys keeps.
const KEPT_BYTES_MAX: usize = 4096;

/// More keys than this are found by an index.
const KEYS_COMPARED_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct WatchedKeys {
    watch: Arc<Watch>,
    /// Each once, in the order of their WATCH.
    keys: Vec<WatchedKey>,
    /// The database and the hash of each key, if there are many.
    index: Option<HashSet<(usize, u64)>>,
    /// Bytes of the names that no shard knows of.
    unknown_bytes: usize,
}

#[derive(Debug)]
struct WatchedKey {
    db: usize,
    hash: u64,
    /// Shared with the shard and with other clients that watch the key.
    name: Arc<[u8]>,
    /// The shard knows of it.
    is_known: bool,
}

impl WatchedKey {
    fn place(&self) -> (usize, u64) {
        (self.db, self.hash)
    }
}

impl WatchedKeys {
    pub(crate) fn contains(&self, db: usize, key: Key<'_>) -> bool {
        match &self.index {
            Some(index) => index.contains(&(db, key.hash)),
            None => self.keys.iter().any(|watched| watched.place() == (db, key.hash)),
        }
    }

    /// Adds a key that is not watched yet. `name` is the shard's, which knows of the watch; `None`
    /// if the shard was in use, and the caller has marked the watch.
    pub(crate) fn add(&mut self, db: usize, key: Key<'_>, name: Option<Arc<[u8]>>) {
        let (hash, is_known) = (key.hash, name.is_some());
        self.unknown_bytes += if is_known { 0 } else { key.bytes.len() };
        let name = name.unwrap_or_else(|| key.bytes.into());
        self.keys.push(WatchedKey { db, hash, name, is_known });
        if let Some(index) = &mut self.index {
            index.insert((db, hash));
        } else if self.keys.len() > KEYS_COMPARED_MAX {
            self.index = Some(self.keys.iter().map(WatchedKey::place).collect());
        }
    }

    /// The mark that shards set when a key changes.
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of memory that they take besides those that their shards count.
    pub(crate) fn list_bytes(&self) -> usize {
        let indexed = self.index.as_ref().map_or(0, HashSet::capacity);
        let index_bytes = indexed * (size_of::<(usize, u64)>() + 1);
        self.keys.len() * size_of::<WatchedKey>() + index_bytes + self.unknown_bytes
    }

    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().map(|key| key.hash)
    }

    /// Ends the watch of keys whose shards are all locked. Returns whether one of them has changed,
    /// or expired, since it is watched.
    pub(crate) fn leave_locked(
        &self,
        turn: &Turn,
        map: ShardMap,
        shards: &mut LockedShards<'_>,
    ) -> bool {
        let mut changed = self.watch.is_touched();
        for WatchedKey { db, hash, name, .. } in &self.keys {
            let db = shards.shard(map.shard_of(*hash)).db(*db);
            let key = Key { bytes: name, hash: *hash };
            changed = changed || db.expired_while_watched(turn, key, &self.watch);
            db.unwatch(*hash, &self.watch);
        }
        changed
    }

    /// Forgets all keys, after all shards have forgotten the watch. Returns whether it can be used
    /// again. Keeps a bounded amount of memory.
    pub(crate) fn clear(&mut self) -> bool {
        let Self { watch, keys, index, unknown_bytes } = self;
        clear(keys, KEPT_BYTES_MAX);
        *index = None;
        *unknown_bytes = 0;
        Arc::get_mut(watch).map(Watch::reset).is_some()
    }

    /// Ends the watch of the keys whose shards are free. Returns the keys whose shards are in use;
    /// `None` if there are none.
    pub(crate) fn leave_free(
        mut self,
        map: ShardMap,
        shards: &mut LockedShards<'_>,
    ) -> Option<Self> {
        self.index = None;
        let watch = &self.watch;
        self.keys.retain(|key| {
            let mut leave = |shard: &mut Shard| shard.db(key.db).unwatch(key.hash, watch);
            key.is_known && !shards.try_visit(map.shard_of(key.hash), Duration::ZERO, &mut leave)
        });
        (!self.keys.is_empty()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use base::hash::KeyHasher;

    use super::*;

    /// A list in the order of hashes moved half of its keys for each one: 21 s for 100,000.
    #[test]
    fn many_keys_are_found_by_an_index_and_none_moves_for_another() {
        let (turn, mut watched) = (Turn::alone(KeyHasher::new(1)), WatchedKeys::default());
        let names: Vec<String> = (0..1000).map(|number| format!("key{number}")).collect();
        let keys = || names.iter().map(|name| turn.key(name.as_bytes()));
        for (before, key) in keys().enumerate() {
            assert!(!watched.contains(0, key));
            watched.add(0, key, None);
            assert!(watched.contains(0, key) && !watched.contains(1, key));
            assert_eq!(watched.index.is_some(), before + 1 > KEYS_COMPARED_MAX);
        }
        assert!(keys().all(|key| watched.contains(0, key)));
        assert!(watched.hashes().eq(keys().map(|key| key.hash)));
        assert!(watched.clear() && watched.index.is_none() && watched.list_bytes() == 0);
        assert!(!keys().any(|key| watched.contains(0, key)));
    }
}

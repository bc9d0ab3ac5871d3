//! The keys that a client watches: WATCH.

use std::sync::Arc;
use std::time::Duration;

use base::room::clear;
use engine::{LockedShards, ShardMap};
use store::{Key, Shard, Turn, Watch};

/// Memory that the emptied list of keys keeps.
const KEPT_BYTES_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct WatchedKeys {
    watch: Arc<Watch>,
    /// By database and hash, each once.
    keys: Vec<WatchedKey>,
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

impl WatchedKeys {
    fn position_of(&self, db: usize, key: Key<'_>) -> Result<usize, usize> {
        self.keys.binary_search_by_key(&(db, key.hash), |key| (key.db, key.hash))
    }

    pub(crate) fn contains(&self, db: usize, key: Key<'_>) -> bool {
        self.position_of(db, key).is_ok()
    }

    /// Adds a key that is not watched yet. `name` is the shard's, which knows of the watch; `None`
    /// if the shard was in use, and the caller has marked the watch.
    pub(crate) fn add(&mut self, db: usize, key: Key<'_>, name: Option<Arc<[u8]>>) {
        if let Err(at) = self.position_of(db, key) {
            let (hash, is_known) = (key.hash, name.is_some());
            self.unknown_bytes += if is_known { 0 } else { key.bytes.len() };
            let name = name.unwrap_or_else(|| key.bytes.into());
            self.keys.insert(at, WatchedKey { db, hash, name, is_known });
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
        self.keys.len() * size_of::<WatchedKey>() + self.unknown_bytes
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
        let Self { watch, keys, unknown_bytes } = self;
        clear(keys, KEPT_BYTES_MAX);
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
        let watch = &self.watch;
        self.keys.retain(|key| {
            let mut leave = |shard: &mut Shard| shard.db(key.db).unwatch(key.hash, watch);
            key.is_known && !shards.try_visit(map.shard_of(key.hash), Duration::ZERO, &mut leave)
        });
        (!self.keys.is_empty()).then_some(self)
    }
}

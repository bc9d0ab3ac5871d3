//! The clients that watch keys of one database in one shard: WATCH.
//!
//! A command that changes a key marks the [`Watch`] of each client that watches it, under the lock
//! of the key's shard. EXEC holds the shards of all watched keys when it reads its mark, so it
//! misses no change. Keys are distinguished by their hashes: two keys that share all 64 bits are
//! watched together.
//!
//! This module knows no clients, and a mark does not end a client's watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::hash::ByKeyHash;

/// The approximate bytes that a watched key takes in addition to its name.
const KEY_BYTES: usize = 144;
/// The approximate bytes for another client that watches the same key.
const PLACE_BYTES: usize = 24;

/// The watch of one client as the keys see it: whether one of them has changed, and their memory.
#[derive(Debug, Default)]
pub struct Watch {
    touched: AtomicBool,
    bytes: AtomicUsize,
}

impl Watch {
    /// Whether a watched key has changed. Read while the shards of all watched keys are locked.
    pub fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    /// Notes that a watched key has changed, or may have.
    pub fn touch(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }

    /// The approximate bytes that the shards use for the client. A key that several clients watch
    /// counts for the first of them.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Resets it for another client.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The watched keys, by hash.
#[derive(Debug, Default)]
pub(crate) struct Watchers(ByKeyHash<KeyWatchers>);

#[derive(Debug)]
struct KeyWatchers {
    /// Shared with the clients that watch it.
    name: Arc<[u8]>,
    clients: Vec<Watcher>,
}

impl KeyWatchers {
    /// The approximate bytes that it counts for its first client.
    fn bytes(&self) -> usize {
        KEY_BYTES + self.name.len()
    }
}

#[derive(Debug)]
struct Watcher {
    watch: Arc<Watch>,
    /// The key had expired and was not removed yet when the client began to watch it: for this
    /// client it is absent, and its removal is no change.
    expired: bool,
}

/// How a watched key has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedChange {
    /// It has a value, which has changed or is new.
    Written,
    /// It was removed.
    Removed,
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a client that does not watch the key yet. Returns the key's name for the client to
    /// keep.
    pub(crate) fn add(
        &mut self,
        hash: u64,
        name: &[u8],
        watch: &Arc<Watch>,
        expired: bool,
    ) -> Arc<[u8]> {
        let key = self.0.entry(hash);
        let key = key.or_insert_with(|| KeyWatchers { name: name.into(), clients: Vec::new() });
        watch.count(if key.clients.is_empty() { key.bytes() } else { PLACE_BYTES });
        // Few keys are watched by several clients.
        key.clients.reserve_exact(1);
        key.clients.push(Watcher { watch: Arc::clone(watch), expired });
        // Keys hardly ever share a hash.
        if *key.name == *name { Arc::clone(&key.name) } else { name.into() }
    }

    /// Removes a client that stops watching a key. The key's memory then counts for the next
    /// client.
    pub(crate) fn remove(&mut self, hash: u64, watch: &Arc<Watch>) {
        let Some(key) = self.0.get_mut(&hash) else { return };
        let at = key.clients.iter().position(|client| Arc::ptr_eq(&client.watch, watch));
        if let Some(at) = at {
            key.clients.swap_remove(at);
        }
        match key.clients.first() {
            None => drop(self.0.remove(&hash)),
            Some(heir) if at == Some(0) => heir.watch.count(key.bytes() - PLACE_BYTES),
            Some(_) => {}
        }
    }

    /// Marks the clients that watch a key, because it has changed.
    pub(crate) fn touch(&mut self, hash: u64, change: WatchedChange) {
        for client in self.0.get_mut(&hash).into_iter().flat_map(|key| &mut key.clients) {
            let was_absent = std::mem::take(&mut client.expired);
            if change == WatchedChange::Written || !was_absent {
                client.watch.touch();
            }
        }
    }

    /// Marks the clients whose watched keys change with the whole database. `look` returns the
    /// presence of a key before and after the change.
    pub(crate) fn touch_all(&mut self, mut look: impl FnMut(u64, &[u8]) -> (Presence, Presence)) {
        for (hash, key) in &mut self.0 {
            let (before, after) = look(*hash, &key.name);
            for client in &mut key.clients {
                let before = if client.expired { Presence::Absent } else { before };
                client.expired = after == Presence::Expired && before == Presence::Absent;
                if before != Presence::Absent || after == Presence::Present {
                    client.watch.touch();
                }
            }
        }
    }

    /// Whether an expired key existed when this client began to watch it.
    pub(crate) fn saw_value(&self, hash: u64, watch: &Arc<Watch>) -> bool {
        let mut clients = self.0.get(&hash).into_iter().flat_map(|key| &key.clients);
        clients.any(|client| Arc::ptr_eq(&client.watch, watch) && !client.expired)
    }
}

/// Whether a key is in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    /// It has expired but is not removed yet.
    Expired,
    Present,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_marks_the_clients_that_watch_the_key() {
        let mut watchers = Watchers::default();
        let [a, b, c] = [(); 3].map(|()| Arc::new(Watch::default()));
        watchers.add(1, b"k", &a, false);
        watchers.add(2, b"l", &b, false);
        watchers.add(1, b"k", &c, true);
        watchers.touch(3, WatchedChange::Written);
        assert!(!a.is_touched());
        watchers.touch(1, WatchedChange::Removed);
        assert!(a.is_touched() && !b.is_touched());
        assert!(!c.is_touched(), "it was gone for this one before");
        watchers.touch(1, WatchedChange::Removed);
        assert!(c.is_touched());
        for watch in [&a, &b, &c] {
            watchers.remove(1, watch);
            watchers.remove(2, watch);
        }
        assert!(watchers.is_empty());
    }

    #[test]
    fn clients_that_watch_a_key_share_its_name() {
        let mut watchers = Watchers::default();
        let watch = Arc::new(Watch::default());
        let [first, second] = [(); 2].map(|()| watchers.add(1, b"k", &watch, false));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(*watchers.add(1, b"same hash", &watch, false), *b"same hash");
    }

    #[test]
    fn a_key_counts_for_one_client_that_watches_it() {
        let mut watchers = Watchers::default();
        let clients = [(); 3].map(|()| Arc::new(Watch::default()));
        let counted = || clients.each_ref().map(|watch| watch.memory_bytes());
        for watch in &clients {
            watchers.add(1, &[b'k'; 1000], watch, false);
        }
        let key = KEY_BYTES + 1000;
        assert_eq!(counted(), [key, PLACE_BYTES, PLACE_BYTES]);
        watchers.remove(1, &clients[1]);
        assert_eq!(counted()[2], PLACE_BYTES);
        watchers.remove(1, &clients[0]);
        assert_eq!(counted()[2], key);
    }

    #[test]
    fn a_change_of_the_database_marks_clients_whose_key_exists_or_existed() {
        use Presence::{Absent, Expired, Present};
        let cases = [
            // (expired at first, before, after), marked, expired now
            ((false, Absent, Absent), false, false),
            ((false, Present, Absent), true, false),
            ((false, Absent, Present), true, false),
            ((false, Absent, Expired), false, true),
            ((true, Expired, Absent), false, false),
            ((true, Expired, Expired), false, true),
            ((true, Expired, Present), true, false),
        ];
        for ((expired, before, after), marked, expired_now) in cases {
            let mut watchers = Watchers::default();
            let watch = Arc::new(Watch::default());
            watchers.add(1, b"k", &watch, expired);
            watchers.touch_all(|_, _| (before, after));
            let case = (expired, before, after);
            assert_eq!(watch.is_touched(), marked, "{case:?}");
            assert_eq!(!watchers.saw_value(1, &watch), expired_now, "{case:?}");
        }
    }
}

//! Which clients track keys, and which keys and prefixes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use store::ShardSets;
use tracking::prefixes::Prefix;
use tracking::{Audience, KeyTables, Prefixes, TrackingState};

use crate::clients::record::ClientRecord;
use crate::config::IO_THREADS_MAX;

/// The audience of a prefix: the clients that are notified of its changes.
pub type ClientAudience = Audience<Arc<ClientRecord>>;

/// Prefixes that are added or removed under one lock.
const PREFIXES_LOCKED_MAX: usize = 256;

/// Which clients track keys, and which keys.
#[derive(Debug)]
pub struct Trackers {
    /// The keys that clients have read.
    pub keys: KeyTables,
    pub(crate) prefixes: RwLock<Prefixes<Arc<ClientAudience>>>,
    /// The number of prefixes, to skip the lock.
    prefix_count: AtomicUsize,
    /// For each thread, the changed prefixes of which it has to notify its clients.
    pub(crate) changed: Box<[Mutex<Vec<Arc<ClientAudience>>>]>,
    pub(crate) clients: RwLock<HashMap<u64, Arc<ClientRecord>>>,
    shard_sets: Arc<ShardSets>,
}

impl Trackers {
    /// No client tracks keys.
    pub(crate) fn new(shards: usize, shard_sets: Arc<ShardSets>) -> Self {
        Self {
            keys: KeyTables::new(shards),
            prefixes: RwLock::default(),
            prefix_count: AtomicUsize::new(0),
            changed: (0..IO_THREADS_MAX).map(|_| Mutex::default()).collect(),
            clients: RwLock::default(),
            shard_sets,
        }
    }

    /// Clients that track keys.
    pub fn clients(&self) -> usize {
        self.clients.read().len()
    }

    /// Prefixes that clients track.
    pub fn prefixes(&self) -> usize {
        self.prefix_count.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, record: &Arc<ClientRecord>) {
        let mut clients = self.clients.write();
        clients.insert(record.id, Arc::clone(record));
        self.shard_sets.set_tracked(true);
    }

    pub(crate) fn remove(&self, client: u64) {
        let mut clients = self.clients.write();
        clients.remove(&client);
        self.shard_sets.set_tracked(!clients.is_empty());
    }

    pub(crate) fn find(&self, client: u64) -> Option<Arc<ClientRecord>> {
        self.clients.read().get(&client).cloned()
    }

    /// The audiences of a client's prefixes.
    pub(crate) fn audiences(&self, state: &TrackingState) -> Vec<Arc<ClientAudience>> {
        let prefixes = self.prefixes.read();
        state.prefixes().iter().filter_map(|prefix| prefixes.get(prefix).cloned()).collect()
    }

    /// The same as far as they have changed for a thread, or more of them.
    pub(crate) fn changed(&self, state: &TrackingState, thread: usize) -> Vec<Arc<ClientAudience>> {
        let changed = self.changed[thread].lock();
        if changed.len() > state.prefixes().len() {
            drop(changed);
            return self.audiences(state);
        }
        let is_own = |audience: &&Arc<ClientAudience>| state.prefixes().contains(audience.prefix());
        changed.iter().filter(is_own).cloned().collect()
    }

    pub(crate) fn join(&self, added: &[Prefix], record: &Arc<ClientRecord>, thread: usize) {
        for some in added.chunks(PREFIXES_LOCKED_MAX) {
            let mut prefixes = self.prefixes.write();
            for prefix in some {
                let audience = prefixes.or_insert_with(prefix, || Arc::new(Audience::new(prefix)));
                audience.join(record.id, Arc::clone(record), thread);
            }
            self.prefix_count.store(prefixes.len(), Ordering::Relaxed);
        }
    }

    pub(crate) fn leave(&self, state: &TrackingState, client: u64) {
        let mut left = state.prefixes().iter().peekable();
        while left.peek().is_some() {
            let mut prefixes = self.prefixes.write();
            for prefix in left.by_ref().take(PREFIXES_LOCKED_MAX) {
                if prefixes.get(prefix).is_some_and(|audience| audience.leave(client)) {
                    prefixes.remove(prefix);
                }
            }
            self.prefix_count.store(prefixes.len(), Ordering::Relaxed);
        }
    }
}

//! The waits of all blocked clients, by the clients' numbers: a shard's queues name a client by its
//! number, and so do CLIENT UNBLOCK and CLIENT KILL.
//!
//! The map is cut into parts by number, and a part is locked only to look a number up, so it may be
//! locked while shards are.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::snapshots::EndedBackup;
use super::waiter::Waiter;
use crate::clients::record::ClientRecord;

/// Parts of the map.
const PARTS: usize = 16;

/// The waits of all blocked clients.
#[derive(Debug, Default)]
pub struct Waits {
    parts: [Mutex<HashMap<u64, Arc<Waiter>>>; PARTS],
    /// It changes while the shards of the wait's keys are locked when a wait begins, and after they
    /// are unlocked when it ends: a thread that has a shard locked counts all clients that wait in
    /// it.
    count: AtomicUsize,
    /// The clients that wait for more than one key.
    for_several_keys: AtomicUsize,
}

impl Waits {
    fn part(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Waiter>>> {
        &self.parts[id as usize % PARTS]
    }

    pub(crate) fn add(&self, waiter: &Arc<Waiter>) {
        let id = waiter.record.id;
        self.part(id).lock().insert(id, Arc::clone(waiter));
        self.count.fetch_add(1, Ordering::Relaxed);
        if waiter.has_several_keys() {
            self.for_several_keys.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes a client's wait, which has left all queues.
    pub(crate) fn remove(&self, id: u64) {
        let Some(waiter) = self.part(id).lock().remove(&id) else { return };
        self.count.fetch_sub(1, Ordering::Relaxed);
        if waiter.has_several_keys() {
            self.for_several_keys.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A client's wait, if it has one that is not over.
    pub fn find(&self, id: u64) -> Option<Arc<Waiter>> {
        if self.count() == 0 {
            return None;
        }
        self.find_surely(id)
    }

    /// The same, also for a wait that is being added: either it is found, or the thread that adds
    /// it sees the caller's earlier writes.
    pub(crate) fn find_surely(&self, id: u64) -> Option<Arc<Waiter>> {
        self.part(id).lock().get(&id).filter(|waiter| waiter.waits()).cloned()
    }

    /// Ends the waits for a backup that has ended. Returns the clients that waited, whose owners
    /// must be notified.
    pub fn end_backup(&self, ended: &EndedBackup) -> Vec<Arc<ClientRecord>> {
        let ends = |waiter: &Arc<Waiter>| waiter.backup_ended(ended);
        let mut clients = Vec::new();
        for part in &self.parts {
            let waiters: Vec<_> = part.lock().values().cloned().collect();
            let over = waiters.into_iter().filter(ends);
            clients.extend(over.map(|waiter| Arc::clone(&waiter.record)));
        }
        clients
    }

    /// Clients that wait, including those whose wait is over and not yet ended by their owners.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether one of them waits for more than one key.
    pub(crate) fn any_for_several_keys(&self) -> bool {
        self.for_several_keys.load(Ordering::Relaxed) != 0
    }
}

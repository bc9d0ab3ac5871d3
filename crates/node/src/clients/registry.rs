//! All clients of a server, by their numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::record::ClientRecord;
use super::reserve::Reserve;

/// All clients, by their numbers.
#[derive(Debug, Default)]
pub struct Registry {
    next_id: AtomicU64,
    records: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
    /// Places beyond `maxclients`.
    pub reserve: Reserve,
}

impl Registry {
    /// A number for a new client: 1, 2, ...
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a client.
    pub fn add(&self, record: Arc<ClientRecord>) {
        self.records.lock().insert(record.id, record);
    }

    /// Removes a client.
    pub fn remove(&self, id: u64) {
        self.records.lock().remove(&id);
    }

    /// A client by its number.
    pub fn find(&self, id: u64) -> Option<Arc<ClientRecord>> {
        self.records.lock().get(&id).cloned()
    }

    /// All clients of this moment, oldest first.
    pub fn all(&self) -> Vec<Arc<ClientRecord>> {
        self.records.lock().values().cloned().collect()
    }

    /// Clients connected.
    pub fn len(&self) -> usize {
        self.records.lock().len()
    }

    /// Whether no client is connected.
    pub fn is_empty(&self) -> bool {
        self.records.lock().is_empty()
    }
}

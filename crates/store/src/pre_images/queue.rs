//! What those who change keys leave for the walker of a snapshot.
//!
//! Locks are held for a push or for taking everything, and nothing else is locked meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::hash::ByKeyHash;
use ds::record::Record;
use ds::table::IntoRecords;

use super::pending::PendingPreImage;
use crate::value::stored::Object;

/// Lists of saved keys, so that threads seldom meet at one.
const LANES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct PreImages {
    saved: [Mutex<Vec<Saved>>; LANES],
    saved_bytes: AtomicUsize,
    debts: Mutex<VecDeque<Arc<PendingPreImage>>>,
    emptied: Mutex<Vec<Emptied>>,
    /// A collection was dropped that was owed.
    lost: AtomicBool,
    /// Nothing need be saved any more.
    over: AtomicBool,
}

/// A key as it was at the cut.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) db: u32,
    pub(crate) record: Record<Object>,
}

/// The keys of a database that was emptied.
#[derive(Debug)]
pub(crate) struct Emptied {
    pub(crate) db: u32,
    pub(crate) records: IntoRecords<Object>,
    /// See [`DbProgress`](super::progress::Part).
    pub(crate) from: Option<u32>,
    pub(crate) changed: ByKeyHash<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// About how many bytes a saved key takes.
pub(crate) fn bytes_of(record: &Record<Object>) -> usize {
    let own = record.view().allocated_bytes();
    own + match record.view().object() {
        // Until somebody changes it, it is one with that in the keyspace.
        Some(Object::String(_)) | None => 0,
        Some(object) => object.memory_bytes(),
    }
}

impl PreImages {
    pub(crate) fn save(&self, hash: u64, db: u32, record: Record<Object>) {
        self.saved_bytes.fetch_add(bytes_of(&record), Ordering::Relaxed);
        lock(&self.saved[hash as usize % LANES]).push(Saved { db, record });
    }

    /// Takes the keys of one lane.
    pub(crate) fn take_saved(&self) -> Vec<Saved> {
        let mut lanes = self.saved.iter().map(|lane| std::mem::take(&mut *lock(lane)));
        lanes.find(|lane| !lane.is_empty()).unwrap_or_default()
    }

    /// Bytes of keys that are saved and not written yet.
    pub(crate) fn saved_bytes(&self) -> usize {
        self.saved_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn forget(&self, record: &Record<Object>) {
        self.saved_bytes.fetch_sub(bytes_of(record), Ordering::Relaxed);
    }

    pub(crate) fn owe(&self, debt: Arc<PendingPreImage>) {
        lock(&self.debts).push_back(debt);
    }

    pub(crate) fn next_debt(&self) -> Option<Arc<PendingPreImage>> {
        lock(&self.debts).pop_front()
    }

    pub(crate) fn empty(&self, emptied: Emptied) {
        lock(&self.emptied).push(emptied);
    }

    pub(crate) fn next_emptied(&self) -> Option<Emptied> {
        lock(&self.emptied).pop()
    }

    pub(crate) fn has_emptied(&self) -> bool {
        !lock(&self.emptied).is_empty()
    }

    pub(crate) fn note_loss(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

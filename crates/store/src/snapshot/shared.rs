//! What those who change keys leave for the walker of a snapshot.
//!
//! Locks are held for a push or for taking everything, and nothing else is locked meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::hash::ByKeyHash;
use ds::record::Record;
use ds::table::IntoRecords;

use super::debt::Debt;
use crate::stored::Object;

/// Lists of saved keys, so that threads seldom meet at one.
const LANES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Shared {
    saved: [Mutex<Vec<Saved>>; LANES],
    saved_bytes: AtomicUsize,
    debts: Mutex<VecDeque<Arc<Debt>>>,
    emptied: Mutex<Vec<Emptied>>,
    /// A collection was dropped that was owed.
    lost: AtomicBool,
    /// Nothing need be saved any more.
    over: AtomicBool,
}

/// A key as it was at the cut.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) db: u32,
    pub(super) record: Record<Object>,
}

/// The keys of a database that was emptied.
#[derive(Debug)]
pub(super) struct Emptied {
    pub(super) db: u32,
    pub(super) records: IntoRecords<Object>,
    /// See [`Part`](super::part::Part).
    pub(super) from: Option<u32>,
    pub(super) changed: ByKeyHash<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// About how many bytes a saved key takes.
pub(super) fn bytes_of(record: &Record<Object>) -> usize {
    let own = record.view().allocated_bytes();
    own + match record.view().object() {
        // Until somebody changes it, it is one with that in the keyspace.
        Some(Object::String(_)) | None => 0,
        Some(object) => object.memory_bytes(),
    }
}

impl Shared {
    pub(super) fn save(&self, hash: u64, db: u32, record: Record<Object>) {
        self.saved_bytes.fetch_add(bytes_of(&record), Ordering::Relaxed);
        lock(&self.saved[hash as usize % LANES]).push(Saved { db, record });
    }

    /// Takes the keys of one lane.
    pub(super) fn take_saved(&self) -> Vec<Saved> {
        let mut lanes = self.saved.iter().map(|lane| std::mem::take(&mut *lock(lane)));
        lanes.find(|lane| !lane.is_empty()).unwrap_or_default()
    }

    /// Bytes of keys that are saved and not written yet.
    pub(super) fn saved_bytes(&self) -> usize {
        self.saved_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn forget(&self, record: &Record<Object>) {
        self.saved_bytes.fetch_sub(bytes_of(record), Ordering::Relaxed);
    }

    pub(super) fn owe(&self, debt: Arc<Debt>) {
        lock(&self.debts).push_back(debt);
    }

    pub(super) fn next_debt(&self) -> Option<Arc<Debt>> {
        lock(&self.debts).pop_front()
    }

    pub(super) fn empty(&self, emptied: Emptied) {
        lock(&self.emptied).push(emptied);
    }

    pub(super) fn next_emptied(&self) -> Option<Emptied> {
        lock(&self.emptied).pop()
    }

    pub(super) fn has_emptied(&self) -> bool {
        !lock(&self.emptied).is_empty()
    }

    pub(super) fn note_loss(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

//! The queues from commands that change keys to the walker of a snapshot.
//!
//! Each lock is held for one push or take, and no other lock is taken in between.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::hash::ByKeyHash;
use ds::record::Record;
use ds::table::IntoRecords;

use super::pending::PendingPreImage;
use crate::value::stored::Object;

/// Lists of saved keys; several, so that threads seldom contend for one.
const LANES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct PreImages {
    saved: [Mutex<Vec<Saved>>; LANES],
    saved_bytes: AtomicUsize,
    pending: Mutex<VecDeque<Arc<PendingPreImage>>>,
    emptied: Mutex<Vec<Emptied>>,
    /// A pending collection was dropped.
    lost: AtomicBool,
    /// Nothing needs to be saved: the snapshot has ended.
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
    /// See [`DbProgress`](super::progress::DbProgress).
    pub(crate) from: Option<u32>,
    pub(crate) changed: ByKeyHash<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The approximate bytes that a saved key takes.
pub(crate) fn bytes_of(record: &Record<Object>) -> usize {
    let own = record.view().allocated_bytes();
    own + match record.view().object() {
        // Shared with the keyspace until a command changes it.
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

    /// Bytes of keys that were saved and not written yet.
    pub(crate) fn saved_bytes(&self) -> usize {
        self.saved_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn forget(&self, record: &Record<Object>) {
        self.saved_bytes.fetch_sub(bytes_of(record), Ordering::Relaxed);
    }

    pub(crate) fn push_pending(&self, pending: Arc<PendingPreImage>) {
        lock(&self.pending).push_back(pending);
    }

    pub(crate) fn next_pending(&self) -> Option<Arc<PendingPreImage>> {
        lock(&self.pending).pop_front()
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

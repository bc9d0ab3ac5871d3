//! The queues from commands that change keys to the walker of a snapshot.
//!
//! Each lock is held for one push or take, and no other lock is taken in between.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use base::hash::ByKeyHash;
use base::uncounted::SnapshotBytes;
use ds::record::Record;
use ds::table::{IntoRecords, Table};

use super::pending::PendingPreImage;
use crate::value::freed_bytes::emptied_bytes;
use crate::value::stored::Object;

/// Lists of saved keys; several, so that threads seldom contend for one.
const LANES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct PreImages {
    saved: [Mutex<Vec<Saved>>; LANES],
    saved_bytes: AtomicUsize,
    /// Long strings that saved keys share with the keyspace, by their addresses.
    shared_texts: Mutex<HashMap<usize, Weak<SharedText>>>,
    /// Whether there are some.
    shares_texts: AtomicBool,
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
    bytes: SnapshotBytes,
    shared_text: Option<Arc<SharedText>>,
}

/// A long string that a saved key shares with the keyspace.
#[derive(Debug, Default)]
struct SharedText {
    /// Its bytes, when the keyspace has it no longer.
    left: Mutex<SnapshotBytes>,
}

impl Saved {
    /// A copy of a record whose value stays in the keyspace.
    pub(crate) fn staying(db: u32, record: Record<Object>) -> Self {
        let bytes = SnapshotBytes::new(bytes_of(&record));
        let shared_text = long_text(&record).map(|_| Arc::default());
        Self { db, record, bytes, shared_text }
    }

    /// A copy of a record whose value a command is about to change. It then has the only reference
    /// to a long string, unless a copy of the key or a reply shares it: then it counts as in use,
    /// also after these are gone.
    pub(crate) fn going(db: u32, record: Record<Object>) -> Self {
        let text = long_text(&record).filter(|text| Arc::strong_count(text) == 2);
        let text_bytes = text.map_or(0, |text| text.capacity());
        let bytes = SnapshotBytes::new(bytes_of(&record) + text_bytes);
        Self { db, record, bytes, shared_text: None }
    }
}

/// The value of a record, if it is a long string.
fn long_text(record: &Record<Object>) -> Option<&Arc<Vec<u8>>> {
    match record.view().object() {
        Some(Object::String(text)) => Some(text),
        _ => None,
    }
}

fn address_of(text: &Arc<Vec<u8>>) -> usize {
    Arc::as_ptr(text).addr()
}

/// The keys of a database that was emptied.
#[derive(Debug)]
pub(crate) struct Emptied {
    pub(crate) db: u32,
    records: IntoRecords<Object>,
    /// How many of them are left.
    left: usize,
    /// Their approximate bytes.
    bytes: SnapshotBytes,
    /// See [`DbProgress`](super::progress::DbProgress).
    pub(crate) from: Option<u32>,
    pub(crate) changed: ByKeyHash<()>,
}

impl Emptied {
    /// The records of a database's part of a shard. `from` and `changed` are those of its progress.
    pub(crate) fn new(
        db: u32,
        table: Table<Object>,
        from: Option<u32>,
        changed: ByKeyHash<()>,
    ) -> Self {
        let bytes = SnapshotBytes::new(emptied_bytes(&table));
        Self { db, left: table.len(), records: table.into_iter(), bytes, from, changed }
    }

    /// The next record, whose bytes are no longer counted here.
    pub(crate) fn next_record(&mut self) -> Option<Record<Object>> {
        let bytes = self.bytes.bytes();
        self.bytes.set(bytes - bytes / self.left.max(1));
        self.left = self.left.saturating_sub(1);
        self.records.next()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The approximate bytes that the copy of a key takes.
pub(crate) fn bytes_of(record: &Record<Object>) -> usize {
    let own = record.view().allocated_bytes();
    own + match record.view().object() {
        // Shared with the keyspace until a command changes it.
        Some(Object::String(_)) | None => 0,
        Some(object) => object.memory_bytes(),
    }
}

impl PreImages {
    pub(crate) fn save(&self, hash: u64, saved: Saved) {
        self.saved_bytes.fetch_add(saved.bytes.bytes(), Ordering::Relaxed);
        if let (Some(text), Some(shared)) = (long_text(&saved.record), &saved.shared_text) {
            self.change_shared_texts(|texts| {
                texts.insert(address_of(text), Arc::downgrade(shared));
            });
        }
        lock(&self.saved[hash as usize % LANES]).push(saved);
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

    /// Changes the list of long strings that saved keys share with the keyspace.
    fn change_shared_texts(&self, change: impl FnOnce(&mut HashMap<usize, Weak<SharedText>>)) {
        let mut texts = lock(&self.shared_texts);
        change(&mut texts);
        self.shares_texts.store(!texts.is_empty(), Ordering::Relaxed);
    }

    /// Whether saved keys may share long strings with the keyspace. A key that was saved under the
    /// caller's lock of its shard is among them until its copy is written.
    pub(crate) fn shares_texts(&self) -> bool {
        self.shares_texts.load(Ordering::Relaxed)
    }

    /// A command is about to change the value of a key that was saved before. If a saved key has
    /// the only other reference to its long string, only the snapshot needs that from now on.
    pub(crate) fn leave(&self, object: &Object) {
        let Object::String(text) = object else { return };
        if Arc::strong_count(text) != 2 {
            return;
        }
        let shared = lock(&self.shared_texts).get(&address_of(text)).and_then(Weak::upgrade);
        if let Some(shared) = shared {
            lock(&shared.left).set(text.capacity());
        }
    }

    pub(crate) fn forget(&self, saved: &Saved) {
        if let (Some(text), Some(_)) = (long_text(&saved.record), &saved.shared_text) {
            self.change_shared_texts(|texts| {
                texts.remove(&address_of(text));
            });
        }
        self.saved_bytes.fetch_sub(saved.bytes.bytes(), Ordering::Relaxed);
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

//! The queues from commands that change keys to the walker of a snapshot.
//!
//! Each lock is held for one push or take, and no other lock is taken in between.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::hash::ByKeyHash;
use base::uncounted::SnapshotBytes;
use ds::record::Record;
use ds::table::{IntoRecords, Table};

use super::pending::PendingPreImage;
use super::shared_texts::{SharedTexts, long_text};
use crate::value::freed_bytes::emptied_bytes;
use crate::value::stored::Object;

/// Lists of saved keys; several, so that threads seldom contend for one.
const LANES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct PreImages {
    saved: [Mutex<Vec<Saved>>; LANES],
    saved_bytes: AtomicUsize,
    /// Long strings of saved keys.
    shared_texts: Mutex<SharedTexts>,
    /// Whether there are some.
    shares_texts: AtomicBool,
    /// Whether some must be looked at again.
    has_dropped_texts: AtomicBool,
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
}

impl Saved {
    /// A copy of a record. It shares a long string with the keyspace.
    pub(crate) fn new(db: u32, record: Record<Object>) -> Self {
        let bytes = SnapshotBytes::new(bytes_of(&record));
        Self { db, record, bytes }
    }
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
    /// `is_dropped` says whether otherwise only saved keys have a long string that is shared.
    pub(crate) fn new(
        db: u32,
        table: Table<Object>,
        from: Option<u32>,
        changed: ByKeyHash<()>,
        is_dropped: &dyn Fn(&Arc<Vec<u8>>) -> bool,
    ) -> Self {
        let bytes = SnapshotBytes::new(emptied_bytes(&table, is_dropped));
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
    /// Adds a saved key. `keeps_value` if the value of the key stays in the keyspace.
    pub(crate) fn save(&self, hash: u64, saved: Saved, keeps_value: bool) {
        self.saved_bytes.fetch_add(saved.bytes.bytes(), Ordering::Relaxed);
        if let Some(text) = long_text(saved.record.view().object()) {
            self.with_texts(|texts| {
                texts.add(text);
                if keeps_value { 0 } else { texts.drop_owner(text) }
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

    /// Runs `work` with the long strings of saved keys. It returns how many bytes it has excluded.
    fn with_texts(&self, work: impl FnOnce(&mut SharedTexts) -> usize) {
        let mut texts = lock(&self.shared_texts);
        self.saved_bytes.fetch_add(work(&mut texts), Ordering::Relaxed);
        self.shares_texts.store(!texts.is_empty(), Ordering::Relaxed);
        self.has_dropped_texts.store(texts.has_dropped(), Ordering::Relaxed);
    }

    /// Whether saved keys may share long strings with the keyspace. A key that was saved under the
    /// caller's lock of its shard is among them until its copy is written.
    pub(crate) fn shares_texts(&self) -> bool {
        self.shares_texts.load(Ordering::Relaxed)
    }

    /// A command is about to change the value of a key that was saved before. If otherwise only
    /// saved keys have its long string, only the snapshot needs that from now on.
    pub(crate) fn leave(&self, object: &Object) {
        if let Some(text) = long_text(Some(object)) {
            self.with_texts(|texts| texts.drop_owner(text));
        }
    }

    /// Looks again at some long strings that keys have dropped: the other keys and replies that
    /// shared them may be gone. For the walker, and for commands that change keys.
    pub(crate) fn look_again(&self) {
        if self.has_dropped_texts.load(Ordering::Relaxed) {
            self.with_texts(SharedTexts::look_again);
        }
    }

    /// Checks that exactly those long strings are excluded that only saved keys have.
    #[cfg(test)]
    pub(crate) fn check_texts(&self) {
        if !self.is_over() {
            lock(&self.shared_texts).check();
        }
    }

    /// Removes a key that will be written, and its bytes.
    pub(crate) fn forget(&self, saved: &Saved) {
        let mut bytes = saved.bytes.bytes();
        if let Some(text) = long_text(saved.record.view().object()) {
            self.with_texts(|texts| {
                bytes += texts.remove(text);
                0
            });
        }
        self.saved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn push_pending(&self, pending: Arc<PendingPreImage>) {
        lock(&self.pending).push_back(pending);
    }

    pub(crate) fn next_pending(&self) -> Option<Arc<PendingPreImage>> {
        lock(&self.pending).pop_front()
    }

    /// Adds the records of a database's part of a shard. See [`Emptied::new`].
    pub(crate) fn empty(
        &self,
        db: u32,
        table: Table<Object>,
        from: Option<u32>,
        changed: ByKeyHash<()>,
    ) {
        let shares_texts = self.shares_texts();
        let is_dropped =
            |text: &Arc<Vec<u8>>| shares_texts && lock(&self.shared_texts).has_one_owner(text);
        let emptied = Emptied::new(db, table, from, changed, &is_dropped);
        lock(&self.emptied).push(emptied);
        if shares_texts {
            self.with_texts(|texts| {
                texts.drop_all();
                0
            });
        }
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

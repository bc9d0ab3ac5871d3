//! A large collection whose state at the cut the snapshot still has to write: that state, and where
//! the collection is now.
//!
//! The collection carries its pending pre-image as the ticket of its walk, so RENAME, MOVE and
//! SWAPDB keep it. A command that puts the collection under another key records the key here; a
//! command that drops it hands it over instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use base::uncounted::SnapshotBytes;
use ds::walk::Ticket;

use super::queue::PreImages;
use super::sink::CollectionHead;
use crate::key::Key;
use crate::value::stored::Object;

#[derive(Debug)]
pub(crate) struct PendingPreImage {
    pub(crate) head: CollectionHead,
    shared: Weak<PreImages>,
    place: Mutex<CollectionPlace>,
    is_settled: AtomicBool,
}

/// Where the collection is.
#[derive(Debug)]
pub(crate) enum CollectionPlace {
    /// Under a key with this name and hash, in some database.
    Key(Box<[u8]>, u64),
    /// Here, because the keyspace has dropped it.
    Here(Box<KeptObject>),
    /// With the walker, which has taken it from here.
    Taken,
    /// Lost.
    Gone,
}

/// A collection that only the snapshot still needs.
#[derive(Debug)]
pub(crate) struct KeptObject {
    pub(crate) object: Object,
    _bytes: SnapshotBytes,
}

impl From<Object> for CollectionPlace {
    fn from(object: Object) -> Self {
        // Without the members and chunks that its walk has saved, which exclude their own bytes.
        let _bytes = SnapshotBytes::new(object.memory_bytes());
        Self::Here(Box::new(KeptObject { object, _bytes }))
    }
}

/// The ticket of a collection's walk.
#[derive(Debug)]
struct PreImageTicket(Arc<PendingPreImage>);

impl Drop for PreImageTicket {
    fn drop(&mut self) {
        if !self.0.is_settled.load(Ordering::Relaxed)
            && let Some(shared) = self.0.shared.upgrade()
        {
            shared.note_loss();
            *self.0.place() = CollectionPlace::Gone;
        }
    }
}

impl PendingPreImage {
    /// Records a collection as pending, and returns the ticket for its walk.
    pub(crate) fn record(
        shared: &Arc<PreImages>,
        head: CollectionHead,
        place: CollectionPlace,
    ) -> (Arc<Self>, Ticket) {
        let (shared, place) = (Arc::downgrade(shared), Mutex::new(place));
        let pending = Arc::new(Self { head, shared, place, is_settled: AtomicBool::new(false) });
        (Arc::clone(&pending), Ticket(Box::new(PreImageTicket(pending))))
    }

    /// The pending pre-image of an object, if it has one.
    pub(crate) fn of(object: &Object) -> Option<&Arc<Self>> {
        Some(&object.ticket()?.0.downcast_ref::<PreImageTicket>()?.0)
    }

    pub(crate) fn place(&self) -> MutexGuard<'_, CollectionPlace> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the new key of the collection.
    pub(crate) fn moved_to(&self, key: Key<'_>) {
        *self.place() = CollectionPlace::Key(key.bytes.into(), key.hash);
    }

    /// Marks the collection as written, or as not needed.
    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn shared(&self) -> Option<Arc<PreImages>> {
        self.shared.upgrade()
    }
}

/// Hands an object that would be dropped to the snapshot if that still needs it, and returns any
/// other.
#[inline]
pub(crate) fn unless_pending(object: Object) -> Option<Object> {
    match PendingPreImage::of(&object).cloned() {
        None => Some(object),
        Some(pending) => {
            *pending.place() = object.into();
            None
        }
    }
}

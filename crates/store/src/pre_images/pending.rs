//! A large collection that a snapshot owes its sink: how it was at the cut, and where it is now.
//!
//! The collection carries its debt as the ticket of its walk, wherever RENAME, MOVE or SWAPDB take
//! it. Who puts it under another key notes that here; who drops it hands it over instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
    paid: AtomicBool,
}

/// Where a collection is.
#[derive(Debug)]
pub(crate) enum CollectionPlace {
    /// Under a key with this name and hash, in some database.
    Key(Box<[u8]>, u64),
    /// Here: the keyspace has dropped it.
    Here(Object),
    /// With the walker, which has taken it from here.
    Taken,
    /// Nowhere: it was lost.
    Gone,
}

/// The ticket of a collection's walk.
#[derive(Debug)]
struct PreImageTicket(Arc<PendingPreImage>);

impl Drop for PreImageTicket {
    fn drop(&mut self) {
        if !self.0.paid.load(Ordering::Relaxed)
            && let Some(shared) = self.0.shared.upgrade()
        {
            shared.note_loss();
            *self.0.place() = CollectionPlace::Gone;
        }
    }
}

impl PendingPreImage {
    /// Notes that a collection is owed, and returns the ticket for its walk.
    pub(crate) fn record(
        shared: &Arc<PreImages>,
        head: CollectionHead,
        place: CollectionPlace,
    ) -> (Arc<Self>, Ticket) {
        let (shared, place) = (Arc::downgrade(shared), Mutex::new(place));
        let debt = Arc::new(Self { head, shared, place, paid: AtomicBool::new(false) });
        (Arc::clone(&debt), Ticket(Box::new(PreImageTicket(debt))))
    }

    /// The debt of an object, if it has one.
    pub(crate) fn of(object: &Object) -> Option<&Arc<Self>> {
        Some(&object.ticket()?.0.downcast_ref::<PreImageTicket>()?.0)
    }

    pub(crate) fn place(&self) -> MutexGuard<'_, CollectionPlace> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The collection has come under a key.
    pub(crate) fn moved_to(&self, key: Key<'_>) {
        *self.place() = CollectionPlace::Key(key.bytes.into(), key.hash);
    }

    /// The collection has been written, or need not be.
    pub(crate) fn settle(&self) {
        self.paid.store(true, Ordering::Relaxed);
    }

    pub(crate) fn shared(&self) -> Option<Arc<PreImages>> {
        self.shared.upgrade()
    }
}

/// Hands an object that is to be dropped to the snapshot that owes it. Returns any other.
#[inline]
pub(crate) fn unless_owed(object: Object) -> Option<Object> {
    match PendingPreImage::of(&object).cloned() {
        None => Some(object),
        Some(debt) => {
            *debt.place() = CollectionPlace::Here(object);
            None
        }
    }
}

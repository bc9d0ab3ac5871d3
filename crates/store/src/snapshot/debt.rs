//! A large collection that a snapshot owes its sink: how it was at the cut, and where it is now.
//!
//! The collection carries its debt as the ticket of its walk, wherever RENAME, MOVE or SWAPDB take
//! it. Who puts it under another key notes that here; who drops it hands it over instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ds::walk::Ticket;

use super::shared::Shared;
use super::sink::Head;
use crate::stored::Object;
use crate::turn::Key;

#[derive(Debug)]
pub(crate) struct Debt {
    pub(super) head: Head,
    shared: Weak<Shared>,
    place: Mutex<Place>,
    paid: AtomicBool,
}

/// Where a collection is.
#[derive(Debug)]
pub(super) enum Place {
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
struct Owed(Arc<Debt>);

impl Drop for Owed {
    fn drop(&mut self) {
        if !self.0.paid.load(Ordering::Relaxed)
            && let Some(shared) = self.0.shared.upgrade()
        {
            shared.note_loss();
            *self.0.place() = Place::Gone;
        }
    }
}

impl Debt {
    /// Notes that a collection is owed, and returns the ticket for its walk.
    pub(super) fn record(shared: &Arc<Shared>, head: Head, place: Place) -> (Arc<Self>, Ticket) {
        let (shared, place) = (Arc::downgrade(shared), Mutex::new(place));
        let debt = Arc::new(Self { head, shared, place, paid: AtomicBool::new(false) });
        (Arc::clone(&debt), Ticket(Box::new(Owed(debt))))
    }

    /// The debt of an object, if it has one.
    pub(crate) fn of(object: &Object) -> Option<&Arc<Self>> {
        Some(&object.ticket()?.0.downcast_ref::<Owed>()?.0)
    }

    pub(super) fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The collection has come under a key.
    pub(super) fn moved_to(&self, key: Key<'_>) {
        *self.place() = Place::Key(key.bytes.into(), key.hash);
    }

    /// The collection has been written, or need not be.
    pub(super) fn settle(&self) {
        self.paid.store(true, Ordering::Relaxed);
    }

    pub(super) fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }
}

/// Hands an object that is to be dropped to the snapshot that owes it. Returns any other.
#[inline]
pub(crate) fn unless_owed(object: Object) -> Option<Object> {
    match Debt::of(&object).cloned() {
        None => Some(object),
        Some(debt) => {
            *debt.place() = Place::Here(object);
            None
        }
    }
}

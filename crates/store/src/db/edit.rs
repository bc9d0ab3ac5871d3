//! A value opened for writing: the access that types get, and the work when it is closed.

use std::marker::PhantomData;

use ds::record::{Payload, Record, RecordRef};
use ds::table::RecordMut;

use super::keys::Cleared;
use super::{Db, marks};
use crate::key_index::IndexEntry;
use crate::turn::Turn;
use crate::value::stored::{Object, StoredType};

/// A value opened for writing.
pub struct Edit<'a, T: StoredType> {
    pub(super) db: &'a mut Db,
    turn: &'a mut Turn,
    at: usize,
    changed: bool,
    /// A part has changed that watching and tracking clients ignore.
    part_changed: bool,
    created: bool,
    pub(super) hash: u64,
    /// The index entry of the old value.
    before: IndexEntry,
    of: PhantomData<T>,
}

impl<'a, T: StoredType> Edit<'a, T> {
    #[inline]
    pub(super) fn new(
        db: &'a mut Db,
        turn: &'a mut Turn,
        at: usize,
        hash: u64,
        created: bool,
    ) -> Self {
        let before = if created { IndexEntry::ABSENT } else { IndexEntry::of(db.table.at(at)) };
        Self {
            db,
            turn,
            at,
            changed: false,
            part_changed: false,
            created,
            hash,
            before,
            of: PhantomData,
        }
    }
}

impl<T: StoredType> Edit<'_, T> {
    /// Whether the key is new.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// The record for reading.
    pub(crate) fn record(&self) -> RecordRef<'_, Object> {
        self.db.table.at(self.at)
    }

    /// The record for writing. From now on the value counts as changed.
    pub(crate) fn record_mut(&mut self) -> RecordMut<'_, Object> {
        self.changed = true;
        self.record_unchanged_mut()
    }

    /// Marks a value that was changed through `record_unchanged_mut`.
    pub(crate) fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// Marks a value as changed through `record_unchanged_mut` in a part that watching and tracking
    /// clients ignore.
    pub(crate) fn mark_part_changed(&mut self) {
        self.part_changed = true;
    }

    /// The turn, for values that a change removes and for its scratch buffer.
    pub(crate) fn turn(&mut self) -> &mut Turn {
        self.turn
    }

    /// The turn for reading.
    pub(crate) fn turn_ref(&self) -> &Turn {
        self.turn
    }

    /// The record for writing another form of the same value, which is no change.
    pub(crate) fn record_unchanged_mut(&mut self) -> RecordMut<'_, Object> {
        let cleared = self.before_change();
        self.db.table.at_mut(self.at, cleared)
    }

    /// Marks the key as changed although its value is the same.
    pub(super) fn rewritten(&mut self) {
        let noted = marks::key_changes(self.turn, self.db.table.at(self.at).key());
        self.db.rewritten(noted, self.hash);
    }

    #[inline]
    fn before_change(&mut self) -> Cleared {
        self.db.before_change(&self.turn.hasher, self.hash)
    }

    /// The object for writing in place. The caller decides whether that is a change.
    pub(crate) fn object_mut(&mut self) -> Option<&mut Object> {
        let cleared = self.before_change();
        self.db.table.object_mut(self.at, cleared)
    }

    /// Moves the object to the lazy-free list before the record gets another payload.
    pub(crate) fn discard_object(&mut self) {
        if self.record().object().is_some() {
            let empty = Record::new(
                self.record().key(),
                0,
                Payload::Bytes(b""),
                self.record().expires_at(),
                self.record().access_clock(),
            );
            let old = std::mem::replace(&mut *self.record_unchanged_mut(), empty);
            self.turn.lazy_free.extend(old.into_object());
        }
    }
}

impl<T: StoredType> Drop for Edit<'_, T> {
    fn drop(&mut self) {
        self.turn.counters.changes += u64::from(self.changed || self.part_changed);
        if !self.changed && !self.created {
            return;
        }
        if self.created && self.changed {
            self.turn.effects.note_new(self.db.number, self.db.table.at(self.at).key());
        }
        let goes = !self.changed || T::is_empty(self.record());
        let after = if goes { IndexEntry::ABSENT } else { IndexEntry::of(self.record()) };
        marks::field_expires(self.turn, self.hash, after.due.is_some());
        if self.changed {
            let noted = marks::key_changes(self.turn, self.db.table.at(self.at).key());
            self.db.changed(noted, self.hash, self.before, after);
        }
        if goes {
            let record = self.db.take_record(self.turn, self.at, self.hash);
            self.turn.lazy_free.extend(record.into_object());
        }
    }
}

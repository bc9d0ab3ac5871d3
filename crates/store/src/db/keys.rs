//! The records of one shard's part of a database, and the only way to change them.
//!
//! Changing, adding or removing a record requires a [`Cleared`], which only
//! [`Db::before_change`](super::Db::before_change) returns: at that point a running snapshot has
//! saved what it needs of the key. So no change can bypass it. Without a snapshot this costs one
//! branch, on a byte next to the table.

use std::ops::Deref;

use base::hash::KeyHasher;
use ds::record::Record;
use ds::table::{RecordMut, Table};

use crate::value::stored::Object;

/// The records. All code may read them.
#[derive(Debug, Default)]
pub(crate) struct GuardedKeys(Table<Object>);

/// Proof that the snapshot has saved what it needs of a key that is about to change.
#[must_use]
#[derive(Debug)]
pub(crate) struct Cleared(());

impl Cleared {
    /// For [`Db::before_change`](super::Db::before_change) only.
    #[inline]
    pub(super) fn by_db() -> Self {
        Self(())
    }
}

impl Deref for GuardedKeys {
    type Target = Table<Object>;

    #[inline]
    fn deref(&self) -> &Table<Object> {
        &self.0
    }
}

impl GuardedKeys {
    /// See [`Table::at_mut`].
    #[inline]
    pub(crate) fn at_mut(&mut self, at: usize, _: Cleared) -> RecordMut<'_, Object> {
        self.0.at_mut(at)
    }

    /// See [`Table::object_mut`].
    pub(crate) fn object_mut(&mut self, at: usize, _: Cleared) -> Option<&mut Object> {
        self.0.object_mut(at)
    }

    /// See [`Table::insert`].
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        record: Record<Object>,
        hasher: &KeyHasher,
        _: Cleared,
    ) -> usize {
        self.0.insert(hash, record, hasher)
    }

    /// See [`Table::remove`].
    pub(crate) fn remove(&mut self, at: usize, hasher: &KeyHasher, _: Cleared) -> Record<Object> {
        self.0.remove(at, hasher)
    }

    /// Sets the access clock of a record, which is not part of its state.
    #[inline]
    pub(crate) fn set_access_clock(&mut self, at: usize, clock: u32) {
        self.0.at_mut(at).set_access_clock(clock);
    }

    /// The object of a record, for the snapshot itself, which does not change the value.
    pub(crate) fn walked_object(&mut self, at: usize) -> Option<&mut Object> {
        self.0.object_mut(at)
    }

    /// See [`Table::reserve`].
    pub(crate) fn reserve(&mut self, keys: usize, hasher: &KeyHasher) {
        self.0.reserve(keys, hasher);
    }

    /// Takes all records. If there is a snapshot, the caller passes them to it.
    pub(super) fn take(&mut self) -> Table<Object> {
        std::mem::take(&mut self.0)
    }
}

//! How keys of one shard's part of one database get into a snapshot: commands save them before they
//! change, or the walker visits them.

use std::sync::Arc;

use base::hash::{ByKeyHash, KeyHasher};
use ds::record::Record;
use ds::table::Table;
use ds::walk::Budget;

use crate::db::Db;
use crate::key::Key;
use crate::pre_images::pending::{CollectionPlace, PendingPreImage};
use crate::pre_images::progress::{DbProgress, is_unsaved};
use crate::pre_images::queue::{Emptied, PreImages, Saved};
use crate::pre_images::shared_texts::long_text;
use crate::pre_images::sink::{CollectionHead, KeySink};
use crate::turn::Turn;
use crate::value::stored::{Object, Stored};

/// The walker's arguments of a step.
pub(super) struct VisitStep<'a> {
    pub(super) hasher: &'a KeyHasher,
    pub(super) budget: &'a mut Budget,
    pub(super) sink: &'a mut dyn KeySink,
}

impl Db {
    /// Makes the current keys part of a snapshot.
    pub(super) fn join_snapshot(&mut self, shared: &Arc<PreImages>) {
        self.set_part(shared, Some(0));
    }

    fn set_part(&mut self, shared: &Arc<PreImages>, from: Option<u32>) {
        let (shared, number) = (Arc::clone(shared), self.number);
        let part = DbProgress { shared, number, from, changed: ByKeyHash::default() };
        self.key_index.set_part(Some(Box::new(part)));
        self.in_snapshot = true;
    }

    /// Ends the part of this database in the snapshot.
    pub(super) fn leave_snapshot(&mut self) {
        if self.in_snapshot {
            self.key_index.set_part(None);
            self.in_snapshot = false;
        }
    }

    /// See [`Db::before_change`]. `keeps_value` if the value stays in the keyspace.
    #[cold]
    #[inline(never)]
    pub(crate) fn save_for_snapshot(&mut self, hasher: &KeyHasher, hash: u64, keeps_value: bool) {
        let Some(part) = self.key_index.part() else { return };
        if part.shared.is_over() {
            return;
        }
        // The walker may wait for a slow disk while keys are evicted.
        part.shared.look_again();
        if !is_unsaved(part.from, &part.changed, hash) {
            if !keeps_value && part.shared.shares_texts() {
                let shared = Arc::clone(&part.shared);
                for at in self.table.slots_of(hash, hasher) {
                    self.table.at(at).object().inspect(|object| shared.leave(object));
                }
            }
            return;
        }
        part.changed.insert(hash, ());
        let (shared, number) = (Arc::clone(&part.shared), part.number);
        for at in self.table.slots_of(hash, hasher) {
            if !self.begin_pending(&shared, number, hasher, at, hash) {
                let record = self.table.at(at);
                let record = record.duplicate(record.key());
                shared.save(hash, Saved::new(number, record), keeps_value);
            }
        }
    }

    /// Begins the walk of the large collection in a slot. Returns whether there is one.
    fn begin_pending(
        &mut self,
        shared: &Arc<PreImages>,
        number: u32,
        hasher: &KeyHasher,
        at: usize,
        hash: u64,
    ) -> bool {
        let record = self.table.at(at);
        let Some(shape) = record.object().and_then(Object::shape) else { return false };
        let place = CollectionPlace::Key(record.key().into(), hash);
        let head = CollectionHead {
            db: number,
            key: record.key().into(),
            expires_at: record.expires_at(),
            access_clock: record.access_clock(),
            shape,
        };
        let (pending, ticket) = PendingPreImage::record(shared, head, place);
        if let Some(object) = self.table.walked_object(at) {
            object.begin_walk(ticket, hasher);
        }
        shared.push_pending(pending);
        true
    }

    /// Visits keys until the budget is spent. Returns whether all were visited.
    pub(super) fn visit_keys(&mut self, step: &mut VisitStep<'_>) -> bool {
        let Some(part) = self.key_index.part() else { return true };
        let Some(from) = part.from else { return true };
        if step.budget.is_spent() {
            return false;
        }
        let DbProgress { shared, number, changed, .. } = part;
        let (shared, number) = (Arc::clone(shared), *number);
        let changed = std::mem::take(changed);
        let mut large = Vec::new();
        let from = u64::from(from) << 32;
        let next = self.table.scan_until(from, step.hasher, false, &mut |hash, record| {
            let is_unsaved_key = !changed.contains_key(&hash);
            step.budget.spend(if is_unsaved_key { record.allocated_bytes() } else { 0 });
            if is_unsaved_key {
                match record.object() {
                    // Long strings are better written while no shard is locked, and few at a time:
                    // evicting one that is here frees nothing.
                    Some(Object::String(text)) => {
                        step.budget.spend(text.len());
                        let record = record.duplicate(record.key());
                        shared.save(hash, Saved::new(number, record), true);
                    }
                    Some(object) if object.shape().is_some() => large.push(hash),
                    _ => step.sink.entry(number, Stored(record)),
                }
            }
            step.budget.is_spent()
        });
        large.dedup();
        for hash in large {
            for at in self.table.slots_of(hash, step.hasher) {
                self.begin_pending(&shared, number, step.hasher, at, hash);
            }
        }
        if let Some(part) = self.key_index.part() {
            part.from = next;
            if next.is_some() {
                part.changed = changed;
            }
        }
        next.is_none()
    }

    /// A record is about to go to another key, or is copied. The part of a database that gets it
    /// must notice when a command drops its long string, which the snapshot may share.
    pub(crate) fn note_departure(&mut self, turn: &mut Turn, at: usize) {
        turn.departed = None;
        if self.in_snapshot
            && let Some(part) = self.key_index.part()
            && (part.from.is_some() || part.shared.shares_texts())
            && long_text(self.table.at(at).object()).is_some()
        {
            turn.departed = Some(Arc::clone(&part.shared));
        }
    }

    /// Records the new key of a collection that came from elsewhere and is still pending, and joins
    /// the snapshot that shares a long string from elsewhere.
    #[inline]
    pub(crate) fn note_arrival(&mut self, turn: &mut Turn, key: Key<'_>, object: Option<&Object>) {
        let pending = object.and_then(PendingPreImage::of);
        pending.inspect(|pending| pending.moved_to(key));
        let departed = turn.departed.take();
        if !self.in_snapshot
            && let Some(shared) = pending.and_then(|pending| pending.shared()).or(departed)
            // One that was aborted has left this part already.
            && !shared.is_over()
        {
            // No other key here is part of the snapshot. If the database is emptied, the collection
            // is needed.
            self.set_part(&shared, None);
        }
    }

    /// Hands the records of an emptied database to the snapshot, if it may still need them.
    pub(crate) fn hand_emptied(&mut self, table: Table<Object>) -> Table<Object> {
        let Some(part) = self.key_index.part() else { return table };
        let (from, changed) = (part.from.take(), std::mem::take(&mut part.changed));
        part.shared.empty(part.number, table, from, changed);
        Table::default()
    }

    /// Calls `work` on a pending collection if it is under a key with this hash, and returns the
    /// result.
    pub(super) fn with_pending<R>(
        &mut self,
        pending: &Arc<PendingPreImage>,
        hash: u64,
        work: impl FnOnce(&mut Object) -> R,
    ) -> Option<R> {
        let at = self.table.find_where(hash, |record| {
            let own = record.object().and_then(PendingPreImage::of);
            own.is_some_and(|own| Arc::ptr_eq(own, pending))
        })?;
        self.table.walked_object(at).map(work)
    }
}

/// Writes a record of an emptied database, makes it pending, or drops it if the snapshot does not
/// need it.
pub(super) fn visit_emptied(
    shared: &Arc<PreImages>,
    emptied: &Emptied,
    record: Record<Object>,
    step: &mut VisitStep<'_>,
) {
    let Emptied { db, from, changed, .. } = emptied;
    let hash = step.hasher.hash(record.view().key());
    step.budget.spend(record.view().allocated_bytes());
    if !is_unsaved(*from, changed, hash) {
        // A collection in it may have come from elsewhere, or be pending already.
        drop(record.into_object().and_then(crate::pre_images::pending::unless_pending));
        return;
    }
    let view = record.view();
    let Some(shape) = view.object().and_then(Object::shape) else {
        return step.sink.entry(*db, Stored(view));
    };
    let (expires_at, access_clock) = (view.expires_at(), view.access_clock());
    let head = CollectionHead { db: *db, key: view.key().into(), expires_at, access_clock, shape };
    let (pending, ticket) = PendingPreImage::record(shared, head, CollectionPlace::Taken);
    if let Some(mut object) = record.into_object() {
        object.begin_walk(ticket, step.hasher);
        *pending.place() = object.into();
    }
    shared.push_pending(pending);
}

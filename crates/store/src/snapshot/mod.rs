//! Snapshots: all databases as they were at one moment, the cut, while commands keep writing.
//!
//! ```text
//! gate closed     mark each shard                      the cut
//! Keys            saved keys, emptied databases,       small values whole; large collections
//!                 the tables of one shard after        become pending, with their state
//!                 the other
//! Collections     one large collection after the other
//! Leaving         each shard once                      it keeps nothing of the snapshot
//! ```
//!
//! The walker asks for the [`next`](Snapshot::next) task, gets the shard that it names, and makes a
//! step of it, bounded by a [`Budget`]. A command that is about to change an unvisited key saves it
//! first (`part`). The walker receives small values as copies and long strings shared. A large
//! collection is not copied: it begins its own walk, which saves single members and chunks before
//! they change (`ds::walk`) and moves with the collection. A collection that is deleted,
//! overwritten or flushed is handed to the walker instead of being dropped.
//!
//! Large collections come last, one at a time: saved keys are written while the tables are walked,
//! and a file has each value in one piece. Until a collection is walked, its changes take memory;
//! afterwards they do not. So the memory of a snapshot grows with the unvisited data that is
//! overwritten.
//!
//! A snapshot does not divide single elements. The step that visits a member, a chunk or an inline
//! value takes as long as that element needs, beyond any budget.

mod part;

use std::mem;
use std::sync::Arc;

use base::hash::KeyHasher;
pub use ds::walk::Budget;

use self::part::VisitStep;
use crate::pre_images::collection::EndedWalk;
use crate::pre_images::pending::{CollectionPlace, KeptObject, PendingPreImage};
use crate::pre_images::queue::{Emptied, PreImages, Saved, bytes_of};
pub use crate::pre_images::sink::{CollectionHead, CollectionPart, CollectionShape, KeySink};
use crate::shard::Shard;
use crate::value::stored::{Object, Stored};

/// The next task of the walker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// A step without a shard.
    Unlocked,
    /// A step with a shard, given by its index in the order of marking.
    Shard(usize),
    /// A step with the shard of this key and its hash.
    Key(Box<[u8]>, u64),
    /// Nothing.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotPhase {
    Keys,
    Collections,
    Leaving,
}

/// A running snapshot. There is at most one at any time, and it runs until [`Task::Done`], complete
/// or aborted, before it is dropped.
#[derive(Debug)]
pub struct Snapshot {
    shared: Arc<PreImages>,
    hasher: KeyHasher,
    phase: SnapshotPhase,
    shards: usize,
    /// The next shard of this phase.
    shard: usize,
    /// Saved keys that are being written.
    saved: Vec<Saved>,
    /// An emptied database that is being walked.
    emptied: Option<Emptied>,
    /// The collection that is being walked.
    current: Option<Collection>,
    /// Remains of walks, to be dropped while no shard is locked.
    leftover: Vec<EndedWalk>,
    aborted: bool,
}

#[derive(Debug)]
struct Collection {
    pending: Arc<PendingPreImage>,
    /// The sink has received its head.
    begun: bool,
    /// The hash of the key under which it is expected.
    sought: u64,
    /// The collection itself, after it was handed over.
    object: Option<Box<KeptObject>>,
}

impl Snapshot {
    /// An empty snapshot of keys hashed with `hasher`.
    pub fn new(hasher: KeyHasher) -> Self {
        Self {
            shared: Arc::default(),
            hasher,
            phase: SnapshotPhase::Keys,
            shards: 0,
            shard: 0,
            saved: Vec::new(),
            emptied: None,
            current: None,
            leftover: Vec::new(),
            aborted: false,
        }
    }

    /// Makes the shard's current keys part of the snapshot. All shards are marked while no command
    /// runs: that is the cut.
    pub fn mark(&mut self, shard: &mut Shard) {
        shard.dbs().filter(|db| !db.is_empty()).for_each(|db| db.join_snapshot(&self.shared));
        self.shards += 1;
    }

    /// Bytes of keys that were saved before they changed and are not written yet.
    pub fn saved_bytes(&self) -> usize {
        self.shared.saved_bytes()
    }

    /// Excludes the memory of some long strings that only the snapshot has since replies or other
    /// keys that shared them are gone. Each [task](Self::next) does so too.
    pub fn look_again(&self) {
        self.shared.look_again();
    }

    /// Whether data of the cut was lost, so that the sink's data is incomplete. This would be a
    /// bug.
    pub fn is_damaged(&self) -> bool {
        self.shared.has_lost()
    }

    /// Ends the snapshot early. The remaining tasks free its memory, and the sink gets nothing
    /// more.
    pub fn abort(&mut self) {
        self.aborted = true;
        self.shared.end();
        if self.phase == SnapshotPhase::Keys {
            (self.phase, self.shard) = (SnapshotPhase::Collections, 0);
        }
    }

    /// The next task.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Task {
        self.look_again();
        loop {
            if self.has_unlocked() {
                return Task::Unlocked;
            }
            match self.phase {
                SnapshotPhase::Keys if self.shard < self.shards => return Task::Shard(self.shard),
                SnapshotPhase::Keys => self.phase = SnapshotPhase::Collections,
                SnapshotPhase::Collections => match self.place() {
                    Some(task) => return task,
                    None => (self.phase, self.shard) = (SnapshotPhase::Leaving, 0),
                },
                SnapshotPhase::Leaving if self.shard < self.shards => {
                    return Task::Shard(self.shard);
                }
                SnapshotPhase::Leaving => return Task::Done,
            }
        }
    }

    fn has_unlocked(&mut self) -> bool {
        if self.saved.is_empty() {
            self.saved = self.shared.take_saved();
        }
        if self.emptied.is_none() {
            self.emptied = self.shared.next_emptied();
        }
        !self.saved.is_empty() || self.emptied.is_some() || !self.leftover.is_empty()
    }

    /// The task for the next pending collection, or `None` if there is none left.
    fn place(&mut self) -> Option<Task> {
        if self.current.is_none() {
            let pending = self.shared.next_pending()?;
            self.current = Some(Collection { pending, begun: false, sought: 0, object: None });
        }
        let current = self.current.as_mut()?;
        let mut place = current.pending.place();
        if let CollectionPlace::Key(key, hash) = &*place {
            current.sought = *hash;
            return Some(Task::Key(key.clone(), *hash));
        }
        match mem::replace(&mut *place, CollectionPlace::Taken) {
            CollectionPlace::Here(kept) => current.object = Some(kept),
            CollectionPlace::Gone => {
                drop(place);
                self.current = None;
                return self.place();
            }
            CollectionPlace::Taken | CollectionPlace::Key(..) => {}
        }
        Some(Task::Unlocked)
    }

    /// Makes a step of a task without a shard.
    pub fn step_unlocked(&mut self, budget: &mut Budget, sink: &mut dyn KeySink) {
        self.leftover.clear();
        while !budget.is_spent()
            && let Some(saved) = self.saved.pop()
        {
            self.shared.forget(&saved);
            budget.spend(bytes_of(&saved.record));
            if !self.aborted {
                sink.entry(saved.db, Stored(saved.record.view()));
            }
        }
        let mut step = VisitStep { hasher: &self.hasher, budget, sink };
        while !step.budget.is_spent()
            && let Some(emptied) = &mut self.emptied
        {
            if self.aborted {
                emptied.from = None;
            }
            match emptied.next_record() {
                Some(record) => part::visit_emptied(&self.shared, emptied, record, &mut step),
                None => self.emptied = None,
            }
        }
        if self.phase == SnapshotPhase::Collections
            && let Some(mut kept) = self.current.as_mut().and_then(|own| own.object.take())
            && !self.visit_collection(&mut kept.object, budget, sink)
            && let Some(current) = &mut self.current
        {
            current.object = Some(kept);
        }
    }

    /// Makes a step of a task with its shard.
    pub fn step(&mut self, shard: &mut Shard, budget: &mut Budget, sink: &mut dyn KeySink) {
        match self.phase {
            SnapshotPhase::Keys => {
                let mut step = VisitStep { hasher: &self.hasher, budget, sink };
                if shard.all_dbs().all(|db| db.visit_keys(&mut step)) {
                    self.shard += 1;
                }
            }
            SnapshotPhase::Collections => self.step_collection(shard, budget, sink),
            SnapshotPhase::Leaving => {
                shard.all_dbs().for_each(|db| db.leave_snapshot());
                self.shard += 1;
            }
        }
    }

    fn step_collection(&mut self, shard: &mut Shard, budget: &mut Budget, sink: &mut dyn KeySink) {
        let Some(Collection { pending, sought, .. }) = &self.current else { return };
        let (pending, sought) = (Arc::clone(pending), *sought);
        let mut work = |object: &mut Object| self.visit_collection(object, budget, sink);
        for db in shard.all_dbs() {
            if db.with_pending(&pending, sought, &mut work).is_some() {
                return;
            }
        }
        // If the collection was moved or its database emptied since the task was given, a later
        // task finds it. Otherwise it should have been here.
        let mut place = pending.place();
        let is_still_here = matches!(*place, CollectionPlace::Key(_, hash) if hash == sought);
        if is_still_here && self.emptied.is_none() && !self.shared.has_emptied() {
            *place = CollectionPlace::Gone;
            self.shared.note_loss();
        }
    }

    /// Continues the walk of the current collection. Returns whether it is complete.
    fn visit_collection(
        &mut self,
        object: &mut Object,
        budget: &mut Budget,
        sink: &mut dyn KeySink,
    ) -> bool {
        let Some(current) = &mut self.current else { return true };
        if !self.aborted {
            if !current.begun {
                current.begun = true;
                sink.begin(&current.pending.head);
            }
            if !object.step_walk(budget, sink) {
                return false;
            }
            sink.end();
        }
        current.pending.settle();
        self.leftover.extend(object.end_walk());
        self.current = None;
        true
    }
}

impl Drop for Snapshot {
    /// From now on no keys are saved. Existing data is freed only by the tasks after
    /// [`Snapshot::abort`].
    fn drop(&mut self) {
        self.shared.end();
    }
}

#[cfg(test)]
mod tests;

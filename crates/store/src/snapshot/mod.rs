//! Snapshots: all databases as they were at one moment, the cut, while writing goes on.
//!
//! ```text
//! gate closed     mark each shard                      the cut
//! Keys            saved keys, emptied databases,       small values whole; large collections are
//!                 the tables of one shard after        noted with what they had at the cut
//!                 the other
//! Collections     one large collection after the other
//! Leaving         each shard once                      it has nothing of the snapshot any more
//! ```
//!
//! The walker asks for the [`next`](Snapshot::next) task, gets the shard that it names, and makes
//! a step of it, bounded by a [`Budget`]. Who is about to change a key that has not been visited
//! saves it first (`part`). Its old state goes to the walker: small values as copies, long strings
//! shared, and large collections not at all: they begin a walk of their own, which saves single
//! members and chunks before they change (`ds::walk`) and moves with the collection. A collection
//! that is deleted, overwritten or flushed is handed over instead of being dropped.
//!
//! Large collections come last, one at a time: what is saved of keys is written while the tables
//! are walked, and a file has each value in one piece. Until a collection's turn, memory grows with
//! what changes in it, and after its turn no more. So the memory of a snapshot grows with what is
//! overwritten and not yet visited.
//!
//! What it does not do: divide a single element. The step that visits a member, a chunk or an
//! inline value takes as long as this one needs, beyond any budget.

mod part;

use std::mem;
use std::sync::Arc;

use base::hash::KeyHasher;
pub use ds::walk::Budget;

use self::part::VisitStep;
use crate::pre_images::collection::Ended;
use crate::pre_images::pending::{CollectionPlace, PendingPreImage};
use crate::pre_images::queue::{Emptied, PreImages, Saved, bytes_of};
pub use crate::pre_images::sink::{CollectionHead, CollectionPart, CollectionShape, KeySink};
use crate::shard::Shard;
use crate::value::stored::{Object, Stored};

/// What the walker is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// A step without a shard.
    Unlocked,
    /// A step with the shard that was marked so many others after the first.
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

/// A snapshot being taken. At most one is at any time, and it is taken to [`Task::Done`], whole or
/// aborted, before it is dropped.
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
    /// The collection whose turn it is.
    current: Option<Collection>,
    /// What is to be dropped where no shard is locked.
    leftover: Vec<Ended>,
    aborted: bool,
}

#[derive(Debug)]
struct Collection {
    debt: Arc<PendingPreImage>,
    /// The sink knows of it.
    begun: bool,
    /// The hash of the key under which it is looked for.
    sought: u64,
    /// It was handed over.
    object: Option<Object>,
}

impl Snapshot {
    /// A snapshot of nothing yet, of keys that are hashed so.
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

    /// Makes the keys that a shard holds now a part of the snapshot. All shards are marked while
    /// nothing is executed: that is the cut.
    pub fn mark(&mut self, shard: &mut Shard) {
        shard.dbs().filter(|db| !db.is_empty()).for_each(|db| db.join_snapshot(&self.shared));
        self.shards += 1;
    }

    /// Bytes of keys that have been saved before they changed, and have not been visited yet.
    pub fn saved_bytes(&self) -> usize {
        self.shared.saved_bytes()
    }

    /// Whether something that was there at the cut was dropped: then what the sink got is not
    /// whole. Nothing known does that.
    pub fn is_damaged(&self) -> bool {
        self.shared.has_lost()
    }

    /// Ends the snapshot before it is whole. The tasks that follow give its memory back, and the
    /// sink gets nothing more.
    pub fn abort(&mut self) {
        self.aborted = true;
        self.shared.end();
        if self.phase == SnapshotPhase::Keys {
            (self.phase, self.shard) = (SnapshotPhase::Collections, 0);
        }
    }

    /// What to do next.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Task {
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

    /// Where the collection is whose turn it is; none: there is none left.
    fn place(&mut self) -> Option<Task> {
        if self.current.is_none() {
            let debt = self.shared.next_debt()?;
            self.current = Some(Collection { debt, begun: false, sought: 0, object: None });
        }
        let current = self.current.as_mut()?;
        let mut place = current.debt.place();
        if let CollectionPlace::Key(key, hash) = &*place {
            current.sought = *hash;
            return Some(Task::Key(key.clone(), *hash));
        }
        match mem::replace(&mut *place, CollectionPlace::Taken) {
            CollectionPlace::Here(object) => current.object = Some(object),
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
            && let Some(Saved { db, record }) = self.saved.pop()
        {
            self.shared.forget(&record);
            budget.spend(bytes_of(&record));
            if !self.aborted {
                sink.entry(db, Stored(record.view()));
            }
        }
        let mut step = VisitStep { hasher: &self.hasher, budget, sink };
        while !step.budget.is_spent()
            && let Some(emptied) = &mut self.emptied
        {
            if self.aborted {
                emptied.from = None;
            }
            match emptied.records.next() {
                Some(record) => part::visit_emptied(&self.shared, emptied, record, &mut step),
                None => self.emptied = None,
            }
        }
        if self.phase == SnapshotPhase::Collections
            && let Some(mut object) = self.current.as_mut().and_then(|own| own.object.take())
            && !self.visit_collection(&mut object, budget, sink)
            && let Some(current) = &mut self.current
        {
            current.object = Some(object);
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
        let Some(Collection { debt, sought, .. }) = &self.current else { return };
        let (debt, sought) = (Arc::clone(debt), *sought);
        let mut work = |object: &mut Object| self.visit_collection(object, budget, sink);
        for db in shard.all_dbs() {
            if db.with_owed(&debt, sought, &mut work).is_some() {
                return;
            }
        }
        // Since the task was given it has gone elsewhere, or its database was emptied; if not, it
        // should have been here.
        let mut place = debt.place();
        let is_still_here = matches!(*place, CollectionPlace::Key(_, hash) if hash == sought);
        if is_still_here && self.emptied.is_none() && !self.shared.has_emptied() {
            *place = CollectionPlace::Gone;
            self.shared.note_loss();
        }
    }

    /// Goes on with the collection whose turn it is. Returns whether it is whole.
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
                sink.begin(&current.debt.head);
            }
            if !object.step_walk(budget, sink) {
                return false;
            }
            sink.end();
        }
        current.debt.settle();
        self.leftover.extend(object.end_walk());
        self.current = None;
        true
    }
}

impl Drop for Snapshot {
    /// Nothing more is saved of keys. But what is there goes only with the tasks after
    /// [`Snapshot::abort`].
    fn drop(&mut self) {
        self.shared.end();
    }
}

#[cfg(test)]
mod tests;

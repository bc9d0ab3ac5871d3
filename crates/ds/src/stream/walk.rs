//! A walk over the chunks that a stream had at one moment, and over what its groups knew then; see
//! [`crate::walk`].
//!
//! The identifiers at their bases distinguish chunks, and the walk has a position in that order.
//! So are pending entries by their own; see `group_walk`.

use std::collections::BTreeMap;

use crate::stream::chunk::Chunk;
use crate::stream::group_walk::{GroupHead, GroupsEnded};
use crate::stream::{ChunkRef, Id, Log, Pending, Stream};
use crate::walk::{Budget, Ticket};

/// The state of a stream without its chunks and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Chunks.
    pub chunks: usize,
    /// Entries.
    pub len: u64,
    /// See [`Log`].
    pub last_id: Id,
    /// The identifier of the first entry; 0-0 without entries.
    pub first_id: Id,
    /// See [`Log`].
    pub max_deleted_id: Id,
    /// See [`Log`].
    pub entries_added: u64,
    /// Groups.
    pub groups: usize,
}

impl Stream {
    /// The current state without the entries.
    pub fn head(&self) -> Head {
        let log = &self.log;
        Head {
            chunks: log.chunks_len(),
            len: log.len(),
            last_id: log.last_id,
            first_id: log.first_id().unwrap_or(Id::MIN),
            max_deleted_id: log.max_deleted_id,
            entries_added: log.entries_added,
            groups: self.groups.len(),
        }
    }
}

/// Of the entries of a map by identifiers, those that a walk has yet to visit.
#[derive(Debug)]
pub(super) struct Ahead<T> {
    /// The least identifier that has not been visited; none: all have been.
    from: Option<Id>,
    /// The highest one when the walk began.
    last: Id,
    /// The content of each changed identifier at the start of the walk.
    saved: BTreeMap<Id, Option<T>>,
}

impl<T> Ahead<T> {
    /// All up to the last; none at all without it.
    pub(super) fn up_to(last: Option<Id>) -> Self {
        let from = last.map(|_| Id::MIN);
        Self { from, last: last.unwrap_or(Id::MIN), saved: BTreeMap::new() }
    }

    /// Whether what is under an identifier must be saved before it changes.
    pub(super) fn owes(&self, id: Id) -> bool {
        self.from.is_some_and(|from| (from..=self.last).contains(&id))
            && !self.saved.contains_key(&id)
    }

    /// Saves what is under an identifier; nothing, if something new comes there.
    pub(super) fn save(&mut self, id: Id, old: Option<T>) {
        self.saved.insert(id, old);
    }

    /// Whether all has been visited.
    pub(super) fn is_done(&self) -> bool {
        self.from.is_none()
    }

    /// The next identifier, and the content that was saved for it. `own` returns the next existing
    /// identifier.
    pub(super) fn next(
        &mut self,
        own: impl FnOnce(Id) -> Option<Id>,
    ) -> Option<(Id, Option<Option<T>>)> {
        let from = self.from?;
        let saved = self.saved.first_key_value().map(|(id, _)| *id);
        let next = [own(from), saved].into_iter().flatten().min();
        let next = next.filter(|id| *id <= self.last);
        self.from = next.and_then(|id| id.next()).filter(|from| *from <= self.last);
        let next = next?;
        Some((next, self.saved.remove(&next)))
    }
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Walk {
    ticket: Ticket,
    pub(super) chunks: Ahead<Chunk>,
}

/// A part of a stream.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A chunk. They come in order, before the groups.
    Chunk(ChunkRef<'a>),
    /// A group, before what is pending in it.
    Group(&'a GroupHead),
    /// An entry that is pending in the group before it. They ascend.
    Pending(Id, Pending),
}

/// The memory of a finished walk, which its owner frees where that delays no client.
#[derive(Debug)]
pub struct Ended {
    /// The ticket with which it began.
    pub ticket: Ticket,
    _chunks: Ahead<Chunk>,
    _groups: GroupsEnded,
}

impl Log {
    /// Before the chunk at a base changes or goes, or one comes there.
    #[inline]
    pub(super) fn before_change(&mut self, base: Id) {
        if self.walk.is_some() {
            self.save(base);
        }
    }

    #[cold]
    #[inline(never)]
    fn save(&mut self, base: Id) {
        let Some(mut walk) = self.walk.0.take() else { return };
        if walk.chunks.owes(base) {
            walk.chunks.save(base, self.chunk_at(base).cloned());
        }
        self.walk.0 = Some(walk);
    }

    /// Keeps a chunk that was taken out if the walk has yet to visit it.
    pub(super) fn keep_one(&mut self, base: Id, chunk: Chunk) {
        if let Some(walk) = &mut self.walk.0
            && walk.chunks.owes(base)
        {
            walk.chunks.save(base, Some(chunk));
        }
    }

    /// Keeps those of the chunks taken out that the walk has yet to visit. Returns the others.
    pub(super) fn keep(&mut self, taken: BTreeMap<Id, Chunk>) -> BTreeMap<Id, Chunk> {
        let Some(walk) = &mut self.walk.0 else { return taken };
        let mut free = BTreeMap::new();
        for (base, chunk) in taken {
            if walk.chunks.owes(base) {
                walk.chunks.save(base, Some(chunk));
            } else {
                free.insert(base, chunk);
            }
        }
        free
    }

    fn chunk_at(&self, base: Id) -> Option<&Chunk> {
        let tail = self.tail.as_ref().filter(|tail| tail.base == base).map(|tail| &tail.chunk);
        tail.or_else(|| self.sealed.get(&base))
    }

    /// The base of the first chunk from an identifier on.
    fn base_from(&self, from: Id) -> Option<Id> {
        let sealed = self.sealed.range(from..).next().map(|(base, _)| *base);
        sealed.or_else(|| self.tail.as_ref().map(|tail| tail.base).filter(|base| *base >= from))
    }
}

impl Stream {
    /// Begins a walk over what is there now, in place of any other.
    pub fn begin_walk(&mut self, ticket: Ticket) {
        let sealed = || self.log.sealed.last_key_value().map(|(base, _)| *base);
        let last = self.log.tail.as_ref().map(|tail| tail.base).or_else(sealed);
        let chunks = Ahead::up_to(last);
        self.log.walk.0 = Some(Box::new(Walk { ticket, chunks }));
        self.groups.begin_walk();
    }

    /// Visits chunks in their order and then groups, until the budget is spent. Returns whether all
    /// have been visited.
    pub fn step_walk(&mut self, budget: &mut Budget, visit: &mut dyn FnMut(Part<'_>)) -> bool {
        let Some(mut walk) = self.log.walk.0.take() else { return true };
        while !budget.is_spent()
            && let Some((base, saved)) = walk.chunks.next(|from| self.log.base_from(from))
        {
            let chunk = saved.as_ref().map_or_else(|| self.log.chunk_at(base), Option::as_ref);
            if let Some(chunk) = chunk {
                visit(Part::Chunk(ChunkRef { base, chunk }));
                budget.spend(chunk.bytes.len());
            }
        }
        let done = walk.chunks.is_done() && self.groups.step_walk(budget, visit);
        self.log.walk.0 = Some(walk);
        done
    }

    /// The ticket of the walk, if there is one.
    #[inline]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.log.walk.0.as_ref().map(|walk| &walk.ticket)
    }

    /// Ends the walk.
    pub fn end_walk(&mut self) -> Option<Ended> {
        let Walk { ticket, chunks } = *self.log.walk.0.take()?;
        Some(Ended { ticket, _chunks: chunks, _groups: self.groups.end_walk() })
    }
}

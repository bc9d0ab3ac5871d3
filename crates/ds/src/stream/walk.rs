//! A walk over the chunks and groups of a stream at one moment; see [`crate::walk`].
//!
//! A chunk is identified by its base, the identifier of its first entry, and the walk advances in
//! that order. For groups see `group_walk`.

use std::collections::BTreeMap;

use crate::stream::ahead::{Ahead, StreamWalk};
use crate::stream::chunk::StreamChunk;
use crate::stream::group_walk::{GroupHead, GroupsEnded};
use crate::stream::{Id, Pending, Stream, StreamChunkRef, StreamLog};
use crate::walk::{Budget, Ticket};

/// The state of a stream without its chunks and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Chunks.
    pub chunks: usize,
    /// Entries.
    pub len: u64,
    /// See [`StreamLog`].
    pub last_id: Id,
    /// The identifier of the first entry; 0-0 without entries.
    pub first_id: Id,
    /// See [`StreamLog`].
    pub max_deleted_id: Id,
    /// See [`StreamLog`].
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

/// A part of a stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamPart<'a> {
    /// A chunk. The chunks come in order, before the groups.
    Chunk(StreamChunkRef<'a>),
    /// A group, before its pending entries.
    Group(&'a GroupHead),
    /// A pending entry of the last visited group, in order.
    Pending(Id, Pending),
}

/// The memory of a finished walk, which its owner frees where that delays no client.
#[derive(Debug)]
pub struct FinishedStreamWalk {
    /// The ticket of the walk.
    pub ticket: Ticket,
    _chunks: Ahead<StreamChunk>,
    _groups: GroupsEnded,
}

impl Ahead<StreamChunk> {
    fn save_chunk(&mut self, base: Id, chunk: Option<StreamChunk>) {
        let allocated = chunk.as_ref().map_or(0, StreamChunk::allocated_bytes);
        self.save(base, chunk, allocated);
    }
}

impl StreamLog {
    /// Call it before the chunk with this base is added, changed or removed.
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
        if walk.chunks.must_save(base) {
            walk.chunks.save_chunk(base, self.chunk_at(base).cloned());
        }
        self.walk.0 = Some(walk);
    }

    /// Saves a removed chunk if the walk has not visited it.
    pub(super) fn keep_one(&mut self, base: Id, chunk: StreamChunk) {
        if let Some(walk) = &mut self.walk.0
            && walk.chunks.must_save(base)
        {
            walk.chunks.save_chunk(base, Some(chunk));
        }
    }

    /// Saves the removed chunks that the walk has not visited, and returns the others.
    pub(super) fn keep(&mut self, taken: BTreeMap<Id, StreamChunk>) -> BTreeMap<Id, StreamChunk> {
        let Some(walk) = &mut self.walk.0 else { return taken };
        let mut free = BTreeMap::new();
        for (base, chunk) in taken {
            if walk.chunks.must_save(base) {
                walk.chunks.save_chunk(base, Some(chunk));
            } else {
                free.insert(base, chunk);
            }
        }
        free
    }

    fn chunk_at(&self, base: Id) -> Option<&StreamChunk> {
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
    /// Starts a walk over the current contents, which replaces any other walk.
    pub fn begin_walk(&mut self, ticket: Ticket) {
        let sealed = || self.log.sealed.last_key_value().map(|(base, _)| *base);
        let last = self.log.tail.as_ref().map(|tail| tail.base).or_else(sealed);
        let chunks = Ahead::up_to(last);
        self.log.walk.0 = Some(Box::new(StreamWalk { ticket, chunks }));
        self.groups.begin_walk();
    }

    /// Visits chunks in order and then groups, until the budget is spent. Returns whether all were
    /// visited.
    pub fn step_walk(
        &mut self,
        budget: &mut Budget,
        visit: &mut dyn FnMut(StreamPart<'_>),
    ) -> bool {
        let Some(mut walk) = self.log.walk.0.take() else { return true };
        while !budget.is_spent()
            && let Some((base, saved)) = walk.chunks.next(|from| self.log.base_from(from))
        {
            let chunk = match &saved {
                Some(saved) => saved.content.as_ref(),
                None => self.log.chunk_at(base),
            };
            if let Some(chunk) = chunk {
                visit(StreamPart::Chunk(StreamChunkRef { base, chunk }));
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
    pub fn end_walk(&mut self) -> Option<FinishedStreamWalk> {
        let StreamWalk { ticket, chunks } = *self.log.walk.0.take()?;
        Some(FinishedStreamWalk { ticket, _chunks: chunks, _groups: self.groups.end_walk() })
    }
}

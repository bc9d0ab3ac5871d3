//! The entries of a stream, in chunks.
//!
//! ```text
//! sealed   base -> chunk, base -> chunk, ...   tail: base and chunk
//! ```
//!
//! Only the tail gets new entries; when it is full it goes to the sealed ones, a tree by base, so
//! that finding an identifier, adding and removing at either end take logarithmic time however long
//! the stream is, and a small stream has nothing but its tail.
//!
//! Invariants: no chunk is without entries that are not deleted; all identifiers in a chunk are at
//! least its base and below the next one's.

use std::collections::BTreeMap;

use crate::btree::btree_bytes;
use crate::stream::ahead::StreamWalk;
use crate::stream::chunk::StreamChunk;
use crate::stream::{Id, StreamEntry, StreamRange, StreamRangeBack};
use crate::walk::WalkSlot;

/// The most bytes of an entry's texts. A chunk with as many bytes accepts no other entry. Offsets
/// in a chunk therefore fit in 32 bits: texts and chunk have at most 2 GB together, and the frames
/// of texts at most 1 GB. (A short text has a frame of 2 bytes, and the longest request of 3 GB has
/// 2^29 texts.)
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The limits of a chunk; 0 for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes that its listpack in Redis would have.
    pub bytes_max: u64,
    /// Entries, including deleted ones.
    pub entries_max: u64,
}

/// Entries with ascending identifiers.
#[derive(Clone, Debug)]
pub struct StreamLog {
    pub(super) sealed: BTreeMap<Id, StreamChunk>,
    pub(super) tail: Option<Tail>,
    pub(super) len: u64,
    /// Notified before each chunk is added, changed or removed.
    pub(super) walk: WalkSlot<StreamWalk>,
    /// The highest identifier ever given.
    pub last_id: Id,
    /// The highest identifier of an entry that was deleted other than by trimming.
    pub max_deleted_id: Id,
    /// Entries ever added.
    pub entries_added: u64,
}

/// The chunk that grows.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) base: Id,
    pub(super) chunk: StreamChunk,
    /// The bytes of its listpack's elements; see [`StreamChunk::listpack_bytes`].
    pub(super) written: usize,
}

impl Default for StreamLog {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamLog {
    /// No entries.
    pub const fn new() -> Self {
        Self {
            sealed: BTreeMap::new(),
            tail: None,
            len: 0,
            walk: WalkSlot::EMPTY,
            last_id: Id::MIN,
            max_deleted_id: Id::MIN,
            entries_added: 0,
        }
    }

    /// Prefetches the tail's first line, which has the names of the fields, and its
    /// last.
    #[inline]
    pub(super) fn prefetch_end(&self) {
        if let Some(tail) = &self.tail {
            tail.chunk.prefetch_ends();
        }
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no entry. A stream without entries is still one.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Chunks.
    pub fn chunks_len(&self) -> usize {
        self.sealed.len() + usize::from(self.tail.is_some())
    }

    /// The identifier of the first entry.
    pub fn first_id(&self) -> Option<Id> {
        let (base, chunk) = self.first_chunk()?;
        chunk.next(base, Id::MIN, 0).map(|(entry, _)| entry.id)
    }

    /// The identifier of the last entry.
    pub fn top_id(&self) -> Option<Id> {
        self.range_back(Id::MIN, Id::MAX).next().map(|entry| entry.id)
    }

    pub(super) fn first_chunk(&self) -> Option<(Id, &StreamChunk)> {
        let sealed = self.sealed.first_key_value().map(|(base, chunk)| (*base, chunk));
        sealed.or_else(|| self.tail.as_ref().map(|tail| (tail.base, &tail.chunk)))
    }

    /// Adds an entry of `pairs` fields, `text` giving names and values in turn. Its identifier
    /// must be higher than all before.
    pub fn append<'t>(
        &mut self,
        id: Id,
        pairs: usize,
        text: impl Fn(usize) -> &'t [u8],
        limits: ChunkLimits,
    ) {
        debug_assert!(id > self.last_id, "identifiers ascend");
        let texts = || (0..2 * pairs).map(|index| text(index).len()).sum::<usize>();
        let full = self.tail.take_if(|tail| tail.is_full(texts(), limits));
        if let Some(mut full) = full {
            full.chunk.seal();
            self.sealed.insert(full.base, full.chunk);
        }
        if self.walk.is_some() {
            self.before_change(self.tail.as_ref().map_or(id, |tail| tail.base));
        }
        let tail = self.tail.get_or_insert_with(|| {
            let chunk = StreamChunk::new(pairs, &text);
            Tail { base: id, written: chunk.listpack_start(), chunk }
        });
        tail.written += tail.chunk.append(tail.base, id, pairs, &text);
        self.len += 1;
        self.entries_added = self.entries_added.wrapping_add(1);
        self.last_id = id;
    }

    /// The chunk that has an identifier's place.
    fn chunk_of(&self, id: Id) -> Option<(Id, &StreamChunk)> {
        match &self.tail {
            Some(tail) if tail.base <= id => Some((tail.base, &tail.chunk)),
            _ => self.sealed.range(..=id).next_back().map(|(base, chunk)| (*base, chunk)),
        }
    }

    /// The entry with an identifier.
    pub fn entry(&self, id: Id) -> Option<StreamEntry<'_>> {
        let (base, chunk) = self.chunk_of(id)?;
        chunk.find(base, id)
    }

    /// The entries from one identifier to another, both included, ascending.
    pub fn range(&self, from: Id, to: Id) -> StreamRange<'_> {
        let start = self.sealed.range(..=from).next_back().map_or(from, |(base, _)| *base);
        let tail = self.tail.as_ref().map(|tail| (tail.base, &tail.chunk));
        let sealed = match tail {
            // Nothing before the tail is as high.
            Some((base, _)) if base <= from => Default::default(),
            _ => self.sealed.range(start..),
        };
        StreamRange { sealed, tail, current: None, from, to }
    }

    /// The same entries, descending.
    pub fn range_back(&self, from: Id, to: Id) -> StreamRangeBack<'_> {
        let tail = self.tail.as_ref().filter(|tail| tail.base <= to);
        let current = tail.map(|tail| (tail.base, &tail.chunk, usize::MAX));
        StreamRangeBack { sealed: self.sealed.range(..=to), current, from, to }
    }

    /// Deletes an entry. Returns whether it was there.
    pub fn delete(&mut self, id: Id) -> bool {
        if !self.remove(id) {
            return false;
        }
        self.max_deleted_id = self.max_deleted_id.max(id);
        true
    }

    /// Removes an entry without remembering that it was deleted.
    pub(super) fn remove(&mut self, id: Id) -> bool {
        if let Some((base, _)) = self.chunk_of(id) {
            self.before_change(base);
        }
        if let Some(tail) = self.tail.as_mut().filter(|tail| tail.base <= id) {
            if !tail.chunk.delete(tail.base, id) {
                return false;
            }
            if tail.chunk.live() == 0 {
                self.tail = None;
            }
        } else {
            let Some((base, chunk)) = self.sealed.range_mut(..=id).next_back() else {
                return false;
            };
            let base = *base;
            if !chunk.delete(base, id) {
                return false;
            }
            if chunk.live() == 0 {
                self.sealed.remove(&base);
            }
        }
        self.len -= 1;
        true
    }

    /// The chunks, in order.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (Id, &StreamChunk)> {
        let tail = self.tail.as_ref().map(|tail| (tail.base, &tail.chunk));
        self.sealed.iter().map(|(base, chunk)| (*base, chunk)).chain(tail)
    }

    /// Bytes of memory, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let tree = btree_bytes(self.sealed.len(), size_of::<(Id, StreamChunk)>());
        tree + self.chunks().map(|(_, chunk)| chunk.allocated_bytes()).sum::<usize>()
    }
}

impl Tail {
    /// Whether an entry with this many bytes of text must begin another chunk.
    fn is_full(&self, texts: usize, limits: ChunkLimits) -> bool {
        let bytes_max = match limits.bytes_max {
            0 => ENTRY_BYTES_MAX as u64,
            bytes_max => bytes_max.min(ENTRY_BYTES_MAX as u64),
        };
        let bytes = self.chunk.listpack_bytes(self.written) + texts;
        let entries = self.chunk.entries() as u64;
        bytes as u64 >= bytes_max || limits.entries_max > 0 && entries >= limits.entries_max
    }
}

//! The chunks of a stream in their encoded form, for reading and writing files.
//!
//! Elements are entries of a packed list (see [`crate::packed`]), as in a listpack. Deleted entries
//! are included, since limits count them.

use crate::stream::chunk::{EntryPairs, Frame, StreamChunk};
use crate::stream::log::Tail;
use crate::stream::{Id, StreamLog, varint};

/// A chunk of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamChunkRef<'a> {
    pub(super) base: Id,
    pub(super) chunk: &'a StreamChunk,
}

/// An entry of a chunk, deleted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkEntry<'a> {
    /// Its identifier.
    pub id: Id,
    /// Whether it is deleted.
    pub deleted: bool,
    /// Whether it has the chunk's fields; its content is then only values.
    pub same_fields: bool,
    /// The number of fields.
    pub pairs: usize,
    /// The values, or alternating fields and values.
    pub content: &'a [u8],
}

impl<'a> ChunkEntry<'a> {
    /// Its fields with their values; `names` are those of the chunk's fields.
    pub fn texts(self, names: &'a [u8]) -> EntryPairs<'a> {
        EntryPairs::new(if self.same_fields { names } else { &[] }, self.content)
    }
}

impl<'a> StreamChunkRef<'a> {
    /// The identifier relative to which those of the entries are encoded.
    pub fn base(self) -> Id {
        self.base
    }

    /// The number of entries that are not deleted.
    pub fn live(self) -> usize {
        self.chunk.live()
    }

    /// The number of deleted entries.
    pub fn deleted(self) -> usize {
        self.chunk.entries() - self.chunk.live()
    }

    /// The number of the chunk's fields, and their names.
    pub fn fields(self) -> (usize, &'a [u8]) {
        let (pairs, at) = varint::read(&self.chunk.bytes, 0);
        (pairs as usize, &self.chunk.bytes[at..self.chunk.body as usize])
    }

    /// All entries, ascending.
    pub fn entries(self) -> impl Iterator<Item = ChunkEntry<'a>> {
        let Self { base, chunk } = self;
        let mut at = chunk.body as usize;
        std::iter::from_fn(move || {
            if at >= chunk.bytes.len() {
                return None;
            }
            let frame = chunk.frame(base, at);
            at = frame.end;
            Some(chunk_entry(chunk, &frame))
        })
    }
}

fn chunk_entry<'a>(chunk: &'a StreamChunk, frame: &Frame) -> ChunkEntry<'a> {
    let Frame { id, deleted, same_fields, .. } = *frame;
    let (pairs, at) = if same_fields {
        (varint::read(&chunk.bytes, 0).0, frame.content)
    } else {
        varint::read(&chunk.bytes, frame.content)
    };
    let content = &chunk.bytes[at..frame.content_end];
    ChunkEntry { id, deleted, same_fields, pairs: pairs as usize, content }
}

/// A chunk that is being built.
#[derive(Debug)]
pub struct NewChunk {
    tail: Tail,
    last_id: Option<Id>,
}

/// A chunk or an entry does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

impl NewChunk {
    /// A chunk without entries, with the names of its `pairs` common fields.
    pub fn new(base: Id, pairs: usize, names: &[u8]) -> Self {
        let chunk = StreamChunk::with_fields(pairs, names);
        Self { tail: Tail { base, written: chunk.listpack_start(), chunk }, last_id: None }
    }

    /// Adds an entry at the end.
    ///
    /// # Errors
    /// If its identifier is 0-0, below the base or not above the last one, or if the chunk would
    /// become too large.
    pub fn push(&mut self, entry: &ChunkEntry<'_>) -> Result<(), Unfit> {
        let Tail { base, chunk, written } = &mut self.tail;
        let ascends = self.last_id.is_none_or(|last| last < entry.id);
        let bytes = chunk.bytes.len() + entry.content.len();
        if !ascends || entry.id < *base || entry.id == Id::MIN || bytes > CHUNK_BYTES_MAX {
            return Err(Unfit);
        }
        self.last_id = Some(entry.id);
        *written += chunk.append_entry(*base, entry);
        Ok(())
    }

    /// The identifier of the last entry, deleted or not.
    pub fn last_id(&self) -> Option<Id> {
        self.last_id
    }
}

/// The largest size of a chunk, less than half of what 32 bits can count.
const CHUNK_BYTES_MAX: usize = (1 << 31) - (1 << 20);

impl StreamLog {
    /// The chunks, ascending.
    pub fn chunk_refs(&self) -> impl Iterator<Item = StreamChunkRef<'_>> {
        self.chunks().map(|(base, chunk)| StreamChunkRef { base, chunk })
    }

    /// Adds a chunk at the end, unless all its entries are deleted. The caller updates `last_id`
    /// and `entries_added`.
    ///
    /// # Errors
    /// If its base is not above the last entry.
    pub fn push_chunk(&mut self, new: NewChunk) -> Result<(), Unfit> {
        let mut tail = new.tail;
        if self.tail.as_ref().is_some_and(|last| last.chunk.last_id(last.base) >= tail.base) {
            return Err(Unfit);
        }
        if tail.chunk.live() == 0 {
            return Ok(());
        }
        self.before_change(tail.base);
        self.len += tail.chunk.live() as u64;
        tail.chunk.seal();
        if let Some(last) = self.tail.replace(tail) {
            self.sealed.insert(last.base, last.chunk);
        }
        Ok(())
    }
}

impl StreamChunk {
    fn with_fields(pairs: usize, names: &[u8]) -> Self {
        let mut chunk = Self::default();
        varint::push(&mut chunk.bytes, pairs as u64);
        chunk.bytes.extend_from_slice(names);
        // Far below `CHUNK_BYTES_MAX` where names fit into a listpack.
        chunk.body = chunk.bytes.len() as u32;
        chunk.head = chunk.body;
        chunk
    }

    /// Adds an entry with encoded elements. Returns their size in a listpack.
    fn append_entry(&mut self, base: Id, entry: &ChunkEntry<'_>) -> usize {
        let at = self.bytes.len();
        let written = self.append_with(base, entry.id, entry.same_fields, entry.pairs, |bytes| {
            bytes.extend_from_slice(entry.content);
        });
        if entry.deleted {
            self.mark(base, at);
        }
        written
    }
}

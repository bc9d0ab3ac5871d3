//! Chunks as they are: for those who write a stream to a file, or build one from what they read.
//!
//! Elements come and go as the bytes of their entries (see [`crate::packed`]), one behind another,
//! because a listpack holds the same bytes. Deleted entries come along: they count where a limit is
//! one of entries.

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
    /// Whether it has the chunk's fields, so that its content is values only.
    pub same_fields: bool,
    /// Fields.
    pub pairs: usize,
    /// The values, or fields and values in turn.
    pub content: &'a [u8],
}

impl<'a> ChunkEntry<'a> {
    /// Its fields with their values, when its chunk has these names.
    pub fn texts(self, names: &'a [u8]) -> EntryPairs<'a> {
        EntryPairs::new(if self.same_fields { names } else { &[] }, self.content)
    }
}

impl<'a> StreamChunkRef<'a> {
    /// The identifier against which those of the entries are written.
    pub fn base(self) -> Id {
        self.base
    }

    /// Entries that are not deleted.
    pub fn live(self) -> usize {
        self.chunk.live()
    }

    /// Entries that are deleted.
    pub fn deleted(self) -> usize {
        self.chunk.entries() - self.chunk.live()
    }

    /// How many fields the chunk has, and their names.
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

/// A chunk in the making.
#[derive(Debug)]
pub struct NewChunk {
    tail: Tail,
    last_id: Option<Id>,
}

/// A chunk or an entry does not fit into what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

impl NewChunk {
    /// A chunk without entries: how many fields it has, and their names.
    pub fn new(base: Id, (pairs, names): (usize, &[u8])) -> Self {
        let chunk = StreamChunk::with_fields(pairs, names);
        Self { tail: Tail { base, written: chunk.listpack_start(), chunk }, last_id: None }
    }

    /// Adds an entry behind the others.
    ///
    /// # Errors
    /// When its identifier is not above those before it or below the base, when it is 0-0, or when
    /// the chunk would become too large.
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

/// The bytes of a chunk, less than half of what 32 bits count.
const CHUNK_BYTES_MAX: usize = (1 << 31) - (1 << 20);

impl StreamLog {
    /// The chunks, ascending.
    pub fn chunk_refs(&self) -> impl Iterator<Item = StreamChunkRef<'_>> {
        self.chunks().map(|(base, chunk)| StreamChunkRef { base, chunk })
    }

    /// Adds a chunk behind the others; one whose entries are all deleted is not kept. `last_id`
    /// and the number of entries ever added are set by the caller.
    ///
    /// # Errors
    /// When it does not follow the chunks before it.
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

    /// Adds an entry whose elements are given as entries of a packed list. Returns what its
    /// elements take in a listpack.
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

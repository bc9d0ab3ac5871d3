//! Long lists: a sequence of chunks, each a packed list of bounded size (Redis's quicklist).
//!
//! ```text
//! chunks   | 240 elements | 240 elements | 1 large element | 113 elements |
//! ```
//!
//! Pushing and popping at either end takes constant time. An index is found by adding the chunks'
//! lengths from the nearer end, without reading their elements.
//!
//! Invariants: no chunk is empty; an element above the list's limit has its own chunk; additions at
//! the ends keep chunks within the limit, insertions within about twice the limit, and replacements
//! within a larger one. Chunks end and merge as in Redis, since clients see the effect: a list of
//! one chunk may return to the packed form. Chunks are never compressed.

mod chunk;
mod chunks;
mod edit;

use crate::packed::{Buffer, Encoded, Entry, Packed};
use crate::record::class_bytes;
use crate::table::prefetch_bytes;
use crate::walk::{Budget, Ticket};
use chunk::ListChunk;
use chunks::Chunks;
pub use chunks::FinishedListWalk;

/// The limit of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimit {
    bytes: usize,
    elements: usize,
}

/// Bytes of a chunk whose limit is a number of elements, as in Redis.
const SAFETY_BYTES: usize = 8192;
/// Bytes of a chunk that returns to the packed form.
const PACKED_BYTES_MAX: usize = 65_536;

impl ChunkLimit {
    /// The limit for a value of `list-max-listpack-size`: positive, this many elements and 8 KB;
    /// from -1 to -5, 4, 8, 16, 32 or 64 KB.
    pub fn of(fill: i64) -> Self {
        match fill {
            0.. => Self { bytes: SAFETY_BYTES, elements: fill.clamp(1, 32_767) as usize },
            _ => Self {
                bytes: 4096 << (fill.clamp(-5, -1) + 1).unsigned_abs(),
                elements: usize::MAX,
            },
        }
    }

    /// Whether a listpack of `bytes` bytes and `elements` elements is within the limit.
    #[inline]
    pub fn admits(self, bytes: usize, elements: usize) -> bool {
        bytes <= self.bytes && elements <= self.elements
    }

    /// Whether a chunk takes another element. As in Redis this is an estimate from the element's
    /// text, so that chunks end at the same elements.
    #[inline]
    fn admits_to(self, chunk: &ListChunk, element: &Encoded<'_>) -> bool {
        const ESTIMATE_BYTES: usize = 8;
        let bytes = chunk.view().listpack_bytes() + element.text_len() + ESTIMATE_BYTES;
        self.admits(bytes, chunk.len() + 1)
    }

    /// Whether an element must have its own chunk.
    #[inline]
    pub fn is_large(self, element: &Encoded<'_>) -> bool {
        element.text_len() > self.bytes
    }

    /// Whether a chunk has only an element that must have its own chunk.
    fn stands_alone(self, chunk: &ListChunk) -> bool {
        let is_large = |entry: Entry<'_>| entry.len() > self.bytes;
        chunk.len() == 1 && chunk.view().first().is_some_and(is_large)
    }

    fn view(self, chunk: &ListChunk) -> ListChunkRef<'_> {
        match chunk.view().first() {
            Some(only) if self.stands_alone(chunk) => ListChunkRef::Large(only),
            _ => ListChunkRef::Packed(chunk.view()),
        }
    }

    /// Half of this limit.
    pub fn halved(self) -> Self {
        match self.elements {
            usize::MAX => Self { bytes: self.bytes / 2, ..self },
            elements => Self { elements: elements / 2, ..self },
        }
    }

    /// The limit for a chunk that returns to the packed form. For a limit of elements, it has the
    /// bytes of the largest limit of bytes: the safety limit applies to additions, and replacements
    /// may have exceeded it. Redis has no limit there, because it converts without copying.
    pub fn when_packing(self) -> Self {
        match self.elements {
            usize::MAX => self,
            _ => Self { bytes: PACKED_BYTES_MAX, ..self },
        }
    }
}

/// A list in chunks.
#[derive(Clone, Debug)]
pub struct List {
    chunks: Chunks,
    len: usize,
    limit: ChunkLimit,
}

/// A chunk of a list.
#[derive(Clone, Copy, Debug)]
pub enum ListChunkRef<'a> {
    /// Elements within the limit.
    Packed(Packed<'a>),
    /// An element above the limit, with its own chunk.
    Large(Entry<'a>),
}

/// The position of an element, valid until the list changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    chunk: usize,
    at: usize,
}

impl List {
    /// An empty list whose chunks have a limit.
    pub fn new(limit: ChunkLimit) -> Self {
        Self { chunks: Chunks::default(), len: 0, limit }
    }

    /// A list with the elements of a packed one, as one chunk even if it exceeds the limit.
    pub fn of_packed(list: Packed<'_>, limit: ChunkLimit) -> Self {
        let mut own = Self::new(limit);
        if !list.is_empty() {
            own.len = list.len();
            own.chunks.push_back(ListChunk::of_packed(list));
        }
        own
    }

    /// The bytes of a packed list with the same elements, if there is one chunk that is not an own
    /// chunk of a large element.
    pub fn as_packed(&self) -> Option<&[u8]> {
        let only = self.chunks.front().filter(|_| self.chunks.len() == 1)?;
        (!self.limit.stands_alone(only)).then(|| only.bytes())
    }

    /// Prefetches the list itself.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_bytes(std::ptr::from_ref(self).cast(), size_of::<Self>());
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first element.
    #[inline]
    pub fn front(&self) -> Option<Entry<'_>> {
        self.chunks.front()?.view().first()
    }

    /// The last element.
    #[inline]
    pub fn back(&self) -> Option<Entry<'_>> {
        self.chunks.back()?.view().last()
    }

    /// Element `index`, counted from the front.
    pub fn get(&self, index: usize) -> Option<Entry<'_>> {
        let position = self.position(index)?;
        Some(self.chunks[position.chunk].view().entry(position.at))
    }

    /// The position of element `index`.
    pub fn position(&self, index: usize) -> Option<ListPosition> {
        if index >= self.len {
            return None;
        }
        let (chunk, offset) = self.chunk_of(index);
        Some(ListPosition { chunk, at: self.chunks[chunk].view().position(offset) })
    }

    /// The chunk of an index up to the list's length, and the index in it.
    fn chunk_of(&self, index: usize) -> (usize, usize) {
        if index <= self.len / 2 {
            let mut left = index;
            for (at, chunk) in self.chunks.iter().enumerate() {
                if left < chunk.len() {
                    return (at, left);
                }
                left -= chunk.len();
            }
            return (self.chunks.len(), 0);
        }
        let mut before = self.len;
        for (at, chunk) in self.chunks.iter().enumerate().rev() {
            before -= chunk.len();
            if before <= index {
                return (at, index - before);
            }
        }
        (0, index)
    }

    /// The elements from `index` on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = Entry<'_>> {
        let (chunk, offset) = self.chunk_of(index.min(self.len));
        let first = self.chunks.get(chunk).map(|chunk| {
            let view = chunk.view();
            view.between(view.position(offset), view.end())
        });
        let rest = self.chunks.range((chunk + 1).min(self.chunks.len())..);
        first.into_iter().flatten().chain(rest.flat_map(|chunk| chunk.view().iter()))
    }

    /// The elements before `end`, the last one first.
    pub fn rev_before(&self, end: usize) -> impl Iterator<Item = Entry<'_>> {
        let (chunk, offset) = self.chunk_of(end.min(self.len));
        let last = self.chunks.get(chunk).map(|chunk| {
            let view = chunk.view();
            view.between(0, view.position(offset)).rev()
        });
        let rest = self.chunks.range(..chunk.min(self.chunks.len())).rev();
        last.into_iter().flatten().chain(rest.flat_map(|chunk| chunk.view().iter().rev()))
    }

    /// The position of the first element that equals `element`.
    pub fn find(&self, element: Encoded<'_>) -> Option<ListPosition> {
        self.chunks.iter().enumerate().find_map(|(chunk, own)| {
            own.view().find(element, 0, 1).map(|at| ListPosition { chunk, at })
        })
    }

    /// The indexes of the elements that equal `element`, counted from the front, among the first
    /// `max` elements.
    pub fn matches<'b>(
        &self,
        element: Encoded<'b>,
        max: usize,
    ) -> impl Iterator<Item = usize> + use<'_, 'b> {
        let bases = self.chunks.iter().scan(0, |base, chunk| {
            *base += chunk.len();
            Some((*base - chunk.len(), chunk))
        });
        bases
            .take_while(move |(base, _)| *base < max)
            .flat_map(move |(base, chunk)| {
                chunk.view().matches(element).map(move |index| base + index)
            })
            .take_while(move |index| *index < max)
    }

    /// The same counted from the back, where the last element is 0.
    pub fn rev_matches<'b>(
        &self,
        element: Encoded<'b>,
        max: usize,
    ) -> impl Iterator<Item = usize> + use<'_, 'b> {
        let bases = self.chunks.iter().rev().scan(0, |base, chunk| {
            *base += chunk.len();
            Some((*base - chunk.len(), chunk))
        });
        bases
            .take_while(move |(base, _)| *base < max)
            .flat_map(move |(base, chunk)| {
                chunk.view().rev_matches(element).map(move |index| base + index)
            })
            .take_while(move |index| *index < max)
    }

    /// The chunks, from the front.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = ListChunkRef<'_>> {
        self.chunks.iter().map(|chunk| self.limit.view(chunk))
    }

    /// Starts a walk over the current chunks, which replaces any other walk.
    pub fn begin_walk(&mut self, ticket: Ticket) {
        self.chunks.begin_walk(ticket);
    }

    /// Visits chunks in order until the budget is spent. Returns whether all were visited.
    pub fn step_walk(
        &mut self,
        budget: &mut Budget,
        visit: &mut dyn FnMut(ListChunkRef<'_>),
    ) -> bool {
        let limit = self.limit;
        self.chunks.step_walk(budget, &mut |chunk| visit(limit.view(chunk)))
    }

    /// The ticket of the walk, if there is one.
    #[inline]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.chunks.ticket()
    }

    /// Ends the walk.
    pub fn end_walk(&mut self) -> Option<FinishedListWalk> {
        self.chunks.end_walk()
    }

    /// The list's memory in bytes, including this struct.
    pub fn memory_bytes(&self) -> usize {
        let deque = class_bytes(self.chunks.capacity() * size_of::<ListChunk>());
        let chunks: usize = self.chunks.iter().map(ListChunk::allocated_bytes).sum();
        class_bytes(size_of::<Self>()) + deque + chunks
    }

    /// How many allocations dropping the list frees, without its own.
    pub fn allocations(&self) -> usize {
        self.chunks.len() + 1
    }
}

#[cfg(test)]
mod tests;

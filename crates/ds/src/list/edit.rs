//! Changes to a list in chunks.

use std::ops::Range;

use crate::list::chunk::ListChunk;
use crate::list::{List, ListPosition};
use crate::packed::{Encoded, Packed};

/// The deque of chunks frees memory if less than this part of it is used.
const SPARSE_PART: usize = 4;
const DEQUE_CHUNKS_MIN: usize = 16;
/// Up to this many chunks the room for them doubles.
const DOUBLING_CHUNKS_END: usize = 64;
/// The largest size of a chunk after its elements are replaced by longer ones.
pub(super) const REPLACED_BYTES_MAX: usize = 1 << 20;

impl List {
    /// Adds an element after the last one.
    #[inline]
    pub fn push_back<'e>(&mut self, element: impl Into<Encoded<'e>>) {
        let element = element.into();
        self.len += 1;
        let limit = self.limit;
        if self.chunks.back().is_some_and(|last| limit.admits_to(last, &element)) {
            if let Some(last) = self.chunks.edit_back() {
                last.edit(|list| list.push_back(element));
            }
            return;
        }
        if let Some(last) = self.chunks.len().checked_sub(1) {
            self.chunks.seal(last);
        }
        self.reserve_chunk();
        self.chunks.push_back(ListChunk::of(element));
    }

    /// Adds a chunk with the elements of a packed list, which is not empty, after the last one and
    /// unchanged: for lists that are loaded.
    pub fn push_chunk(&mut self, list: Packed<'_>) {
        let chunk = ListChunk::sealed(list);
        self.len += chunk.len();
        self.reserve_chunk();
        self.chunks.push_back(chunk);
    }

    /// Adds a chunk of one element of any size after the last one.
    pub fn push_alone(&mut self, element: Encoded<'_>) {
        self.len += 1;
        self.reserve_chunk();
        self.chunks.push_back(ListChunk::of(element));
    }

    /// Adds an element before the first one.
    #[inline]
    pub fn push_front<'e>(&mut self, element: impl Into<Encoded<'e>>) {
        let element = element.into();
        self.len += 1;
        let limit = self.limit;
        if self.chunks.front().is_some_and(|first| limit.admits_to(first, &element)) {
            if let Some(first) = self.chunks.edit_front() {
                first.edit(|list| list.push_front(element));
            }
            return;
        }
        if !self.chunks.is_empty() {
            self.chunks.seal(0);
        }
        self.reserve_chunk();
        self.chunks.push_front(ListChunk::of(element));
    }

    /// Inserts an element before the one at a position.
    pub fn insert_before<'e>(&mut self, position: ListPosition, element: impl Into<Encoded<'e>>) {
        self.insert(position, false, element.into());
    }

    /// Inserts an element after the one at a position.
    pub fn insert_after<'e>(&mut self, position: ListPosition, element: impl Into<Encoded<'e>>) {
        self.insert(position, true, element.into());
    }

    /// Inserts an element next to the one at a position. If it does not fit, it goes to the
    /// neighbour chunk if the position is at the edge of its chunk, and otherwise splits the chunk.
    fn insert(&mut self, position: ListPosition, after: bool, element: Encoded<'_>) {
        let ListPosition { chunk: number, at } = position;
        self.len += 1;
        let limit = self.limit;
        let chunk = &self.chunks[number];
        let at = if after { chunk.view().after(at) } else { at };
        if limit.admits_to(chunk, &element) {
            return self.chunks.edit(number).edit(|list| list.insert(at, element));
        }
        let is_edge = if after { at == chunk.view().end() } else { at == 0 };
        if !is_edge {
            return self.insert_splitting(number, at, after, element);
        }
        let neighbour = if after { Some(number + 1) } else { number.checked_sub(1) };
        let admits = |other: &usize| {
            self.chunks.get(*other).is_some_and(|other| limit.admits_to(other, &element))
        };
        if let Some(other) = neighbour.filter(admits) {
            self.chunks.edit(other).edit(|list| match after {
                true => list.push_front(element),
                false => list.push_back(element),
            });
        } else {
            self.chunks.insert(number + usize::from(after), ListChunk::of(element));
        }
    }

    /// Makes room for another chunk. Room for many chunks grows by an eighth instead of doubling,
    /// since it counts for the bytes per element.
    fn reserve_chunk(&mut self) {
        let len = self.chunks.len();
        if len == self.chunks.capacity() && len >= DOUBLING_CHUNKS_END {
            self.chunks.reserve_exact(len / 8);
        }
    }

    /// Splits a chunk before the element at a position. A large element gets its own chunk between
    /// the halves. Another one goes to the second half if it is inserted after an element, and
    /// otherwise to the first half, even if that exceeds the limit.
    fn insert_splitting(&mut self, number: usize, at: usize, after: bool, element: Encoded<'_>) {
        let right = self.chunks.edit(number).split_off(at);
        self.chunks.insert(number + 1, right);
        if self.limit.is_large(&element) {
            self.chunks.seal(number);
            self.chunks.insert(number + 1, ListChunk::of(element));
        } else if after {
            self.chunks.seal(number);
            self.chunks.edit(number + 1).edit(|list| list.push_front(element));
            self.merge_around(number);
        } else {
            self.chunks.edit(number).edit(|list| list.push_back(element));
            self.merge_around(number + 1);
        }
    }

    /// Replaces element `index`. Returns whether it existed.
    ///
    /// As in Redis a chunk may exceed its limit this way, up to another limit.
    pub fn replace<'e>(&mut self, index: usize, element: impl Into<Encoded<'e>>) -> bool {
        let Some(position) = self.position(index) else { return false };
        let element = element.into();
        let limit = self.limit;
        let (is_large, was_large) =
            (limit.is_large(&element), limit.stands_alone(&self.chunks[position.chunk]));
        let view = self.chunks[position.chunk].view();
        let old = view.after(position.at) - position.at;
        let is_beyond = view.end() - old + element.len() > REPLACED_BYTES_MAX;
        if is_large == was_large && (is_large || !is_beyond) {
            self.chunks.edit(position.chunk).edit(|list| list.replace(position.at, element));
        } else if was_large {
            // The next chunk may have room for it.
            self.insert(position, true, element);
            self.remove(index..index + 1);
        } else {
            self.replace_splitting(position, element);
        }
        true
    }

    /// Splits a chunk around the element at a position, and replaces the element with a chunk.
    fn replace_splitting(&mut self, position: ListPosition, element: Encoded<'_>) {
        let ListPosition { chunk: mut number, at } = position;
        let view = self.chunks[number].view();
        let (is_first, after, end) = (at == 0, view.after(at), view.end());
        if after < end {
            let right = self.chunks.edit(number).split_off(after);
            self.chunks.insert(number + 1, right);
        }
        if is_first {
            self.chunks.replace(number, ListChunk::of(element));
            return;
        }
        self.chunks.edit(number).edit(|list| list.remove(at, 1));
        self.chunks.seal(number);
        number += 1;
        self.chunks.insert(number, ListChunk::of(element));
        self.merge_around(number);
    }

    /// Removes elements, and returns the chunks that were removed as a whole, as a list that the
    /// caller drops where that delays no client.
    pub fn remove(&mut self, range: Range<usize>) -> Self {
        let end = range.end.min(self.len);
        let mut whole = Self::new(self.limit);
        let mut left = end.saturating_sub(range.start);
        if left == 0 {
            return whole;
        }
        let (mut number, offset) = self.chunk_of(range.start);
        self.len -= left;
        if offset > 0 {
            let removed = self.chunks.edit(number).edit(|list| {
                let at = list.view().position(offset);
                list.remove(at, left)
            });
            left -= removed;
            number += 1;
        }
        let mut after = number;
        while let Some(chunk) = self.chunks.get(after)
            && chunk.len() <= left
        {
            left -= chunk.len();
            after += 1;
        }
        if after > number {
            let drained = self.chunks.drain(number..after);
            whole.len = drained.iter().map(ListChunk::len).sum();
            whole.chunks = drained.into();
            self.shrink();
        }
        if left > 0 {
            self.chunks.edit(number).edit(|list| list.remove(0, left));
        }
        whole
    }

    /// Removes at most `max` elements that equal `element`, from the front or from the back.
    /// Returns how many were removed.
    pub fn remove_equal(&mut self, element: Encoded<'_>, max: usize, from_back: bool) -> usize {
        let mut removed = 0;
        let chunks = self.chunks.len();
        for step in 0..chunks {
            let number = if from_back { chunks - 1 - step } else { step };
            // An unchanged chunk need not be saved.
            if self.chunks.has_walk() && self.chunks[number].view().find(element, 0, 1).is_none() {
                continue;
            }
            let chunk = self.chunks.edit(number);
            removed += chunk.edit(|list| list.remove_equal(&element, max - removed, from_back));
            if removed == max {
                break;
            }
        }
        if removed > 0 {
            self.len -= removed;
            self.chunks.drop_empty();
            self.shrink();
        }
        removed
    }

    /// Merges the chunks around one that an insertion changed, if two fit into one. Removals do not
    /// merge chunks, as in Redis, so that a list changes its form at the same time as there.
    fn merge_around(&mut self, mut center: usize) {
        if center >= 2 && self.join(center - 2) {
            center -= 1;
        }
        self.join(center + 1);
        if center >= 1 && self.join(center - 1) {
            center -= 1;
        }
        self.join(center);
    }

    /// Merges a chunk and the next one if both fit into one. Returns whether they do.
    fn join(&mut self, number: usize) -> bool {
        let (Some(left), Some(right)) = (self.chunks.get(number), self.chunks.get(number + 1))
        else {
            return false;
        };
        let bytes = left.view().listpack_bytes() + right.view().end();
        if !self.limit.admits(bytes, left.len() + right.len()) {
            return false;
        }
        if let Some(right) = self.chunks.remove(number + 1) {
            self.chunks.edit(number).edit(|list| list.append(right.view()));
        }
        true
    }

    fn shrink(&mut self) {
        let wanted = self.chunks.len().max(DEQUE_CHUNKS_MIN);
        if self.chunks.capacity() > wanted * SPARSE_PART {
            self.chunks.shrink_to(wanted * 2);
        }
    }
}

//! Changes of a list in chunks.

use std::ops::Range;

use crate::list::chunk::Chunk;
use crate::list::{List, Place};
use crate::packed::Encoded;

/// The deque of chunks gives memory back when fewer than this part of it is used.
const SPARSE_PART: usize = 4;
const DEQUE_CHUNKS_MIN: usize = 16;

impl List {
    /// Adds an element behind the last.
    #[inline]
    pub fn push_back<'e>(&mut self, element: impl Into<Encoded<'e>>) {
        let element = element.into();
        self.len += 1;
        let limit = self.limit;
        match self.chunks.back_mut() {
            Some(last) if admits(limit, last, &element) => {
                last.edit(|list| list.push_back(element));
            }
            last => {
                last.into_iter().for_each(Chunk::seal);
                self.grow();
                self.chunks.push_back(Chunk::of(element));
            }
        }
    }

    /// Adds an element before the first.
    #[inline]
    pub fn push_front<'e>(&mut self, element: impl Into<Encoded<'e>>) {
        let element = element.into();
        self.len += 1;
        let limit = self.limit;
        match self.chunks.front_mut() {
            Some(first) if admits(limit, first, &element) => {
                first.edit(|list| list.push_front(element));
            }
            first => {
                first.into_iter().for_each(Chunk::seal);
                self.grow();
                self.chunks.push_front(Chunk::of(element));
            }
        }
    }

    /// Puts an element before the one at a place.
    pub fn insert_before<'e>(&mut self, place: Place, element: impl Into<Encoded<'e>>) {
        self.insert(place, element.into());
    }

    /// Puts an element behind the one at a place.
    pub fn insert_after<'e>(&mut self, place: Place, element: impl Into<Encoded<'e>>) {
        let at = self.chunks[place.chunk].view().after(place.at);
        self.insert(Place { at, ..place }, element.into());
    }

    /// Puts an element where `place` is, which may be the end of a chunk. What does not fit goes to
    /// the neighbour when it stands at the edge, and otherwise splits the chunk.
    fn insert(&mut self, place: Place, element: Encoded<'_>) {
        self.len += 1;
        let limit = self.limit;
        let Place { chunk: number, at } = place;
        let chunk = &mut self.chunks[number];
        if admits(limit, chunk, &element) {
            return chunk.edit(|list| list.insert(at, element));
        }
        let is_end = at == chunk.view().end();
        if at > 0 && !is_end {
            let right = chunk.split_off(at);
            self.chunks.insert(number + 1, right);
        }
        // The border where the element goes: between this chunk and the one before it.
        let border = if at == 0 { number } else { number + 1 };
        if let Some(left) = border.checked_sub(1).and_then(|left| self.chunks.get_mut(left))
            && admits(limit, left, &element)
        {
            return left.edit(|list| list.push_back(element));
        }
        match self.chunks.get_mut(border) {
            Some(right) if admits(limit, right, &element) => {
                right.edit(|list| list.push_front(element));
            }
            _ => self.chunks.insert(border, Chunk::of(element)),
        }
    }

    /// Puts another element in the place of element `index`. Returns whether there was one.
    pub fn replace<'e>(&mut self, index: usize, element: impl Into<Encoded<'e>>) -> bool {
        let Some(place) = self.place(index) else { return false };
        let element = element.into();
        let limit = self.limit;
        let chunk = &mut self.chunks[place.chunk];
        let view = chunk.view();
        let old = view.after(place.at) - place.at;
        if chunk.len() == 1
            || limit.admits(view.listpack_bytes() - old + element.len(), chunk.len())
        {
            chunk.edit(|list| list.replace(place.at, element));
        } else {
            chunk.edit(|list| list.remove(place.at, 1));
            self.len -= 1;
            self.insert(place, element);
        }
        true
    }

    /// Removes elements and returns the chunks that were removed whole, as a list to be dropped
    /// where it delays nobody.
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
            let removed = self.chunks[number].edit(|list| {
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
            whole.len += chunk.len();
            after += 1;
        }
        if after > number {
            whole.chunks = self.chunks.drain(number..after).collect();
            self.shrink();
        }
        if left > 0 {
            self.chunks[number].edit(|list| list.remove(0, left));
        }
        self.merge(number);
        whole
    }

    /// Removes elements that equal `element`, at most `max` of them from the front, or from the
    /// back. Returns how many they were.
    pub fn remove_equal(&mut self, element: Encoded<'_>, max: usize, from_back: bool) -> usize {
        let mut removed = 0;
        let chunks = self.chunks.len();
        for step in 0..chunks {
            let number = if from_back { chunks - 1 - step } else { step };
            let chunk = &mut self.chunks[number];
            removed += chunk.edit(|list| list.remove_equal(&element, max - removed, from_back));
            if removed == max {
                break;
            }
        }
        if removed > 0 {
            self.len -= removed;
            self.chunks.retain(|chunk| chunk.len() > 0);
            self.shrink();
            for number in (1..self.chunks.len()).rev() {
                self.merge(number);
            }
        }
        removed
    }

    /// Joins a chunk and the one before it when both together are well within the limit: at most
    /// half of it, so that the next insertion does not part them again.
    fn merge(&mut self, number: usize) {
        let limit = self.limit.halved();
        let Some(left) = number.checked_sub(1).and_then(|left| self.chunks.get(left)) else {
            return;
        };
        let Some(right) = self.chunks.get(number) else { return };
        let bytes = left.view().listpack_bytes() + right.view().end();
        if limit.admits(bytes, left.len() + right.len())
            && let Some(right) = self.chunks.remove(number)
        {
            self.chunks[number - 1].edit(|list| list.extend(right.view()));
        }
    }

    /// Makes room for another chunk: by a quarter, since a deque that doubles may be half empty.
    fn grow(&mut self) {
        let len = self.chunks.len();
        if len == self.chunks.capacity() {
            self.chunks.reserve_exact(len / 4 + 1);
        }
    }

    fn shrink(&mut self) {
        let wanted = self.chunks.len().max(DEQUE_CHUNKS_MIN);
        if self.chunks.capacity() > wanted * SPARSE_PART {
            self.chunks.shrink_to(wanted * 2);
        }
    }
}

#[inline]
fn admits(limit: super::ChunkLimit, chunk: &Chunk, element: &Encoded<'_>) -> bool {
    limit.admits(chunk.view().listpack_bytes() + element.len(), chunk.len() + 1)
}

//! The chunks of a list, and the walk over those of one moment; see [`crate::walk`].
//!
//! ```text
//! numbers   0 ............ from ............. last
//! chunks    | visited      | visited later       | added after the walk started
//! saved                       5      9  10         changed or removed since then
//! ```
//!
//! Chunks have ascending numbers, which stay the same when other chunks are added or removed.
//! Chunks share a number only if they were made from one chunk during a walk, or if the numbers
//! have run out: such chunks are saved together. Callers get a chunk for changes from here, which
//! saves it first.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, Range};

use crate::list::chunk::ListChunk;
use crate::packed::Buffer;
use crate::walk::{Budget, InWalk, Ticket, WalkSlot};

/// The number of the first chunk: as many numbers are before as after it.
const NUMBER_AT_FIRST: u32 = 1 << 31;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    deque: VecDeque<ListChunk>,
    walk: WalkSlot<ListWalk>,
}

#[derive(Debug)]
struct ListWalk {
    ticket: Ticket,
    /// The lowest number that was not visited.
    from: u64,
    /// The last chunk's number when the walk started.
    last: u64,
    /// The old chunks of each number whose chunks were changed or added since.
    saved: BTreeMap<u32, Vec<InWalk<ListChunk>>>,
}

/// The memory of a finished walk, which its owner frees where that delays no client.
#[derive(Debug)]
pub struct FinishedListWalk {
    /// The ticket of the walk.
    pub ticket: Ticket,
    _saved: BTreeMap<u32, Vec<InWalk<ListChunk>>>,
}

impl ListWalk {
    fn is_ahead(&self, number: u32) -> bool {
        (self.from..=self.last).contains(&u64::from(number))
    }

    fn must_save(&self, number: u32) -> bool {
        self.is_ahead(number) && !self.saved.contains_key(&number)
    }
}

fn saved(chunk: ListChunk) -> InWalk<ListChunk> {
    let allocated = chunk.allocated_bytes();
    InWalk::new(chunk, allocated)
}

impl Deref for Chunks {
    type Target = VecDeque<ListChunk>;
    fn deref(&self) -> &VecDeque<ListChunk> {
        &self.deque
    }
}

impl From<VecDeque<ListChunk>> for Chunks {
    fn from(deque: VecDeque<ListChunk>) -> Self {
        Self { deque, walk: WalkSlot::EMPTY }
    }
}

impl Chunks {
    /// A chunk for changes of its elements.
    #[inline]
    pub(super) fn edit(&mut self, at: usize) -> &mut ListChunk {
        if self.walk.is_some() {
            self.save(at);
        }
        &mut self.deque[at]
    }

    /// The last chunk for changes.
    #[inline]
    pub(super) fn edit_back(&mut self) -> Option<&mut ListChunk> {
        let last = self.deque.len().checked_sub(1)?;
        Some(self.edit(last))
    }

    /// The first chunk for changes.
    #[inline]
    pub(super) fn edit_front(&mut self) -> Option<&mut ListChunk> {
        (!self.deque.is_empty()).then(|| self.edit(0))
    }

    /// Frees the slack of a chunk, which does not change its elements.
    pub(super) fn seal(&mut self, at: usize) {
        self.deque[at].seal();
    }

    /// Replaces a chunk.
    pub(super) fn replace(&mut self, at: usize, chunk: ListChunk) {
        let own = self.edit(at);
        let number = own.number;
        *own = chunk.numbered(number);
    }

    /// Adds a chunk after the last one.
    pub(super) fn push_back(&mut self, chunk: ListChunk) {
        let last = self.deque.back().map(|last| last.number.saturating_add(1));
        let number = last.unwrap_or(NUMBER_AT_FIRST);
        self.before_add(number);
        self.deque.push_back(chunk.numbered(number));
    }

    /// Adds a chunk before the first one.
    pub(super) fn push_front(&mut self, chunk: ListChunk) {
        let first = self.deque.front().map(|first| first.number.saturating_sub(1));
        let number = first.unwrap_or(NUMBER_AT_FIRST);
        self.before_add(number);
        self.deque.push_front(chunk.numbered(number));
    }

    /// Adds a chunk before the one at an index.
    pub(super) fn insert(&mut self, at: usize, chunk: ListChunk) {
        if at == 0 {
            return self.push_front(chunk);
        }
        if at == self.deque.len() {
            return self.push_back(chunk);
        }
        let mut number = self.deque[at - 1].number;
        if self.walk.is_some() {
            self.save(at - 1);
        } else {
            number = number.saturating_add(1);
            let mut taken = number;
            for next in self.deque.range_mut(at..) {
                if next.number > taken {
                    break;
                }
                taken = taken.saturating_add(1);
                next.number = taken;
            }
        }
        self.deque.insert(at, chunk.numbered(number));
    }

    /// Removes a chunk.
    pub(super) fn remove(&mut self, at: usize) -> Option<ListChunk> {
        if self.walk.is_some() && at < self.deque.len() {
            self.save(at);
        }
        self.deque.remove(at)
    }

    /// Removes chunks and returns those that no walk still has to visit.
    pub(super) fn drain(&mut self, range: Range<usize>) -> VecDeque<ListChunk> {
        if self.walk.is_some() && !range.is_empty() {
            self.save_divided(&range);
        }
        let Some(walk) = self.walk.0.as_deref_mut() else {
            return self.deque.drain(range).collect();
        };
        let mut free = VecDeque::new();
        let mut saving = None;
        for chunk in self.deque.drain(range) {
            let number = chunk.number;
            if saving == Some(number) || walk.must_save(number) {
                saving = Some(number);
                walk.saved.entry(number).or_default().push(saved(chunk));
            } else {
                free.push_back(chunk);
            }
        }
        free
    }

    /// Saves the chunks at the ends of a range that share their number with chunks outside it.
    fn save_divided(&mut self, range: &Range<usize>) {
        for edge in [range.start, range.end - 1] {
            let group = self.group(self.deque[edge].number);
            if group.start < range.start || group.end > range.end {
                self.save(edge);
            }
        }
    }

    /// Removes empty chunks.
    pub(super) fn drop_empty(&mut self) {
        self.deque.retain(|chunk| chunk.len() > 0);
    }

    /// Makes room for exactly so many more chunks.
    pub(super) fn reserve_exact(&mut self, chunks: usize) {
        self.deque.reserve_exact(chunks);
    }

    /// See [`VecDeque::shrink_to`].
    pub(super) fn shrink_to(&mut self, chunks: usize) {
        self.deque.shrink_to(chunks);
    }

    /// Whether there is a walk, so that a change may have to save chunks.
    pub(super) fn has_walk(&self) -> bool {
        self.walk.is_some()
    }

    /// The indexes of the chunks with a number.
    fn group(&self, number: u32) -> Range<usize> {
        let start = self.deque.partition_point(|chunk| chunk.number < number);
        let group = self.deque.range(start..).take_while(|chunk| chunk.number == number);
        start..start + group.count()
    }

    /// Call it before a chunk is added with this number, which no other chunk has unless it is the
    /// lowest or the highest number. A walk then skips the new chunk.
    fn before_add(&mut self, number: u32) {
        if let Some(walk) = &mut self.walk.0
            && walk.must_save(number)
        {
            let old = walk.saved.entry(number).or_default();
            // Chunks that share the highest or lowest number cannot be distinguished.
            let same = self.deque.iter().filter(|chunk| chunk.number == number);
            old.extend(same.cloned().map(saved));
        }
    }

    #[cold]
    #[inline(never)]
    fn save(&mut self, at: usize) {
        let number = self.deque[at].number;
        let group = self.group(number);
        if let Some(walk) = &mut self.walk.0
            && walk.must_save(number)
        {
            walk.saved.insert(number, self.deque.range(group).cloned().map(saved).collect());
        }
    }

    /// Starts a walk over the current chunks.
    pub(super) fn begin_walk(&mut self, ticket: Ticket) {
        let ends = [self.deque.front(), self.deque.back()].map(|end| end.map(|end| end.number));
        if ends.contains(&Some(u32::MIN)) || ends.contains(&Some(u32::MAX)) {
            // The numbers have run out, after billions of chunks.
            let first = NUMBER_AT_FIRST - (self.deque.len() / 2) as u32;
            self.deque.iter_mut().zip(first..).for_each(|(chunk, number)| chunk.number = number);
        }
        let last = self.deque.back().map_or(0, |last| u64::from(last.number));
        let from = if self.deque.is_empty() { 1 } else { 0 };
        let walk = ListWalk { ticket, from, last, saved: BTreeMap::new() };
        self.walk.0 = Some(Box::new(walk));
    }

    /// Visits chunks in order until the budget is spent. Returns whether all were visited.
    pub(super) fn step_walk(
        &mut self,
        budget: &mut Budget,
        visit: &mut dyn FnMut(&ListChunk),
    ) -> bool {
        let Some(walk) = self.walk.0.as_deref_mut() else { return true };
        while !budget.is_spent() && walk.from <= walk.last {
            let at = self.deque.partition_point(|chunk| u64::from(chunk.number) < walk.from);
            let own = self.deque.get(at).map(|chunk| chunk.number);
            let saved = walk.saved.first_key_value().map(|(number, _)| *number);
            let next = [own, saved].into_iter().flatten().min();
            let Some(number) = next.filter(|number| walk.is_ahead(*number)) else {
                walk.from = walk.last + 1;
                break;
            };
            walk.from = u64::from(number) + 1;
            let mut see = |chunk: &ListChunk| {
                visit(chunk);
                budget.spend(chunk.bytes().len());
            };
            match walk.saved.remove(&number) {
                Some(saved) => saved.iter().map(|saved| &saved.content).for_each(see),
                None => {
                    let own = self.deque.range(at..);
                    own.take_while(|chunk| chunk.number == number).for_each(&mut see);
                }
            }
        }
        walk.from > walk.last
    }

    /// The ticket of the walk, if there is one.
    #[inline]
    pub(super) fn ticket(&self) -> Option<&Ticket> {
        self.walk.0.as_ref().map(|walk| &walk.ticket)
    }

    /// Ends the walk.
    pub(super) fn end_walk(&mut self) -> Option<FinishedListWalk> {
        let ListWalk { ticket, saved, .. } = *self.walk.0.take()?;
        Some(FinishedListWalk { ticket, _saved: saved })
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;

//! Iterators over the entries of a stream, in both directions.

use std::collections::btree_map;

use crate::stream::chunk::StreamChunk;
use crate::stream::{Id, StreamEntry};

/// The entries of a range, ascending.
#[derive(Clone, Debug)]
pub struct StreamRange<'a> {
    pub(super) sealed: btree_map::Range<'a, Id, StreamChunk>,
    pub(super) tail: Option<(Id, &'a StreamChunk)>,
    pub(super) current: Option<(Id, &'a StreamChunk, usize)>,
    pub(super) from: Id,
    pub(super) to: Id,
}

impl<'a> Iterator for StreamRange<'a> {
    type Item = StreamEntry<'a>;

    #[inline]
    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            if let Some((base, chunk, at)) = self.current
                && let Some((entry, end)) = chunk.next(base, self.from, at)
            {
                if entry.id > self.to {
                    self.sealed = btree_map::Range::default();
                    (self.current, self.tail) = (None, None);
                    return None;
                }
                self.current = Some((base, chunk, end));
                return Some(entry);
            }
            let next = self.sealed.next().map(|(base, chunk)| (*base, chunk));
            let (base, chunk) = next.or_else(|| self.tail.take())?;
            self.current = Some((base, chunk, 0));
        }
    }
}

/// The entries of a range, descending.
#[derive(Clone, Debug)]
pub struct StreamRangeBack<'a> {
    pub(super) sealed: btree_map::Range<'a, Id, StreamChunk>,
    pub(super) current: Option<(Id, &'a StreamChunk, usize)>,
    pub(super) from: Id,
    pub(super) to: Id,
}

impl<'a> Iterator for StreamRangeBack<'a> {
    type Item = StreamEntry<'a>;

    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            if let Some((base, chunk, end)) = self.current
                && let Some((entry, at)) = chunk.next_back(base, self.to, end)
            {
                if entry.id < self.from {
                    self.sealed = btree_map::Range::default();
                    self.current = None;
                    return None;
                }
                self.current = Some((base, chunk, at));
                return Some(entry);
            }
            let (base, chunk) = self.sealed.next_back()?;
            self.current = Some((*base, chunk, usize::MAX));
        }
    }
}

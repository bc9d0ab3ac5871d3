//! Iterates over the records of a range of ranks, in either direction.
//!
//! The iterator keeps the rest of one leaf and finds the next leaf by rank: nodes have no links to
//! their neighbours, which a copy of a node would break.

use crate::record::RecordRef;
use crate::table::prefetch;

use super::Ranked;
use std::ops::Range;

/// How many records ahead are prefetched.
const PREFETCH_AHEAD: usize = 6;

/// The records of a range of ranks.
pub struct RankedWalk<'a, P> {
    tree: &'a Ranked<P>,
    /// The rest of the current leaf.
    run: &'a [u64],
    /// Ranks that are neither returned nor in `run`.
    ranks: Range<usize>,
    back: bool,
}

impl<P> Clone for RankedWalk<'_, P> {
    fn clone(&self) -> Self {
        Self { ranks: self.ranks.clone(), ..*self }
    }
}

impl<'a, P> RankedWalk<'a, P> {
    pub(super) fn new(tree: &'a Ranked<P>, ranks: Range<usize>, back: bool) -> Self {
        let end = ranks.end.min(tree.len());
        Self { tree, run: &[], ranks: ranks.start.min(end)..end, back }
    }

    /// Advances to the next leaf. Returns whether there is one.
    fn load(&mut self) -> bool {
        if self.ranks.is_empty() {
            return false;
        }
        let rank = if self.back { self.ranks.end - 1 } else { self.ranks.start };
        let Some((slots, at)) = self.tree.leaf_of(rank) else { return false };
        let left = self.ranks.len();
        if self.back {
            let run = &slots[..=at];
            self.run = &run[run.len().saturating_sub(left)..];
            self.ranks.end -= self.run.len();
            self.run.iter().rev().take(PREFETCH_AHEAD).for_each(|slot| fetch(*slot));
        } else {
            let run = &slots[at..];
            self.run = &run[..run.len().min(left)];
            self.ranks.start += self.run.len();
            self.run.iter().take(PREFETCH_AHEAD).for_each(|slot| fetch(*slot));
        }
        true
    }
}

impl<'a, P> Iterator for RankedWalk<'a, P> {
    type Item = RecordRef<'a, P>;

    #[inline]
    fn next(&mut self) -> Option<RecordRef<'a, P>> {
        if self.run.is_empty() && !self.load() {
            return None;
        }
        let (slot, rest) = if self.back {
            let (slot, rest) = self.run.split_last()?;
            rest.iter().nth_back(PREFETCH_AHEAD - 1).into_iter().for_each(|slot| fetch(*slot));
            (slot, rest)
        } else {
            let (slot, rest) = self.run.split_first()?;
            rest.get(PREFETCH_AHEAD - 1).into_iter().for_each(|slot| fetch(*slot));
            (slot, rest)
        };
        self.run = rest;
        Some(Ranked::record(*slot))
    }

    // Processes a leaf at a time, without the branches of `next` for each record.
    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, start: B, mut each: F) -> B {
        let mut sum = start;
        while !self.run.is_empty() || self.load() {
            let run = std::mem::take(&mut self.run);
            for at in 0..run.len() {
                let ahead = at + PREFETCH_AHEAD;
                let (slot, next) = if self.back {
                    (run[run.len() - 1 - at], run.len().checked_sub(ahead + 1))
                } else {
                    (run[at], Some(ahead))
                };
                if let Some(slot) = next.and_then(|next| run.get(next)) {
                    fetch(*slot);
                }
                sum = each(sum, Ranked::record(slot));
            }
        }
        sum
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.run.len() + self.ranks.len();
        (left, Some(left))
    }
}

impl<P> ExactSizeIterator for RankedWalk<'_, P> {}

#[inline]
fn fetch(address: u64) {
    prefetch(address as *const u8);
}

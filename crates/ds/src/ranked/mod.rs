//! The ranked tree: finds records ordered by (score, key) by rank in O(log n).
//!
//! A B+tree that counts the records below each child. It owns no records: its leaves hold their
//! addresses. The inline bytes of a record are its score, 8 bytes little-endian. Inner nodes copy
//! the score of each child's first record, so a search reads records only in one leaf and where
//! scores are equal.
//!
//! Invariants: (score, key) strictly ascends over the leaves, and -0 equals 0; no score is NaN; no
//! node is empty; every inner node has the exact count and the exact first record of each child.
//! A node that overflows at the end of the tree is not halved, so a tree that grows there has full
//! nodes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::record::{Record, RecordRef};
use crate::table::prefetch;

mod node;
mod walk;

use node::{Branch, INNER_CHILDREN, Inner, LEAF_SLOTS, Leaf, RankedNode, View, ViewMut};
pub use walk::RankedWalk;

/// A search in a leaf first prefetches one in this many records.
const PIVOT_STEP: usize = 4;

/// The score of a record.
#[inline]
pub fn score_of<P>(record: RecordRef<'_, P>) -> f64 {
    let bytes = record.bytes().and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0.0, f64::from_le_bytes)
}

/// Records ordered by (score, key).
pub struct Ranked<P> {
    root: Option<RankedNode>,
    len: usize,
    of: PhantomData<fn() -> Record<P>>,
}

impl<P> Default for Ranked<P> {
    fn default() -> Self {
        Self { root: None, len: 0, of: PhantomData }
    }
}

impl<P> fmt::Debug for Ranked<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranked").field("len", &self.len).finish()
    }
}

/// The position of a record in the order.
#[derive(Clone, Copy)]
struct Item<'a> {
    score: f64,
    key: &'a [u8],
}

impl<'a> Item<'a> {
    fn of<P>(record: RecordRef<'a, P>) -> Self {
        Self { score: score_of(record), key: record.key() }
    }

    /// Whether a record with this score comes before the item.
    #[inline]
    fn follows<P>(&self, score: f64, record: RecordRef<'_, P>) -> bool {
        score < self.score || score == self.score && record.key() < self.key
    }
}

/// A record to insert.
struct Insertion<'a> {
    item: Item<'a>,
    address: u64,
    /// The record becomes the last one, without a search.
    last: bool,
}

/// The records to remove.
enum Seek<'a> {
    Item(Item<'a>, u64),
    Rank(usize),
}

/// The addresses that one removal takes from one leaf.
#[derive(Default)]
struct RemovedRun {
    addresses: [u64; LEAF_SLOTS],
    len: usize,
}

impl<P> Ranked<P> {
    /// Records held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no record is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory of the nodes in bytes, and their number of allocations.
    pub fn footprint(&self) -> (usize, usize) {
        self.root.as_ref().map_or((0, 0), RankedNode::footprint)
    }

    /// Adds a record.
    ///
    /// # Safety
    /// The record's inline payload has 8 bytes and is not NaN, and its (score, key) is not in the
    /// tree. While the record is in the tree, it is neither moved nor dropped, and neither its key
    /// nor its payload changes.
    pub unsafe fn insert(&mut self, record: RecordRef<'_, P>) {
        self.add(&Insertion { item: Item::of(record), address: record.address(), last: false });
    }

    /// Adds a record that belongs after all others.
    ///
    /// # Safety
    /// As for `insert`, and the record follows all others.
    pub unsafe fn push(&mut self, record: RecordRef<'_, P>) {
        self.add(&Insertion { item: Item::of(record), address: record.address(), last: true });
    }

    fn add(&mut self, insertion: &Insertion<'_>) {
        self.len += 1;
        let root = self.root.get_or_insert_with(|| Leaf::new().into());
        let Some(right) = Self::insert_below(root, insertion, true) else { return };
        let Some(left) = self.root.take() else { return };
        let mut inner = Inner::new();
        inner.insert(0, Self::branch(left));
        inner.insert(1, Self::branch(right));
        self.root = Some(inner.into());
    }

    /// Removes a record. Returns whether it was in the tree.
    pub fn remove(&mut self, record: RecordRef<'_, P>) -> bool {
        let mut run = RemovedRun::default();
        self.take_run(Seek::Item(Item::of(record), record.address()), 1, &mut run);
        run.len == 1
    }

    /// Removes the records of these ranks. Calls `visit` with each, in order, after its removal.
    pub fn remove_range(&mut self, ranks: Range<usize>, mut visit: impl FnMut(RecordRef<'_, P>)) {
        let mut left = ranks.end.min(self.len).saturating_sub(ranks.start);
        while left > 0 {
            let mut run = RemovedRun::default();
            self.take_run(Seek::Rank(ranks.start), left, &mut run);
            left = if run.len == 0 { 0 } else { left - run.len };
            for address in &run.addresses[..run.len] {
                // SAFETY: the obligations of `insert` held until this removal, and `visit` drops
                // the record only through this reference.
                visit(unsafe { RecordRef::from_raw(*address) });
            }
        }
    }

    fn take_run(&mut self, seek: Seek<'_>, count_max: usize, run: &mut RemovedRun) {
        let Some(root) = self.root.as_mut() else { return };
        Self::remove_below(root, seek, count_max, run);
        self.len -= run.len;
        if self.len == 0 {
            self.root = None;
            return;
        }
        // A root with one child is replaced by the child.
        while let Some(ViewMut::Inner(inner)) = self.root.as_mut().map(RankedNode::view_mut)
            && inner.len() == 1
        {
            self.root = inner.remove(0);
        }
    }

    /// A record's rank, or `None` when it is not in the tree.
    pub fn rank_of(&self, record: RecordRef<'_, P>) -> Option<usize> {
        let (item, address) = (Item::of(record), record.address());
        let mut rank = 0;
        let mut node = self.root.as_ref()?;
        loop {
            match node.view() {
                View::Leaf(leaf) => {
                    let at = leaf.slots().iter().position(|slot| *slot == address)?;
                    return Some(rank + at);
                }
                View::Inner(inner) => {
                    let at = Self::child_of(inner, &item, address);
                    rank += inner.counts()[..at].iter().map(|n| *n as usize).sum::<usize>();
                    node = inner.child(at)?;
                }
            }
        }
    }

    /// How many records satisfy `before`, which must hold for the first ones and for none after
    /// them. Its first argument is the record's score, which the tree knows without reading the
    /// record.
    pub fn partition_point(&self, before: impl Fn(f64, RecordRef<'_, P>) -> bool) -> usize {
        let mut rank = 0;
        let mut next = self.root.as_ref();
        while let Some(node) = next {
            match node.view() {
                View::Leaf(leaf) => return rank + Self::partition_leaf(leaf, before),
                View::Inner(inner) => {
                    let (scores, firsts) = (inner.scores(), inner.firsts());
                    let not_after =
                        partition(inner.len(), |i| before(scores[i], Self::record(firsts[i])));
                    let at = not_after.saturating_sub(1);
                    rank += inner.counts()[..at].iter().map(|n| *n as usize).sum::<usize>();
                    next = inner.child(at);
                }
            }
        }
        rank
    }

    /// The record with a rank.
    pub fn nth(&self, rank: usize) -> Option<RecordRef<'_, P>> {
        let (slots, at) = self.leaf_of(rank)?;
        slots.get(at).map(|address| Self::record(*address))
    }

    /// The leaf that holds a rank, and the slot in it.
    fn leaf_of(&self, mut rank: usize) -> Option<(&[u64], usize)> {
        let mut node = self.root.as_ref()?;
        loop {
            match node.view() {
                View::Leaf(leaf) => return Some((leaf.slots(), rank)),
                View::Inner(inner) => {
                    let at = child_with(inner, &mut rank);
                    node = inner.child(at)?;
                }
            }
        }
    }

    /// Iterates over the records of these ranks in ascending order.
    pub fn walk(&self, ranks: Range<usize>) -> RankedWalk<'_, P> {
        RankedWalk::new(self, ranks, false)
    }

    /// Iterates over the records of these ranks in descending order.
    pub fn walk_back(&self, ranks: Range<usize>) -> RankedWalk<'_, P> {
        RankedWalk::new(self, ranks, true)
    }

    #[inline]
    fn record<'a>(address: u64) -> RecordRef<'a, P> {
        // SAFETY: callers pass addresses of the tree, whose records live and do not change, as
        // `insert` demands, and return the borrow for no longer than the tree's.
        unsafe { RecordRef::from_raw(address) }
    }

    /// How many slots of a leaf satisfy `before`.
    #[inline]
    fn partition_leaf(leaf: &Leaf, before: impl Fn(f64, RecordRef<'_, P>) -> bool) -> usize {
        let slots = leaf.slots();
        for pivot in slots.iter().skip(PIVOT_STEP / 2).step_by(PIVOT_STEP) {
            prefetch(*pivot as *const u8);
        }
        partition(slots.len(), |i| {
            let record = Self::record(slots[i]);
            before(score_of(record), record)
        })
    }

    /// The child where an item is or belongs: the last whose first record is not after the item.
    #[inline]
    fn child_of(inner: &Inner, item: &Item<'_>, address: u64) -> usize {
        let (scores, firsts) = (inner.scores(), inner.firsts());
        let less = scores.iter().filter(|score| **score < item.score).count();
        let not_greater = scores.iter().filter(|score| **score <= item.score).count();
        let tied = partition(not_greater - less, |i| {
            let first = firsts[less + i];
            first == address || Self::record(first).key() < item.key
        });
        (less + tied).saturating_sub(1)
    }

    /// A node with the data that its parent keeps about it.
    fn branch(child: RankedNode) -> Branch {
        let (first, count) = (child.first(), child.count() as u32);
        Branch { score: score_of(Self::record(first)), first, count, child }
    }

    /// Inserts a record below a node; `edge` says that the node is at the right edge of the tree.
    /// Returns the node's new right neighbour if it was split.
    fn insert_below(
        node: &mut RankedNode,
        insertion: &Insertion<'_>,
        edge: bool,
    ) -> Option<RankedNode> {
        match node.view_mut() {
            ViewMut::Leaf(leaf) => Self::insert_in_leaf(leaf, insertion, edge),
            ViewMut::Inner(inner) => {
                let last = inner.len() - 1;
                let mut at =
                    if insertion.last { last } else { Self::child_of(inner, &insertion.item, 0) };
                if !insertion.last {
                    let changed = inner.relieve(at);
                    if !changed.is_empty() {
                        changed.for_each(|changed| Self::update_first(inner, changed));
                        at = Self::child_of(inner, &insertion.item, 0);
                    }
                }
                let edge = edge && at == last;
                let count = inner.counts()[at] as usize + 1;
                let right =
                    Self::insert_below(inner.child_mut(at)?, insertion, edge).map(Self::branch);
                inner.set_count(at, count - right.as_ref().map_or(0, |r| r.count as usize));
                Self::update_first(inner, at);
                let right = right?;
                if !inner.is_full() {
                    inner.insert(at + 1, right);
                    return None;
                }
                let middle = if edge { INNER_CHILDREN } else { INNER_CHILDREN / 2 };
                let mut other = inner.split_off(middle);
                if at < middle && !edge {
                    inner.insert(at + 1, right);
                } else {
                    other.insert(at + 1 - middle, right);
                }
                Some(other.into())
            }
        }
    }

    fn insert_in_leaf(
        leaf: &mut Leaf,
        insertion: &Insertion<'_>,
        edge: bool,
    ) -> Option<RankedNode> {
        let len = leaf.slots().len();
        let at = if insertion.last {
            len
        } else {
            Self::partition_leaf(leaf, |score, record| insertion.item.follows(score, record))
        };
        if !leaf.is_full() {
            leaf.insert(at, insertion.address);
            return None;
        }
        let middle = if edge && at == len { len } else { len.div_ceil(2) };
        let mut right = leaf.split_off(middle);
        if at < middle || at == middle && middle < len {
            leaf.insert(at, insertion.address);
        } else {
            right.insert(at - middle, insertion.address);
        }
        Some(right.into())
    }

    /// Removes records from the leaf that `seek` leads to, and repairs the nodes above it.
    fn remove_below(node: &mut RankedNode, seek: Seek<'_>, count_max: usize, run: &mut RemovedRun) {
        match node.view_mut() {
            ViewMut::Leaf(leaf) => {
                let slots = leaf.slots();
                let at = match seek {
                    Seek::Rank(rank) => rank,
                    Seek::Item(_, address) => {
                        slots.iter().position(|slot| *slot == address).unwrap_or(slots.len())
                    }
                };
                run.len = count_max.min(slots.len().saturating_sub(at));
                if run.len > 0 {
                    run.addresses[..run.len].copy_from_slice(&slots[at..at + run.len]);
                    leaf.remove(at, run.len);
                }
            }
            ViewMut::Inner(inner) => {
                let (at, seek) = match seek {
                    Seek::Rank(mut rank) => (child_with(inner, &mut rank), Seek::Rank(rank)),
                    Seek::Item(item, address) => {
                        (Self::child_of(inner, &item, address), Seek::Item(item, address))
                    }
                };
                let Some(child) = inner.child_mut(at) else { return };
                Self::remove_below(child, seek, count_max, run);
                let count = inner.counts()[at] as usize - run.len;
                inner.set_count(at, count);
                if count == 0 {
                    inner.remove(at);
                    return;
                }
                Self::update_first(inner, at);
                for changed in inner.mend(at) {
                    Self::update_first(inner, changed);
                }
            }
        }
    }

    /// Updates the first record of a child in its parent.
    #[inline]
    fn update_first(inner: &mut Inner, at: usize) {
        let first = inner.child(at).map_or(0, RankedNode::first);
        if inner.firsts()[at] != first {
            inner.set_first(at, first, score_of(Self::record(first)));
        }
    }
}

/// The child that holds a rank; the rank becomes relative to the child.
#[inline]
fn child_with(inner: &Inner, rank: &mut usize) -> usize {
    let counts = inner.counts();
    let mut at = 0;
    while at + 1 < counts.len() && *rank >= counts[at] as usize {
        *rank -= counts[at] as usize;
        at += 1;
    }
    at
}

/// How many of the indexes below `len` satisfy `before`, which must hold for the first ones and for
/// none after them.
#[inline]
fn partition(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut start, mut left) = (0, len);
    while left > 0 {
        let half = left / 2;
        if before(start + half) {
            start += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    start
}

#[cfg(test)]
mod tests;

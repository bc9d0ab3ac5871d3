//! The nodes of the ranked tree: leaves of record addresses, and inner nodes above them.
//!
//! ```text
//! Leaf    256 bytes   len, then up to 31 addresses in order
//! Inner  1016 bytes   len, then for up to 36 children: the number of records below, the score and
//!                     address of the first record below, and the child
//! ```
//!
//! This module fills, splits and merges nodes; only the tree knows about order, ranks and the
//! contents of records. A [`RankedNode`] owns its box. The lowest bit of its address distinguishes
//! leaf and inner node, so a child costs 8 bytes.
//!
//! Lengths and counts have 32 bits: a node has at most 36 entries, and a tree has fewer than 2^32
//! records, which would take 150 GB with their slots in tree and dict.

use std::ops::Range;
use std::ptr::NonNull;

/// Addresses in a leaf. With the length they fill an allocation of 256 bytes.
pub(super) const LEAF_SLOTS: usize = 31;
/// Children of an inner node. They fill an allocation of 1 KB.
pub(super) const INNER_CHILDREN: usize = 36;
/// A node that uses less than 1/4 of its room is merged with a neighbour or takes entries from it.
const SPARSE_DIVISOR: usize = 4;

/// A full leaf moves addresses to a neighbour that has this many free slots.
const RELIEF_MIN: usize = 4;

const INNER_TAG: usize = 1;

/// Addresses of records, in order.
pub(super) struct Leaf {
    len: u32,
    slots: [u64; LEAF_SLOTS],
}

/// The data of one child in an inner node.
pub(super) struct Branch {
    /// Score of the first record below.
    pub(super) score: f64,
    /// Address of the first record below.
    pub(super) first: u64,
    /// Records below.
    pub(super) count: u32,
    pub(super) child: RankedNode,
}

/// Children in order, each with the data that a search reads.
pub(super) struct Inner {
    len: u32,
    counts: [u32; INNER_CHILDREN],
    scores: [f64; INNER_CHILDREN],
    firsts: [u64; INNER_CHILDREN],
    children: [Option<RankedNode>; INNER_CHILDREN],
}

/// An owned leaf or inner node.
pub(super) struct RankedNode(NonNull<u8>);

// SAFETY: a node exclusively owns its box, and boxes of both kinds hold only numbers and nodes.
unsafe impl Send for RankedNode {}
// SAFETY: shared access only reads.
unsafe impl Sync for RankedNode {}

/// A node for reading.
pub(super) enum View<'a> {
    Leaf(&'a Leaf),
    Inner(&'a Inner),
}

/// A node for writing.
pub(super) enum ViewMut<'a> {
    Leaf(&'a mut Leaf),
    Inner(&'a mut Inner),
}

impl From<Box<Leaf>> for RankedNode {
    fn from(leaf: Box<Leaf>) -> Self {
        Self(NonNull::from(Box::leak(leaf)).cast())
    }
}

impl From<Box<Inner>> for RankedNode {
    fn from(inner: Box<Inner>) -> Self {
        let base: NonNull<u8> = NonNull::from(Box::leak(inner)).cast();
        Self(base.map_addr(|address| address | INNER_TAG))
    }
}

impl RankedNode {
    #[inline]
    fn is_inner(&self) -> bool {
        self.0.addr().get() & INNER_TAG != 0
    }

    #[inline]
    fn base(&self) -> *mut u8 {
        self.0.as_ptr().map_addr(|address| address & !INNER_TAG)
    }

    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        // SAFETY: this node owns a box at the address, of the kind that the tag says; boxes are
        // aligned to 8, so the tag is not part of the address.
        unsafe {
            if self.is_inner() {
                View::Inner(&*self.base().cast::<Inner>())
            } else {
                View::Leaf(&*self.base().cast::<Leaf>())
            }
        }
    }

    #[inline]
    pub(super) fn view_mut(&mut self) -> ViewMut<'_> {
        // SAFETY: as in `view`, and `&mut self` makes the access exclusive.
        unsafe {
            if self.is_inner() {
                ViewMut::Inner(&mut *self.base().cast::<Inner>())
            } else {
                ViewMut::Leaf(&mut *self.base().cast::<Leaf>())
            }
        }
    }

    /// Records below.
    pub(super) fn count(&self) -> usize {
        match self.view() {
            View::Leaf(leaf) => leaf.slots().len(),
            View::Inner(inner) => inner.counts().iter().map(|count| *count as usize).sum(),
        }
    }

    /// Address of the first record below; 0 when there is none.
    pub(super) fn first(&self) -> u64 {
        match self.view() {
            View::Leaf(leaf) => leaf.slots().first().copied().unwrap_or(0),
            View::Inner(inner) => inner.firsts().first().copied().unwrap_or(0),
        }
    }

    fn is_sparse(&self) -> bool {
        match self.view() {
            View::Leaf(leaf) => leaf.slots().len() < LEAF_SLOTS / SPARSE_DIVISOR,
            View::Inner(inner) => inner.len() < INNER_CHILDREN / SPARSE_DIVISOR,
        }
    }

    /// The memory of this node and all nodes below in bytes, and their number of allocations.
    pub(super) fn footprint(&self) -> (usize, usize) {
        match self.view() {
            View::Leaf(_) => (size_of::<Leaf>(), 1),
            View::Inner(inner) => {
                let own = (size_of::<Inner>(), 1);
                let leaves = inner.child(0).is_some_and(|child| !child.is_inner());
                if leaves {
                    return (own.0 + inner.len() * size_of::<Leaf>(), own.1 + inner.len());
                }
                let below = inner.children[..inner.len()].iter().flatten().map(Self::footprint);
                below.fold(own, |sum, part| (sum.0 + part.0, sum.1 + part.1))
            }
        }
    }
}

impl Drop for RankedNode {
    fn drop(&mut self) {
        // SAFETY: the node owns the box, which was leaked when the node was created.
        unsafe {
            if self.is_inner() {
                drop(Box::from_raw(self.base().cast::<Inner>()));
            } else {
                drop(Box::from_raw(self.base().cast::<Leaf>()));
            }
        }
    }
}

impl Leaf {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self { len: 0, slots: [0; LEAF_SLOTS] })
    }

    #[inline]
    pub(super) fn slots(&self) -> &[u64] {
        &self.slots[..self.len as usize]
    }

    pub(super) fn is_full(&self) -> bool {
        self.len as usize == LEAF_SLOTS
    }

    /// Inserts an address before the one at `at`; there must be room.
    pub(super) fn insert(&mut self, at: usize, address: u64) {
        let len = self.len as usize;
        self.slots.copy_within(at..len, at + 1);
        self.slots[at] = address;
        self.len += 1;
    }

    /// Removes `count` addresses from `at` on.
    pub(super) fn remove(&mut self, at: usize, count: usize) {
        let len = self.len as usize;
        self.slots.copy_within(at + count..len, at);
        self.len -= count as u32;
    }

    /// Moves the addresses from `at` on to a new leaf.
    pub(super) fn split_off(&mut self, at: usize) -> Box<Self> {
        let mut right = Self::new();
        let moved = &self.slots[at..self.len as usize];
        right.slots[..moved.len()].copy_from_slice(moved);
        right.len = moved.len() as u32;
        self.len = at as u32;
        right
    }

    /// Distributes the addresses of two neighbours: the left one gets `left_len` of them.
    fn share(&mut self, right: &mut Self, left_len: usize) {
        let (a, b) = (self.len as usize, right.len as usize);
        if left_len >= a {
            let moved = left_len - a;
            self.slots[a..left_len].copy_from_slice(&right.slots[..moved]);
            right.slots.copy_within(moved..b, 0);
        } else {
            let moved = a - left_len;
            right.slots.copy_within(..b, moved);
            right.slots[..moved].copy_from_slice(&self.slots[left_len..a]);
        }
        self.len = left_len as u32;
        right.len = (a + b - left_len) as u32;
    }
}

impl Inner {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            len: 0,
            counts: [0; INNER_CHILDREN],
            scores: [0.0; INNER_CHILDREN],
            firsts: [0; INNER_CHILDREN],
            children: [const { None }; INNER_CHILDREN],
        })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == INNER_CHILDREN
    }

    #[inline]
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts[..self.len()]
    }

    #[inline]
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores[..self.len()]
    }

    #[inline]
    pub(super) fn firsts(&self) -> &[u64] {
        &self.firsts[..self.len()]
    }

    #[inline]
    pub(super) fn child(&self, at: usize) -> Option<&RankedNode> {
        self.children.get(at)?.as_ref()
    }

    #[inline]
    pub(super) fn child_mut(&mut self, at: usize) -> Option<&mut RankedNode> {
        self.children.get_mut(at)?.as_mut()
    }

    pub(super) fn set_count(&mut self, at: usize, count: usize) {
        self.counts[at] = count as u32;
    }

    pub(super) fn set_first(&mut self, at: usize, first: u64, score: f64) {
        self.firsts[at] = first;
        self.scores[at] = score;
    }

    /// Inserts a child before the one at `at`; there must be room.
    pub(super) fn insert(&mut self, at: usize, branch: Branch) {
        let len = self.len();
        self.counts.copy_within(at..len, at + 1);
        self.scores.copy_within(at..len, at + 1);
        self.firsts.copy_within(at..len, at + 1);
        self.children[at..=len].rotate_right(1);
        self.counts[at] = branch.count;
        self.set_first(at, branch.first, branch.score);
        self.children[at] = Some(branch.child);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: usize) -> Option<RankedNode> {
        let len = self.len();
        let child = self.children[at].take();
        self.counts.copy_within(at + 1..len, at);
        self.scores.copy_within(at + 1..len, at);
        self.firsts.copy_within(at + 1..len, at);
        self.children[at..len].rotate_left(1);
        self.len -= 1;
        child
    }

    /// Moves the children from `at` on to a new node.
    pub(super) fn split_off(&mut self, at: usize) -> Box<Self> {
        let mut right = Self::new();
        right.append(self, at);
        right
    }

    /// Moves the children of `from` from `at` on to the end of this node.
    fn append(&mut self, from: &mut Self, at: usize) {
        let (len, moved) = (self.len(), from.len() - at);
        let (to, part) = (len..len + moved, at..from.len());
        self.counts[to.clone()].copy_from_slice(&from.counts[part.clone()]);
        self.scores[to.clone()].copy_from_slice(&from.scores[part.clone()]);
        self.firsts[to.clone()].copy_from_slice(&from.firsts[part.clone()]);
        self.children[to].swap_with_slice(&mut from.children[part]);
        self.len += moved as u32;
        from.len = at as u32;
    }

    /// Distributes the children of two neighbours: the left one gets `left_len` of them.
    fn share(&mut self, right: &mut Self, left_len: usize) {
        // This is rare, so a third node keeps it simple.
        let mut all = right.split_off(0);
        let own = self.len();
        if left_len >= own {
            right.append(&mut all, left_len - own);
            self.append(&mut all, 0);
        } else {
            right.append(self, left_len);
            right.append(&mut all, 0);
        }
    }

    /// If the child at `at` is sparse, merges it with a neighbour, or takes entries from the
    /// neighbour if one node has no room for both. Returns the range of changed children: their
    /// counts are updated, but the caller must update their first records, which
    /// [`RankedNode::first`] returns.
    pub(super) fn mend(&mut self, at: usize) -> Range<usize> {
        if self.len() < 2 || !self.child(at).is_some_and(RankedNode::is_sparse) {
            return at..at;
        }
        let left_at = if at + 1 < self.len() { at } else { at - 1 };
        self.balance(left_at, true)
    }

    /// If the child at `at` is a full leaf, moves addresses to a neighbour that has room, which
    /// avoids a split and keeps leaves fuller. Returns the range of changed children, as `mend`
    /// does.
    pub(super) fn relieve(&mut self, at: usize) -> Range<usize> {
        let room = |at: usize| match self.child(at).map(RankedNode::view) {
            Some(View::Leaf(leaf)) => LEAF_SLOTS - leaf.slots().len(),
            _ => 0,
        };
        if !matches!(self.child(at).map(RankedNode::view), Some(View::Leaf(leaf)) if leaf.is_full())
        {
            return at..at;
        }
        let left = at.checked_sub(1).map_or(0, room);
        let right = room(at + 1);
        if left.max(right) < RELIEF_MIN {
            return at..at;
        }
        self.balance(if right >= left { at } else { at - 1 }, false)
    }

    /// Distributes the entries of the child at `left_at` and the next one evenly, or moves all into
    /// the first if `unite` is set and they fit.
    fn balance(&mut self, left_at: usize, unite: bool) -> Range<usize> {
        let (head, tail) = self.children.split_at_mut(left_at + 1);
        let (Some(left), Some(right)) = (head[left_at].as_mut(), tail[0].as_mut()) else {
            return left_at..left_at;
        };
        let (left_count, right_count, unite) = match (left.view_mut(), right.view_mut()) {
            (ViewMut::Leaf(a), ViewMut::Leaf(b)) => {
                let len = (a.len + b.len) as usize;
                let unite = unite && len <= LEAF_SLOTS;
                a.share(b, if unite { len } else { len / 2 });
                (left.count(), right.count(), unite)
            }
            (ViewMut::Inner(a), ViewMut::Inner(b)) => {
                let len = a.len() + b.len();
                let unite = unite && len <= INNER_CHILDREN;
                a.share(b, if unite { len } else { len / 2 });
                (left.count(), right.count(), unite)
            }
            _ => return left_at..left_at,
        };
        self.set_count(left_at, left_count);
        self.set_count(left_at + 1, right_count);
        if unite {
            self.remove(left_at + 1);
            return left_at..left_at + 1;
        }
        left_at..left_at + 2
    }
}

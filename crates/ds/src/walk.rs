//! Walks over a container as it was when the walk started, while the container changes.
//!
//! A walk visits each element of that moment once, in steps; between two steps the container may
//! change in any way. Before a change of elements that the walk has not visited, the container
//! saves a copy: of a member of a [`Dict`](crate::Dict), or of a chunk of a [`List`](crate::List)
//! or a [`Stream`](crate::Stream). Nothing is copied when a walk starts, so starting takes no time,
//! and the memory of a walk grows with the changes during it. That memory does not count towards
//! the memory limit (`InWalk`).
//!
//! The state of a walk is in its container and moves with it, as does a ticket by which the owner
//! of the walk recognises the container. A copy of a container has no walk.

use std::any::Any;
use std::fmt;

use base::uncounted::SnapshotBytes;

/// The cost of a visit in addition to the visited bytes.
const VISIT_BYTES: usize = 64;

/// Identifies a container to the owner of the walk over it.
pub struct Ticket(pub Box<dyn Any + Send + Sync>);

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket")
    }
}

/// How much a step of a walk may visit. It ends with the visit that reaches the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(usize);

impl Budget {
    /// A budget of so many bytes. Each visit costs some bytes in addition to the visited ones.
    pub fn of_bytes(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Subtracts the cost of a visit of so many bytes.
    #[inline]
    pub fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes.saturating_add(VISIT_BYTES));
    }

    /// Whether the budget is spent.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// Content that only a walk still has, with its bytes, which do not count while this value exists.
/// So they count again wherever it is dropped: after its visit, with the container, or with the
/// remains of the walk. The container's own size does not include them.
#[derive(Debug)]
pub(crate) struct InWalk<T> {
    pub(crate) content: T,
    _bytes: SnapshotBytes,
}

impl<T> InWalk<T> {
    /// `allocated` is the memory that the content owns. The value itself lies in a node or a vector
    /// of the walk, of which at least its own size is excluded.
    pub(crate) fn new(content: T, allocated: usize) -> Self {
        Self { content, _bytes: SnapshotBytes::new(size_of::<Self>() + allocated) }
    }
}

/// The state of a container's walk, if there is one.
pub(crate) struct WalkSlot<W>(pub(crate) Option<Box<W>>);

impl<W> WalkSlot<W> {
    pub(crate) const EMPTY: Self = Self(None);

    /// Whether there is a walk.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

impl<W> Default for WalkSlot<W> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<W> Clone for WalkSlot<W> {
    fn clone(&self) -> Self {
        Self::EMPTY
    }
}

impl<W> fmt::Debug for WalkSlot<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "walk" } else { "none" })
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
pub(crate) mod tests;

//! Walks over a container as it was when the walk began, while the container goes on changing.
//!
//! A walk visits everything that was there then, once, in steps between which anything may happen
//! to the container. Before each change the container looks whether the walk has yet to visit what
//! is to be changed, and saves a copy: of a member of a [`Dict`](crate::Dict), of a chunk of a
//! [`List`](crate::List) or a [`Stream`](crate::Stream). Nothing is copied when a walk begins, so
//! that takes no time, and the memory of a walk grows with what is changed meanwhile.
//!
//! The state of a walk lies in its container and moves with it. So does a ticket, by which whoever
//! began the walk knows the container again. A copy of a container has no walk.

use std::any::Any;
use std::fmt;

/// What a visit costs besides the bytes of what is visited.
const VISIT_BYTES: usize = 64;

/// By what a container is known again to whom began a walk over it.
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
    /// A budget of so many bytes, of which each visit takes some besides those that it sees.
    pub fn of_bytes(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes off what a visit of so many bytes costs.
    #[inline]
    pub fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes.saturating_add(VISIT_BYTES));
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// Where a container keeps the state of its walk, if there is one.
pub(crate) struct Slot<W>(pub(crate) Option<Box<W>>);

impl<W> Slot<W> {
    pub(crate) const EMPTY: Self = Self(None);

    /// Whether there is a walk.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

impl<W> Default for Slot<W> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<W> Clone for Slot<W> {
    fn clone(&self) -> Self {
        Self::EMPTY
    }
}

impl<W> fmt::Debug for Slot<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "walk" } else { "none" })
    }
}

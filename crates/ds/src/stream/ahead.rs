//! The state of a walk over a stream or a group; see `walk` and `group_walk`.

use std::collections::BTreeMap;

use crate::stream::Id;
use crate::stream::chunk::StreamChunk;
use crate::walk::{InWalk, Ticket};

/// The state of a walk over the chunks of a stream.
#[derive(Debug)]
pub(super) struct StreamWalk {
    pub(super) ticket: Ticket,
    pub(super) chunks: Ahead<StreamChunk>,
}

/// The progress of a walk over a map by identifiers, and the saved contents of changed identifiers.
#[derive(Debug)]
pub(super) struct Ahead<T> {
    /// The lowest identifier that was not visited; `None` if all were.
    from: Option<Id>,
    /// The highest identifier when the walk started.
    last: Id,
    /// For each identifier that changed before the visit, its content when the walk started.
    saved: BTreeMap<Id, InWalk<Option<T>>>,
}

impl<T> Ahead<T> {
    /// A walk over the identifiers up to `last`, or over none.
    pub(super) fn up_to(last: Option<Id>) -> Self {
        let from = last.map(|_| Id::MIN);
        Self { from, last: last.unwrap_or(Id::MIN), saved: BTreeMap::new() }
    }

    /// Whether the content of an identifier must be saved before it changes.
    pub(super) fn must_save(&self, id: Id) -> bool {
        self.from.is_some_and(|from| (from..=self.last).contains(&id))
            && !self.saved.contains_key(&id)
    }

    /// Saves the content of an identifier, which owns `allocated` bytes; `None` if the identifier
    /// is new.
    pub(super) fn save(&mut self, id: Id, old: Option<T>, allocated: usize) {
        self.saved.insert(id, InWalk::new(old, allocated));
    }

    /// Whether all identifiers were visited.
    pub(super) fn is_done(&self) -> bool {
        self.from.is_none()
    }

    /// The next identifier, and the content that was saved for it. `own` returns the next existing
    /// identifier.
    pub(super) fn next(
        &mut self,
        own: impl FnOnce(Id) -> Option<Id>,
    ) -> Option<(Id, Option<InWalk<Option<T>>>)> {
        let from = self.from?;
        let saved = self.saved.first_key_value().map(|(id, _)| *id);
        let next = [own(from), saved].into_iter().flatten().min();
        let next = next.filter(|id| *id <= self.last);
        self.from = next.and_then(|id| id.next()).filter(|from| *from <= self.last);
        let next = next?;
        Some((next, self.saved.remove(&next)))
    }
}

//! The part of a walk over a stream that visits its groups: what is pending in each, and its
//! consumers.
//!
//! The heads of groups and consumers are copied when the walk begins, since they are few. Pending
//! entries may be many: a group saves each before it changes. A group that is removed goes to the
//! walk with all it has.

use std::collections::VecDeque;

use crate::stream::walk::{Ahead, Part};
use crate::stream::{Group, Groups, Handle, Id, Named, Pending};
use crate::walk::Budget;

/// A group as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHead {
    /// Its name.
    pub name: Box<[u8]>,
    /// See [`Group`].
    pub last_id: Id,
    /// See [`Group`].
    pub entries_read: i64,
    /// Entries that are not acknowledged.
    pub pending: usize,
    /// Consumers, by name.
    pub consumers: Vec<ConsumerHead>,
}

/// A consumer as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHead {
    /// By what pending entries name it.
    pub handle: Handle,
    /// Its name.
    pub name: Box<[u8]>,
    /// See [`Consumer`](crate::stream::Consumer).
    pub seen_ms: i64,
    /// See [`Consumer`](crate::stream::Consumer).
    pub active_ms: i64,
    /// Entries that it has not acknowledged.
    pub pending: usize,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct GroupsWalk {
    /// Groups that have not been visited to their end.
    heads: VecDeque<GroupHead>,
    /// Whether the first of them was visited itself.
    begun: bool,
    /// The removed groups among them.
    removed: Vec<Named>,
    /// The visited groups among the removed ones, which the owner drops where that delays no
    /// client.
    visited: Vec<Named>,
}

impl GroupHead {
    /// A group as it is.
    pub fn of(name: &[u8], group: &Group) -> Self {
        let consumers = group.handles().map(|(handle, consumer)| ConsumerHead {
            handle,
            name: consumer.name().into(),
            seen_ms: consumer.seen_ms,
            active_ms: consumer.active_ms,
            pending: consumer.pending_len(),
        });
        Self {
            name: name.into(),
            last_id: group.last_id,
            entries_read: group.entries_read,
            pending: group.pending_len(),
            consumers: consumers.collect(),
        }
    }
}

impl Groups {
    /// Keeps a removed group if the walk has yet to visit it. Returns what is left of it.
    pub(super) fn keep(&mut self, named: Named) -> Option<Group> {
        match &mut self.walk.0 {
            Some(walk) if named.group.walk.is_some() => {
                walk.removed.push(named);
                Some(Group::new(Id::MIN, 0))
            }
            _ => Some(*named.group),
        }
    }

    pub(super) fn begin_walk(&mut self) {
        let heads = self.iter().map(|(name, group)| GroupHead::of(name, group)).collect();
        for named in &mut self.named {
            let ahead = Ahead::up_to(named.group.last_pending());
            named.group.walk.0 = Some(Box::new(ahead));
        }
        self.walk.0 = Some(Box::new(GroupsWalk {
            heads,
            begun: false,
            removed: Vec::new(),
            visited: Vec::new(),
        }));
    }

    /// Visits groups until the budget is spent. Returns whether all have been.
    pub(super) fn step_walk(
        &mut self,
        budget: &mut Budget,
        visit: &mut dyn FnMut(Part<'_>),
    ) -> bool {
        let Some(mut walk) = self.walk.0.take() else { return true };
        while !budget.is_spent()
            && let Some(head) = walk.heads.front()
        {
            if !walk.begun {
                walk.begun = true;
                visit(Part::Group(head));
                budget.spend(size_of_val(&*head.consumers));
            }
            // One that came later under the same name has no walk.
            let own = self.named.iter_mut().find(|own| own.is_walked(&head.name));
            let group = own.or_else(|| walk.removed.iter_mut().find(|own| own.name == head.name));
            if group.is_none_or(|own| own.group.step_walk(budget, visit)) {
                walk.visited.extend(walk.removed.extract_if(.., |own| own.name == head.name));
                walk.heads.pop_front();
                walk.begun = false;
            }
        }
        let done = walk.heads.is_empty();
        self.walk.0 = Some(walk);
        done
    }

    /// Ends the walk. The caller should drop the result where that delays no client.
    pub(super) fn end_walk(&mut self) -> GroupsEnded {
        let walks = self.named.iter_mut().filter_map(|named| Some(*named.group.walk.0.take()?));
        GroupsEnded { _walks: walks.collect(), _walk: self.walk.0.take() }
    }
}

/// The memory of a finished walk over groups.
#[derive(Debug)]
pub(super) struct GroupsEnded {
    _walks: Vec<Ahead<Pending>>,
    _walk: Option<Box<GroupsWalk>>,
}

impl Named {
    fn is_walked(&self, name: &[u8]) -> bool {
        *self.name == *name && self.group.walk.is_some()
    }
}

impl Group {
    /// Visits pending entries until the budget is spent. Returns whether all have been, after which
    /// the group has no walk.
    fn step_walk(&mut self, budget: &mut Budget, visit: &mut dyn FnMut(Part<'_>)) -> bool {
        let Some(mut walk) = self.walk.0.take() else { return true };
        while !budget.is_spent() {
            let next =
                walk.next(|from| self.pending_range(from..=Id::MAX).next().map(|(id, _)| id));
            let Some((id, saved)) = next else { return true };
            let own = || self.pending(id).copied();
            if let Some(pending) = saved.unwrap_or_else(own) {
                visit(Part::Pending(id, pending));
            }
            budget.spend(0);
        }
        let done = walk.is_done();
        if !done {
            self.walk.0 = Some(walk);
        }
        done
    }
}

//! The part of a walk over a stream that visits its groups: their consumers and pending entries.
//!
//! The walk copies the few heads of groups and consumers when it starts. Pending entries may be
//! many, so a group saves each one before it changes. The walk takes over removed groups.

use std::collections::VecDeque;

use crate::stream::ahead::Ahead;
use crate::stream::walk::StreamPart;
use crate::stream::{ConsumerGroup, Groups, Handle, Id, NamedGroup, Pending};
use crate::walk::{Budget, InWalk};

/// A group without its pending entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHead {
    /// The group's name.
    pub name: Box<[u8]>,
    /// See [`ConsumerGroup`].
    pub last_id: Id,
    /// See [`ConsumerGroup`].
    pub entries_read: i64,
    /// Entries that are not acknowledged.
    pub pending: usize,
    /// Consumers, by name.
    pub consumers: Vec<ConsumerHead>,
}

/// A consumer without its pending entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerHead {
    /// Its handle in pending entries.
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
    /// The groups that were not completely visited.
    heads: VecDeque<GroupHead>,
    /// Whether the head of the first one was visited.
    begun: bool,
    /// Those of the groups that were removed since the walk started.
    removed: Vec<InWalk<NamedGroup>>,
    /// The visited groups among the removed ones, which the owner drops where that delays no
    /// client.
    visited: Vec<InWalk<NamedGroup>>,
}

impl GroupHead {
    /// The current head of a group.
    pub fn of(name: &[u8], group: &ConsumerGroup) -> Self {
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
    /// Keeps a removed group if the walk has not visited it. Returns the group to drop.
    pub(super) fn keep(&mut self, named: NamedGroup) -> Option<ConsumerGroup> {
        match &mut self.walk.0 {
            Some(walk) if named.group.walk.is_some() => {
                let allocated = size_of::<ConsumerGroup>() + named.group.pending_bytes();
                walk.removed.push(InWalk::new(named, allocated));
                Some(ConsumerGroup::new(Id::MIN, 0))
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

    /// Visits groups until the budget is spent. Returns whether all were visited.
    pub(super) fn step_walk(
        &mut self,
        budget: &mut Budget,
        visit: &mut dyn FnMut(StreamPart<'_>),
    ) -> bool {
        let Some(mut walk) = self.walk.0.take() else { return true };
        while !budget.is_spent()
            && let Some(head) = walk.heads.front()
        {
            if !walk.begun {
                walk.begun = true;
                visit(StreamPart::Group(head));
                budget.spend(size_of_val(&*head.consumers));
            }
            // A later group with the same name has no walk.
            let own = self.named.iter_mut().find(|own| own.has_walk_of(&head.name));
            let group = own.or_else(|| {
                let mut removed = walk.removed.iter_mut().map(|saved| &mut saved.content);
                removed.find(|own| own.name == head.name)
            });
            if group.is_none_or(|own| own.group.step_walk(budget, visit)) {
                let is_own = |saved: &mut InWalk<NamedGroup>| saved.content.name == head.name;
                walk.visited.extend(walk.removed.extract_if(.., is_own));
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

impl NamedGroup {
    fn has_walk_of(&self, name: &[u8]) -> bool {
        *self.name == *name && self.group.walk.is_some()
    }
}

impl ConsumerGroup {
    /// Visits pending entries until the budget is spent. Returns whether all were visited; then the
    /// group has no walk.
    fn step_walk(&mut self, budget: &mut Budget, visit: &mut dyn FnMut(StreamPart<'_>)) -> bool {
        let Some(mut walk) = self.walk.0.take() else { return true };
        while !budget.is_spent() {
            let next =
                walk.next(|from| self.pending_range(from..=Id::MAX).next().map(|(id, _)| id));
            let Some((id, saved)) = next else { return true };
            let own = || self.pending(id).copied();
            if let Some(pending) = saved.map_or_else(own, |saved| saved.content) {
                visit(StreamPart::Pending(id, pending));
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

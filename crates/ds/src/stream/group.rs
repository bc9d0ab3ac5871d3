//! Consumer groups: the last entry that a group has read, and the entries that its consumers have
//! not acknowledged.
//!
//! Invariant: each pending entry of a group is in the set of exactly one of its consumers. Groups
//! and consumers are ordered by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::btree::btree_bytes;
use crate::stream::Id;
use crate::stream::ahead::Ahead;
use crate::walk::WalkSlot;

/// A group of consumers that share the entries of a stream.
#[derive(Clone, Debug)]
pub struct ConsumerGroup {
    /// The last entry that was delivered to any consumer.
    pub last_id: Id,
    /// How many entries had been added up to `last_id`; -1 if unknown.
    pub entries_read: i64,
    pending: BTreeMap<Id, Pending>,
    /// The pending entries by time of delivery, once a request has needed that order.
    by_time: Option<BTreeSet<(i64, Id)>>,
    /// The consumers by handle; `None` after a removal.
    consumers: Vec<Option<Consumer>>,
    /// The handles of removed consumers.
    free: Vec<Handle>,
    /// The consumers by name.
    order: Vec<Ordered>,
    /// Notified before each pending entry is added, changed or removed.
    pub(super) walk: WalkSlot<Ahead<Pending>>,
}

/// A consumer in the order of names. Most names differ in their first bytes, so a search among many
/// consumers rarely reads more.
#[derive(Clone, Copy, Debug)]
struct Ordered {
    start: u64,
    handle: Handle,
}

/// Identifies a consumer in its group until the consumer is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u32);

/// A consumer of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Box<[u8]>,
    /// When it last sent a request, in milliseconds since 1970.
    pub seen_ms: i64,
    /// When it last got an entry, in milliseconds since 1970; -1 for never.
    pub active_ms: i64,
    pending: BTreeSet<Id>,
}

/// The delivery of an entry that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The consumer that got the entry.
    pub consumer: Handle,
    /// When it was last delivered, in milliseconds since 1970.
    pub delivered_ms: i64,
    /// How often it was delivered.
    pub deliveries: i64,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Entries that it has not acknowledged.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The identifiers of its pending entries in a range, ascending.
    pub fn pending_ids(&self, range: RangeInclusive<Id>) -> impl Iterator<Item = Id> + '_ {
        let range = (!range.is_empty()).then(|| self.pending.range(range));
        range.into_iter().flatten().copied()
    }
}

impl ConsumerGroup {
    /// A group without consumers.
    pub fn new(last_id: Id, entries_read: i64) -> Self {
        Self {
            last_id,
            entries_read,
            pending: BTreeMap::new(),
            by_time: None,
            consumers: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            walk: WalkSlot::EMPTY,
        }
    }

    /// Call it before the pending entry with this identifier is added, changed or removed.
    #[inline]
    fn before_change(&mut self, id: Id) {
        if let Some(walk) = &mut self.walk.0
            && walk.must_save(id)
        {
            walk.save(id, self.pending.get(&id).copied(), 0);
        }
    }

    /// The consumers with their handles, by name.
    pub(super) fn handles(&self) -> impl Iterator<Item = (Handle, &Consumer)> {
        self.order.iter().map(|ordered| (ordered.handle, self.consumer(ordered.handle)))
    }

    /// The highest identifier of a pending entry.
    pub(super) fn last_pending(&self) -> Option<Id> {
        self.pending.last_key_value().map(|(id, _)| *id)
    }

    /// The consumers, by name.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.order.iter().map(|ordered| self.consumer(ordered.handle))
    }

    /// The consumer with this handle.
    ///
    /// # Panics
    /// If the consumer was removed.
    pub fn consumer(&self, handle: Handle) -> &Consumer {
        let consumer = self.consumers.get(handle.0 as usize).and_then(Option::as_ref);
        consumer.unwrap_or_else(|| unreachable!("a handle is for a consumer of the group"))
    }

    /// The consumer with this handle, for writing.
    ///
    /// # Panics
    /// If the consumer was removed.
    pub fn consumer_mut(&mut self, handle: Handle) -> &mut Consumer {
        let consumer = self.consumers.get_mut(handle.0 as usize).and_then(Option::as_mut);
        consumer.unwrap_or_else(|| unreachable!("a handle is for a consumer of the group"))
    }

    fn place(&self, name: &[u8]) -> Result<usize, usize> {
        let start = start_of(name);
        self.order.binary_search_by(|other| {
            let full = || (*self.consumer(other.handle).name).cmp(name);
            other.start.cmp(&start).then_with(full)
        })
    }

    /// The consumer with this name.
    pub fn find(&self, name: &[u8]) -> Option<Handle> {
        self.place(name).ok().map(|at| self.order[at].handle)
    }

    /// The consumer with this name, and whether it was added.
    pub fn find_or_add(&mut self, name: &[u8], now_ms: i64) -> (Handle, bool) {
        let at = match self.place(name) {
            Ok(at) => return (self.order[at].handle, false),
            Err(at) => at,
        };
        let consumer = Consumer {
            name: name.into(),
            seen_ms: now_ms,
            active_ms: -1,
            pending: BTreeSet::new(),
        };
        let handle = self.free.pop().unwrap_or_else(|| {
            if self.consumers.len() == self.consumers.capacity() {
                // Many groups have only one consumer, which should not reserve room for more.
                self.consumers.reserve_exact(self.consumers.len() / 2 + 1);
            }
            self.consumers.push(None);
            // 2^32 consumers would take 300 GB.
            Handle(self.consumers.len() as u32 - 1)
        });
        self.consumers[handle.0 as usize] = Some(consumer);
        self.order.insert(at, Ordered { start: start_of(name), handle });
        (handle, true)
    }

    /// Removes a consumer and its pending entries. Returns their number.
    pub fn remove(&mut self, name: &[u8]) -> Option<usize> {
        let at = self.place(name).ok()?;
        let handle = self.order.remove(at).handle;
        let consumer = self.consumers[handle.0 as usize].take()?;
        self.free.push(handle);
        for id in &consumer.pending {
            self.before_change(*id);
            if let Some(old) = self.pending.remove(id) {
                self.forget_time(*id, &old);
            }
        }
        Some(consumer.pending.len())
    }

    /// Entries that are not acknowledged.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The pending entry with this identifier.
    pub fn pending(&self, id: Id) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// The pending entries in a range, ascending.
    pub fn pending_range(
        &self,
        range: RangeInclusive<Id>,
    ) -> impl DoubleEndedIterator<Item = (Id, &Pending)> {
        let range = (!range.is_empty()).then(|| self.pending.range(range));
        range.into_iter().flatten().map(|(id, pending)| (*id, pending))
    }

    /// The pending entries delivered at `until_ms` or before, the oldest delivery first. The first
    /// call sorts all pending entries; later changes keep that order.
    pub fn delivered_until(&mut self, until_ms: i64) -> impl Iterator<Item = Id> + '_ {
        let times = || self.pending.iter().map(|(id, pending)| (pending.delivered_ms, *id));
        let by_time = self.by_time.get_or_insert_with(|| times().collect());
        by_time.range(..=(until_ms, Id::MAX)).map(|(_, id)| *id)
    }

    fn forget_time(&mut self, id: Id, old: &Pending) {
        if let Some(by_time) = &mut self.by_time {
            by_time.remove(&(old.delivered_ms, id));
        }
    }

    /// Adds a pending entry, or replaces the one with the same identifier.
    pub fn deliver(&mut self, id: Id, pending: Pending) {
        self.before_change(id);
        let old = self.pending.insert(id, pending);
        if let Some(old) = &old {
            self.forget_time(id, old);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.insert((pending.delivered_ms, id));
        }
        if old.is_none_or(|old| old.consumer != pending.consumer) {
            if let Some(old) = old {
                self.consumer_mut(old.consumer).pending.remove(&id);
            }
            self.consumer_mut(pending.consumer).pending.insert(id);
        }
    }

    /// Removes a pending entry. Returns whether it was pending.
    pub fn acknowledge(&mut self, id: Id) -> bool {
        self.before_change(id);
        let Some(old) = self.pending.remove(&id) else { return false };
        self.forget_time(id, &old);
        self.consumer_mut(old.consumer).pending.remove(&id);
        true
    }

    /// The approximate number of allocations.
    pub(super) fn allocations(&self) -> usize {
        // Nodes of the trees are half full.
        self.consumers.len() * 2 + self.pending.len() / 3 + 2
    }

    /// The bytes of its pending entries, without the free room in the nodes of their trees.
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.len() * (size_of::<(Id, Pending)>() + size_of::<Id>())
    }

    /// The approximate memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let consumers: usize = self.consumers().map(|consumer| consumer.name.len()).sum();
        size_of::<Self>()
            + consumers
            + self.consumers.capacity() * size_of::<Option<Consumer>>()
            + self.order.capacity() * size_of::<Ordered>()
            + btree_bytes(self.pending.len(), size_of::<(Id, Pending)>())
            + btree_bytes(self.pending.len(), size_of::<Id>())
            + btree_bytes(self.by_time.as_ref().map_or(0, BTreeSet::len), size_of::<(i64, Id)>())
    }
}

/// The first 8 bytes of a name as a number with the same order. Shorter names are padded with
/// zeros.
fn start_of(name: &[u8]) -> u64 {
    let mut start = [0; 8];
    let len = name.len().min(start.len());
    start[..len].copy_from_slice(&name[..len]);
    u64::from_be_bytes(start)
}

//! A stream: entries with ascending identifiers, and the groups that read it.
//!
//! A [`StreamLog`] keeps the entries in chunks. A group knows the last entry that it has read, and
//! its pending entries. An empty stream remains: it keeps the last identifier and its groups. A
//! stream knows no time, replies or commands.

mod ahead;
mod chunk;
mod chunks;
mod group;
mod group_walk;
mod id;
mod log;
mod progress;
mod range;
mod trim;
mod varint;
mod walk;

pub use chunk::{Element, EntryPairs, StreamEntry};
pub use chunks::{ChunkEntry, NewChunk, StreamChunkRef, Unfit};
pub use group::{Consumer, ConsumerGroup, Handle, Pending};
pub use group_walk::{ConsumerHead, GroupHead};
pub use id::Id;
pub use log::{ChunkLimits, ENTRY_BYTES_MAX, StreamLog};
pub use progress::UNKNOWN;
pub use range::{StreamRange, StreamRangeBack};
pub use trim::{References, Trim, TrimBound};
pub use walk::{FinishedStreamWalk, Head, StreamPart};

use crate::table::prefetch_bytes;
use crate::walk::WalkSlot;

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Its entries.
    pub log: StreamLog,
    /// Its groups.
    pub groups: Groups,
}

/// The groups of a stream, by name. They are few, so a sorted array of them takes the least memory.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    named: Vec<NamedGroup>,
    /// The groups that a walk has not visited, including removed ones.
    walk: WalkSlot<group_walk::GroupsWalk>,
}

#[derive(Clone, Debug)]
struct NamedGroup {
    name: Box<[u8]>,
    group: Box<ConsumerGroup>,
}

impl Stream {
    /// A stream without entries and groups.
    pub const fn new() -> Self {
        Self { log: StreamLog::new(), groups: Groups { named: Vec::new(), walk: WalkSlot::EMPTY } }
    }

    /// Prefetches the stream itself.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_bytes(std::ptr::from_ref(self).cast(), size_of::<Self>());
    }

    /// Prefetches the memory that adding an entry uses; reads the stream itself.
    #[inline]
    pub fn prefetch_end(&self) {
        self.log.prefetch_end();
    }

    /// The approximate number of allocations.
    pub fn allocations(&self) -> usize {
        let groups: usize = self.groups.iter().map(|(_, group)| group.allocations()).sum();
        1 + self.log.chunks_len() + groups
    }

    /// The approximate memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let group = |(name, group): (&[u8], &ConsumerGroup)| {
            name.len() + size_of::<NamedGroup>() + group.memory_bytes()
        };
        size_of::<Self>() + self.log.memory_bytes() + self.groups.iter().map(group).sum::<usize>()
    }
}

impl Groups {
    /// The number of groups.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The groups with their names, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &ConsumerGroup)> {
        self.named.iter().map(|named| (&*named.name, &*named.group))
    }

    fn place(&self, name: &[u8]) -> Result<usize, usize> {
        self.named.binary_search_by(|named| (*named.name).cmp(name))
    }

    /// The group with this name.
    pub fn find(&self, name: &[u8]) -> Option<&ConsumerGroup> {
        self.place(name).ok().map(|at| &*self.named[at].group)
    }

    /// The group with this name, for writing.
    pub fn find_mut(&mut self, name: &[u8]) -> Option<&mut ConsumerGroup> {
        self.place(name).ok().map(|at| &mut *self.named[at].group)
    }

    /// Adds a group. Returns false if there is one with this name already.
    pub fn add(&mut self, name: &[u8], group: ConsumerGroup) -> bool {
        let Err(at) = self.place(name) else { return false };
        if self.named.len() == self.named.capacity() {
            // Most streams have only one group, which should not reserve room for more.
            self.named.reserve_exact(self.named.len() / 2 + 1);
        }
        self.named.insert(at, NamedGroup { name: name.into(), group: Box::new(group) });
        true
    }

    /// Removes a group. Returns it unless a walk still needs it.
    pub fn remove(&mut self, name: &[u8]) -> Option<ConsumerGroup> {
        let at = self.place(name).ok()?;
        let named = self.named.remove(at);
        self.keep(named)
    }

    /// Whether any group has not read the entry, or has it pending.
    pub fn refer_to(&self, id: Id) -> bool {
        self.iter().any(|(_, group)| group.last_id < id || group.pending(id).is_some())
    }

    /// Removes an entry from the pending entries of all groups. Returns whether any had it.
    pub fn forget(&mut self, id: Id) -> bool {
        let mut any = false;
        for named in &mut self.named {
            any |= named.group.acknowledge(id);
        }
        any
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk_tests;

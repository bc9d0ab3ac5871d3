//! A stream: entries with ascending identifiers, and the groups that read it.
//!
//! The entries lie in chunks ([`Log`], and `chunk` for the bytes of one); groups know how far they
//! have read and what is pending. A stream without entries is still one: it remembers the last
//! identifier and its groups. It does not know time, replies or what a command is.

mod chunk;
mod group;
mod id;
mod log;
mod progress;
mod range;
mod trim;
mod varint;

use std::collections::BTreeMap;

pub use chunk::{Element, Entry, Pairs};
pub use group::{Consumer, Group, Handle, Pending};
pub use id::Id;
pub use log::{ChunkLimits, ENTRY_BYTES_MAX, Log};
pub use progress::UNKNOWN;
pub use range::{Range, RangeBack};
pub use trim::{Bound, References, Trim};

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Its entries.
    pub log: Log,
    /// Its groups.
    pub groups: Groups,
}

/// The groups of a stream.
#[derive(Clone, Debug, Default)]
pub struct Groups(BTreeMap<Box<[u8]>, Group>);

impl Stream {
    /// A stream without entries and groups.
    pub const fn new() -> Self {
        Self { log: Log::new(), groups: Groups(BTreeMap::new()) }
    }

    /// About how many allocations dropping the stream frees.
    pub fn allocations(&self) -> usize {
        let groups: usize = self.groups.0.values().map(Group::allocations).sum();
        1 + self.log.chunks_len() + groups
    }

    /// Bytes of memory, about.
    pub fn memory_bytes(&self) -> usize {
        let group = |(name, group): (&[u8], &Group)| name.len() + group.memory_bytes();
        size_of::<Self>() + self.log.memory_bytes() + self.groups.iter().map(group).sum::<usize>()
    }
}

impl Groups {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The groups with their names, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.0.iter().map(|(name, group)| (&**name, group))
    }

    /// A group by its name.
    pub fn find(&self, name: &[u8]) -> Option<&Group> {
        self.0.get(name)
    }

    /// The same for writing.
    pub fn find_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.0.get_mut(name)
    }

    /// Adds a group. Returns false when there is one of this name already.
    pub fn add(&mut self, name: &[u8], group: Group) -> bool {
        let free = !self.0.contains_key(name);
        if free {
            self.0.insert(name.into(), group);
        }
        free
    }

    /// Removes a group.
    pub fn remove(&mut self, name: &[u8]) -> Option<Group> {
        self.0.remove(name)
    }

    /// Whether some group has yet to read an entry, or has it pending.
    pub fn refer_to(&self, id: Id) -> bool {
        self.0.values().any(|group| group.last_id < id || group.pending(id).is_some())
    }

    /// Takes an entry off the pending ones of all groups. Returns whether any had it.
    pub fn forget(&mut self, id: Id) -> bool {
        let mut any = false;
        for group in self.0.values_mut() {
            any |= group.acknowledge(id);
        }
        any
    }
}

#[cfg(test)]
mod tests;

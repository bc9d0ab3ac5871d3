//! What one client is subscribed to.

use std::collections::BTreeMap;

use crate::message::{ChannelKind, Name};

/// What a subscription takes besides its name, about, in bytes: its places here, in the registry
/// and on its thread.
const SUBSCRIPTION_BYTES: usize = 320;

/// What the subscriptions of one client take of memory at most, in bytes: some millions of short
/// names.
pub const SUBSCRIPTIONS_BYTES_MAX: usize = 1 << 30;

/// The subscriptions of one client: names with their hashes, in ascending order.
#[derive(Debug, Default)]
pub struct Subscriptions {
    channels: BTreeMap<Name, u64>,
    patterns: BTreeMap<Name, u64>,
    shard_channels: BTreeMap<Name, u64>,
    requests: BTreeMap<Name, u64>,
    bytes: usize,
    /// On which thread the registry counts the client; none: nowhere any more.
    counted_on: Option<usize>,
}

impl Subscriptions {
    /// None yet, of a client that the registry counts on a thread, or nowhere.
    pub fn new(counted_on: Option<usize>) -> Self {
        Self { counted_on, ..Self::default() }
    }

    /// On which thread the registry counts the client; none: nowhere any more.
    pub fn counted_on(&self) -> Option<usize> {
        self.counted_on
    }

    /// Says on which thread the registry counts the client from now on. Returns where it did.
    pub fn count_on(&mut self, thread: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.counted_on, thread)
    }

    fn of(&self, kind: ChannelKind) -> &BTreeMap<Name, u64> {
        match kind {
            ChannelKind::Channel => &self.channels,
            ChannelKind::Pattern => &self.patterns,
            ChannelKind::Shard => &self.shard_channels,
            ChannelKind::Requests => &self.requests,
        }
    }

    fn of_mut(&mut self, kind: ChannelKind) -> &mut BTreeMap<Name, u64> {
        match kind {
            ChannelKind::Channel => &mut self.channels,
            ChannelKind::Pattern => &mut self.patterns,
            ChannelKind::Shard => &mut self.shard_channels,
            ChannelKind::Requests => &mut self.requests,
        }
    }

    /// Adds a subscription that there is not yet.
    pub fn add(&mut self, kind: ChannelKind, name: Name, hash: u64) {
        self.bytes += name.len() + SUBSCRIPTION_BYTES;
        self.of_mut(kind).insert(name, hash);
    }

    /// Removes a subscription. Returns its name as others keep it and the hash; none: there is no
    /// such subscription.
    pub fn remove(&mut self, kind: ChannelKind, name: &[u8]) -> Option<(Name, u64)> {
        let removed = self.of_mut(kind).remove_entry(name)?;
        self.bytes -= removed.0.len() + SUBSCRIPTION_BYTES;
        Some(removed)
    }

    /// Whether there is such a subscription.
    pub fn contains(&self, kind: ChannelKind, name: &[u8]) -> bool {
        self.of(kind).contains_key(name)
    }

    /// Subscriptions of a kind.
    pub fn len(&self, kind: ChannelKind) -> usize {
        self.of(kind).len()
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        !self.has_channels() && self.requests.is_empty()
    }

    /// Whether there are some beside that of [requests](Kind::Requests).
    pub fn has_channels(&self) -> bool {
        let channels = [&self.channels, &self.patterns, &self.shard_channels];
        channels.iter().any(|names| !names.is_empty())
    }

    /// The count that a confirmation tells: that of shard channels, or that of all others.
    pub fn counted(&self, kind: ChannelKind) -> usize {
        match kind {
            ChannelKind::Shard => self.shard_channels.len(),
            _ => self.channels.len() + self.patterns.len(),
        }
    }

    /// The names of a kind, each with its hash.
    pub fn iter(&self, kind: ChannelKind) -> impl Iterator<Item = (&Name, u64)> {
        self.of(kind).iter().map(|(name, hash)| (name, *hash))
    }

    /// All subscriptions.
    pub fn all(&self) -> impl Iterator<Item = (ChannelKind, &Name, u64)> {
        [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard, ChannelKind::Requests]
            .into_iter()
            .flat_map(|kind| self.iter(kind).map(move |(name, hash)| (kind, name, hash)))
    }

    /// Bytes of memory that they take everywhere, about.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for so many more, with so many bytes of names together.
    pub fn has_room_for(&self, names: usize, bytes: usize) -> bool {
        let more = names.saturating_mul(SUBSCRIPTION_BYTES).saturating_add(bytes);
        self.bytes.saturating_add(more) <= SUBSCRIPTIONS_BYTES_MAX
    }
}

//! The subscriptions of one client.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::message::{ChannelKind, SharedName};

/// The approximate bytes that a subscription takes in addition to its name: here, in the registry
/// and on its thread.
const SUBSCRIPTION_BYTES: usize = 320;

/// The most bytes of memory for the subscriptions of one client: some millions of short names.
pub const SUBSCRIPTIONS_BYTES_MAX: usize = 1 << 30;

/// The subscriptions of one client: names with their hashes, in ascending order.
#[derive(Debug, Default)]
pub struct ClientSubscriptions {
    channels: BTreeMap<SharedName, u64>,
    patterns: BTreeMap<SharedName, u64>,
    shard_channels: BTreeMap<SharedName, u64>,
    requests: BTreeMap<SharedName, u64>,
    bytes: usize,
    /// The thread on which the registry counts the client, or `None` if it does not.
    counted_on: Option<usize>,
    /// Its thread moves it to another one, and finds then whether it still counts.
    moves: bool,
}

impl ClientSubscriptions {
    /// No subscriptions, of a client that the registry counts on a thread, or not at all.
    pub fn new(counted_on: Option<usize>) -> Self {
        Self { counted_on, ..Self::default() }
    }

    /// The thread on which the registry counts the client, or `None` if it does not.
    pub fn counted_on(&self) -> Option<usize> {
        self.counted_on
    }

    /// Sets the thread on which the registry counts the client. Returns the previous one.
    pub fn count_on(&mut self, thread: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.counted_on, thread)
    }

    /// Whether its thread moves the client.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// Sets whether its thread moves the client.
    pub fn set_moves(&mut self, moves: bool) {
        self.moves = moves;
    }

    /// Up to `count` subscriptions of a kind that follow the name `after`, or the first ones.
    pub fn some(
        &self,
        kind: ChannelKind,
        after: Option<&SharedName>,
        count: usize,
    ) -> Vec<(SharedName, u64)> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.of(kind).range::<SharedName, _>((start, Bound::Unbounded));
        names.take(count).map(|(name, hash)| (SharedName::clone(name), *hash)).collect()
    }

    fn of(&self, kind: ChannelKind) -> &BTreeMap<SharedName, u64> {
        match kind {
            ChannelKind::Channel => &self.channels,
            ChannelKind::Pattern => &self.patterns,
            ChannelKind::Shard => &self.shard_channels,
            ChannelKind::Requests => &self.requests,
        }
    }

    fn of_mut(&mut self, kind: ChannelKind) -> &mut BTreeMap<SharedName, u64> {
        match kind {
            ChannelKind::Channel => &mut self.channels,
            ChannelKind::Pattern => &mut self.patterns,
            ChannelKind::Shard => &mut self.shard_channels,
            ChannelKind::Requests => &mut self.requests,
        }
    }

    /// Adds a new subscription.
    pub fn add(&mut self, kind: ChannelKind, name: SharedName, hash: u64) {
        self.bytes += name.len() + SUBSCRIPTION_BYTES;
        self.of_mut(kind).insert(name, hash);
    }

    /// Removes a subscription. Returns its shared name and its hash, or `None` if it does not
    /// exist.
    pub fn remove(&mut self, kind: ChannelKind, name: &[u8]) -> Option<(SharedName, u64)> {
        let removed = self.of_mut(kind).remove_entry(name)?;
        self.bytes -= removed.0.len() + SUBSCRIPTION_BYTES;
        Some(removed)
    }

    /// Whether the client has this subscription.
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

    /// Whether there are others than that of [requests](ChannelKind::Requests).
    pub fn has_channels(&self) -> bool {
        let channels = [&self.channels, &self.patterns, &self.shard_channels];
        channels.iter().any(|names| !names.is_empty())
    }

    /// The count in a confirmation: that of shard channels, or that of all others.
    pub fn counted(&self, kind: ChannelKind) -> usize {
        match kind {
            ChannelKind::Shard => self.shard_channels.len(),
            _ => self.channels.len() + self.patterns.len(),
        }
    }

    /// The names of a kind, each with its hash.
    pub fn iter(&self, kind: ChannelKind) -> impl Iterator<Item = (&SharedName, u64)> {
        self.of(kind).iter().map(|(name, hash)| (name, *hash))
    }

    /// All subscriptions.
    pub fn all(&self) -> impl Iterator<Item = (ChannelKind, &SharedName, u64)> {
        ChannelKind::ALL
            .into_iter()
            .flat_map(|kind| self.iter(kind).map(move |(name, hash)| (kind, name, hash)))
    }

    /// The approximate bytes of memory that they take everywhere.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for this many more names with this many bytes in total.
    pub fn has_room_for(&self, names: usize, bytes: usize) -> bool {
        let more = names.saturating_mul(SUBSCRIPTION_BYTES).saturating_add(bytes);
        self.bytes.saturating_add(more) <= SUBSCRIPTIONS_BYTES_MAX
    }
}

//! The clients blocked on keys of a shard: a queue for each key, served in the order of arrival.
//!
//! A client joins the queues when its command finds nothing, under the same locks. It joins one
//! queue for each of its keys, in as many shards, and its owner thread removes it from all of them
//! when the wait has ended. Until then the queues may name a client that no longer waits. Layer 5,
//! which knows the waits by client number, skips it.
//!
//! This module does not know whether a client still waits, or its reply.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use base::hash::ByKeyHash;

use crate::key::Key;

/// The kind of value that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedOn {
    /// Elements of a list. A key of another type does not end the wait.
    List,
    /// Members of a sorted set. A key of another type does not end the wait.
    SortedSet,
    /// Entries of a stream. A key of another type does not end the wait.
    Stream,
    /// Entries of a stream for a consumer group. The wait also ends if the key is removed or
    /// becomes another type.
    StreamGroup,
}

impl BlockedOn {
    /// Whether a key of this type, or an absent one, may end the wait.
    pub fn wants(self, type_name: Option<&'static str>) -> bool {
        let wanted = match self {
            Self::List => "list",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
            Self::StreamGroup => return true,
        };
        type_name == Some(wanted)
    }
}

/// A client in the queue of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedClient {
    /// The client's number.
    pub id: u64,
    /// The kind of value it waits for.
    pub blocked_on: BlockedOn,
    /// The hash of the key that serving the client writes to, such as the destination of BLMOVE.
    pub target: Option<u64>,
}

/// The approximate bytes that a key's queue takes in addition to the key's name.
const QUEUE_BYTES: usize = 208;
/// The approximate bytes of a client's place in a queue; queues double their room.
const PLACE_BYTES: usize = size_of::<BlockedClient>() * 3 / 2;

/// Room for this many keys is kept when clients wait for fewer.
const KEYS_KEPT: usize = 8;

/// The blocked clients of one shard.
#[derive(Debug, Default)]
pub struct Waiters {
    /// By the hash of the key.
    queues: ByKeyHash<HashQueues>,
}

/// The queues of the keys that share a hash.
#[derive(Debug, Default)]
struct HashQueues {
    of_keys: Vec<KeyQueue>,
    /// The targets of all their clients, each with the number of places that have it.
    targets: BTreeMap<u64, usize>,
}

impl HashQueues {
    fn count_target(&mut self, target: Option<u64>) {
        if let Some(target) = target {
            *self.targets.entry(target).or_default() += 1;
        }
    }

    fn discount_target(&mut self, target: Option<u64>) {
        let Some(Entry::Occupied(mut places)) = target.map(|target| self.targets.entry(target))
        else {
            return;
        };
        *places.get_mut() -= 1;
        if *places.get() == 0 {
            places.remove();
        }
    }
}

/// The clients blocked on one key of one database.
#[derive(Debug)]
struct KeyQueue {
    db: usize,
    key: Box<[u8]>,
    clients: VecDeque<BlockedClient>,
}

impl Waiters {
    fn queue(&mut self, db: usize, key: Key<'_>) -> Option<&mut KeyQueue> {
        let queues = &mut self.queues.get_mut(&key.hash)?.of_keys;
        queues.iter_mut().find(|queue| queue.db == db && *queue.key == *key.bytes)
    }

    /// Adds a client to the end of a key's queue, unless it is the last one there already. Returns
    /// the approximate bytes of memory this takes, including the queue if it is new.
    pub(crate) fn add(&mut self, db: usize, key: Key<'_>, client: BlockedClient) -> usize {
        if let Some(queue) = self.queue(db, key) {
            let is_there = queue.clients.back().is_some_and(|last| last.id == client.id);
            if is_there {
                return 0;
            }
            queue.clients.push_back(client);
            self.queues.entry(key.hash).or_default().count_target(client.target);
            return PLACE_BYTES;
        }
        let queue = KeyQueue { db, key: key.bytes.into(), clients: VecDeque::from([client]) };
        let queues = self.queues.entry(key.hash).or_default();
        // Keys hardly ever share a hash.
        queues.of_keys.reserve_exact(1);
        queues.of_keys.push(queue);
        queues.count_target(client.target);
        QUEUE_BYTES + PLACE_BYTES + key.bytes.len()
    }

    /// Removes the client with this number from a key's queue. Returns whether it was there. The
    /// search begins at the front, with the longest waits.
    pub(crate) fn leave(&mut self, db: usize, key: Key<'_>, id: u64) -> bool {
        let Some(queue) = self.queue(db, key) else { return false };
        match queue.clients.iter().position(|client| client.id == id) {
            Some(at) => self.remove(db, key, at),
            None => false,
        }
    }

    /// The first client from place `from` on that wants a value of this type, and its place.
    pub fn next(
        &mut self,
        db: usize,
        key: Key<'_>,
        from: usize,
        type_name: Option<&'static str>,
    ) -> Option<(usize, BlockedClient)> {
        let clients = &self.queue(db, key)?.clients;
        let found = (from..clients.len()).find(|at| clients[*at].blocked_on.wants(type_name));
        found.map(|at| (at, clients[at]))
    }

    /// Removes the client at a place from a key's queue. Returns whether there was one.
    pub(crate) fn remove(&mut self, db: usize, key: Key<'_>, at: usize) -> bool {
        let Some(queue) = self.queue(db, key) else { return false };
        let Some(client) = queue.clients.remove(at) else { return false };
        let is_last = queue.clients.is_empty();
        let Some(queues) = self.queues.get_mut(&key.hash) else { return false };
        queues.discount_target(client.target);
        if is_last {
            queues.of_keys.retain(|queue| !queue.clients.is_empty());
            if queues.of_keys.is_empty() {
                self.queues.remove(&key.hash);
                let kept = KEYS_KEPT.max(2 * self.queues.len());
                if self.queues.capacity() > 4 * kept {
                    self.queues.shrink_to(kept);
                }
            }
        }
        true
    }

    /// Whether no queue has a client.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether a client may be blocked on a key with this hash.
    pub fn is_awaited(&self, hash: u64) -> bool {
        self.queues.contains_key(&hash)
    }

    /// The hashes of the keys that serving the clients blocked on this hash may write to, each
    /// once.
    pub fn targets(&self, hash: u64) -> impl Iterator<Item = u64> {
        self.queues.get(&hash).into_iter().flat_map(|queues| queues.targets.keys().copied())
    }

    /// The keys that clients are blocked on, with their databases and hashes.
    pub fn keys(&self) -> impl Iterator<Item = (usize, Key<'_>)> {
        self.queues.iter().flat_map(|(hash, queues)| {
            queues.of_keys.iter().map(|queue| (queue.db, Key { bytes: &queue.key, hash: *hash }))
        })
    }

    /// How many keys clients are blocked on, and how many of those have a client whose wait ends
    /// with the key. `waits` returns whether the client with a number still waits.
    pub fn count(&self, waits: impl Fn(u64) -> bool) -> (usize, usize) {
        let (mut keys, mut ended_with_key) = (0, 0);
        for queue in self.queues.values().flat_map(|queues| &queues.of_keys) {
            let mut clients = queue.clients.iter();
            keys += usize::from(clients.clone().any(|client| waits(client.id)));
            let ends = |client: &BlockedClient| client.blocked_on.wants(None) && waits(client.id);
            ended_with_key += usize::from(clients.any(ends));
        }
        (keys, ended_with_key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: u64, blocked_on: BlockedOn, target: Option<u64>) -> BlockedClient {
        BlockedClient { id, blocked_on, target }
    }

    /// Keys that share a hash and differ only in their names.
    fn key(name: &[u8]) -> Key<'_> {
        Key { bytes: name, hash: 7 }
    }

    #[test]
    fn a_queue_takes_memory_once() {
        let mut waiters = Waiters::default();
        let [a, b] = [1, 2].map(|id| client(id, BlockedOn::List, None));
        assert_eq!(waiters.add(0, key(b"k"), a), QUEUE_BYTES + PLACE_BYTES + 1);
        assert_eq!(waiters.add(0, key(b"k"), b), PLACE_BYTES);
        assert_eq!(waiters.add(0, key(b"k"), b), 0, "it is there already");
        assert!(waiters.add(1, key(b"k"), b) > PLACE_BYTES);
    }

    #[test]
    fn a_queue_serves_clients_in_order_of_arrival() {
        let mut waiters = Waiters::default();
        let (a, b) = (client(1, BlockedOn::List, Some(1)), client(2, BlockedOn::SortedSet, None));
        let c = client(3, BlockedOn::List, Some(3));
        for client in [a, b, c] {
            assert!(waiters.add(0, key(b"k"), client) > 0);
        }
        assert_eq!(waiters.add(0, key(b"k"), c), 0, "it is there already");
        assert!(waiters.add(1, key(b"k"), client(4, BlockedOn::StreamGroup, None)) > PLACE_BYTES);
        assert!(waiters.add(0, key(b"other"), a) > PLACE_BYTES);
        assert_eq!(waiters.count(|_| true), (3, 1));
        let places = |waiters: &mut Waiters, wanted| {
            let mut found = Vec::new();
            let mut from = 0;
            while let Some((at, client)) = waiters.next(0, key(b"k"), from, wanted) {
                found.push((at, client.id));
                from = at + 1;
            }
            found
        };
        assert_eq!(places(&mut waiters, Some("list")), [(0, 1), (2, 3)]);
        assert_eq!(places(&mut waiters, Some("zset")), [(1, 2)]);
        assert!(places(&mut waiters, None).is_empty());
        let other = waiters.next(1, key(b"k"), 0, None).map(|(at, client)| (at, client.id));
        assert_eq!(other, Some((0, 4)), "the other database's");
        assert!(waiters.leave(0, key(b"k"), 1));
        assert!(!waiters.leave(0, key(b"k"), 1) && !waiters.leave(2, key(b"k"), 1));
        assert_eq!(places(&mut waiters, Some("list")), [(1, 3)]);
        assert_eq!(waiters.count(|id| id != 1), (2, 1), "what has ended is not counted");
        assert_eq!(waiters.count(|id| id != 4), (2, 0));
    }

    #[test]
    fn a_target_is_listed_once_while_a_client_has_it() {
        let mut waiters = Waiters::default();
        let targets = |waiters: &Waiters| waiters.targets(7).collect::<Vec<_>>();
        for (id, name, target) in [(1, b"k", 5), (2, b"k", 3), (3, b"k", 5), (4, b"l", 5)] {
            waiters.add(0, key(name), client(id, BlockedOn::List, Some(target)));
        }
        waiters.add(0, key(b"k"), client(5, BlockedOn::List, None));
        assert_eq!(targets(&waiters), [3, 5]);
        assert!(waiters.remove(0, key(b"k"), 0) && waiters.leave(0, key(b"k"), 2));
        assert_eq!(targets(&waiters), [5]);
        assert!(waiters.leave(0, key(b"k"), 3));
        assert_eq!(targets(&waiters), [5], "another key's client has it");
        assert!(waiters.leave(0, key(b"l"), 4));
        assert!(targets(&waiters).is_empty());
        assert!(waiters.leave(0, key(b"k"), 5) && waiters.queues.is_empty());
    }

    #[test]
    fn clients_that_leave_free_their_memory() {
        let mut waiters = Waiters::default();
        let a = client(1, BlockedOn::List, None);
        waiters.add(0, key(b"k"), a);
        waiters.add(0, key(b"l"), a);
        assert!(waiters.is_awaited(7) && !waiters.is_awaited(8));
        assert!(waiters.remove(0, key(b"k"), 0));
        assert!(!waiters.remove(0, key(b"k"), 0));
        assert_eq!(waiters.keys().count(), 1);
        assert!(waiters.leave(0, key(b"l"), 1));
        assert!(!waiters.leave(0, key(b"l"), 1));
        assert!(!waiters.is_awaited(7));
        assert!(waiters.queues.is_empty());
        // The room for targets is freed too.
        let keys = |hash: u64| Key { bytes: b"k", hash };
        for hash in 0..10_000 {
            waiters.add(0, keys(hash), a);
        }
        for hash in 0..10_000 {
            assert!(waiters.leave(0, keys(hash), 1));
            assert!(waiters.queues.capacity() <= 4 * KEYS_KEPT.max(2 * waiters.queues.len()));
        }
    }
}

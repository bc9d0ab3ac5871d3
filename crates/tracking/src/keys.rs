//! The keys that clients have read, and which clients those are: a table for each shard.
//!
//! A read is remembered under the lock of its key's shard. A command that changes a key takes the
//! key's clients after the change, under the same lock. So each client that has read the old value
//! is found once: it is notified, and its read is forgotten. Each table also has its own lock, held
//! only for one lookup, so that keys can be forgotten without a lock of a shard.
//!
//! Clients are numbers here. A client that has disconnected or stopped tracking stays until its
//! keys change or are forgotten.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;
use parking_lot::Mutex;
use store::ShardSet;

/// Clients that have read a key.
#[derive(Debug)]
pub enum Readers {
    /// The usual case.
    One(u64),
    /// Several clients.
    Many(BTreeSet<u64>),
}

impl Readers {
    /// Adds a client. Returns whether it is new.
    fn add(&mut self, client: u64) -> bool {
        match self {
            Self::One(only) if *only == client => false,
            Self::One(only) => {
                *self = Self::Many(BTreeSet::from([*only, client]));
                true
            }
            Self::Many(clients) => clients.insert(client),
        }
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(clients) => clients.len(),
        }
    }

    /// Their numbers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (one, many) = match self {
            Self::One(client) => (Some(*client), None),
            Self::Many(clients) => (None, Some(clients)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }
}

#[derive(Debug)]
struct ReadKey {
    hash: u64,
    name: Box<[u8]>,
    readers: Readers,
}

/// The keys that clients have read.
#[derive(Debug)]
pub struct KeyTables {
    tables: Box<[Mutex<HashTable<ReadKey>>]>,
    /// The tables that have keys.
    occupied: ShardSet,
    keys: AtomicUsize,
    /// The readers of all keys.
    items: AtomicUsize,
}

impl KeyTables {
    /// Empty tables for this many shards, a power of two.
    pub fn new(shards: usize) -> Self {
        Self {
            tables: (0..shards).map(|_| Mutex::default()).collect(),
            occupied: ShardSet::new(shards),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
        }
    }

    fn number(&self, hash: u64) -> usize {
        hash as usize & (self.tables.len() - 1)
    }

    /// Remembers that a client has read the key with this name and hash, whose shard is locked.
    pub fn remember(&self, name: &[u8], hash: u64, client: u64) {
        let mut table = self.tables[self.number(hash)].lock();
        if let Some(key) = table.find_mut(hash, |key| *key.name == *name) {
            if key.readers.add(client) {
                self.items.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
        let key = ReadKey { hash, name: name.into(), readers: Readers::One(client) };
        table.insert_unique(hash, key, |key| key.hash);
        self.occupied.mark(hash);
        self.keys.fetch_add(1, Ordering::Relaxed);
        self.items.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets a changed key, and returns its readers. Its shard is locked.
    pub fn take(&self, name: &[u8], hash: u64) -> Option<Readers> {
        if self.is_empty() {
            return None;
        }
        let number = self.number(hash);
        let mut table = self.tables[number].lock();
        let found = table.find_entry(hash, |key| *key.name == *name).ok()?;
        let readers = found.remove().0.readers;
        self.removed(number, &mut table, readers.len());
        Some(readers)
    }

    /// Updates the counters after a key with this many readers was removed from a table.
    fn removed(&self, number: usize, table: &mut HashTable<ReadKey>, readers: usize) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.items.fetch_sub(readers, Ordering::Relaxed);
        if table.is_empty() {
            *table = HashTable::new();
            self.occupied.clear(number);
        }
    }

    /// Forgets a key of the table with this number or of a later one. Returns its name and readers,
    /// or `None` if there is no key. No shard is locked.
    pub fn forget_one(&self, number: usize) -> Option<(Box<[u8]>, Readers)> {
        let number = self.occupied.next_from(number & (self.tables.len() - 1))?;
        let mut table = self.tables[number].lock();
        // The secret of the hash decides which key is the first.
        let hash = table.iter().next()?.hash;
        let found = table.find_entry(hash, |key| key.hash == hash).ok()?;
        let key = found.remove().0;
        self.removed(number, &mut table, key.readers.len());
        Some((key.name, key.readers))
    }

    /// Forgets all keys after all of them changed. All shards are locked.
    pub fn clear(&self) {
        while let Some(number) = self.occupied.next_from(0) {
            let mut table = self.tables[number].lock();
            let readers: usize = table.iter().map(|key| key.readers.len()).sum();
            self.keys.fetch_sub(table.len(), Ordering::Relaxed);
            self.items.fetch_sub(readers, Ordering::Relaxed);
            *table = HashTable::new();
            self.occupied.clear(number);
        }
    }

    /// Keys in all tables.
    pub fn len(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The readers of all keys.
    pub fn items(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use base::hash::KeyHasher;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum KeysStep {
        Remember(u8, u64),
        Take(u8),
        ForgetOne(usize),
        Clear,
    }

    fn step() -> impl Strategy<Value = KeysStep> {
        prop_oneof![
            8 => (0u8..40, 1u64..4).prop_map(|(key, client)| KeysStep::Remember(key, client)),
            4 => (0u8..40).prop_map(KeysStep::Take),
            2 => (0usize..100).prop_map(KeysStep::ForgetOne),
            1 => Just(KeysStep::Clear),
        ]
    }

    proptest! {
        #[test]
        fn remembers_what_a_map_remembers(steps in proptest::collection::vec(step(), 0..200)) {
            let (tables, hasher) = (KeyTables::new(4), KeyHasher::new(1));
            let mut model: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
            let named = |key: u8| vec![b'k', key];
            for step in steps {
                match step {
                    KeysStep::Remember(key, client) => {
                        tables.remember(&named(key), hasher.hash(&named(key)), client);
                        model.entry(named(key)).or_default().insert(client);
                    }
                    KeysStep::Take(key) => {
                        let taken = tables.take(&named(key), hasher.hash(&named(key)));
                        let taken = taken.map(|readers| readers.iter().collect());
                        prop_assert_eq!(taken, model.remove(&named(key)));
                    }
                    KeysStep::ForgetOne(number) => match tables.forget_one(number) {
                        None => prop_assert!(model.is_empty()),
                        Some((name, readers)) => {
                            let wanted = model.remove(&name.to_vec());
                            prop_assert_eq!(Some(readers.iter().collect()), wanted);
                        }
                    },
                    KeysStep::Clear => {
                        tables.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(tables.len(), model.len());
                prop_assert_eq!(tables.items(), model.values().map(BTreeSet::len).sum::<usize>());
            }
            while tables.forget_one(3).is_some() {}
            prop_assert!(tables.is_empty() && tables.occupied.next_from(0).is_none());
        }
    }

    #[test]
    fn forgets_keys_that_share_a_hash_one_by_one() {
        let tables = KeyTables::new(1);
        tables.remember(b"a", 7, 1);
        tables.remember(b"b", 7, 2);
        let mut names = [tables.forget_one(0).unwrap().0, tables.forget_one(0).unwrap().0];
        names.sort();
        assert_eq!(names.map(Vec::from), [b"a".to_vec(), b"b".to_vec()]);
        assert!(tables.take(b"a", 7).is_none());
    }
}

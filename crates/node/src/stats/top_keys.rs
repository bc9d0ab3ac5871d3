//! The keys with the greatest weight in a stream of keys, from bounded memory.
//!
//! A form of Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and
//! Top-k Elements in Data Streams, 2005): the hash of a key selects its set, as in a processor's
//! cache, and a new key in a full set replaces the lightest key and takes over its weight as a
//! possible error. A key with more than an eighth of its set's
//! weight is never lost.

use std::collections::HashMap;

/// Bytes of a key that are stored. Keys are identified by their hashes.
pub const KEY_BYTES_MAX: usize = 256;
/// Keys in a set.
const WAYS: usize = 8;

/// A key and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopKey {
    /// The database.
    pub db: u32,
    /// The key, or its start.
    pub key: Vec<u8>,
    hash: u64,
    weight: u64,
    /// The part of the weight that may come from replaced keys.
    error: u64,
}

impl TopKey {
    /// The part of the weight that is certainly the key's.
    pub fn weight(&self) -> u64 {
        self.weight - self.error
    }
}

/// The heaviest keys.
#[derive(Clone, Debug)]
pub struct TopKeys {
    sets: Box<[Vec<TopKey>]>,
    total: u64,
}

impl TopKeys {
    /// Creates a table for at least so many keys.
    pub fn new(keys: usize) -> Self {
        let sets = keys.div_ceil(WAYS).next_power_of_two();
        Self { sets: vec![Vec::new(); sets].into_boxed_slice(), total: 0 }
    }

    /// Adds weight to a key.
    pub fn add(&mut self, db: u32, key: &[u8], hash: u64, weight: u64) {
        self.total = self.total.saturating_add(weight);
        let set = (hash >> 32) as usize & (self.sets.len() - 1);
        let set = &mut self.sets[set];
        let known = set.iter_mut().find(|known| known.hash == hash && known.db == db);
        if let Some(known) = known {
            known.weight = known.weight.saturating_add(weight);
            return;
        }
        let kept = &key[..key.len().min(KEY_BYTES_MAX)];
        if set.len() < WAYS {
            set.push(TopKey { db, key: kept.to_vec(), hash, weight, error: 0 });
        } else if let Some(lightest) = set.iter_mut().min_by_key(|known| known.weight) {
            lightest.key.clear();
            lightest.key.extend_from_slice(kept);
            (lightest.db, lightest.hash) = (db, hash);
            lightest.error = lightest.weight;
            lightest.weight = lightest.weight.saturating_add(weight);
        }
    }

    /// The bytes of its memory.
    pub fn bytes(&self) -> usize {
        let set = |keys: &Vec<TopKey>| {
            let names: usize = keys.iter().map(|key| key.key.capacity()).sum();
            size_of::<Vec<TopKey>>() + keys.capacity() * size_of::<TopKey>() + names
        };
        self.sets.iter().map(set).sum()
    }

    /// The weight of all keys, including those not in the table.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Halves all weights, and removes keys whose weight becomes 0.
    pub fn halve(&mut self) {
        self.total /= 2;
        for set in &mut self.sets {
            for known in &mut *set {
                (known.weight, known.error) = (known.weight / 2, known.error / 2);
            }
            set.retain(|known| known.weight > 0);
        }
    }
}

/// The heaviest keys of several tables, at most `count`, the heaviest first.
pub fn merge(tables: &[TopKeys], count: usize) -> Vec<TopKey> {
    let mut merged: HashMap<(u32, u64), TopKey> = HashMap::new();
    for known in tables.iter().flat_map(|table| table.sets.iter()).flatten() {
        match merged.get_mut(&(known.db, known.hash)) {
            Some(sum) => {
                sum.weight = sum.weight.saturating_add(known.weight);
                sum.error = sum.error.saturating_add(known.error);
            }
            None => drop(merged.insert((known.db, known.hash), known.clone())),
        }
    }
    let mut keys: Vec<TopKey> = merged.into_values().filter(|key| key.weight() > 0).collect();
    keys.sort_by(|a, b| b.weight().cmp(&a.weight()).then_with(|| a.key.cmp(&b.key)));
    keys.truncate(count);
    keys
}

#[cfg(test)]
mod tests {
    use base::hash::KeyHasher;
    use base::random::Random;

    use super::*;

    fn heaviest(tables: &[TopKeys], count: usize) -> Vec<String> {
        let keys = merge(tables, count).into_iter();
        keys.map(|top| String::from_utf8_lossy(&top.key).into_owned()).collect()
    }

    #[test]
    fn weights_are_exact_while_all_keys_fit() {
        let hasher = KeyHasher::new(1);
        let mut tables = [TopKeys::new(64), TopKeys::new(64)];
        for (nth, (key, weight)) in [("a", 5), ("b", 9), ("a", 6), ("c", 1)].iter().enumerate() {
            tables[nth % 2].add(0, key.as_bytes(), hasher.hash(key.as_bytes()), *weight);
        }
        let keys = merge(&tables, 2);
        let keys: Vec<_> = keys.iter().map(|top| (top.key.as_slice(), top.weight())).collect();
        assert_eq!(keys, [(b"a".as_slice(), 11), (b"b", 9)]);
        tables[1].halve();
        assert_eq!((tables[0].total(), tables[1].total()), (11, 5));
        assert_eq!(heaviest(&tables, 9), ["a", "b"]);
    }

    #[test]
    fn databases_are_distinguished_and_long_keys_are_cut() {
        let long = vec![b'k'; 1000];
        let mut table = TopKeys::new(8);
        table.add(0, &long, 7, 1);
        table.add(1, &long, 7, 2);
        let keys = merge(&[table], 9);
        assert_eq!(
            keys.iter().map(|top| (top.db, top.key.len())).collect::<Vec<_>>(),
            [(1, KEY_BYTES_MAX), (0, KEY_BYTES_MAX)]
        );
    }

    #[test]
    fn hot_keys_are_found_among_a_million_keys() {
        let (hasher, mut random) = (KeyHasher::new(1), Random::new(7));
        let mut table = TopKeys::new(128);
        for _ in 0..200_000 {
            // One in five is for one of ten hot keys, the rest for a million others.
            let key = match random.below(5) {
                0 => format!("hot:{}", random.below(10)),
                _ => format!("cold:{}", random.below(1_000_000)),
            };
            table.add(0, key.as_bytes(), hasher.hash(key.as_bytes()), 1);
        }
        let mut found = heaviest(&[table.clone()], 10);
        found.sort();
        assert_eq!(found, (0..10).map(|n| format!("hot:{n}")).collect::<Vec<_>>());
        // A weight is never overstated.
        assert!(merge(&[table], 10).iter().all(|top| (2_000..=4_300).contains(&top.weight())));
    }
}

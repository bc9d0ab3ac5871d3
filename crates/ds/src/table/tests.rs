//! The table against a map, its scan under change, and its growth.

use super::*;
use crate::record::Payload;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Plain = Table<std::sync::Arc<u8>>;

fn record(key: &[u8], value: &[u8], expires_at: Option<i64>) -> Record<std::sync::Arc<u8>> {
    Record::new(key, 0, Payload::Bytes(value), expires_at, 0)
}

fn check_invariants(table: &Plain) {
    let mut last_home = 0;
    for (at, slot) in table.slots.iter().enumerate().filter(|(_, slot)| **slot != 0) {
        let distance = distance_of(*slot, at);
        let home = at - distance;
        assert!(home >= last_home && home < table.homes as usize);
        assert!(table.slots[home..at].iter().all(|slot| *slot != 0), "a hole before {at}");
        last_home = home;
    }
}

proptest! {
    #[test]
    fn behaves_as_a_map(
        seed: u64,
        ops in prop::collection::vec((0u8..4, 0u16..3000, prop::option::of(0i64..9)), 1..3000),
    ) {
        let hasher = KeyHasher::new(seed);
        let mut table = Plain::default();
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> = BTreeMap::new();
        for (op, number, expires_at) in ops {
            let key = number.to_string().into_bytes();
            let hash = hasher.hash(&key);
            let found = table.find(hash, &key);
            prop_assert_eq!(found.is_some(), model.contains_key(&key));
            match (op, found) {
                (0..=1, None) => {
                    let at = table.insert(hash, record(&key, b"new", expires_at), &hasher);
                    prop_assert_eq!(table.at(at).key(), &key[..]);
                    model.insert(key, (b"new".to_vec(), expires_at));
                }
                (2, Some(at)) => {
                    let value = vec![b'x'; usize::from(number) % 200];
                    let mut edit = table.at_mut(at);
                    edit.set_bytes(0, &value);
                    edit.set_expires_at(expires_at);
                    drop(edit);
                    model.insert(key, (value, expires_at));
                }
                (3, Some(at)) => {
                    let removed = table.remove(at, &hasher);
                    prop_assert_eq!(removed.view().key(), &key[..]);
                    model.remove(&key);
                }
                _ => {}
            }
        }
        check_invariants(&table);
        prop_assert_eq!(table.len(), model.len());
        prop_assert_eq!(table.expiring_len(), model.values().filter(|v| v.1.is_some()).count());
        for (key, (value, expires_at)) in &model {
            let at = table.find(hasher.hash(key), key);
            prop_assert!(at.is_some());
            let view = table.at(at.unwrap_or_default());
            prop_assert_eq!((view.bytes(), view.expires_at()), (Some(&value[..]), *expires_at));
        }
    }

    #[test]
    fn a_scan_sees_each_constant_record_once_while_the_table_changes(
        seed: u64, stay in 1usize..800, churn in 1usize..800, count in 1usize..20,
    ) {
        let hasher = KeyHasher::new(seed);
        let mut table = Plain::default();
        let key_of = |kind: &str, i: usize| format!("{kind}{i}").into_bytes();
        for i in 0..stay {
            let key = key_of("stay", i);
            table.insert(hasher.hash(&key), record(&key, b"", None), &hasher);
        }
        let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let (mut from, mut step) = (Some(0), 0);
        while let Some(position) = from {
            from = table.scan(position, count, &hasher, &mut |view| {
                *seen.entry(view.key().to_vec()).or_default() += 1;
            });
            // First grow, then shrink, between the steps.
            for i in 0..20 {
                let key = key_of("churn", (step * 20 + i) % churn);
                let hash = hasher.hash(&key);
                match table.find(hash, &key) {
                    Some(at) => drop(table.remove(at, &hasher)),
                    None => drop(table.insert(hash, record(&key, b"", None), &hasher)),
                }
            }
            step += 1;
        }
        for i in 0..stay {
            prop_assert_eq!(seen.get(&key_of("stay", i)), Some(&1));
        }
    }
}

#[test]
fn shrinking_keeps_what_stays_and_gives_slots_back() {
    let hasher = KeyHasher::new(3);
    let mut table = Plain::default();
    let keys: Vec<_> = (0..20_000u32).map(u32::to_be_bytes).collect();
    for (i, key) in keys.iter().enumerate() {
        let expires_at = (i % 3 == 0).then_some(i as i64);
        table.insert(hasher.hash(key), record(key, b"", expires_at), &hasher);
    }
    for (i, key) in keys.iter().enumerate() {
        let at = table.find(hasher.hash(key), key).unwrap_or(usize::MAX);
        assert_eq!(table.remove(at, &hasher).view().key(), key);
        let left = keys.len() - i - 1;
        assert!(table.slots_len() <= (left * 10 + 8).max(4 * HOMES_MIN) + TAIL_MAX);
        if i % 997 == 0 {
            check_invariants(&table);
            let expires = (i + 1..keys.len()).filter(|i| i % 3 == 0).count();
            assert_eq!((table.len(), table.expiring_len()), (left, expires));
            assert!(keys[i + 1..].iter().all(|key| table.find(hasher.hash(key), key).is_some()));
        }
    }
    assert_eq!(table.slots_len(), 0);
}

#[test]
fn positions_and_homes_agree() {
    let hasher = KeyHasher::new(4);
    let mut table = Plain::default();
    assert_eq!((table.home_of(u32::MAX), table.position_of(0)), (0, 0));
    for i in 0..1000u32 {
        let key = i.to_be_bytes();
        let at = table.insert(hasher.hash(&key), record(&key, b"", None), &hasher);
        let position = (hasher.hash(&key) >> 32) as u32;
        let home = table.home_of(position);
        assert_eq!(table.home_at(at), home);
        let first = table.position_of(home);
        assert!(first <= position && table.home_of(first) == home);
        assert!(home == 0 || table.home_of(first - 1) == home - 1);
    }
}

#[test]
fn growth_keeps_the_table_dense() {
    let hasher = KeyHasher::new(1);
    let mut table = Plain::default();
    for i in 0..20_000u32 {
        let key = i.to_be_bytes();
        table.insert(hasher.hash(&key), record(&key, b"", None), &hasher);
    }
    assert!(table.slots_len() < 20_000 * 3 / 2, "{} slots", table.slots_len());
    check_invariants(&table);
}

#[test]
#[allow(clippy::unwrap_used)]
fn objects_are_written_where_they_lie() {
    let hasher = KeyHasher::new(3);
    let mut table: Table<Vec<u8>> = Table::default();
    for i in 0..100u8 {
        let payload = if i < 50 { Payload::Object(vec![i]) } else { Payload::Bytes(&b"plain"[..]) };
        table.insert(hasher.hash(&[i]), Record::new(&[i], 0, payload, None, 0), &hasher);
    }
    for i in 0..100u8 {
        let at = table.find(hasher.hash(&[i]), &[i]).unwrap();
        match table.object_mut(at) {
            Some(object) => object.extend([7; 100]),
            None => assert!(i >= 50),
        }
        let len = table.at(at).object().map(Vec::len);
        assert_eq!(len, (i < 50).then_some(101));
    }
}

#[test]
fn what_is_probable_is_there() {
    let hasher = KeyHasher::new(5);
    let mut table = Plain::default();
    assert!(table.probable_record(0).is_none());
    for i in 0..200u32 {
        let key = i.to_be_bytes();
        table.insert(hasher.hash(&key), record(&key, b"", None), &hasher);
        // Hashes of every home, with the tag that an empty slot seems to have and with another.
        for home in 0..u64::from(u32::MAX) / (1 << 24) {
            for low in [0, 0xfff0_0000, 0xffff_ffff] {
                if let Some(found) = table.probable_record(home << 56 | low) {
                    assert_eq!(found.key().len(), 4);
                }
            }
        }
    }
    let keys = (0..200u32).map(u32::to_be_bytes);
    let found = keys.filter(|key| {
        let record = table.probable_record(hasher.hash(key));
        record.is_some_and(|record| record.key() == key)
    });
    assert!(found.count() > 190, "tags tell nearly all records apart");
}

#[test]
fn records_do_not_move_a_table_that_has_room() {
    let hasher = KeyHasher::new(6);
    for records in [1u32, 10, 100, 1000, 50_000] {
        let mut table = Plain::default();
        table.insert(hasher.hash(b"first"), record(b"first", b"", None), &hasher);
        table.reserve(records as usize, &hasher);
        let slots = table.slots_len();
        for i in 1..records {
            let key = i.to_be_bytes();
            table.insert(hasher.hash(&key), record(&key, b"", None), &hasher);
        }
        assert_eq!((table.slots_len(), table.len()), (slots, records as usize));
        table.reserve(1, &hasher);
        assert_eq!(table.slots_len(), slots);
        assert!(table.find(hasher.hash(b"first"), b"first").is_some());
    }
}

#[test]
fn removals_in_the_order_of_the_table_hash_few_keys() {
    struct Counting(KeyHasher, std::cell::Cell<usize>);
    impl Positions for Counting {
        fn hash(&self, key: &[u8]) -> u64 {
            self.1.set(self.1.get() + 1);
            self.0.hash(key)
        }

        fn len_max(homes: usize) -> usize {
            KeyHasher::len_max(homes)
        }
    }
    const KEYS: usize = 5000;
    let hasher = Counting(KeyHasher::new(1), std::cell::Cell::new(0));
    let mut table = Plain::default();
    for number in 0..KEYS {
        let key = number.to_string().into_bytes();
        table.insert(hasher.0.hash(&key), record(&key, b"v", None), &hasher);
    }
    hasher.1.set(0);
    while let Some(at) = table.next_occupied(0) {
        drop(table.remove(at, &hasher));
    }
    assert!(hasher.1.get() < 10 * KEYS, "{} for {KEYS} keys", hasher.1.get());
}

//! The dict against a map, through rounds of splits and merges; segments are small in tests.

use super::*;
use crate::record::Payload;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn member(key: &[u8], value: &[u8], expires_at: Option<i64>) -> Member {
    Record::new(key, 0, Payload::Bytes(value), expires_at, 0)
}

fn key_of(number: usize) -> Vec<u8> {
    format!("member:{number}").into_bytes()
}

fn put(dict: &mut Dict, hasher: &KeyHasher, key: &[u8]) {
    dict.insert(hasher.hash(key), member(key, b"v", None), hasher);
}

fn check_invariants(dict: &Dict, hasher: &KeyHasher) {
    assert_eq!(dict.rest.len() + 1, dict.whole + dict.split);
    assert!(dict.split < dict.whole);
    assert_eq!(dict.len(), dict.segments().map(Table::len).sum::<usize>());
    assert!(dict.segments().all(|table| table.slots_len() <= dict.slots_max));
    for index in 0..=dict.rest.len() {
        let records = dict.segment(index).iter();
        let stray = records.filter(|r| dict.locate(hasher.hash(r.key())).0 != index).count();
        assert_eq!((index, stray), (index, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn behaves_as_a_map(
        seed: u64,
        spans in prop::collection::vec((0u8..4, 0usize..3000, 1usize..1500), 1..12),
    ) {
        let hasher = KeyHasher::new(seed);
        let mut dict = Dict::new();
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> = BTreeMap::new();
        for (op, start, len) in spans {
            for number in start..start + len {
                let key = key_of(number);
                let hash = hasher.hash(&key);
                let expires_at = (number % 3 == 0).then_some(number as i64);
                match (op, dict.place(hash, &key)) {
                    (0 | 1, None) => {
                        let place = dict.insert(hash, member(&key, b"new", expires_at), &hasher);
                        prop_assert_eq!(dict.at(place).key(), &key[..]);
                        model.insert(key, (b"new".to_vec(), expires_at));
                    }
                    (2, Some(place)) => {
                        let value = vec![b'x'; number % 90];
                        let mut edit = dict.at_mut(place);
                        edit.set_bytes(0, &value);
                        edit.set_expires_at(Some(7));
                        drop(edit);
                        model.insert(key, (value, Some(7)));
                    }
                    (3, Some(_)) => {
                        let removed = dict.remove(hash, &key, &hasher);
                        prop_assert!(removed.is_some_and(|r| r.view().key() == key));
                        model.remove(&key);
                    }
                    (_, found) => prop_assert_eq!(found.is_some(), model.contains_key(&key)),
                }
            }
            check_invariants(&dict, &hasher);
        }
        let copy = dict.clone();
        drop(dict);
        check_invariants(&copy, &hasher);
        prop_assert_eq!(copy.len(), model.len());
        let expires = model.values().filter(|value| value.1.is_some()).count();
        prop_assert_eq!(copy.expiring_len(), expires);
        for (key, (value, expires_at)) in &model {
            let found = copy.find(hasher.hash(key), key);
            let found = found.map(|r| (r.bytes().map(<[u8]>::to_vec), r.expires_at()));
            prop_assert_eq!(found, Some((Some(value.clone()), *expires_at)));
        }
        let mut walked: Vec<_> = copy.iter().map(|record| record.key().to_vec()).collect();
        walked.sort();
        prop_assert!(walked.iter().eq(model.keys()));
    }

    #[test]
    fn a_scan_sees_what_stays_while_the_dict_changes(
        seed: u64, stay in 1usize..600, churn in 1usize..3000, count in 1usize..60,
    ) {
        let hasher = KeyHasher::new(seed);
        let mut dict = Dict::new();
        let stay_key = |i: usize| format!("stay{i}").into_bytes();
        (0..stay).for_each(|i| put(&mut dict, &hasher, &stay_key(i)));
        let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let (mut from, mut step) = (Some(0), 0);
        while let Some(cursor) = from {
            prop_assert!(step == 0 || cursor > 0);
            from = dict.scan(cursor, count, &hasher, &mut |record| {
                *seen.entry(record.key().to_vec()).or_default() += 1;
            });
            for i in 0..200 {
                let key = key_of((step * 200 + i) % churn);
                let hash = hasher.hash(&key);
                if dict.remove(hash, &key, &hasher).is_none() {
                    put(&mut dict, &hasher, &key);
                }
            }
            step += 1;
        }
        for i in 0..stay {
            prop_assert_eq!(seen.get(&stay_key(i)), Some(&1));
        }
    }
}

#[test]
fn addresses_stay_while_segments_come_and_go() {
    let hasher = KeyHasher::new(5);
    let mut dict = Dict::new();
    let mut addresses = BTreeMap::new();
    for number in 0..5000 {
        let key = key_of(number);
        let place = dict.insert(hasher.hash(&key), member(&key, b"", None), &hasher);
        addresses.insert(key, dict.at(place).address());
    }
    assert!(dict.rest.len() > 12);
    for number in 0..4990 {
        let key = key_of(number);
        assert!(dict.remove(hasher.hash(&key), &key, &hasher).is_some());
    }
    assert!(dict.rest.is_empty());
    assert!(dict.iter().all(|record| addresses.get(record.key()) == Some(&record.address())));
    assert_eq!(dict.len(), 10);
}

#[test]
fn every_member_is_drawn_equally_often() {
    let hasher = KeyHasher::new(9);
    let mut random = Random::new(11);
    for members in [1usize, 7, 300, 1000] {
        let mut dict = Dict::new();
        (0..members).for_each(|i| put(&mut dict, &hasher, &key_of(i)));
        let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for _ in 0..members * 100 {
            let place = dict.random(&mut random).map(|place| dict.at(place).key().to_vec());
            *counts.entry(place.unwrap_or_default()).or_default() += 1;
        }
        assert_eq!(counts.len(), members);
        // 100 draws each with a standard deviation of 10.
        assert!(counts.values().all(|count| (40..=160).contains(count)), "{counts:?}");
    }
    assert_eq!(Dict::new().random(&mut random), None);
}

#[test]
fn a_member_is_found_by_its_hash_and_a_condition() {
    let hasher = KeyHasher::new(2);
    let mut dict = Dict::new();
    (0..1000).for_each(|i| put(&mut dict, &hasher, &key_of(i)));
    let hash = hasher.hash(&key_of(500));
    let found = dict.place_where(hash, |r| hasher.hash(r.key()) == hash);
    assert_eq!(found.map(|place| dict.at(place).key().to_vec()), Some(key_of(500)));
    assert_eq!(dict.place_where(hash, |_| false), None);
}

#[test]
fn a_bad_cursor_ends_the_scan() {
    let hasher = KeyHasher::new(1);
    let mut dict = Dict::new();
    put(&mut dict, &hasher, b"a");
    assert_eq!(dict.scan(u64::MAX, 1, &hasher, &mut |_| unreachable!("no member")), None);
}

#[test]
fn slots_are_dense_and_their_bytes_are_counted() {
    let hasher = KeyHasher::new(1);
    let mut dict = Dict::new();
    assert_eq!(dict.memory_bytes(), 0);
    for i in 0..20_000 {
        let key = format!("{i:012}").into_bytes();
        dict.insert(hasher.hash(&key), member(&key, &[b'v'; 32], None), &hasher);
    }
    let each = dict.memory_bytes() as f64 / 20_000.0;
    assert!((64.5..70.0).contains(&each), "{each} bytes a member");
}

#[test]
fn a_dict_with_room_is_a_dict_like_any_other() {
    let hasher = KeyHasher::new(9);
    for members in [0, 1, 63, 64, 65, 256, 257, 320, 321, 640, 700, 5000] {
        let mut dict = Dict::with_room(members, &hasher);
        check_invariants(&dict, &hasher);
        let room: Vec<usize> = dict.segments().map(Table::slots_len).collect();
        (0..members).for_each(|number| put(&mut dict, &hasher, &key_of(number)));
        check_invariants(&dict, &hasher);
        let slots: Vec<usize> = dict.segments().map(Table::slots_len).collect();
        assert_eq!(slots.len(), room.len(), "{members}");
        let moved = slots.iter().zip(&room).filter(|(slots, room)| slots != room).count();
        assert!(moved <= 1 + slots.len() / 20, "{moved} of {} segments for {members}", slots.len());
        // More and fewer than there was room for.
        (members..2 * members).for_each(|number| put(&mut dict, &hasher, &key_of(number)));
        check_invariants(&dict, &hasher);
        for number in 0..2 * members {
            let key = key_of(number);
            assert!(dict.find(hasher.hash(&key), &key).is_some());
            assert!(dict.remove(hasher.hash(&key), &key, &hasher).is_some());
        }
        check_invariants(&dict, &hasher);
    }
    // Few of those that were announced.
    let (mut dict, mut random) = (Dict::with_room(5000, &hasher), Random::new(1));
    (0..3).for_each(|number| put(&mut dict, &hasher, &key_of(number)));
    assert!(dict.random(&mut random).is_some());
    (0..3).for_each(|number| {
        let key = key_of(number);
        dict.remove(hasher.hash(&key), &key, &hasher);
        check_invariants(&dict, &hasher);
    });
}

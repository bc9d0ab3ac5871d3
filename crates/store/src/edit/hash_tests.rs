//! Compares hashes in every form with a map, and tests the order of hashes with fields that expire.

use std::collections::BTreeMap;

use super::*;
use crate::db::{Db, ExpiryChange, Lookup};
use crate::key::Key;
use crate::limits::EncodingLimits;
use crate::new::string::NewString;
use crate::turn::Turn;
use base::hash::KeyHasher;
use ds::packed;
use proptest::prelude::*;

const NOW_MS: i64 = 1_000_000;

fn turn(seed: u64) -> Turn {
    let mut turn = Turn::alone(KeyHasher::new(seed));
    turn.set_time(NOW_MS * 1000);
    turn
}

fn limits() -> EncodingLimits {
    EncodingLimits {
        hash_max_listpack_entries: 8,
        hash_max_listpack_value: 20,
        ..EncodingLimits::default()
    }
}

/// Limits at both ends of their ranges and in between.
fn any_limits() -> impl Strategy<Value = EncodingLimits> {
    let end = i64::MAX as u64;
    let entries = prop::sample::select(vec![0, 1, 8, end]);
    let value = prop::sample::select(vec![0, 20, end]);
    let bytes =
        prop::sample::select(vec![0, 200, 100_000, EncodingLimits::default().packed_bytes_max]);
    (entries, value, bytes).prop_map(|(entries, value, packed_bytes_max)| EncodingLimits {
        hash_max_listpack_entries: entries,
        hash_max_listpack_value: value,
        packed_bytes_max,
        ..EncodingLimits::default()
    })
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![20 => 0usize..24, 1 => 60_000usize..70_000]
}

/// Checks that a packed hash is within the limits, to which expiries may be added.
fn check_form(hash: HashRef<'_>, limits: &EncodingLimits) {
    let (packed, expiry_bytes) = match hash {
        HashRef::Packed(packed) => (packed, 0),
        HashRef::Expiring(packed) => (packed, hash.len() * packed::FRAME_BYTES_MAX),
        HashRef::Table(_) => return,
    };
    assert!(hash.len() as u64 <= limits.hash_max_listpack_entries);
    assert!(packed.listpack_bytes() <= limits.packed_bytes_max + expiry_bytes);
}

fn field(number: u16) -> Vec<u8> {
    // Some are integers, some are not.
    if number.is_multiple_of(3) { number.to_string() } else { format!("f{number}") }.into_bytes()
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>;

fn content(db: &mut Db, turn: &mut Turn, key: Key<'_>) -> Model {
    let Ok(Some(hash)) = db.read::<HashValue>(turn, key) else { return Model::new() };
    let fields: Model = hash
        .iter()
        .map(|(name, value)| (name.to_vec(), (value.entry.to_vec(), value.expires_at)))
        .collect();
    assert_eq!(fields.len(), hash.len());
    for (name, (value, expires_at)) in &fields {
        let found = hash.get(&turn.hasher, name).map(|v| (v.entry.to_vec(), v.expires_at));
        assert_eq!(found.as_ref(), Some(&(value.clone(), *expires_at)));
    }
    fields
}

fn earliest(model: &Model) -> Option<i64> {
    model.values().filter_map(|(_, at)| *at).min()
}

proptest! {
    #[test]
    fn every_form_behaves_as_a_map(
        seed: u64,
        limits in prop_oneof![2 => Just(limits()), 3 => any_limits()],
        ops in prop::collection::vec((0u8..7, 0u16..14, 0i64..6, len()), 1..120),
    ) {
        let (mut turn, mut db) = (turn(seed), Db::default());
        let mut model = Model::new();
        let key = turn.key(b"h");
        for (op, number, time, len) in ops {
            let name = field(number);
            let value = vec![b'0' + number as u8; len];
            let at_ms = (time > 0).then_some(NOW_MS + time);
            match op {
                0..=2 => {
                    let keep = op == 2;
                    let mut edit = db.edit_or_create::<HashValue>(&mut turn, key).unwrap();
                    edit.fit(&limits, 1, [name.len(), value.len()].into_iter());
                    let expiry = if keep { FieldExpiry::Keep } else { FieldExpiry::Clear };
                    let new = edit.set(&name, &value, expiry, &limits);
                    check_form(edit.hash(), &limits);
                    drop(edit);
                    let old = model.get(&name).and_then(|(_, at)| *at).filter(|_| keep);
                    prop_assert_eq!(new, model.insert(name, (value, old)).is_none());
                }
                3 => {
                    let edit = db.edit::<HashValue>(&mut turn, key).unwrap();
                    let removed = edit.is_some_and(|mut edit| edit.remove(&name));
                    prop_assert_eq!(removed, model.remove(&name).is_some());
                }
                4 | 5 => {
                    if let (Some((_, at)), Some(mut edit)) =
                        (model.get_mut(&name), db.edit::<HashValue>(&mut turn, key).unwrap())
                    {
                        edit.set_expiry(&name, at_ms);
                        *at = at_ms;
                    }
                }
                _ => {
                    turn.set_time((NOW_MS + 3) * 1000);
                    let ended = db.expire_due_fields(&mut turn, usize::MAX);
                    turn.set_time(NOW_MS * 1000);
                    let before = model.len();
                    model.retain(|_, (_, at)| at.is_none_or(|at| at >= NOW_MS + 3));
                    prop_assert_eq!(ended, before - model.len());
                }
            }
            prop_assert_eq!(&content(&mut db, &mut turn, key), &model);
            prop_assert_eq!(db.len(), usize::from(!model.is_empty()));
            prop_assert_eq!(db.hashes_with_expiry(), usize::from(earliest(&model).is_some()));
            let stored = db.lookup(&mut turn, key, Lookup::Quiet);
            let due = stored.and_then(|stored| stored.view::<HashValue>()?.earliest());
            prop_assert_eq!(due, earliest(&model));
        }
    }

    #[test]
    fn hashes_expire_in_order_after_being_moved(
        seed: u64,
        ops in prop::collection::vec((0u8..8, 0u16..6, 0u16..6, 1i64..50), 1..80),
    ) {
        let (mut turn, limits) = (turn(seed), limits());
        let mut dbs = [Db::default(), Db::default()];
        for (op, a, b, time) in ops {
            let names = [field(a), field(b)];
            let [key, other] = [turn.key(&names[0]), turn.key(&names[1])];
            let [db, second] = &mut dbs;
            match op {
                0..=2 => {
                    let mut edit = match db.edit_or_create::<HashValue>(&mut turn, key) {
                        Ok(edit) => edit,
                        Err(_) => continue,
                    };
                    edit.set(&names[1], b"v", FieldExpiry::Keep, &limits);
                    edit.set_expiry(&names[1], Some(NOW_MS + time));
                }
                3 => {
                    db.put(&mut turn, key, NewString::Bytes(b"text"), ExpiryChange::Clear);
                }
                4 => {
                    db.remove(&mut turn, key);
                }
                5 => {
                    if let Some(record) = db.take(&mut turn, key) {
                        db.remove(&mut turn, other);
                        db.insert(&mut turn, other, record);
                    }
                }
                6 => {
                    if let Some(record) = db.duplicate(&mut turn, key, other.bytes) {
                        second.remove(&mut turn, other);
                        second.insert(&mut turn, other, record);
                    }
                }
                _ => {
                    db.set_expiry(&mut turn, key, Some(NOW_MS - 1));
                    db.expire_step(&mut turn, usize::MAX);
                }
            }
            for db in &dbs {
                let mut hashes = 0;
                db.scan(&turn, 0, usize::MAX, &mut |stored| {
                    let due = stored.view::<HashValue>().and_then(HashRef::earliest);
                    hashes += usize::from(due.is_some());
                });
                prop_assert_eq!(db.hashes_with_expiry(), hashes);
            }
        }
        turn.set_time((NOW_MS + 100) * 1000);
        for db in &mut dbs {
            while db.expire_due_fields(&mut turn, 2) > 0 {}
            prop_assert_eq!(db.hashes_with_expiry(), 0);
            let mut fields = 0;
            db.scan(&turn, 0, usize::MAX, &mut |s| {
                fields += s.view::<HashValue>().map_or(0, |hash| hash.len());
            });
            prop_assert_eq!(fields, 0);
        }
    }
}

#[test]
fn many_fields_set_at_once_choose_the_right_form() {
    let (mut turn, mut db, limits) = (turn(1), Db::default(), limits());
    let encoding =
        |db: &mut Db, turn: &mut Turn, key| db.lookup(turn, key, Lookup::Quiet).unwrap().encoding();
    let key = turn.key(b"h");
    let pairs: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")];
    let mut edit = db.edit_or_create::<HashValue>(&mut turn, key).unwrap();
    assert_eq!(edit.fill(pairs.into_iter(), &limits), 2);
    assert_eq!(edit.fill(pairs.into_iter(), &limits), 0);
    drop(edit);
    assert_eq!(encoding(&mut db, &mut turn, key), "listpack");
    let fields = content(&mut db, &mut turn, key);
    assert_eq!(fields.get(&b"a"[..]).unwrap().0, b"3");
    let mut edit = db.edit::<HashValue>(&mut turn, key).unwrap().unwrap();
    edit.set_expiry(b"b", Some(NOW_MS + 5));
    edit.set_expiry(b"b", None);
    drop(edit);
    assert_eq!(encoding(&mut db, &mut turn, key), "listpackex");
    let mut edit = db.edit::<HashValue>(&mut turn, key).unwrap().unwrap();
    edit.fit(&limits, 1, [21].into_iter());
    edit.set(b"long", &[b'x'; 21], FieldExpiry::Clear, &limits);
    drop(edit);
    assert_eq!(encoding(&mut db, &mut turn, key), "hashtable");
    assert!(db.lookup(&mut turn, key, Lookup::Quiet).unwrap().memory_bytes() > 200);
    assert!(!db.edit::<HashValue>(&mut turn, key).unwrap().unwrap().remove(b"nothing"));
}

#[test]
fn expired_fields_are_removed_as_a_separate_effect() {
    let (mut turn, mut db, limits) = (turn(1), Db::default(), limits());
    turn.effects.set_consumed(true);
    let key = turn.key(b"h");
    let mut edit = db.edit_or_create::<HashValue>(&mut turn, key).unwrap();
    for name in [b"a", b"b", b"c"] {
        edit.set(name, b"v", FieldExpiry::Clear, &limits);
        edit.set_expiry(name, Some(NOW_MS));
    }
    drop(edit);
    assert_eq!(db.expire_all_fields(&mut turn, key), 0);
    turn.set_time((NOW_MS + 1) * 1000);
    assert_eq!(db.expire_fields(&mut turn, key, [&b"a"[..], b"a", b"x"].into_iter()), 1);
    assert_eq!(db.expire_due_fields(&mut turn, 1), 1);
    assert_eq!(db.expire_all_fields(&mut turn, key), 1);
    let effects = turn.effects.take();
    let counts: Vec<_> = effects.iter().map(|effect| effect.events.len()).collect();
    assert_eq!(counts, [1, 1, 2]);
    assert_eq!(effects[0].commands[0].args, [&b"HDEL"[..], b"h", b"a"]);
    assert!(db.is_empty());
    assert_eq!((turn.counters.expired_fields, turn.counters.expired), (3, 0));
}

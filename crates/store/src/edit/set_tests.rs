//! Compares a stored set with one of the standard library, with limits so low that every form and
//! every change of form occurs.

use super::*;
use crate::db::Db;
use crate::limits::EncodingLimits;
use crate::turn::Turn;
use base::hash::KeyHasher;
use ds::packed;
use proptest::prelude::*;
use std::collections::BTreeSet;

type Model = BTreeSet<Vec<u8>>;

const LIMITS: fn() -> EncodingLimits = || EncodingLimits {
    set_max_intset_entries: 6,
    set_max_listpack_entries: 8,
    set_max_listpack_value: 10,
    ..EncodingLimits::default()
};

/// Limits at both ends of their ranges and in between.
fn limits() -> impl Strategy<Value = EncodingLimits> {
    let end = i64::MAX as u64;
    let ints = prop::sample::select(vec![0, 1, 6, end]);
    let entries = prop::sample::select(vec![0, 1, 8, end]);
    let value = prop::sample::select(vec![0, 10, end]);
    let bytes =
        prop::sample::select(vec![0, 60, 100_000, EncodingLimits::default().packed_bytes_max]);
    let any = (ints, entries, value, bytes).prop_map(|(ints, entries, value, packed_bytes_max)| {
        EncodingLimits {
            set_max_intset_entries: ints,
            set_max_listpack_entries: entries,
            set_max_listpack_value: value,
            packed_bytes_max,
            ..EncodingLimits::default()
        }
    });
    prop_oneof![2 => Just(LIMITS()), 3 => any]
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        24 => (-9i64..15).prop_map(|value| value.to_string().into_bytes()),
        4 => any::<i64>().prop_map(|value| value.to_string().into_bytes()),
        12 => "[a-h]".prop_map(String::into_bytes),
        4 => "[0x]{0,14}".prop_map(String::into_bytes),
        1 => (0u8..3).prop_map(|byte| vec![byte; 70_000]),
    ]
}

#[derive(Clone, Debug)]
enum SetOp {
    Add(Vec<Vec<u8>>),
    Remove(Vec<u8>),
    Pop,
    PopMany(usize),
    Sample(usize),
}

fn op() -> impl Strategy<Value = SetOp> {
    prop_oneof![
        5 => prop::collection::vec(member(), 1..4).prop_map(SetOp::Add),
        1 => prop::collection::vec(member(), 1..12).prop_map(SetOp::Add),
        5 => member().prop_map(SetOp::Remove),
        2 => Just(SetOp::Pop),
        1 => (0usize..9).prop_map(SetOp::PopMany),
        1 => (0usize..20).prop_map(SetOp::Sample),
    ]
}

fn text(member: Entry<'_>) -> Vec<u8> {
    member.to_vec()
}

fn members(set: SetRef<'_>) -> Model {
    set.iter().map(text).collect()
}

/// Checks the invariants of a set, and that it equals the model.
fn check(set: SetRef<'_>, model: &Model, turn: &Turn, limits: &EncodingLimits) {
    assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
    assert_eq!(set.iter().count(), model.len());
    assert_eq!(&members(set), model);
    for member in model.iter().chain(&[b"none".to_vec(), b"77".to_vec()]) {
        assert_eq!(set.contains_text(member, &turn.hasher), model.contains(member));
        assert_eq!(set.contains(Entry::of(member), &turn.hasher), model.contains(member));
        assert_eq!(set.contains(Entry::Bytes(member), &turn.hasher), model.contains(member));
    }
    let mut scanned = Vec::new();
    let mut cursor = Some(0);
    while let Some(from) = cursor {
        cursor = set.scan(from, 3, &turn.hasher, &mut |member| scanned.push(text(member)));
    }
    assert_eq!(scanned.len(), model.len());
    assert_eq!(&scanned.into_iter().collect::<Model>(), model);
    match set {
        SetRef::Ints(_) => {
            assert!(model.len() as u64 <= limits.set_max_intset_entries);
            assert!(model.len() * 8 <= limits.packed_bytes_max);
        }
        SetRef::Packed(packed) => {
            let bytes_max = limits.packed_bytes_max + packed::FRAME_BYTES_MAX;
            assert!(packed.listpack_bytes() <= bytes_max);
            assert!(model.len() as u64 <= limits.set_max_listpack_entries);
            assert!(model.iter().all(|m| m.len() as u64 <= limits.set_max_listpack_value));
        }
        SetRef::Table(_) => {}
    }
}

fn apply(
    db: &mut Db,
    turn: &mut Turn,
    random: &mut Random,
    model: &mut Model,
    limits: &EncodingLimits,
    op: SetOp,
) {
    let key = turn.key(b"k");
    let Ok(mut edit) = db.edit_or_create::<SetValue>(turn, key) else { panic!("a set") };
    match op {
        SetOp::Add(members) => {
            let added = edit.add(members.iter().map(Vec::as_slice), limits);
            let new = members.into_iter().filter(|member| model.insert(member.clone())).count();
            assert_eq!(added, new);
        }
        SetOp::Remove(member) => assert_eq!(edit.remove(&member), model.remove(&member)),
        SetOp::Pop => {
            let mut popped = None;
            edit.pop(random, &mut |member| popped = Some(text(member)));
            assert_eq!(popped.is_some(), !model.is_empty());
            assert!(popped.is_none_or(|member| model.remove(&member)));
        }
        SetOp::PopMany(count) if count < model.len() => {
            let mut popped = Vec::new();
            edit.pop_many(count, random, limits, &mut |member| popped.push(text(member)));
            assert_eq!(popped.len(), count);
            assert!(popped.iter().all(|member| model.remove(member)));
        }
        SetOp::PopMany(_) => {}
        SetOp::Sample(count) => {
            let mut drawn = Vec::new();
            edit.set().sample(count, random, &mut |member| drawn.push(text(member)));
            assert_eq!(drawn.len(), count.min(model.len()));
            let different: Model = drawn.iter().cloned().collect();
            assert!(different.len() == drawn.len() && different.is_subset(model));
        }
    }
    check(edit.set(), model, edit.turn_ref(), limits);
}

proptest! {
    #[test]
    fn behaves_as_a_set(
        seed: u64, limits in limits(), ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut turn = Turn::alone(KeyHasher::new(seed));
        let (mut db, mut random, mut model) = (Db::default(), Random::new(seed), Model::new());
        for op in ops {
            apply(&mut db, &mut turn, &mut random, &mut model, &limits, op);
            let key = turn.key(b"k");
            prop_assert_eq!(db.contains(&mut turn, key), !model.is_empty());
        }
    }

    #[test]
    fn a_new_set_behaves_as_one(
        seed: u64,
        from_ints: bool,
        limits in limits(),
        ops in prop::collection::vec((any::<bool>(), member()), 1..60),
    ) {
        let turn = Turn::alone(KeyHasher::new(seed));
        let mut set =
            if from_ints { NewSet::Ints(Vec::new()) } else { NewSet::Packed(Vec::new()) };
        let mut model = Model::new();
        for (adds, member) in ops {
            if adds {
                let added = set.add(Entry::Bytes(&member), &limits, &turn.hasher);
                prop_assert_eq!(added, model.insert(member));
            } else {
                let removed = set.remove(Entry::of(&member), &turn.hasher);
                prop_assert_eq!(removed, model.remove(&member));
            }
            check(set.view(), &model, &turn, &limits);
        }
        set.shrink_to_ints(&limits);
        check(set.view(), &model, &turn, &limits);
        let ints = model.iter().all(|member| parse_i64(member).is_some());
        if ints && model.len() as u64 <= ints_max(&limits) {
            prop_assert!(matches!(set.view(), SetRef::Ints(_)));
        }
    }
}

#[test]
fn sorted_integers_have_a_limit_in_bytes() {
    let end = i64::MAX as u64;
    let limits = |packed_bytes_max| EncodingLimits {
        set_max_intset_entries: end,
        packed_bytes_max,
        ..EncodingLimits::default()
    };
    // Below the 4 GiB of a record even when each integer takes 8 bytes.
    assert_eq!(ints_max(&limits(EncodingLimits::default().packed_bytes_max)), 1 << 27);
    let (mut turn, mut db) = (Turn::alone(KeyHasher::new(1)), Db::default());
    let key = turn.key(b"k");
    for value in 0..=100 {
        let Ok(mut edit) = db.edit_or_create::<SetValue>(&mut turn, key) else { panic!("a set") };
        assert_eq!(edit.add([value.to_string().as_bytes()].into_iter(), &limits(800)), 1);
        assert_eq!(matches!(edit.set(), SetRef::Ints(_)), value < 100, "{value}");
        assert_eq!(edit.set().len(), value + 1);
    }
}

#[test]
fn every_member_is_drawn_equally_often() {
    let mut turn = Turn::alone(KeyHasher::new(5));
    let (mut db, mut random) = (Db::default(), Random::new(6));
    for many in [5, 7, 200] {
        let key = turn.key(b"k");
        db.remove(&mut turn, key);
        let names: Vec<Vec<u8>> =
            (0..many).map(|i| if many == 5 { i } else { i * 7 }.to_string().into_bytes()).collect();
        let more: &[&[u8]] = if many == 7 { &[b"x"] } else { &[] };
        let Ok(mut edit) = db.edit_or_create::<SetValue>(&mut turn, key) else { panic!("a set") };
        let all: Vec<&[u8]> = names.iter().map(Vec::as_slice).chain(more.iter().copied()).collect();
        edit.add(all.iter().copied(), &LIMITS());
        let share = 4000;
        let mut drawn = std::collections::BTreeMap::<Vec<u8>, usize>::new();
        for _ in 0..all.len() * share / 2 {
            if let Some(member) = edit.set().random(&mut random) {
                *drawn.entry(text(member)).or_default() += 1;
            }
        }
        for _ in 0..all.len() * share / 2 {
            edit.set().sample(1, &mut random, &mut |member| {
                *drawn.entry(text(member)).or_default() += 1;
            });
        }
        assert_eq!(drawn.len(), all.len());
        // Six standard deviations of a fair draw.
        let fair = share - 380..share + 380;
        assert!(drawn.values().all(|times| fair.contains(times)), "{drawn:?}");
    }
}

//! Compares the ranked tree with a sorted set of pairs.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::record::Payload;

type Plain = Record<u64>;

/// A score as a key of the model, which needs a total order.
fn model_score(score: f64) -> i64 {
    let bits = (score + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// A tree, the records in it, and the model.
#[derive(Default)]
struct Owner {
    tree: Ranked<u64>,
    records: BTreeMap<Vec<u8>, Plain>,
    model: BTreeSet<(i64, Vec<u8>)>,
}

impl Owner {
    fn insert(&mut self, score: f64, key: &[u8]) {
        self.remove(key);
        let record = Plain::new(key, 0, Payload::Bytes(&score.to_le_bytes()), None, 0);
        // SAFETY: the record stays in the map, unchanged, until `remove` takes it out of the tree.
        unsafe { self.tree.insert(record.view()) };
        self.records.insert(key.to_vec(), record);
        self.model.insert((model_score(score), key.to_vec()));
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(record) = self.records.remove(key) {
            assert!(self.tree.remove(record.view()));
            assert!(!self.tree.remove(record.view()));
            self.model.remove(&(model_score(score_of(record.view())), key.to_vec()));
        }
    }

    fn remove_range(&mut self, ranks: Range<usize>) {
        let records = &mut self.records;
        let mut removed = Vec::new();
        self.tree.remove_range(ranks.clone(), |record| {
            removed.push((model_score(score_of(record)), record.key().to_vec()));
            records.remove(record.key());
        });
        let end = ranks.end.min(self.model.len());
        let start = ranks.start.min(end);
        let gone: Vec<_> = self.model.iter().take(end).skip(start).cloned().collect();
        assert_eq!(removed, gone);
        self.model.retain(|pair| !gone.contains(pair));
    }

    fn check(&self) {
        let pairs = |walk: RankedWalk<'_, u64>| -> Vec<_> {
            let pair = |record| (model_score(score_of(record)), RecordRef::key(record).to_vec());
            let mut at_once = Vec::new();
            walk.clone().for_each(|record| at_once.push(pair(record)));
            assert_eq!(at_once, walk.clone().map(pair).collect::<Vec<_>>());
            // The walk can also continue in the middle of a leaf.
            let (mut some, mut rest) = (walk.clone(), walk);
            let mut halves: Vec<_> = some.by_ref().take(5).map(pair).collect();
            some.for_each(|record| halves.push(pair(record)));
            assert_eq!(halves, at_once);
            rest.nth(2);
            assert_eq!(rest.len(), at_once.len().saturating_sub(3));
            at_once
        };
        let wanted: Vec<_> = self.model.iter().cloned().collect();
        let len = wanted.len();
        assert_eq!(self.tree.len(), len);
        assert_eq!(pairs(self.tree.walk(0..usize::MAX)), wanted);
        let reversed: Vec<_> = wanted.iter().rev().cloned().collect();
        assert_eq!(pairs(self.tree.walk_back(0..len)), reversed);
        for (rank, (score, key)) in wanted.iter().enumerate() {
            assert_eq!(self.tree.rank_of(self.records[key].view()), Some(rank));
            assert_eq!(self.tree.nth(rank).map(RecordRef::key), Some(&key[..]));
            let before = |s: f64, _: RecordRef<'_, u64>| model_score(s) < *score;
            let first = wanted.partition_point(|pair| pair.0 < *score);
            assert_eq!(self.tree.partition_point(before), first);
        }
        for (start, end) in [(0, 1), (len / 3, len / 2), (len / 2, len + 9), (len, len + 1)] {
            let part = &wanted[start.min(len)..end.min(len)];
            assert_eq!(pairs(self.tree.walk(start..end)), part);
            let back: Vec<_> = part.iter().rev().cloned().collect();
            assert_eq!(pairs(self.tree.walk_back(start..end)), back);
        }
        assert_eq!(self.tree.nth(len).map(RecordRef::key), None);
        if let Some(root) = &self.tree.root {
            check_node(root, true);
        }
    }
}

/// Checks the invariants below a node and returns its depth.
fn check_node(node: &RankedNode, root: bool) -> usize {
    match node.view() {
        View::Leaf(leaf) => {
            assert!(!leaf.slots().is_empty());
            1
        }
        View::Inner(inner) => {
            assert!(inner.len() >= if root { 2 } else { 1 });
            let mut depths = BTreeSet::new();
            for at in 0..inner.len() {
                let child = inner.child(at).unwrap();
                assert_eq!(inner.counts()[at] as usize, child.count());
                assert_eq!(inner.firsts()[at], child.first());
                let first = Ranked::<u64>::record(child.first());
                assert_eq!(inner.scores()[at].to_bits(), score_of(first).to_bits());
                depths.insert(check_node(child, false));
            }
            assert!(inner.child(inner.len()).is_none());
            assert_eq!(depths.len(), 1);
            depths.pop_first().unwrap() + 1
        }
    }
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-20i32..20).prop_map(f64::from),
        3 => any::<i64>().prop_map(|n| n as f64 / 1024.0),
        1 => prop::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324]),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_sorted_set(
        ops in prop::collection::vec((0u8..20, score(), 0u16..500, 0usize..80), 1..700),
    ) {
        let mut owner = Owner::default();
        for (op, score, number, count) in ops {
            let key = number.to_string().into_bytes();
            match op {
                0..=13 => owner.insert(score, &key),
                14..=18 => owner.remove(&key),
                _ => {
                    let start = usize::from(number) % (owner.model.len() + 1);
                    owner.remove_range(start..start + count);
                }
            }
        }
        owner.check();
        while !owner.model.is_empty() {
            let start = owner.model.len() / 3;
            owner.remove_range(start..start + 97);
            if start < 2 {
                owner.remove_range(0..5);
            }
        }
        prop_assert!(owner.tree.root.is_none());
    }
}

#[test]
fn one_score_is_ordered_by_key() {
    let mut owner = Owner::default();
    for i in 0..3000u32 {
        owner.insert(if i % 2 == 0 { 0.0 } else { -0.0 }, &(i * 7919 % 3001).to_be_bytes());
    }
    owner.check();
    let key = 1500u32.to_be_bytes();
    let rank = owner.tree.partition_point(|_, record| record.key() < &key[..]);
    assert_eq!(rank, owner.model.range(..(0, key.to_vec())).count());
}

#[test]
fn a_tree_that_grows_at_its_end_has_full_nodes() {
    let records: Vec<Plain> = (0..40_000u32)
        .map(|i| {
            let score = f64::from(i).to_le_bytes();
            Plain::new(&i.to_be_bytes(), 0, Payload::Bytes(&score), None, 0)
        })
        .collect();
    let (mut pushed, mut inserted) = (Ranked::default(), Ranked::default());
    for record in &records {
        // SAFETY: the records outlive both trees and do not change.
        unsafe {
            pushed.push(record.view());
            inserted.insert(record.view());
        }
    }
    for tree in [&pushed, &inserted] {
        assert!(tree.footprint().0 < records.len() * 10, "{:?}", tree.footprint());
        assert_eq!(tree.rank_of(records[31_415].view()), Some(31_415));
        assert_eq!(check_node(tree.root.as_ref().unwrap(), true), 3);
    }
}

#[test]
fn leaves_are_well_filled_after_insertions_in_random_order() {
    let records: Vec<Plain> = (0..50_000u32)
        .map(|i| {
            let score = f64::from(i.wrapping_mul(2_654_435_761) >> 8).to_le_bytes();
            Plain::new(&i.to_be_bytes(), 0, Payload::Bytes(&score), None, 0)
        })
        .collect();
    let mut tree = Ranked::default();
    for record in &records {
        // SAFETY: the records outlive the tree and do not change.
        unsafe { tree.insert(record.view()) };
    }
    check_node(tree.root.as_ref().unwrap(), true);
    // Leaves that are 79% full take 10.5 bytes a record, plus the inner nodes.
    assert!(tree.footprint().0 < records.len() * 12, "{:?}", tree.footprint());
}

#[test]
fn nodes_fill_their_allocations() {
    assert_eq!((size_of::<Leaf>(), size_of::<Inner>()), (256, 1016));
    assert_eq!(size_of::<Option<RankedNode>>(), 8);
}

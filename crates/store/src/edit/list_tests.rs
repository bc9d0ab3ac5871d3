//! Compares lists with plain vectors, in both forms and across every change between them.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::{Db, Key, Lookup, Turn};
use base::hash::KeyHasher;
use ds::packed::Entry;
use proptest::prelude::*;

const KEY: &[u8] = b"key";

/// A database with one list under [`KEY`], and the vector it must equal.
struct ListPair {
    db: Db,
    turn: Turn,
    limits: EncodingLimits,
    model: Vec<Vec<u8>>,
}

impl ListPair {
    fn new(list_max_listpack_size: i32) -> Self {
        let limits = EncodingLimits { list_max_listpack_size, ..EncodingLimits::default() };
        let turn = Turn::alone(KeyHasher::new(1));
        Self { db: Db::default(), turn, limits, model: Vec::new() }
    }

    fn key(&self) -> Key<'static> {
        self.turn.key(KEY)
    }

    /// Runs a change on the list, which is created if it is missing.
    fn edit<R>(
        &mut self,
        change: impl FnOnce(&mut Edit<'_, ListValue>, &EncodingLimits) -> R,
    ) -> R {
        let key = self.key();
        let mut edit = self.db.edit_or_create::<ListValue>(&mut self.turn, key).unwrap();
        change(&mut edit, &self.limits)
    }

    fn push(&mut self, side: Side, elements: &[Vec<u8>]) {
        self.edit(|list, limits| list.push(side, elements.iter().map(Vec::as_slice), limits));
        match side {
            Side::Left => drop(self.model.splice(0..0, elements.iter().rev().cloned())),
            Side::Right => self.model.extend_from_slice(elements),
        }
    }

    fn encoding(&mut self) -> &'static str {
        let key = self.key();
        self.db
            .lookup(&mut self.turn, key, Lookup::Quiet)
            .map_or("none", |stored| stored.encoding())
    }

    fn check(&mut self) {
        let key = self.key();
        let found = self.db.read::<ListValue>(&mut self.turn, key).unwrap();
        let Some(list) = found else {
            assert!(self.model.is_empty(), "the list is gone");
            return;
        };
        assert!(!list.is_empty(), "an empty list is gone");
        let texts: Vec<_> = list.iter_from(0).map(Entry::to_vec).collect();
        assert_eq!(texts, self.model);
        let mut reversed: Vec<_> = list.rev_before(list.len()).map(Entry::to_vec).collect();
        reversed.reverse();
        assert_eq!(reversed, self.model);
        assert_eq!(list.end(Side::Left).map(Entry::to_vec), self.model.first().cloned());
        assert_eq!(list.end(Side::Right).map(Entry::to_vec), self.model.last().cloned());
    }

    fn apply(&mut self, (op, index, count, elements): &(u8, usize, usize, Vec<Vec<u8>>)) {
        let element = elements[0].clone();
        let index = index % (self.model.len() + 1);
        match op {
            0 => self.push(Side::Left, elements),
            1 => self.push(Side::Right, elements),
            2 | 3 => {
                let pivot = self.model.get(index).cloned().unwrap_or_default();
                let after = *op == 3;
                let found = self.edit(|list, limits| list.insert(&pivot, after, &element, limits));
                let at = self.model.iter().position(|other| *other == pivot);
                assert_eq!(found, at.is_some());
                if let Some(at) = at {
                    self.model.insert(at + usize::from(after), element);
                }
            }
            4 => {
                let found = self.edit(|list, limits| list.replace(index, &element, limits));
                assert_eq!(found, index < self.model.len());
                if let Some(old) = self.model.get_mut(index) {
                    *old = element;
                }
            }
            5 => {
                self.edit(|list, limits| list.remove(index..index + count, limits));
                let end = (index + count).min(self.model.len());
                self.model.drain(index..end);
            }
            6 => {
                self.edit(|list, limits| list.pop(Side::Left, *count, limits));
                self.model.drain(..(*count).min(self.model.len()));
            }
            7 => {
                self.edit(|list, limits| list.pop(Side::Right, *count, limits));
                self.model.truncate(self.model.len().saturating_sub(*count));
            }
            _ => {
                let (from, max) = (if *op == 8 { Side::Left } else { Side::Right }, count % 3 + 1);
                let removed =
                    self.edit(|list, limits| list.remove_equal(&element, max, from, limits));
                let mut gone: Vec<usize> =
                    (0..self.model.len()).filter(|at| self.model[*at] == element).collect();
                if from == Side::Right {
                    gone.reverse();
                }
                gone.truncate(max);
                assert_eq!(removed, gone.len());
                let mut at = 0..self.model.len();
                self.model.retain(|_| !gone.contains(&at.next().unwrap()));
            }
        }
    }
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => "[a-c]{1,2}".prop_map(String::into_bytes),
        2 => any::<i64>().prop_map(|value| value.to_string().into_bytes()),
        2 => (100usize..500).prop_map(|len| vec![b'm'; len]),
        1 => (3000usize..9000).prop_map(|len| vec![b'l'; len]),
        1 => (60_000usize..70_000).prop_map(|len| vec![0xf0; len]),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_vector(
        size in prop::sample::select(vec![i32::MIN, -5, -2, -1, 0, 1, 4, 64, 32_767, i32::MAX]),
        changes in prop::collection::vec(
            (0u8..10, any::<usize>(), 0usize..20, prop::collection::vec(element(), 1..5)), 1..120,
        ),
    ) {
        let mut pair = ListPair::new(size);
        for change in &changes {
            pair.apply(change);
            pair.check();
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Replacements grow a chunk far beyond its limit, and it shrinks again.
    #[test]
    fn large_replacements_shrink_again(
        size in prop::sample::select(vec![8, 64, 128, 1000, i32::MAX]),
        elements in 1usize..80,
        changes in prop::collection::vec((0u8..10, any::<usize>(), 0usize..8, 0usize..8193), 1..40),
    ) {
        let mut pair = ListPair::new(size);
        pair.push(Side::Right, &vec![b"e".to_vec(); elements]);
        for index in 0..elements {
            pair.apply(&(4, index, 0, vec![vec![index as u8; 8000]]));
        }
        for (op, index, count, len) in changes {
            // Mostly replacements, and pops at the left.
            let op = match op {
                0..6 => 4,
                6..8 => 6,
                op => op - 1,
            };
            pair.apply(&(op, index, count, vec![vec![0xf0; len]]));
            pair.check();
        }
    }
}

#[test]
fn elements_replaced_by_longer_ones_are_read_back() {
    for size in [64, 128, i32::MAX] {
        let mut pair = ListPair::new(size);
        let elements: Vec<_> = (0..60u8).map(|byte| vec![b'e'; usize::from(byte) + 1]).collect();
        pair.push(Side::Right, &elements);
        for index in 0..60 {
            let element = vec![0xf0 ^ index as u8; 8000];
            assert!(pair.edit(|list, limits| list.replace(index, &element, limits)));
            pair.model[index] = element;
            // Beyond 64 KB the list stays in chunks: in the record each change would move all of
            // it.
            let form = if size > 64 && index < 7 { "listpack" } else { "quicklist" };
            assert_eq!(pair.encoding(), form, "after {} replacements", index + 1);
        }
        for _ in 0..60 {
            pair.check();
            pair.edit(|list, limits| list.pop(Side::Left, 1, limits));
            pair.model.remove(0);
        }
        pair.check();
    }
}

#[test]
fn empty_elements_fill_a_record_too() {
    for (elements, form) in [(60_000, "listpack"), (300_000, "quicklist")] {
        let mut pair = ListPair::new(-2);
        pair.push(Side::Right, &vec![Vec::new(); elements]);
        assert_eq!(pair.encoding(), form);
        for _ in 0..5 {
            pair.edit(|list, limits| list.pop(Side::Left, 11_000, limits));
            pair.model.drain(..11_000);
        }
        pair.check();
    }
}

#[test]
fn forms_change_at_the_limit_and_at_half_of_it() {
    let numbers = |range: Range<i64>| -> Vec<Vec<u8>> {
        range.map(|value| value.to_string().into_bytes()).collect()
    };
    let mut pair = ListPair::new(8);
    pair.push(Side::Right, &numbers(0..8));
    assert_eq!(pair.encoding(), "listpack");
    pair.push(Side::Left, &numbers(8..9));
    assert_eq!(pair.encoding(), "quicklist");
    for left in (0..9).rev() {
        pair.edit(|list, limits| list.pop(Side::Left, 1, limits));
        pair.model.remove(0);
        pair.check();
        let encoding = match left {
            0 => "none",
            ..=4 => "listpack",
            _ => "quicklist",
        };
        assert_eq!(pair.encoding(), encoding, "{left} left");
    }
    assert_eq!(pair.turn.counters.changes, 11);
}

#[test]
fn an_operation_without_effect_is_no_change() {
    let mut pair = ListPair::new(-2);
    pair.push(Side::Right, &[b"a".to_vec()]);
    assert!(!pair.edit(|list, limits| list.insert(b"x", true, b"y", limits)));
    assert!(!pair.edit(|list, limits| list.replace(1, b"y", limits)));
    pair.edit(|list, limits| list.remove(1..9, limits));
    pair.edit(|list, limits| list.pop(Side::Left, 0, limits));
    assert_eq!(pair.edit(|list, limits| list.remove_equal(b"x", 9, Side::Left, limits)), 0);
    pair.check();
    assert_eq!(pair.turn.counters.changes, 1);
}

#[test]
fn removing_many_chunks_drops_them_after_the_turn() {
    let mut pair = ListPair::new(-1);
    let elements: Vec<_> = (0..70).map(|i| vec![i; 4000]).collect();
    pair.push(Side::Right, &elements);
    pair.edit(|list, limits| list.remove(0..68, limits));
    pair.model.drain(..68);
    pair.check();
    assert_eq!(pair.turn.lazy_free.take_big().len(), 1);
}

#[test]
fn a_result_of_one_chunk_is_packed() {
    let filled = |size: i32, elements: &[Vec<u8>]| {
        let mut pair = ListPair::new(size);
        pair.edit(|list, limits| list.fill(elements.iter().map(Vec::as_slice), limits));
        pair.model = elements.to_vec();
        pair.check();
        pair.encoding()
    };
    let texts = |lens: &[usize]| -> Vec<_> { lens.iter().map(|len| vec![b'x'; *len]).collect() };
    assert_eq!(filled(-2, &texts(&[])), "none");
    assert_eq!(filled(-2, &texts(&[1])), "listpack");
    assert_eq!(filled(-1, &texts(&[4085])), "listpack");
    assert_eq!(filled(-1, &texts(&[4086])), "quicklist");
    // The size of the last element is overestimated by a few bytes.
    assert_eq!(filled(-1, &texts(&[4071, 1])), "listpack");
    assert_eq!(filled(-1, &texts(&[4077, 1])), "quicklist");
    assert_eq!(filled(2, &texts(&[4000, 4000])), "listpack");
    assert_eq!(filled(2, &texts(&[1, 1, 1])), "quicklist");
    assert_eq!(filled(2, &texts(&[9000])), "quicklist");
}

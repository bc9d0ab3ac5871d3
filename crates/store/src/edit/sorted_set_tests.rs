//! Compares sorted sets with a plain map, in both forms and across the change between them.

use std::collections::BTreeMap;

use base::hash::KeyHasher;
use proptest::prelude::*;

use super::*;
use crate::value::ranges::{LexEnd, LexRange, ScoreRange};
use crate::value::sorted_set::PairIter;
use crate::{Db, EncodingLimits, Key, Lookup, Turn};
use base::random::Random;

type Model = BTreeMap<Vec<u8>, f64>;

struct CheckedSet {
    db: Db,
    turn: Turn,
    limits: EncodingLimits,
    model: Model,
}

impl CheckedSet {
    fn new(entries_max: u64) -> Self {
        Self::within(EncodingLimits {
            zset_max_listpack_entries: entries_max,
            ..EncodingLimits::default()
        })
    }

    fn within(limits: EncodingLimits) -> Self {
        let hasher = KeyHasher::new(5);
        let (db, turn) = (Db::default(), Turn::alone(hasher));
        Self { db, turn, limits, model: Model::new() }
    }

    fn key(&self) -> Key<'static> {
        self.turn.key(b"key")
    }

    fn add(&mut self, member: &[u8], score: f64) {
        let key = self.key();
        let mut edit = self.db.edit_or_create::<SortedSetValue>(&mut self.turn, key).unwrap();
        let change = edit.add(member, score, &self.limits);
        drop(edit);
        let wanted = match self.model.insert(member.to_vec(), score) {
            None => ScoreChange::Added,
            Some(old) if old == score => ScoreChange::None,
            Some(_) => ScoreChange::Updated,
        };
        assert_eq!(change, wanted);
    }

    fn edit<R>(
        &mut self,
        change: impl FnOnce(&mut crate::Edit<'_, SortedSetValue>) -> R,
    ) -> Option<R> {
        let key = self.key();
        let mut edit = self.db.edit::<SortedSetValue>(&mut self.turn, key).unwrap()?;
        Some(change(&mut edit))
    }

    fn sorted(&self) -> Vec<(f64, Vec<u8>)> {
        let mut all: Vec<_> = self.model.iter().map(|(m, s)| (*s, m.clone())).collect();
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        all
    }

    fn check(&mut self) {
        let (wanted, key) = (self.sorted(), self.key());
        let Some(set) = self.db.read::<SortedSetValue>(&mut self.turn, key).unwrap() else {
            assert!(wanted.is_empty());
            return;
        };
        assert!(!wanted.is_empty(), "an empty set is no set");
        if let SortedSetRef::Packed(packed) = set {
            assert!(wanted.len() as u64 <= self.limits.zset_max_listpack_entries);
            assert!(packed.0.listpack_bytes() <= self.limits.packed_bytes_max);
        }
        let pairs = |walk: PairIter<'_>| -> Vec<_> {
            walk.map(|pair| (pair.score(), pair.member.to_vec())).collect()
        };
        assert_eq!(set.len(), wanted.len());
        assert_eq!(pairs(set.walk(0..usize::MAX, false)), wanted);
        let back: Vec<_> = wanted.iter().rev().cloned().collect();
        assert_eq!(pairs(set.walk(0..set.len(), true)), back);
        let (third, half) = (set.len() / 3, set.len() / 2);
        assert_eq!(pairs(set.walk(third..half, false)), wanted[third..half]);
        for (back, wanted) in [(false, &wanted), (true, &back)] {
            let mut at_once = Vec::new();
            let all = set.walk(0..set.len(), back);
            all.for_each(|pair| at_once.push((pair.score(), pair.member.to_vec())));
            assert_eq!(at_once, *wanted);
        }
        for (rank, (score, member)) in wanted.iter().enumerate() {
            assert_eq!(set.rank(member), Some((rank, *score)));
            assert_eq!(set.score(member), Some(*score));
            assert_eq!(set.nth(rank).map(|pair| pair.member.to_vec()).as_ref(), Some(member));
        }
        let range = ScoreRange { min: -3.0, min_open: true, max: 4.5, max_open: false };
        let inside = wanted.iter().filter(|(score, _)| *score > -3.0 && *score <= 4.5).count();
        let below = wanted.iter().filter(|(score, _)| *score <= -3.0).count();
        assert_eq!(set.ranks_in_scores(&range), below..below + inside);
        let mut random = Random::new(9);
        let drawn = set.random(&mut random).unwrap().member.to_vec();
        assert!(self.model.contains_key(&drawn));
        let (mut from, mut seen) = (0, Vec::new());
        loop {
            from = set.scan(from, 10, &mut |pair| seen.push(pair.member.to_vec()));
            if from == 0 {
                break;
            }
        }
        seen.sort();
        assert!(seen.iter().eq(self.model.keys()));
    }
}

/// Limits at both ends of their ranges and in between.
fn limits() -> impl Strategy<Value = EncodingLimits> {
    let end = i64::MAX as u64;
    let entries = prop::sample::select(vec![0, 8, 128, end]);
    let value = prop::sample::select(vec![0, 64, end]);
    let bytes_end = EncodingLimits::default().packed_bytes_max;
    let bytes = prop::sample::select(vec![0, 300, 100_000, bytes_end, bytes_end, bytes_end]);
    (entries, value, bytes).prop_map(|(entries, value, packed_bytes_max)| EncodingLimits {
        zset_max_listpack_entries: entries,
        zset_max_listpack_value: value,
        packed_bytes_max,
        ..EncodingLimits::default()
    })
}

proptest! {
    #[test]
    fn behaves_as_a_map(
        limits in limits(),
        ops in prop::collection::vec((0u8..12, -40i32..40, 0u16..120), 1..400),
    ) {
        let mut checked = CheckedSet::within(limits);
        for (op, number, name) in ops {
            let score = match number {
                39 => f64::INFINITY,
                -40 => 1e300,
                number => f64::from(number) / 4.0,
            };
            // Integers and texts, short ones and some too long to be packed.
            let member = match name % 3 {
                0 => name.to_string().into_bytes(),
                1 if name == 100 => vec![b'l'; 70_000],
                1 => format!("member:{name}").into_bytes(),
                _ => vec![b'x'; usize::from(name) / 2 + 1],
            };
            match op {
                0..=7 => checked.add(&member, score),
                8..=10 => {
                    let removed = checked.edit(|edit| edit.remove(&member)).unwrap_or(false);
                    prop_assert_eq!(removed, checked.model.remove(&member).is_some());
                }
                _ => {
                    let start = usize::from(name) % (checked.model.len() + 1);
                    let count = if number % 4 == 0 { 100 } else { 5 };
                    let sorted = checked.sorted().into_iter();
                    let gone: Vec<_> = sorted.skip(start).take(count).collect();
                    let removed = checked.edit(|edit| edit.remove_ranks(start..start + count));
                    prop_assert_eq!(removed.unwrap_or(0), gone.len());
                    checked.model.retain(|member, _| !gone.iter().any(|(_, m)| m == member));
                }
            }
        }
        checked.check();
        let all = checked.sorted();
        checked.edit(|edit| edit.remove_ranks(0..usize::MAX));
        checked.model.clear();
        checked.check();
        let (key, limits) = (checked.key(), checked.limits.clone());
        let mut edit = checked.db.edit_or_create::<SortedSetValue>(&mut checked.turn, key).unwrap();
        let mut new = NewSortedSet::default();
        all.iter().for_each(|(score, member)| new.push(member, *score));
        edit.fill(&new, &limits);
        drop(edit);
        checked.model = all.into_iter().map(|(score, member)| (member, score)).collect();
        checked.check();
    }
}

#[test]
fn a_longer_score_may_exceed_the_limit() {
    let mut checked =
        CheckedSet::within(EncodingLimits { packed_bytes_max: 300, ..EncodingLimits::default() });
    for number in 0..25 {
        checked.add(number.to_string().as_bytes(), 1.0);
    }
    for number in 0..25 {
        checked.add(number.to_string().as_bytes(), f64::from(number) / 3.0);
        checked.check();
    }
}

#[test]
fn members_with_equal_scores_are_found_by_name() {
    for entries_max in [4, 128] {
        let mut checked = CheckedSet::new(entries_max);
        for member in [&b"a"[..], b"b", b"c", b"10", b"9", b"d"] {
            checked.add(member, 0.0);
        }
        let key = checked.key();
        let set = checked.db.read::<SortedSetValue>(&mut checked.turn, key).unwrap().unwrap();
        let ranks = |min, max| set.ranks_in_lex(&LexRange { min, max });
        assert_eq!(ranks(LexEnd::Least, LexEnd::Greatest), 0..6);
        assert_eq!(ranks(LexEnd::Closed(b"a"), LexEnd::Open(b"c")), 2..4);
        assert_eq!(ranks(LexEnd::Open(b"10"), LexEnd::Closed(b"9")), 1..2);
        assert!(ranks(LexEnd::Greatest, LexEnd::Least).is_empty());
        assert!(ranks(LexEnd::Least, LexEnd::Least).is_empty());
        assert!(ranks(LexEnd::Closed(b"c"), LexEnd::Closed(b"a")).is_empty());
    }
}

#[test]
fn removing_most_members_drops_them_after_the_turn() {
    // The ranks to remove, out of 1000, and whether the members become garbage of the turn.
    for (ranks, later) in
        [(0..1000, true), (0..900, true), (100..1000, true), (50..950, true), (0..500, false)]
    {
        let mut checked = CheckedSet::new(128);
        for number in 0..1000 {
            checked.add(number.to_string().as_bytes(), f64::from(number));
        }
        checked.edit(|edit| edit.remove_ranks(ranks.clone()));
        let gone = |score: f64| ranks.contains(&(score as usize));
        checked.model.retain(|_, score| !gone(*score));
        checked.check();
        let pieces = checked.turn.lazy_free.take_big().len();
        assert_eq!(pieces, usize::from(later), "{ranks:?}");
    }
}

#[test]
fn growth_is_one_way_and_follows_the_limits() {
    let mut checked = CheckedSet::new(3);
    let encoding = |checked: &mut CheckedSet| {
        let key = checked.key();
        checked.db.lookup(&mut checked.turn, key, Lookup::NoTouch).unwrap().encoding()
    };
    for (member, form) in [("a", "listpack"), ("b", "listpack"), ("c", "listpack")] {
        checked.add(member.as_bytes(), 1.0);
        assert_eq!(encoding(&mut checked), form);
    }
    checked.add(b"a", 2.0);
    assert_eq!(encoding(&mut checked), "listpack");
    checked.add(b"d", 1.0);
    assert_eq!(encoding(&mut checked), "skiplist");
    checked.edit(|edit| edit.remove_ranks(0..3));
    assert_eq!(encoding(&mut checked), "skiplist");
    let mut checked = CheckedSet::new(128);
    checked.add(&[b'x'; 64], 1.0);
    assert_eq!(encoding(&mut checked), "listpack");
    checked.add(&[b'x'; 65], 1.0);
    assert_eq!(encoding(&mut checked), "skiplist");
}

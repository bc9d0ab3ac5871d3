//! A large sorted set: a dict finds members by name, and a ranked tree orders them.
//!
//! ```text
//! dict     hash of the member  ->  record: key = member, inline bytes = score
//! ranked   (score, member)     ->  address of the same record
//! ```
//!
//! Invariants: the tree has the addresses of exactly the records in the dict. A record is removed
//! from the tree before its score changes and before it is removed from the dict. Scores are never
//! NaN, which callers ensure.

use std::cmp::Ordering;
use std::ops::Range;

use base::hash::KeyHasher;
use base::random::Random;

use crate::dict::{Dict, Member, MemberRef, Nothing, Place, Walker};
use crate::ranked::{Ranked, RankedWalk, score_of};
use crate::record::Payload;

/// Members that are looked up in one batch, so that their cache misses overlap.
const BATCH_LEN: usize = 32;

/// See the module's description.
#[derive(Debug)]
pub struct SortedSet {
    dict: Dict,
    ranked: Ranked<Nothing>,
    hasher: KeyHasher,
}

impl Clone for SortedSet {
    fn clone(&self) -> Self {
        let (dict, hasher) = (self.dict.clone(), self.hasher);
        let mut copy = Self { dict, ranked: Ranked::default(), hasher };
        let mut walk = self.ranked.walk(0..self.len());
        let mut batch = Vec::with_capacity(BATCH_LEN);
        loop {
            let members = walk.by_ref().take(BATCH_LEN);
            batch.extend(members.map(|record| (hasher.hash(record.key()), record)));
            if batch.is_empty() {
                return copy;
            }
            batch.iter().for_each(|(hash, _)| copy.dict.prefetch_slot(*hash));
            batch.iter().for_each(|(hash, _)| copy.dict.prefetch_record(*hash));
            for (hash, record) in batch.drain(..) {
                if let Some(member) = copy.dict.find(hash, record.key()) {
                    // SAFETY: the set's dict owns the record; every function here removes it from
                    // the tree before changing or dropping it. The order is that of the original.
                    unsafe { copy.ranked.push(member) };
                }
            }
        }
    }
}

/// The record of a member and its score.
fn record(member: &[u8], score: f64) -> Member {
    Member::new(member, 0, Payload::Bytes(&score.to_le_bytes()), None, 0)
}

/// Builds a sorted set from members in any order. The tree is built at the end.
///
/// Members in ascending or descending order, as in files, need no sorting.
#[derive(Debug)]
pub struct Builder {
    dict: Dict,
    /// The score of each record in the dict, and its address.
    records: Vec<(f64, u64)>,
    hasher: KeyHasher,
}

impl Builder {
    /// A builder with room for so many members.
    pub fn with_room(members: usize, hasher: KeyHasher) -> Self {
        let records = Vec::with_capacity(members);
        Self { dict: Dict::with_room(members, &hasher), records, hasher }
    }

    /// Members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a member; the score is not NaN. Returns false if the set has the member already.
    pub fn push(&mut self, member: &[u8], score: f64) -> bool {
        let hash = self.hasher.hash(member);
        if self.dict.place(hash, member).is_some() {
            return false;
        }
        let place = self.dict.insert(hash, record(member, score), &self.hasher);
        self.records.push((score, self.dict.at(place).address()));
        true
    }

    /// Builds the set.
    pub fn finish(mut self) -> SortedSet {
        let mut records = std::mem::take(&mut self.records);
        // This sort finds runs in either direction. Scores are not NaN.
        records.sort_by(|a, b| {
            let scores = a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal);
            scores.then_with(|| self.record(a.1).key().cmp(self.record(b.1).key()))
        });
        let mut ranked = Ranked::default();
        for (_, address) in records {
            // SAFETY: as in `clone`; the order is that of the tree, and members are distinct.
            unsafe { ranked.push(self.record(address)) };
        }
        SortedSet { dict: self.dict, ranked, hasher: self.hasher }
    }

    /// The record at an address in `records`.
    fn record(&self, address: u64) -> MemberRef<'_> {
        // SAFETY: the dict owns the record and does not move it; the builder removes no record, and
        // the borrow of `self` prevents changes of the dict.
        unsafe { MemberRef::from_raw(address) }
    }
}

impl SortedSet {
    /// An empty set.
    pub fn new(hasher: KeyHasher) -> Self {
        Self { dict: Dict::new(), ranked: Ranked::default(), hasher }
    }

    /// Members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.dict.len()
    }

    /// The dict of the members.
    pub fn dict(&self) -> &Dict {
        &self.dict
    }

    /// The walk over the members; see [`Dict::walker`].
    pub fn walker(&mut self) -> Walker<'_> {
        self.dict.walker()
    }

    /// The slot of a member, which is valid until a member is added or removed.
    #[inline]
    pub fn place(&self, member: &[u8]) -> Option<Place> {
        self.dict.place(self.hasher.hash(member), member)
    }

    /// The score of the member in a slot.
    #[inline]
    pub fn score_at(&self, place: Place) -> f64 {
        score_of(self.dict.at(place))
    }

    /// A member's score.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.dict.find(self.hasher.hash(member), member).map(score_of)
    }

    /// A member's rank and score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let record = self.dict.find(self.hasher.hash(member), member)?;
        Some((self.ranked.rank_of(record)?, score_of(record)))
    }

    /// Adds a member that is not in the set. The score is not NaN.
    pub fn insert(&mut self, member: &[u8], score: f64) {
        let hash = self.hasher.hash(member);
        let place = self.dict.insert(hash, record(member, score), &self.hasher);
        // SAFETY: as in `clone`.
        unsafe { self.ranked.insert(self.dict.at(place)) };
    }

    /// Adds a member that is not in the set and belongs after all others.
    pub fn push(&mut self, member: &[u8], score: f64) {
        let hash = self.hasher.hash(member);
        let place = self.dict.insert(hash, record(member, score), &self.hasher);
        // SAFETY: as in `clone`; the caller ensures the order.
        unsafe { self.ranked.push(self.dict.at(place)) };
    }

    /// Changes the score of the member in a slot. The score is not NaN.
    pub fn set_score(&mut self, place: Place, score: f64) {
        self.ranked.remove(self.dict.at(place));
        if let Some(bytes) = self.dict.at_mut(place).bytes_mut() {
            bytes.copy_from_slice(&score.to_le_bytes());
        }
        // SAFETY: as in `clone`; the bytes were overwritten in place, so the record has not moved.
        unsafe { self.ranked.insert(self.dict.at(place)) };
    }

    /// Removes a member. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let Some(place) = self.place(member) else { return false };
        self.ranked.remove(self.dict.at(place));
        drop(self.dict.remove_at(place, &self.hasher));
        true
    }

    /// Removes the members of a range of ranks.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) {
        let Self { dict, ranked, hasher } = self;
        let mut left = ranks.end.min(ranked.len()).saturating_sub(ranks.start);
        while left > 0 {
            let count = left.min(BATCH_LEN);
            let batch = ranks.start..ranks.start + count;
            let mut hashes = [0; BATCH_LEN];
            // Prefetching a single member gains nothing.
            let looked_up = if count == 1 { 0..0 } else { batch.clone() };
            for (hash, record) in hashes.iter_mut().zip(ranked.walk(looked_up.clone())) {
                *hash = hasher.hash(record.key());
                dict.prefetch_slot(*hash);
            }
            let mut hashes = hashes.iter().take(looked_up.len());
            ranked.remove_range(batch, |record| {
                let hash = hashes.next().copied();
                let hash = hash.unwrap_or_else(|| hasher.hash(record.key()));
                let removed = dict.remove(hash, record.key(), hasher);
                debug_assert!(removed.is_some());
            });
            left -= count;
        }
    }

    /// See [`Ranked::partition_point`].
    #[inline]
    pub fn partition_point(&self, before: impl Fn(f64, MemberRef<'_>) -> bool) -> usize {
        self.ranked.partition_point(before)
    }

    /// The member with a rank.
    pub fn nth(&self, rank: usize) -> Option<MemberRef<'_>> {
        self.ranked.nth(rank)
    }

    /// Iterates over the members of a range of ranks, in descending order if `back` is set.
    pub fn walk(&self, ranks: Range<usize>, back: bool) -> RankedWalk<'_, Nothing> {
        if back { self.ranked.walk_back(ranks) } else { self.ranked.walk(ranks) }
    }

    /// A random member, each with the same probability.
    pub fn random(&self, random: &mut Random) -> Option<MemberRef<'_>> {
        self.dict.random(random).map(|place| self.dict.at(place))
    }

    /// Visits members in the order of their hashes; see [`Dict::scan`].
    pub fn scan(
        &self,
        from: u64,
        count: usize,
        visit: &mut dyn FnMut(MemberRef<'_>),
    ) -> Option<u64> {
        self.dict.scan(from, count, &self.hasher, visit)
    }

    /// Allocated bytes, without this struct.
    pub fn memory_bytes(&self) -> usize {
        self.dict.memory_bytes() + self.ranked.footprint().0
    }

    /// The approximate number of allocations.
    pub fn allocations(&self) -> usize {
        self.dict.allocations() + self.ranked.footprint().1
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn pairs(set: &SortedSet) -> Vec<(f64, Vec<u8>)> {
        let walk = set.walk(0..set.len(), false);
        walk.map(|record| (score_of(record), record.key().to_vec())).collect()
    }

    fn check(set: &SortedSet, model: &BTreeMap<Vec<u8>, f64>) {
        let mut wanted: Vec<(f64, Vec<u8>)> =
            model.iter().map(|(member, score)| (*score, member.clone())).collect();
        wanted.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(pairs(set), wanted);
        for (rank, (score, member)) in wanted.iter().enumerate() {
            assert_eq!(set.rank(member), Some((rank, *score)));
        }
    }

    proptest! {
        #[test]
        fn behaves_as_a_sorted_map(
            seed: u64,
            ops in prop::collection::vec((0u8..9, -50i32..50, 0u16..300), 1..400),
        ) {
            let mut set = SortedSet::new(KeyHasher::new(seed));
            let mut model: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
            for (op, number, name) in ops {
                let (member, score) = (name.to_string().into_bytes(), f64::from(number) / 4.0);
                prop_assert_eq!(set.score(&member), model.get(&member).copied());
                match (op, set.place(&member)) {
                    (0..=5, Some(place)) => {
                        prop_assert_eq!(set.score_at(place), model[&member]);
                        set.set_score(place, score);
                        model.insert(member, score);
                    }
                    (0..=5, None) => {
                        set.insert(&member, score);
                        model.insert(member, score);
                    }
                    (6..=7, found) => {
                        prop_assert_eq!(set.remove(&member), found.is_some());
                        model.remove(&member);
                    }
                    _ => {
                        let start = usize::from(name) % (set.len() + 1);
                        let gone = pairs(&set);
                        set.remove_ranks(start..start + 7);
                        for (_, member) in gone.iter().skip(start).take(7) {
                            model.remove(member);
                        }
                    }
                }
            }
            check(&set, &model);
            let copy = set.clone();
            drop(set);
            check(&copy, &model);
        }
    }
}

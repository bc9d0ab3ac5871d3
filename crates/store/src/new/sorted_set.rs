//! A sorted set computed from others, for a reply or to be stored.
//!
//! ```text
//! bytes   members, one after another in the order in which they were added
//! pairs   where each member is, its hash and its score; sorted at the end
//! slots   by hash, linear probing: 1 + index of a pair, 0: empty; only for `merge`
//! ```
//!
//! Lengths and indexes have 32 bits: a member is at most 3 GB long, and 2^32 pairs would take 100
//! GB.
//!
//! Most results are small and live for one command, so there are three buffers and no allocation
//! for each member.

use base::hash::KeyHasher;

/// A member of a new set.
#[derive(Clone, Copy, Debug)]
struct NewPair {
    start: usize,
    len: u32,
    /// The upper bits of the hash.
    hash: u32,
    score: f64,
}

/// A sorted set; see this module's description.
#[derive(Debug, Default)]
pub struct NewSortedSet {
    bytes: Vec<u8>,
    pairs: Vec<NewPair>,
    slots: Vec<u32>,
}

/// Slots when the first member is merged.
const SLOTS_MIN: usize = 64;

impl NewSortedSet {
    /// Members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Adds a missing member. The score is not NaN.
    pub fn push(&mut self, member: &[u8], score: f64) {
        self.push_hashed(member, 0, score);
    }

    fn push_hashed(&mut self, member: &[u8], hash: u32, score: f64) {
        let (start, len) = (self.bytes.len(), member.len() as u32);
        self.bytes.extend_from_slice(member);
        self.pairs.push(NewPair { start, len, hash, score });
    }

    fn member(&self, pair: &NewPair) -> &[u8] {
        &self.bytes[pair.start..pair.start + pair.len as usize]
    }

    /// Adds a member. For an existing member, `merge` combines its score and this one. Neither is
    /// NaN. Either all members are added this way, or none.
    pub fn merge(
        &mut self,
        member: &[u8],
        score: f64,
        hasher: &KeyHasher,
        merge: impl FnOnce(f64, f64) -> f64,
    ) {
        if (self.pairs.len() + 1) * 2 > self.slots.len() {
            self.grow_slots();
        }
        let hash = (hasher.hash(member) >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(index) = self.slots[at].checked_sub(1) {
            let pair = &self.pairs[index as usize];
            if pair.hash == hash && self.member(pair) == member {
                let pair = &mut self.pairs[index as usize];
                pair.score = merge(pair.score, score);
                return;
            }
            at = (at + 1) & mask;
        }
        self.push_hashed(member, hash, score);
        self.slots[at] = self.pairs.len() as u32;
    }

    fn grow_slots(&mut self) {
        let len = (self.slots.len() * 2).max(SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(len, 0);
        for (index, pair) in self.pairs.iter().enumerate() {
            let mut at = pair.hash as usize & (len - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = index as u32 + 1;
        }
    }

    /// Sorts the members; nothing is added afterwards.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let member = |pair: &NewPair| &bytes[pair.start..pair.start + pair.len as usize];
        self.pairs.sort_unstable_by(|a, b| {
            let scores = a.score.partial_cmp(&b.score).unwrap_or(std::cmp::Ordering::Equal);
            scores.then_with(|| member(a).cmp(member(b)))
        });
    }

    /// The members in their current order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], f64)> + Clone {
        self.pairs.iter().map(|pair| (self.member(pair), pair.score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn members_are_merged_and_put_in_order() {
        let hasher = KeyHasher::new(3);
        let (mut new, mut model) = (NewSortedSet::default(), BTreeMap::new());
        for i in 0..5000u32 {
            let member = (i * 7 % 1201).to_string().into_bytes();
            let score = f64::from(i % 17);
            new.merge(&member, score, &hasher, |old, new| old + new);
            *model.entry(member).or_insert(0.0) += score;
        }
        new.sort();
        let mut wanted: Vec<(f64, Vec<u8>)> = model.into_iter().map(|(m, s)| (s, m)).collect();
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        assert_eq!(new.len(), 1201);
        assert!(new.iter().eq(wanted.iter().map(|(score, member)| (&member[..], *score))));
    }
}

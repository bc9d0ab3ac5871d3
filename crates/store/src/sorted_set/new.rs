//! A sorted set that is being made of others.

use base::hash::KeyHasher;
use ds::SortedSet as BigSortedSet;
use ds::dict::{Dict, Member};
use ds::record::Payload;

use super::SortedSetRef;

/// Members and their scores, not in order yet.
#[derive(Debug)]
pub struct Scores {
    dict: Dict,
    hasher: KeyHasher,
}

/// A sorted set on its own, about to be replied or stored.
#[derive(Debug)]
pub struct NewSortedSet(pub(super) BigSortedSet);

impl Scores {
    /// No members.
    pub fn new(hasher: KeyHasher) -> Self {
        Self { dict: Dict::new(), hasher }
    }

    /// Adds a member that is not there. The score is not NaN.
    pub fn add(&mut self, member: &[u8], score: f64) {
        let record = Member::new(member, 0, Payload::Bytes(&score.to_le_bytes()), None, 0);
        self.dict.insert(self.hasher.hash(member), record, &self.hasher);
    }

    /// Adds a member, or gives one that is there the score that `merge` makes of its own and this
    /// one. Neither is NaN.
    pub fn merge(&mut self, member: &[u8], score: f64, merge: impl FnOnce(f64, f64) -> f64) {
        let Some(mut record) = self.dict.find_mut(self.hasher.hash(member), member) else {
            return self.add(member, score);
        };
        let bytes = record.bytes_mut();
        if let Some(bytes) = bytes.and_then(|bytes| <&mut [u8; 8]>::try_from(bytes).ok()) {
            *bytes = merge(f64::from_le_bytes(*bytes), score).to_le_bytes();
        }
    }

    /// The members in order.
    pub fn sorted(self) -> NewSortedSet {
        NewSortedSet(BigSortedSet::from_dict(self.dict))
    }
}

impl NewSortedSet {
    /// The set for reading.
    pub fn view(&self) -> SortedSetRef<'_> {
        SortedSetRef::Big(&self.0)
    }
}

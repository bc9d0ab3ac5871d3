//! Changes of sorted sets, and the change from packed to big.

use std::ops::Range;

use ds::SortedSet as BigSortedSet;
use ds::dict::Place;
use ds::packed::{Packed, PackedMut};

use crate::db::Edit;
use crate::limits::EncodingLimits;
use crate::new::sorted_set::NewSortedSet;
use crate::value::packed_pairs::{self, PackedPairs};
use crate::value::sorted_set::{SortedSetRef, SortedSetValue};
use crate::value::stored::{Object, StoredType, ValueKind};

/// The most bytes that a pair takes in addition to its member.
const PAIR_BYTES_MAX: usize = 64;
/// A removal copies the remaining members into a new set if this many times their number is at most
/// the number removed. The old set is dropped without a lock.
const REMOVED_SHARE: usize = 4;

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreChange {
    /// The set is unchanged.
    None,
    /// The member is new.
    Added,
    /// The member has another score.
    Updated,
}

/// Whether a packed set may have `members` members of up to `member_bytes` bytes.
fn may_pack(limits: &EncodingLimits, members: usize, member_bytes: usize) -> bool {
    members as u64 <= limits.zset_max_listpack_entries
        && member_bytes as u64 <= limits.zset_max_listpack_value
}

impl Edit<'_, SortedSetValue> {
    /// The set for reading.
    pub fn set(&self) -> SortedSetRef<'_> {
        SortedSetValue::view(self.record())
            .unwrap_or(SortedSetRef::Packed(PackedPairs(Packed::new(b""))))
    }

    /// Announces the pairs of a request: their number, and the size of the first member. A packed
    /// set becomes big at once if they would not fit.
    pub fn expect(&mut self, pairs: usize, member_bytes: usize, limits: &EncodingLimits) {
        let member_bytes = if self.is_new() { member_bytes } else { 0 };
        if let SortedSetRef::Packed(_) = self.set()
            && !may_pack(limits, pairs, member_bytes)
        {
            self.grow();
        }
    }

    /// Sets a member's score to the result of `decide`, which receives the old score, or `None` if
    /// the member is missing, and returns `None` to leave the set unchanged. The score is not NaN.
    pub fn update(
        &mut self,
        member: &[u8],
        limits: &EncodingLimits,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> ScoreChange {
        if let SortedSetRef::Packed(pairs) = self.set() {
            let found = pairs.find(member);
            let old = found.map(|at| pairs.score_at(at));
            let Some(score) = decide(old).filter(|score| Some(*score) != old) else {
                return ScoreChange::None;
            };
            let bytes = pairs.0.listpack_bytes() + PAIR_BYTES_MAX;
            if let Some(at) = found {
                // The new score may be longer than the old one.
                if bytes <= limits.packed_bytes_max {
                    self.move_packed(member, at, score);
                    return ScoreChange::Updated;
                }
            } else if may_pack(limits, pairs.len() + 1, member.len())
                && bytes + member.len() <= limits.packed_bytes_max
            {
                let mut record = self.record_mut();
                packed_pairs::insert(&mut PackedMut::new(&mut *record), member, score);
                return ScoreChange::Added;
            }
            self.grow();
            return self.set_in_big(member, score);
        }
        let SortedSetRef::Big(set) = self.set() else { return ScoreChange::None };
        let place = set.place(member);
        let old = place.map(|place| set.score_at(place));
        let Some(score) = decide(old).filter(|score| Some(*score) != old) else {
            return ScoreChange::None;
        };
        self.set_at(place, member, score)
    }

    /// Adds a member or changes its score, which is not NaN.
    pub fn add(&mut self, member: &[u8], score: f64, limits: &EncodingLimits) -> ScoreChange {
        self.update(member, limits, |_| Some(score))
    }

    /// Gives a packed pair another score. The pair is moved in a copy, which is written back once:
    /// removing and inserting it in the record could move the record twice.
    fn move_packed(&mut self, member: &[u8], at: packed_pairs::PairAt, score: f64) {
        let mut scratch = std::mem::take(&mut self.turn().scratch);
        scratch.clear();
        scratch.extend_from_slice(self.record().bytes().unwrap_or_default());
        let mut list = PackedMut::new(&mut scratch);
        packed_pairs::remove(&mut list, at);
        packed_pairs::insert(&mut list, member, score);
        self.record_mut().set_bytes(ValueKind::PackedSortedSet as u8, &scratch);
        self.turn().scratch = scratch;
    }

    /// Sets the score of a member of a big set, or adds it.
    fn set_in_big(&mut self, member: &[u8], score: f64) -> ScoreChange {
        let SortedSetRef::Big(set) = self.set() else { return ScoreChange::None };
        let place = set.place(member);
        self.set_at(place, member, score)
    }

    /// Sets the score of a member whose place in the big set is known.
    fn set_at(&mut self, place: Option<Place>, member: &[u8], score: f64) -> ScoreChange {
        let mut record = self.record_mut();
        let Some(Object::SortedSet(set)) = record.object_mut() else { return ScoreChange::None };
        match place {
            Some(place) => {
                set.set_score(place, score);
                ScoreChange::Updated
            }
            None => {
                set.insert(member, score);
                ScoreChange::Added
            }
        }
    }

    /// Changes a packed set to a big one.
    fn grow(&mut self) {
        let big = self.copy_of([0..usize::MAX, 0..0]);
        self.put_big(big);
    }

    fn put_big(&mut self, big: BigSortedSet) {
        let object = Object::SortedSet(Box::new(big));
        self.record_mut().set_object(ValueKind::SortedSet as u8, object);
    }

    /// Removes a member. Returns whether it existed.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        if let SortedSetRef::Packed(pairs) = self.set() {
            let Some(at) = pairs.find(member) else { return false };
            let mut record = self.record_mut();
            packed_pairs::remove(&mut PackedMut::new(&mut *record), at);
            return true;
        }
        let SortedSetRef::Big(set) = self.set() else { return false };
        if set.place(member).is_none() {
            return false;
        }
        match self.record_mut().object_mut() {
            Some(Object::SortedSet(set)) => set.remove(member),
            _ => false,
        }
    }

    /// Removes the members in a range of ranks. Returns how many.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) -> usize {
        let len = self.set().len();
        let ranks = ranks.start.min(len)..ranks.end.min(len);
        let removed = ranks.len();
        if removed == 0 {
            return 0;
        }
        match self.set() {
            SortedSetRef::Packed(pairs) => {
                let span = pairs.span(ranks);
                let mut record = self.record_mut();
                PackedMut::new(&mut *record).remove_span(span, removed * 2);
            }
            SortedSetRef::Big(_) if removed == len => {
                // The rest of the old set is dropped without a lock.
                self.discard_object();
                self.record_mut().set_bytes(ValueKind::PackedSortedSet as u8, b"");
            }
            // A saturated product exceeds any count, as the exact one would.
            SortedSetRef::Big(_) if (len - removed).saturating_mul(REMOVED_SHARE) <= removed => {
                let stay = self.copy_of([0..ranks.start, ranks.end..len]);
                self.discard_object();
                self.put_big(stay);
            }
            SortedSetRef::Big(_) => {
                if let Some(Object::SortedSet(set)) = self.record_mut().object_mut() {
                    set.remove_ranks(ranks);
                }
            }
        }
        removed
    }

    /// A big set of the members with these ascending ranks.
    fn copy_of(&self, ranks: [Range<usize>; 2]) -> BigSortedSet {
        let mut copy = BigSortedSet::new(self.turn_ref().hasher);
        let mut digits = ds::packed::Digits::default();
        for pair in ranks.into_iter().flat_map(|ranks| self.set().walk(ranks, false)) {
            copy.push(pair.member.text(&mut digits), pair.score());
        }
        copy
    }

    /// Fills an empty set with the sorted members of a new one.
    pub fn fill(&mut self, new: &NewSortedSet, limits: &EncodingLimits) {
        let pairs = new.iter();
        let longest = pairs.clone().map(|(member, _)| member.len()).max().unwrap_or(0);
        if may_pack(limits, pairs.len(), longest)
            && pairs.clone().map(|(member, _)| member.len() + PAIR_BYTES_MAX).sum::<usize>()
                <= limits.packed_bytes_max
        {
            let mut scratch = std::mem::take(&mut self.turn().scratch);
            scratch.clear();
            let mut list = PackedMut::new(&mut scratch);
            pairs.for_each(|(member, score)| packed_pairs::push(&mut list, member, score));
            self.record_mut().set_bytes(ValueKind::PackedSortedSet as u8, &scratch);
            self.turn().scratch = scratch;
            return;
        }
        let mut big = BigSortedSet::new(self.turn().hasher);
        for (member, score) in pairs {
            big.push(member, score);
        }
        self.put_big(big);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "sorted_set_tests.rs"]
mod tests;

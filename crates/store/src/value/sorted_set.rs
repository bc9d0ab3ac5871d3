//! The sorted set type: packed pairs in the record while they are few, a dict with a ranked tree
//! when many.
//!
//! ```text
//! within zset-max-listpack-entries and -value    PackedSortedSet   pairs in the record
//! beyond                                         SortedSet         object of the record
//! ```
//!
//! A set that has grown stays big when members are removed, as in Redis. Members are always in the
//! order of (score, member), -0 equals 0, and no score is NaN. The commands define the meaning of
//! ranges and read members of other types; this module does neither.

use std::ops::Range;

use base::random::Random;
use ds::SortedSet as BigSortedSet;
use ds::dict::{MemberRef, Nothing};
use ds::packed::{Digits, Entry, Packed, PackedIter};
use ds::ranked::{self, score_of};
use ds::record::RecordRef;

use super::packed_pairs::{self, PackedPairs};
use super::ranges::{LexRange, ScoreRange};
use super::stored::{Object, StoredType, ValueKind};

/// The sorted set type.
pub enum SortedSetValue {}

/// A borrowed sorted set.
#[derive(Clone, Copy, Debug)]
pub enum SortedSetRef<'a> {
    /// Pairs in the record.
    Packed(PackedPairs<'a>),
    /// A dict and a tree.
    Big(&'a BigSortedSet),
}

impl StoredType for SortedSetValue {
    const EMPTY: ValueKind = ValueKind::PackedSortedSet;
    type View<'a> = SortedSetRef<'a>;

    #[inline]
    fn view(record: RecordRef<'_, Object>) -> Option<SortedSetRef<'_>> {
        match ValueKind::from_bits(record.kind()) {
            ValueKind::PackedSortedSet => {
                Some(SortedSetRef::Packed(PackedPairs(Packed::new(record.bytes()?))))
            }
            ValueKind::SortedSet => match record.object()? {
                Object::SortedSet(set) => Some(SortedSetRef::Big(set)),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_empty(record: RecordRef<'_, Object>) -> bool {
        Self::view(record).is_none_or(|set| set.len() == 0)
    }
}

/// A member and its score.
#[derive(Clone, Copy, Debug)]
pub struct ScoredMember<'a> {
    /// The member.
    pub member: Entry<'a>,
    score: Score<'a>,
}

/// A score that is parsed only when it is read.
#[derive(Clone, Copy, Debug)]
enum Score<'a> {
    Packed(Entry<'a>),
    Known(f64),
}

impl<'a> ScoredMember<'a> {
    fn of(record: MemberRef<'a>) -> Self {
        Self { member: Entry::Bytes(record.key()), score: Score::Known(score_of(record)) }
    }

    /// The score.
    #[inline]
    pub fn score(&self) -> f64 {
        match self.score {
            Score::Packed(entry) => packed_pairs::score_of(entry),
            Score::Known(score) => score,
        }
    }
}

impl<'a> SortedSetRef<'a> {
    /// Members.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Packed(pairs) => pairs.len(),
            Self::Big(set) => set.len(),
        }
    }

    /// A member's score.
    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(pairs) => pairs.find(member).map(|at| pairs.score_at(at)),
            Self::Big(set) => set.score(member),
        }
    }

    /// A member's rank, counted from the lowest score, and its score.
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            Self::Packed(pairs) => {
                let at = pairs.find(member)?;
                Some((pairs.rank_of(at), pairs.score_at(at)))
            }
            Self::Big(set) => set.rank(member),
        }
    }

    /// The ranks of the members whose scores are in a range.
    pub fn ranks_in_scores(self, range: &ScoreRange) -> Range<usize> {
        match self {
            Self::Packed(pairs) => pairs.ranks_between(
                |_, score| range.below(packed_pairs::score_of(score)),
                |_, score| range.above(packed_pairs::score_of(score)),
            ),
            Self::Big(set) => {
                let start = set.partition_point(|score, _| range.below(score));
                let end = set.partition_point(|score, _| !range.above(score));
                start..end.max(start)
            }
        }
    }

    /// The ranks of the members in a range. Meaningful only if all scores are equal.
    pub fn ranks_in_lex(self, range: &LexRange<'_>) -> Range<usize> {
        match self {
            Self::Packed(pairs) => {
                let text = |entry: Entry<'_>, is: &dyn Fn(&[u8]) -> bool| {
                    is(entry.text(&mut Digits::default()))
                };
                pairs.ranks_between(
                    |member, _| text(member, &|member| range.below(member)),
                    |member, _| text(member, &|member| range.above(member)),
                )
            }
            Self::Big(set) => {
                let start = set.partition_point(|_, record| range.below(record.key()));
                let end = set.partition_point(|_, record| !range.above(record.key()));
                start..end.max(start)
            }
        }
    }

    /// The member of a rank.
    pub fn nth(self, rank: usize) -> Option<ScoredMember<'a>> {
        match self {
            Self::Packed(_) => self.walk(rank..rank.saturating_add(1), false).next(),
            Self::Big(set) => set.nth(rank).map(ScoredMember::of),
        }
    }

    /// The members in a range of ranks, in ascending or descending order.
    #[inline]
    pub fn walk(self, ranks: Range<usize>, back: bool) -> PairIter<'a> {
        match self {
            Self::Packed(pairs) => {
                let len = pairs.len();
                let span = pairs.span(ranks.start.min(len)..ranks.end.min(len));
                PairIter::Packed(pairs.0.between(span.start, span.end), back)
            }
            Self::Big(set) => PairIter::Big(set.walk(ranks, back)),
        }
    }

    /// A random member, each equally likely.
    pub fn random(self, random: &mut Random) -> Option<ScoredMember<'a>> {
        match self {
            Self::Packed(pairs) => self.nth(random.below(pairs.len() as u64) as usize),
            Self::Big(set) => set.random(random).map(ScoredMember::of),
        }
    }

    /// Visits at least `count` members from a cursor (0: the beginning) on; a packed set whole.
    /// Returns the cursor to continue with, 0 at the end.
    pub fn scan(self, from: u64, count: usize, visit: &mut dyn FnMut(ScoredMember<'_>)) -> u64 {
        match self {
            Self::Packed(_) => {
                self.walk(0..usize::MAX, false).for_each(visit);
                0
            }
            Self::Big(set) => {
                set.scan(from, count, &mut |record| visit(ScoredMember::of(record))).unwrap_or(0)
            }
        }
    }
}

/// A walk over members in order.
pub enum PairIter<'a> {
    /// In the record, with whether the walk descends.
    Packed(PackedIter<'a>, bool),
    /// In the tree.
    Big(ranked::RankedWalk<'a, Nothing>),
}

impl<'a> Iterator for PairIter<'a> {
    type Item = ScoredMember<'a>;

    #[inline]
    fn next(&mut self) -> Option<ScoredMember<'a>> {
        match self {
            Self::Packed(entries, false) => {
                let (member, score) = (entries.next()?, entries.next()?);
                Some(ScoredMember { member, score: Score::Packed(score) })
            }
            Self::Packed(entries, true) => {
                let (score, member) = (entries.next_back()?, entries.next_back()?);
                Some(ScoredMember { member, score: Score::Packed(score) })
            }
            Self::Big(walk) => walk.next().map(ScoredMember::of),
        }
    }

    // Chooses the form once and not for each member.
    #[inline]
    fn fold<B, F: FnMut(B, ScoredMember<'a>) -> B>(self, start: B, mut each: F) -> B {
        match self {
            Self::Big(walk) => walk.fold(start, |sum, record| each(sum, ScoredMember::of(record))),
            Self::Packed(mut entries, back) => {
                let mut sum = start;
                while let Some(first) = if back { entries.next_back() } else { entries.next() } {
                    let second = if back { entries.next_back() } else { entries.next() };
                    let Some(second) = second else { break };
                    let (member, score) = if back { (second, first) } else { (first, second) };
                    sum = each(sum, ScoredMember { member, score: Score::Packed(score) });
                }
                sum
            }
        }
    }
}

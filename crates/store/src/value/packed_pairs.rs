//! Pairs of member and score in a packed list, ordered by (score, member).
//!
//! ```text
//! member, score, member, score ...
//! ```
//!
//! As in Redis, a score without a fraction is stored as an integer and any other as its shortest
//! text, so -0 becomes 0. All operations walk the list; the limits of the packed form keep the
//! walks short.

use std::ops::Range;

use base::number::{DoubleText, parse_f64};
use ds::packed::{Buffer, Digits, Encoded, Entry, Packed, PackedMut};

/// Magnitude up to which a score without a fraction is stored as an integer, as in Redis.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// A borrowed list of pairs.
#[derive(Clone, Copy, Debug)]
pub struct PackedPairs<'a>(pub(crate) Packed<'a>);

/// The position of a pair, valid until the list changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairAt {
    /// The position of its member.
    pub(crate) member: usize,
    /// The position of its score.
    pub(crate) score: usize,
}

/// The score in an entry.
#[inline]
pub(crate) fn score_of(entry: Entry<'_>) -> f64 {
    match entry {
        Entry::Integer(value) => value as f64,
        // Stored texts were all printed from scores.
        Entry::Bytes(text) => parse_f64(text).unwrap_or(0.0),
    }
}

/// A score ready to be stored.
struct ScoreText {
    integer: Option<i64>,
    text: DoubleText,
}

impl ScoreText {
    fn of(score: f64) -> Self {
        // Within the range of `i64`, so the cast below is exact.
        let is_integer = score.abs() <= INTEGER_MAX && score.trunc() == score;
        let text = DoubleText::of(if is_integer { 0.0 } else { score });
        Self { integer: is_integer.then_some(score as i64), text }
    }

    fn encoded(&self) -> Encoded<'_> {
        match self.integer {
            Some(value) => Encoded::integer(value),
            None => Encoded::text(self.text.as_bytes()),
        }
    }
}

impl<'a> PackedPairs<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len() / 2
    }

    /// The pair of a member.
    #[inline]
    pub(crate) fn find(self, member: &[u8]) -> Option<PairAt> {
        let member = self.0.find(member, 0, 2)?;
        Some(PairAt { member, score: self.0.after(member) })
    }

    #[inline]
    pub(crate) fn score_at(self, at: PairAt) -> f64 {
        score_of(self.0.entry(at.score))
    }

    /// The number of pairs before this one.
    pub(crate) fn rank_of(self, at: PairAt) -> usize {
        self.0.between(0, at.member).count() / 2
    }

    /// The positions where a range of ranks begins and ends.
    pub(crate) fn span(self, ranks: Range<usize>) -> Range<usize> {
        let start = self.0.position(ranks.start * 2);
        let end = self.0.position(ranks.end * 2);
        start..end.max(start)
    }

    /// The position to insert a pair at.
    fn place(self, member: &[u8], score: f64) -> usize {
        let mut at = 0;
        let mut digits = Digits::default();
        while at < self.0.end() {
            let score_at = self.0.after(at);
            let here = score_of(self.0.entry(score_at));
            if here > score || here == score && self.0.entry(at).text(&mut digits) > member {
                return at;
            }
            at = self.0.after(score_at);
        }
        at
    }

    /// The ranks of the pairs in a range: from the first pair that is not below it to the first one
    /// above it.
    pub(crate) fn ranks_between(
        self,
        below: impl Fn(Entry<'a>, Entry<'a>) -> bool,
        above: impl Fn(Entry<'a>, Entry<'a>) -> bool,
    ) -> Range<usize> {
        let (mut start, mut end) = (0, 0);
        let mut entries = self.0.iter();
        while let (Some(member), Some(score)) = (entries.next(), entries.next()) {
            if start == end && below(member, score) {
                start += 1;
            } else if above(member, score) {
                break;
            }
            end += 1;
        }
        start..end
    }
}

/// Adds a pair whose member is not in the list.
pub(crate) fn insert<B: Buffer>(list: &mut PackedMut<'_, B>, member: &[u8], score: f64) {
    let at = PackedPairs(list.view()).place(member, score);
    let score = ScoreText::of(score);
    list.splice(at..at, 0, [Encoded::text(member), score.encoded()]);
}

/// Adds a pair that belongs after all others.
pub(crate) fn push<B: Buffer>(list: &mut PackedMut<'_, B>, member: &[u8], score: f64) {
    let score = ScoreText::of(score);
    list.extend([Encoded::text(member), score.encoded()]);
}

/// Removes a pair.
pub(crate) fn remove<B: Buffer>(list: &mut PackedMut<'_, B>, at: PairAt) {
    let end = list.view().after(at.score);
    list.remove_span(at.member..end, 2);
}

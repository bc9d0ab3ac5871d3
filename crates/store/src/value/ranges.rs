//! Ranges of sorted sets: by score, and by member where all scores are equal.

/// A range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The least score.
    pub min: f64,
    /// Whether the least score is excluded.
    pub min_open: bool,
    /// The greatest score.
    pub max: f64,
    /// Whether the greatest score is excluded.
    pub max_open: bool,
}

impl ScoreRange {
    /// The scores from `min` to `max`, both included.
    pub fn closed(min: f64, max: f64) -> Self {
        Self { min, min_open: false, max, max_open: false }
    }

    /// Whether a score lies before the range.
    #[inline]
    pub fn below(&self, score: f64) -> bool {
        score < self.min || self.min_open && score == self.min
    }

    /// Whether a score lies after the range.
    #[inline]
    pub fn above(&self, score: f64) -> bool {
        score > self.max || self.max_open && score == self.max
    }
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexEnd<'a> {
    /// Before all members.
    Least,
    /// After all members.
    Greatest,
    /// At a member, which is included.
    Closed(&'a [u8]),
    /// At a member, which is excluded.
    Open(&'a [u8]),
}

/// A range of members, in the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// Where it begins.
    pub min: LexEnd<'a>,
    /// Where it ends.
    pub max: LexEnd<'a>,
}

impl LexRange<'_> {
    /// Whether a member lies before the range.
    #[inline]
    pub fn below(&self, member: &[u8]) -> bool {
        match self.min {
            LexEnd::Least => false,
            LexEnd::Greatest => true,
            LexEnd::Closed(end) => member < end,
            LexEnd::Open(end) => member <= end,
        }
    }

    /// Whether a member lies after the range.
    #[inline]
    pub fn above(&self, member: &[u8]) -> bool {
        match self.max {
            LexEnd::Least => true,
            LexEnd::Greatest => false,
            LexEnd::Closed(end) => member > end,
            LexEnd::Open(end) => member >= end,
        }
    }
}

//! Patterns of Lua 5.1: a backtracking search that can be interrupted at any of its steps.
//!
//! A step is one test of a byte against one member of a pattern, or an operation on [`STEP_BYTES`]
//! of a text. After [`POLL_STEPS`] of them the search polls, and a poll may leave by a long jump.
//! No value of this file's frames has a destructor, and what a search allocates is in its
//! [`SearchScratch`], which outlives it.
//!
//! The search keeps the places where it may continue otherwise in a list instead of recursing. Each
//! item of a pattern has at most one place there, so the list is no longer than the pattern.

use std::ffi::CStr;
use std::ops::Range;

/// The most captures of a pattern.
pub const CAPTURES_MAX: usize = 32;
/// Steps between two polls.
pub const POLL_STEPS: usize = 4096;
/// Bytes that count as a step where a text is compared, hashed or scanned as a whole.
pub const STEP_BYTES: usize = 64;
/// The most places where a search may continue: 2 MiB.
const CHOICES_MAX: usize = 1 << 16;
/// Places for which memory is kept between searches.
const CHOICES_KEPT: usize = 1 << 10;

/// Marks the characters that make a text a pattern.
static IS_SPECIAL: [bool; 256] = {
    let (mut marks, specials, mut at) = ([false; 256], b"^$*+?.([%-", 0);
    while at < specials.len() {
        marks[specials[at] as usize] = true;
        at += 1;
    }
    marks
};

/// Why a pattern is not one.
pub type PatternError = &'static CStr;

const TOO_COMPLEX: PatternError = c"pattern too complex";
const TOO_MANY_CAPTURES: PatternError = c"too many captures";
const INVALID_INDEX: PatternError = c"invalid capture index";
const INVALID_CAPTURE: PatternError = c"invalid pattern capture";
const UNFINISHED_CAPTURE: PatternError = c"unfinished capture";
const ENDS_WITH_ESCAPE: PatternError = c"malformed pattern (ends with '%')";
const MISSING_BRACKET: PatternError = c"malformed pattern (missing ']')";
const UNBALANCED: PatternError = c"unbalanced pattern";
const NO_FRONTIER_SET: PatternError = c"missing '[' after '%f' in pattern";

/// The end of what a capture has matched so far.
#[derive(Clone, Copy, Debug)]
enum CaptureEnd {
    /// It is not closed yet.
    Open,
    /// It is a position.
    Position,
    At(usize),
}

#[derive(Clone, Copy, Debug)]
struct CaptureState {
    start: usize,
    end: CaptureEnd,
}

/// A capture of a finished match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    /// A part of the subject.
    Text(usize, usize),
    /// A position in the subject, from 0.
    Position(usize),
}

/// A place where a search continues when what follows it does not match.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// An item that has matched `count` times from `from` on: `rest` of the pattern may match after
    /// fewer.
    Fewer { from: usize, count: usize, rest: usize },
    /// An item from `item` to `end` of the pattern, which may match once more at `at`.
    Further { at: usize, item: usize, end: usize },
    /// An optional item: `rest` may match without it.
    Without { at: usize, rest: usize },
    /// A capture was opened.
    Opened,
    /// A capture was closed.
    Closed(usize),
}

/// The memory of searches, of which one uses it at a time.
#[derive(Debug)]
pub struct SearchScratch {
    captures: [CaptureState; CAPTURES_MAX],
    level: usize,
    choices: Vec<Choice>,
}

impl SearchScratch {
    pub const fn new() -> Self {
        let unused = CaptureState { start: 0, end: CaptureEnd::Open };
        Self { captures: [unused; CAPTURES_MAX], level: 0, choices: Vec::new() }
    }

    /// How many captures the match has.
    pub fn captures(&self) -> usize {
        self.level
    }

    /// A capture of the match by its number from 0. The whole match is the first one if there are
    /// none.
    ///
    /// # Errors
    ///
    /// There is no such capture, or it was not closed.
    pub fn capture(&self, number: usize, whole: &Range<usize>) -> Result<Captured, PatternError> {
        if number >= self.level {
            let is_whole = number == 0;
            return is_whole.then_some(Captured::Text(whole.start, whole.end)).ok_or(INVALID_INDEX);
        }
        let CaptureState { start, end } = self.captures[number];
        match end {
            CaptureEnd::Open => Err(UNFINISHED_CAPTURE),
            CaptureEnd::Position => Ok(Captured::Position(start)),
            CaptureEnd::At(end) => Ok(Captured::Text(start, end)),
        }
    }
}

/// The part of a pattern that counts: as in C it ends at its first zero byte.
pub fn until_zero(pattern: &[u8]) -> &[u8] {
    memchr::memchr(0, pattern).map_or(pattern, |end| &pattern[..end])
}

/// Whether a text has a meaning as a pattern besides itself.
pub fn has_specials(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| IS_SPECIAL[usize::from(*byte)])
}

/// Counts steps. Returns the number of polls that are due: more than one after a step on a long
/// text.
#[inline(always)]
pub fn count_steps(left: &mut usize, steps: usize) -> usize {
    if *left > steps {
        *left -= steps;
        return 0;
    }
    let polls = 1 + (steps - *left) / POLL_STEPS;
    *left = POLL_STEPS;
    polls
}

/// Splits off the `^` with which a pattern matches only where the search begins.
pub fn split_anchor(pattern: &[u8]) -> (bool, &[u8]) {
    pattern.strip_prefix(b"^").map_or((false, pattern), |rest| (true, rest))
}

/// A search for a pattern without its anchor in a subject.
pub struct Search<'t, P> {
    pub subject: &'t [u8],
    /// Without zero bytes.
    pub pattern: &'t [u8],
    pub scratch: &'t mut SearchScratch,
    /// Steps until the next poll.
    pub left: usize,
    /// Called with the number of polls that are due.
    pub poll: P,
}

/// Where a match goes on: in the subject and in the pattern.
#[derive(Clone, Copy)]
struct MatchPlace {
    s: usize,
    p: usize,
}

enum MatchStep {
    On(MatchPlace),
    Matched(usize),
    Failed,
}

impl<P: FnMut(usize)> Search<'_, P> {
    /// The first match that begins at `start` or later, or only there.
    ///
    /// # Errors
    ///
    /// The pattern is malformed, as far as the search has read it.
    pub fn find(
        &mut self,
        start: usize,
        is_anchored: bool,
    ) -> Result<Option<Range<usize>>, PatternError> {
        self.scratch.choices.clear();
        self.scratch.choices.shrink_to(CHOICES_KEPT);
        let last = if is_anchored { start } else { self.subject.len() };
        for start in start..=last {
            if let Some(end) = self.match_at(start)? {
                return Ok(Some(start..end));
            }
        }
        Ok(None)
    }

    /// The end of the match that begins here.
    fn match_at(&mut self, start: usize) -> Result<Option<usize>, PatternError> {
        self.scratch.level = 0;
        self.scratch.choices.clear();
        let mut place = MatchPlace { s: start, p: 0 };
        loop {
            place = match self.step(place)? {
                MatchStep::On(next) => next,
                MatchStep::Matched(end) => return Ok(Some(end)),
                MatchStep::Failed => match self.go_back() {
                    Some(earlier) => earlier,
                    None => return Ok(None),
                },
            };
        }
    }

    /// Matches the next item of the pattern.
    #[inline]
    fn step(&mut self, MatchPlace { s, p }: MatchPlace) -> Result<MatchStep, PatternError> {
        self.spend(1);
        match self.at(p) {
            0 => Ok(MatchStep::Matched(s)),
            b'(' => self.open(s, p),
            b')' => self.close(s, p),
            b'$' if self.at(p + 1) == 0 => {
                Ok(if s == self.subject.len() { MatchStep::Matched(s) } else { MatchStep::Failed })
            }
            b'%' => match self.at(p + 1) {
                b'b' => self.balanced(s, p),
                b'f' => self.frontier(s, p),
                digit @ b'0'..=b'9' => self.captured_again(s, p, digit),
                _ => self.item(s, p),
            },
            _ => self.item(s, p),
        }
    }

    /// Continues at the last place where the search may continue otherwise.
    fn go_back(&mut self) -> Option<MatchPlace> {
        while let Some(choice) = self.scratch.choices.pop() {
            self.spend(1);
            match choice {
                Choice::Opened => self.scratch.level -= 1,
                Choice::Closed(number) => self.scratch.captures[number].end = CaptureEnd::Open,
                Choice::Without { at, rest } => return Some(MatchPlace { s: at, p: rest }),
                Choice::Fewer { from, count, rest } => {
                    if count > 1 {
                        let fewer = Choice::Fewer { from, count: count - 1, rest };
                        self.scratch.choices.push(fewer);
                    }
                    return Some(MatchPlace { s: from + count - 1, p: rest });
                }
                Choice::Further { at, item, end } => {
                    if self.matches(at, item, end) {
                        let further = Choice::Further { at: at + 1, item, end };
                        self.scratch.choices.push(further);
                        return Some(MatchPlace { s: at + 1, p: end + 1 });
                    }
                }
            }
        }
        None
    }

    /// Counts steps.
    #[inline(always)]
    fn spend(&mut self, steps: usize) {
        let polls = count_steps(&mut self.left, steps);
        if polls > 0 {
            (self.poll)(polls);
        }
    }

    /// A byte of the pattern, or zero at its end.
    #[inline(always)]
    fn at(&self, p: usize) -> u8 {
        self.pattern.get(p).copied().unwrap_or(0)
    }

    fn push(&mut self, choice: Choice) -> Result<(), PatternError> {
        if self.scratch.choices.len() >= CHOICES_MAX {
            return Err(TOO_COMPLEX);
        }
        self.scratch.choices.push(choice);
        Ok(())
    }

    /// One class with its repetition.
    #[inline]
    fn item(&mut self, s: usize, p: usize) -> Result<MatchStep, PatternError> {
        let end = self.class_end(p)?;
        let rest = end + 1;
        match self.at(end) {
            b'?' => {
                if !self.matches(s, p, end) {
                    return Ok(MatchStep::On(MatchPlace { s, p: rest }));
                }
                self.push(Choice::Without { at: s, rest })?;
                Ok(MatchStep::On(MatchPlace { s: s + 1, p: rest }))
            }
            b'*' => self.repeat(s, p, end),
            b'+' if self.matches(s, p, end) => self.repeat(s + 1, p, end),
            b'-' => {
                self.push(Choice::Further { at: s, item: p, end })?;
                Ok(MatchStep::On(MatchPlace { s, p: rest }))
            }
            b'+' => Ok(MatchStep::Failed),
            _ if self.matches(s, p, end) => Ok(MatchStep::On(MatchPlace { s: s + 1, p: end })),
            _ => Ok(MatchStep::Failed),
        }
    }

    /// Matches a class as often as possible.
    fn repeat(&mut self, from: usize, p: usize, end: usize) -> Result<MatchStep, PatternError> {
        let mut s = from;
        if self.at(p) == b'.' {
            s = self.subject.len();
        } else {
            while self.matches(s, p, end) {
                self.spend(1);
                s += 1;
            }
        }
        if s > from {
            self.push(Choice::Fewer { from, count: s - from, rest: end + 1 })?;
        }
        Ok(MatchStep::On(MatchPlace { s, p: end + 1 }))
    }

    /// The end of the class that begins at `p`.
    #[inline(always)]
    fn class_end(&mut self, p: usize) -> Result<usize, PatternError> {
        match self.at(p) {
            b'%' if self.at(p + 1) == 0 => Err(ENDS_WITH_ESCAPE),
            b'%' => Ok(p + 2),
            b'[' => self.set_end(p),
            _ => Ok(p + 1),
        }
    }

    fn set_end(&mut self, p: usize) -> Result<usize, PatternError> {
        let mut at = if self.at(p + 1) == b'^' { p + 2 } else { p + 1 };
        // A bracket at the beginning is a member of the set.
        loop {
            self.spend(1);
            match self.at(at) {
                0 => return Err(MISSING_BRACKET),
                b'%' if self.at(at + 1) != 0 => at += 2,
                _ => at += 1,
            }
            if self.at(at) == b']' {
                return Ok(at + 1);
            }
        }
    }

    /// Whether the byte at `s` is in the class from `p` to `end`.
    #[inline(always)]
    fn matches(&mut self, s: usize, p: usize, end: usize) -> bool {
        let Some(byte) = self.subject.get(s).copied() else { return false };
        match self.at(p) {
            b'.' => true,
            b'%' => is_in_class(byte, self.at(p + 1)),
            b'[' => self.is_in_set(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set from the bracket at `p` to the one at `last`.
    fn is_in_set(&mut self, byte: u8, p: usize, last: usize) -> bool {
        let is_negated = self.at(p + 1) == b'^';
        let mut at = if is_negated { p + 2 } else { p + 1 };
        while at < last {
            self.spend(1);
            let member = self.at(at);
            let is_in = if member == b'%' {
                at += 2;
                is_in_class(byte, self.at(at - 1))
            } else if self.at(at + 1) == b'-' && at + 2 < last {
                at += 3;
                (member..=self.at(at - 1)).contains(&byte)
            } else {
                at += 1;
                member == byte
            };
            if is_in {
                return !is_negated;
            }
        }
        is_negated
    }

    fn open(&mut self, s: usize, p: usize) -> Result<MatchStep, PatternError> {
        let level = self.scratch.level;
        let capture = self.scratch.captures.get_mut(level).ok_or(TOO_MANY_CAPTURES)?;
        let is_position = self.pattern.get(p + 1) == Some(&b')');
        let (end, len) =
            if is_position { (CaptureEnd::Position, 2) } else { (CaptureEnd::Open, 1) };
        *capture = CaptureState { start: s, end };
        self.scratch.level += 1;
        self.push(Choice::Opened)?;
        Ok(MatchStep::On(MatchPlace { s, p: p + len }))
    }

    fn close(&mut self, s: usize, p: usize) -> Result<MatchStep, PatternError> {
        let captures = &mut self.scratch.captures[..self.scratch.level];
        let is_open = |capture: &CaptureState| matches!(capture.end, CaptureEnd::Open);
        let number = captures.iter().rposition(is_open).ok_or(INVALID_CAPTURE)?;
        captures[number].end = CaptureEnd::At(s);
        self.push(Choice::Closed(number))?;
        Ok(MatchStep::On(MatchPlace { s, p: p + 1 }))
    }

    /// `%1` to `%9`: the text of a capture.
    fn captured_again(&mut self, s: usize, p: usize, digit: u8) -> Result<MatchStep, PatternError> {
        let number = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let captures = &self.scratch.captures[..self.scratch.level];
        let CaptureState { start, end } = *captures.get(number).ok_or(INVALID_INDEX)?;
        let end = match end {
            CaptureEnd::Open => return Err(INVALID_INDEX),
            // As in C, where the length of a position is one that no text has.
            CaptureEnd::Position => return Ok(MatchStep::Failed),
            CaptureEnd::At(end) => end,
        };
        let len = end - start;
        self.spend(1 + len / STEP_BYTES);
        let is_same = self.subject[s..].starts_with(&self.subject[start..end]);
        Ok(if is_same {
            MatchStep::On(MatchPlace { s: s + len, p: p + 2 })
        } else {
            MatchStep::Failed
        })
    }

    /// `%bxy`: a text from `x` to the `y` that belongs to it.
    fn balanced(&mut self, s: usize, p: usize) -> Result<MatchStep, PatternError> {
        let (open, close) = (self.at(p + 2), self.at(p + 3));
        if open == 0 || close == 0 {
            return Err(UNBALANCED);
        }
        if self.subject.get(s) != Some(&open) {
            return Ok(MatchStep::Failed);
        }
        let (mut depth, mut at) = (1usize, s + 1);
        while let Some(byte) = self.subject.get(at).copied() {
            self.spend(1);
            at += 1;
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(MatchStep::On(MatchPlace { s: at, p: p + 4 }));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(MatchStep::Failed)
    }

    /// `%f[set]`: where a text in the set begins.
    fn frontier(&mut self, s: usize, p: usize) -> Result<MatchStep, PatternError> {
        let set = p + 2;
        if self.at(set) != b'[' {
            return Err(NO_FRONTIER_SET);
        }
        let end = self.set_end(set)?;
        let before = s.checked_sub(1).map_or(0, |before| self.subject[before]);
        let here = self.subject.get(s).copied().unwrap_or(0);
        let is_frontier =
            !self.is_in_set(before, set, end - 1) && self.is_in_set(here, set, end - 1);
        Ok(if is_frontier { MatchStep::On(MatchPlace { s, p: end }) } else { MatchStep::Failed })
    }
}

/// Whether a byte is in the class that a letter names, or is the same if the letter names none.
#[inline(always)]
fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | b'\t'..=b'\r'),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in == class.is_ascii_lowercase()
}

//! Registers as runs of equal values.
//!
//! ```text
//! 00xxxxxx           xxxxxx + 1 registers are 0
//! 01xxxxxx yyyyyyyy  (xxxxxx << 8 | yyyyyyyy) + 1 registers are 0
//! 1vvvvvxx           xx + 1 registers are vvvvv + 1
//! ```
//!
//! A value beyond 32, or runs that take more than a limit, need the dense encoding. Where runs are
//! split and joined belongs to the format as well: the same elements in the same order must give
//! the same bytes as elsewhere.

use super::estimate::Histogram;
use super::{Corrupt, HEADER_BYTES, Place, REGISTERS};

const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
const SHORT_ZEROS_MAX: usize = 64;
/// Runs that are looked at for joining after a change, the one before it included.
const JOINS_MAX: usize = 5;
/// Bytes after a change that joining may look at, in runs of two bytes.
const BEHIND_BYTES: usize = 2 * JOINS_MAX;
/// The run before, three runs instead of one, and what lies behind.
const SPLICE_BYTES_MAX: usize = 2 + 5 + BEHIND_BYTES;

/// Some neighbouring registers of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many.
    pub len: usize,
    /// Their value.
    pub value: u8,
    /// Bytes it takes.
    bytes: usize,
}

impl Run {
    #[inline]
    fn at(bytes: &[u8], at: usize) -> Result<Self, Corrupt> {
        let first = *bytes.get(at).ok_or(Corrupt)?;
        // Which kind comes next can hardly be foretold, so there is no branch for it.
        let (is_value, is_long) = (first >> 7 == 1, first >> 6 == 1);
        let second = bytes.get(at + 1);
        if is_long && second.is_none() {
            return Err(Corrupt);
        }
        let second = usize::from(second.copied().unwrap_or(0));
        let long = usize::from(first & 63) << 8 | second;
        let short = usize::from(if is_value { first & 3 } else { first });
        Ok(Self {
            len: if is_long { long } else { short } + 1,
            value: if is_value { (first >> 2 & 31) + 1 } else { 0 },
            bytes: 1 + usize::from(is_long),
        })
    }

    /// Whether it was written by two bytes: PFDEBUG DECODE shows it.
    pub fn is_long(self) -> bool {
        self.bytes == 2
    }
}

/// The runs of a sparse one.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Runs<'a> {
    /// The runs behind the header of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: HEADER_BYTES }
    }

    /// How many registers have each value.
    pub(super) fn histogram(self) -> Result<Histogram, Corrupt> {
        let mut histogram = [0; 64];
        let mut registers = 0;
        for run in self {
            let run = run?;
            registers += run.len;
            if registers > REGISTERS {
                return Err(Corrupt);
            }
            // At most 16,384, as was just seen.
            histogram[usize::from(run.value)] += run.len as u32;
        }
        if registers == REGISTERS { Ok(histogram) } else { Err(Corrupt) }
    }
}

impl Iterator for Runs<'_> {
    type Item = Result<Run, Corrupt>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let run = Run::at(self.bytes, self.at);
        self.at = run.map_or(self.bytes.len(), |run| self.at + run.bytes);
        Some(run)
    }
}

/// The change that raises a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raise {
    /// Nothing: it is as high already.
    Nothing,
    /// Other bytes instead of some.
    Splice(Splice),
    /// The dense encoding.
    Dense,
}

/// Bytes to put in the place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Where the replaced bytes begin.
    pub at: usize,
    /// How many are replaced.
    pub removed: usize,
    bytes: [u8; SPLICE_BYTES_MAX],
    len: usize,
}

impl Splice {
    /// The bytes to put there.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn push_run(&mut self, value: u8, len: usize) {
        if len == 0 {
            return;
        }
        // The lower byte of a length up to 16,384: all of it in a run of one byte.
        let short = (len - 1) as u8;
        if value > 0 {
            self.push(&[value_run(value, len)]);
        } else if len <= SHORT_ZEROS_MAX {
            self.push(&[short]);
        } else {
            self.push(&[1 << 6 | ((len - 1) >> 8) as u8, short]);
        }
    }

    /// Joins neighbouring runs of one value as far as one byte can say it.
    fn join(&mut self) {
        let mut at = 0;
        for _ in 0..JOINS_MAX {
            let [byte, behind @ ..] = &self.bytes[at.min(self.len)..self.len] else { return };
            let (byte, next) = (*byte, behind.first().copied());
            if byte >> 6 == 1 {
                at += 2;
                continue;
            }
            let len = usize::from(byte & 3) + 1;
            let joined = next.filter(|next| byte & next & 1 << 7 != 0 && byte >> 2 == next >> 2);
            match joined.map(|next| len + usize::from(next & 3) + 1) {
                // The joined run may be joined with the next one in turn.
                Some(len) if len <= VALUE_RUN_MAX => {
                    self.bytes[at + 1] = value_run((byte >> 2 & 31) + 1, len);
                    self.bytes.copy_within(at + 1..self.len, at);
                    self.len -= 1;
                }
                _ => at += 1,
            }
        }
    }
}

/// A run of up to `VALUE_RUN_MAX` registers with a value.
fn value_run(value: u8, len: usize) -> u8 {
    1 << 7 | (value - 1) << 2 | (len - 1) as u8
}

/// Where the run of a register is.
struct Found {
    at: usize,
    /// Its first register.
    first: usize,
    /// Where the run before it is.
    before: Option<usize>,
}

/// Finds the run of a register.
///
/// Where a run begins follows from the kind of the one before, so a plain walk waits for one load
/// after another. While elements are few, nearly all runs are long ones of zeros with one of a
/// value behind: those are passed by pairs, three bytes at a step, which the processor can foresee.
fn find(bytes: &[u8], index: usize) -> Result<Found, Corrupt> {
    let (mut at, mut first, mut before) = (HEADER_BYTES, 0, None);
    loop {
        while let Some(&[zeros, more, value]) = bytes.get(at..).and_then(|rest| rest.first_chunk())
            && zeros >> 6 == 1
            && value >> 7 == 1
        {
            let behind_zeros = first + (usize::from(zeros & 63) << 8 | usize::from(more)) + 1;
            let behind_value = behind_zeros + usize::from(value & 3) + 1;
            if index < behind_value {
                return Ok(if index < behind_zeros {
                    Found { at, first, before }
                } else {
                    Found { at: at + 2, first: behind_zeros, before: Some(at) }
                });
            }
            before = Some(at + 2);
            first = behind_value;
            at += 3;
        }
        let run = Run::at(bytes, at)?;
        if index < first + run.len {
            return Ok(Found { at, first, before });
        }
        before = Some(at);
        first += run.len;
        at += run.bytes;
    }
}

/// Finds out how to raise a register of a sparse one that may take `bytes_max`, header included.
///
/// # Errors
/// When the runs end before the register, or in the middle of one.
pub fn raise_sparse(bytes: &[u8], place: Place, bytes_max: usize) -> Result<Raise, Corrupt> {
    if place.value > VALUE_MAX {
        return Ok(Raise::Dense);
    }
    let Found { at, first, before } = find(bytes, place.index)?;
    let run = Run::at(bytes, at)?;
    if run.value >= place.value {
        return Ok(Raise::Nothing);
    }
    let start = before.unwrap_or(at);
    let mut splice = Splice { at: start, removed: 0, bytes: [0; SPLICE_BYTES_MAX], len: 0 };
    splice.push(&bytes[start..at]);
    let in_front = splice.len;
    splice.push_run(run.value, place.index - first);
    splice.push_run(place.value, 1);
    splice.push_run(run.value, first + run.len - place.index - 1);
    // A lone register changes where it is, so that its room is no question.
    let growth = (splice.len - in_front).saturating_sub(run.bytes);
    if growth > 0 && bytes.len() + growth > bytes_max {
        return Ok(Raise::Dense);
    }
    let behind = at + run.bytes;
    let end = bytes.len().min(behind + BEHIND_BYTES);
    splice.push(&bytes[behind..end]);
    splice.removed = end - start;
    splice.join();
    Ok(Raise::Splice(splice))
}

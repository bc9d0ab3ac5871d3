//! The sparse encoding: registers as runs of equal values.
//!
//! ```text
//! 00xxxxxx           xxxxxx + 1 registers are 0
//! 01xxxxxx yyyyyyyy  (xxxxxx << 8 | yyyyyyyy) + 1 registers are 0
//! 1vvvvvxx           xx + 1 registers are vvvvv + 1
//! ```
//!
//! Values above 32 and runs beyond a size limit need the dense encoding. How runs are split and
//! joined is part of the format: the same elements in the same order must result in the same bytes
//! on every server.

use super::estimate::Histogram;
use super::{Corrupt, HEADER_BYTES, REGISTERS, Register};

const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
const SHORT_ZEROS_MAX: usize = 64;
/// Runs that a change tries to join, starting with the run before it.
const JOINS_MAX: usize = 5;
/// Bytes after a change that joining may read, in runs of two bytes.
const FOLLOWING_BYTES: usize = 2 * JOINS_MAX;
/// The run before, three runs instead of one, and the following bytes.
const SPLICE_BYTES_MAX: usize = 2 + 5 + FOLLOWING_BYTES;

/// Neighbouring registers with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRun {
    /// The number of registers.
    pub len: usize,
    /// Their value.
    pub value: u8,
    /// The size of the run's encoding.
    bytes: usize,
}

impl RegisterRun {
    #[inline]
    fn at(bytes: &[u8], at: usize) -> Result<Self, Corrupt> {
        let first = *bytes.get(at).ok_or(Corrupt)?;
        // The processor cannot predict the kind of the next run, so there is no branch for it.
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

    /// Whether the run takes two bytes, which PFDEBUG DECODE shows.
    pub fn is_long(self) -> bool {
        self.bytes == 2
    }
}

/// An iterator over the runs of the sparse encoding.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Runs<'a> {
    /// The runs after the header of `bytes`.
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
            histogram[usize::from(run.value)] += run.len as u32;
        }
        if registers == REGISTERS { Ok(histogram) } else { Err(Corrupt) }
    }
}

impl Iterator for Runs<'_> {
    type Item = Result<RegisterRun, Corrupt>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let run = RegisterRun::at(self.bytes, self.at);
        self.at = run.map_or(self.bytes.len(), |run| self.at + run.bytes);
        Some(run)
    }
}

/// The change that raises a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raise {
    /// The register is as high already.
    Nothing,
    /// Replace some bytes.
    Splice(Splice),
    /// Convert to the dense encoding first.
    Dense,
}

/// A replacement of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Where the replaced bytes begin.
    pub at: usize,
    /// The number of replaced bytes.
    pub removed: usize,
    bytes: [u8; SPLICE_BYTES_MAX],
    len: usize,
}

impl Splice {
    /// The new bytes.
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
        // The lower byte of a length up to 16,384.
        let short = (len - 1) as u8;
        if value > 0 {
            self.push(&[value_run(value, len)]);
        } else if len <= SHORT_ZEROS_MAX {
            self.push(&[short]);
        } else {
            self.push(&[1 << 6 | ((len - 1) >> 8) as u8, short]);
        }
    }

    /// Joins neighbouring runs of one value if one byte can hold the result.
    fn join(&mut self) {
        let mut at = 0;
        for _ in 0..JOINS_MAX {
            let [byte, rest @ ..] = &self.bytes[at.min(self.len)..self.len] else { return };
            let (byte, next) = (*byte, rest.first().copied());
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

/// The position of a register's run.
struct RunPosition {
    at: usize,
    /// The first register of the run.
    first: usize,
    /// The position of the previous run.
    before: Option<usize>,
}

/// Finds the run of a register.
///
/// The start of a run depends on the kind of the previous one, so a plain loop waits for one load
/// after another. With few elements, nearly all runs alternate between two bytes of zeros and one
/// byte of a value. The loop skips such pairs in steps of three bytes, which the processor can
/// predict.
fn find(bytes: &[u8], index: usize) -> Result<RunPosition, Corrupt> {
    let (mut at, mut first, mut before) = (HEADER_BYTES, 0, None);
    loop {
        while let Some(&[zeros, more, value]) = bytes.get(at..).and_then(|rest| rest.first_chunk())
            && zeros >> 6 == 1
            && value >> 7 == 1
        {
            let zeros_end = first + (usize::from(zeros & 63) << 8 | usize::from(more)) + 1;
            let value_end = zeros_end + usize::from(value & 3) + 1;
            if index < value_end {
                return Ok(if index < zeros_end {
                    RunPosition { at, first, before }
                } else {
                    RunPosition { at: at + 2, first: zeros_end, before: Some(at) }
                });
            }
            before = Some(at + 2);
            first = value_end;
            at += 3;
        }
        let run = RegisterRun::at(bytes, at)?;
        if index < first + run.len {
            return Ok(RunPosition { at, first, before });
        }
        before = Some(at);
        first += run.len;
        at += run.bytes;
    }
}

/// Computes how to raise a register in the sparse encoding, which may take `bytes_max` including
/// the header.
///
/// # Errors
/// If the runs end before the register, or a run is incomplete.
pub fn raise_sparse(bytes: &[u8], register: Register, bytes_max: usize) -> Result<Raise, Corrupt> {
    if register.value > VALUE_MAX {
        return Ok(Raise::Dense);
    }
    let RunPosition { at, first, before } = find(bytes, register.index)?;
    let run = RegisterRun::at(bytes, at)?;
    if run.value >= register.value {
        return Ok(Raise::Nothing);
    }
    let start = before.unwrap_or(at);
    let mut splice = Splice { at: start, removed: 0, bytes: [0; SPLICE_BYTES_MAX], len: 0 };
    splice.push(&bytes[start..at]);
    let in_front = splice.len;
    splice.push_run(run.value, register.index - first);
    splice.push_run(register.value, 1);
    splice.push_run(run.value, first + run.len - register.index - 1);
    // A change that keeps the size is allowed beyond the limit, too.
    let growth = (splice.len - in_front).saturating_sub(run.bytes);
    if growth > 0 && bytes.len() + growth > bytes_max {
        return Ok(Raise::Dense);
    }
    let rest_at = at + run.bytes;
    let end = bytes.len().min(rest_at + FOLLOWING_BYTES);
    splice.push(&bytes[rest_at..end]);
    splice.removed = end - start;
    splice.join();
    Ok(Raise::Splice(splice))
}

//! HyperLogLogs merged: the registers of several, each the highest of all.
//!
//! As long as all of them are sparse the union is a list of runs, which is short when they are; the
//! first dense one makes it dense.

use super::estimate::{Histogram, count};
use super::sparse::Runs;
use super::{
    Corrupt, DENSE_BYTES, Encoding, HEADER_BYTES, Place, REGISTERS, dense, encoding, merge_dense,
    raise_dense,
};

/// Registers merged from HyperLogLogs.
#[derive(Debug, Default)]
pub struct Union {
    /// Length and value of each run; all registers together.
    runs: Vec<(usize, u8)>,
    /// Where the next runs are made.
    spare: Vec<(usize, u8)>,
    /// A dense one with any header, once there is one; else empty.
    dense: Vec<u8>,
}

impl Union {
    /// No registers raised. `room` is a buffer to work in, whatever it holds.
    pub fn new(mut room: Vec<u8>) -> Self {
        room.clear();
        Self { runs: vec![(REGISTERS, 0)], spare: Vec::new(), dense: room }
    }

    /// Whether a dense one was merged.
    pub fn is_dense(&self) -> bool {
        !self.dense.is_empty()
    }

    /// The buffer to work in.
    pub fn into_room(self) -> Vec<u8> {
        self.dense
    }

    /// Merges another one.
    ///
    /// # Errors
    /// When the bytes are no HyperLogLog, or its runs are no registers.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Corrupt> {
        match (encoding(bytes).ok_or(Corrupt)?, self.is_dense()) {
            (Encoding::Dense, true) => {
                merge_dense(&mut self.dense, bytes);
            }
            (Encoding::Dense, false) => {
                self.dense.extend_from_slice(bytes);
                raise_runs(&mut self.dense, self.runs.iter().copied());
            }
            (Encoding::Sparse, true) => {
                let runs: Vec<_> = all_runs(bytes)?;
                raise_runs(&mut self.dense, runs.into_iter());
            }
            (Encoding::Sparse, false) => {
                self.spare.clear();
                let spare = &mut self.spare;
                zip(self.runs.iter().copied(), bytes, |len, own, value| {
                    let value = own.max(value);
                    match spare.last_mut() {
                        Some(last) if last.1 == value => last.0 += len,
                        _ => spare.push((len, value)),
                    }
                })?;
                std::mem::swap(&mut self.runs, &mut self.spare);
            }
        }
        Ok(())
    }

    /// The estimated count of different elements.
    pub fn count(&self) -> u64 {
        if self.is_dense() {
            return count(&dense::histogram(&self.dense));
        }
        let mut histogram: Histogram = [0; 64];
        for (len, value) in &self.runs {
            // The lengths of all runs add up to 16,384.
            histogram[usize::from(value & 63)] += *len as u32;
        }
        count(&histogram)
    }

    /// The registers that are higher here than in a sparse one, in order; nothing when the union is
    /// dense.
    ///
    /// # Errors
    /// When the bytes are no registers.
    pub fn above(&self, sparse: &[u8]) -> Result<Vec<Place>, Corrupt> {
        let (mut places, mut first) = (Vec::new(), 0);
        if self.is_dense() {
            return Ok(places);
        }
        zip(self.runs.iter().copied(), sparse, |len, own, value| {
            if own > value {
                places.extend((first..first + len).map(|index| Place { index, value: own }));
            }
            first += len;
        })?;
        Ok(places)
    }

    /// Raises the registers of a dense one to those of the union.
    pub fn raise(&self, bytes: &mut [u8]) {
        if self.is_dense() {
            merge_dense(bytes, &self.dense);
        } else {
            raise_runs(bytes, self.runs.iter().copied());
        }
    }
}

/// The dense form of a sparse one; the header goes with it.
///
/// # Errors
/// When the bytes are no registers.
pub fn to_dense(bytes: &[u8]) -> Result<Vec<u8>, Corrupt> {
    if encoding(bytes).ok_or(Corrupt)? == Encoding::Dense {
        return Ok(bytes.to_vec());
    }
    let runs = all_runs(bytes)?;
    let mut dense = vec![0; DENSE_BYTES];
    dense[..HEADER_BYTES].copy_from_slice(&bytes[..HEADER_BYTES]);
    dense[4] = 0;
    raise_runs(&mut dense, runs.into_iter());
    Ok(dense)
}

/// The runs of a sparse one, all registers together.
fn all_runs(bytes: &[u8]) -> Result<Vec<(usize, u8)>, Corrupt> {
    let mut runs = Vec::new();
    zip(std::iter::once((REGISTERS, 0)), bytes, |len, _, value| runs.push((len, value)))?;
    Ok(runs)
}

fn raise_runs(dense: &mut [u8], runs: impl Iterator<Item = (usize, u8)>) {
    let mut first = 0;
    for (len, value) in runs {
        if value > 0 {
            for index in first..first + len {
                raise_dense(dense, Place { index, value });
            }
        }
        first += len;
    }
}

/// Shows how many registers in a row have which values in both, from the first to the last.
fn zip(
    mut runs: impl Iterator<Item = (usize, u8)>,
    sparse: &[u8],
    mut show: impl FnMut(usize, u8, u8),
) -> Result<(), Corrupt> {
    let (mut len, mut value) = (0, 0);
    for run in Runs::new(sparse) {
        let run = run?;
        let mut left = run.len;
        while left > 0 {
            if len == 0 {
                (len, value) = runs.next().ok_or(Corrupt)?;
            }
            let shared = left.min(len);
            show(shared, value, run.value);
            (left, len) = (left - shared, len - shared);
        }
    }
    // Both must end together.
    if len == 0 && runs.next().is_none() { Ok(()) } else { Err(Corrupt) }
}

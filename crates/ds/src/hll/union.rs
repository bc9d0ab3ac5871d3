//! Merges HyperLogLogs: each register of the union is the highest one of all.
//!
//! The union is a list of runs while all merged values are sparse. The first dense one makes it
//! dense.

use super::estimate::{Histogram, count};
use super::sparse::Runs;
use super::{
    Corrupt, DENSE_BYTES, Encoding, HEADER_BYTES, REGISTERS, Register, dense, encoding,
    merge_dense, raise_dense,
};

/// Registers merged from HyperLogLogs.
#[derive(Debug, Default)]
pub struct Union {
    /// Length and value of each run. The lengths add up to all registers.
    runs: Vec<(usize, u8)>,
    /// A buffer for the next runs.
    spare: Vec<(usize, u8)>,
    /// The dense encoding with any header, or empty while all merged values are sparse.
    dense: Vec<u8>,
}

impl Union {
    /// An empty union. It uses `buffer` and ignores its contents.
    pub fn new(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { runs: vec![(REGISTERS, 0)], spare: Vec::new(), dense: buffer }
    }

    /// Whether a dense value was merged.
    pub fn is_dense(&self) -> bool {
        !self.dense.is_empty()
    }

    /// Returns the buffer.
    pub fn into_buffer(self) -> Vec<u8> {
        self.dense
    }

    /// Merges a HyperLogLog.
    ///
    /// # Errors
    /// If the bytes are invalid.
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

    /// The estimated number of distinct elements.
    pub fn count(&self) -> u64 {
        if self.is_dense() {
            return count(&dense::histogram(&self.dense));
        }
        let mut histogram: Histogram = [0; 64];
        for (len, value) in &self.runs {
            histogram[usize::from(value & 63)] += *len as u32;
        }
        count(&histogram)
    }

    /// The registers that are higher in the union than in a sparse value, in order. Empty if the
    /// union is dense.
    ///
    /// # Errors
    /// If the bytes are invalid.
    pub fn above(&self, sparse: &[u8]) -> Result<Vec<Register>, Corrupt> {
        let (mut higher, mut first) = (Vec::new(), 0);
        if self.is_dense() {
            return Ok(higher);
        }
        zip(self.runs.iter().copied(), sparse, |len, own, value| {
            if own > value {
                higher.extend((first..first + len).map(|index| Register { index, value: own }));
            }
            first += len;
        })?;
        Ok(higher)
    }

    /// Raises the registers of a dense value to those of the union.
    pub fn raise(&self, bytes: &mut [u8]) {
        if self.is_dense() {
            merge_dense(bytes, &self.dense);
        } else {
            raise_runs(bytes, self.runs.iter().copied());
        }
    }
}

/// Converts to the dense encoding and keeps the count in the header.
///
/// # Errors
/// If the bytes are invalid.
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

/// The runs of a sparse value, which must add up to all registers.
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
                raise_dense(dense, Register { index, value });
            }
        }
        first += len;
    }
}

/// Iterates over two lists of runs in parallel: passes the number of registers with one pair of
/// values, and both values.
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

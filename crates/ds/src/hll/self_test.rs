//! The self-test of a running server: PFSELFTEST.

use super::{
    DENSE_BYTES, EMPTY, REGISTERS, Raise, Register, count, dense_value, merge_dense, raise_dense,
    raise_sparse, to_dense,
};
use base::random::Random;

/// Elements that the test adds. It compares the count at every power of two.
const ELEMENTS: u64 = 1 << 18;
/// The largest relative error of a count: seven standard errors of 1.04 / sqrt(16384).
const ERROR_MAX: f64 = 7.0 * 0.008_125;
/// The limit of the sparse encoding. Only the dense one is tested beyond it.
const SPARSE_BYTES_MAX: usize = 3000;

/// Compares registers with written values, both encodings with each other, and counts with the
/// number of elements.
///
/// # Errors
/// Describes the first wrong result.
pub fn self_test() -> Result<(), &'static str> {
    let mut random = Random::new(0x5eed);
    let mut dense = to_dense(&EMPTY).map_err(|_| "an empty value is corrupt")?;
    let values: Vec<u8> = (0..REGISTERS).map(|_| random.below(64) as u8).collect();
    for (index, value) in values.iter().enumerate() {
        raise_dense(&mut dense, Register { index, value: *value });
    }
    let is_as_written = |dense: &[u8]| {
        values.iter().enumerate().all(|(index, value)| dense_value(dense, index) == *value)
    };
    if dense.len() != DENSE_BYTES || !is_as_written(&dense) {
        return Err("a register does not have the value that was written");
    }
    let mut merged = to_dense(&EMPTY).map_err(|_| "an empty value is corrupt")?;
    merge_dense(&mut merged, &dense);
    if !is_as_written(&merged) {
        return Err("registers that were merged differ");
    }
    counts()
}

fn counts() -> Result<(), &'static str> {
    let corrupt = |_| "a value is corrupt";
    let mut dense = to_dense(&EMPTY).map_err(corrupt)?;
    let mut sparse = Some(EMPTY.to_vec());
    for number in 1..=ELEMENTS {
        let register = Register::of(&number.to_le_bytes());
        raise_dense(&mut dense, register);
        if let Some(runs) = &mut sparse {
            match raise_sparse(runs, register, SPARSE_BYTES_MAX).map_err(corrupt)? {
                Raise::Nothing => {}
                Raise::Splice(splice) => {
                    let range = splice.at..splice.at + splice.removed;
                    runs.splice(range, splice.bytes().iter().copied());
                }
                Raise::Dense => sparse = None,
            }
        }
        if !number.is_power_of_two() {
            continue;
        }
        let counted = count(&dense).map_err(corrupt)?;
        if let Some(runs) = &sparse
            && count(runs) != Ok(counted)
        {
            return Err("both encodings do not count the same");
        }
        // Small counts are exact, except if two elements share a register.
        if (counted as f64 - number as f64).abs() > (number as f64 * ERROR_MAX).max(1.0) {
            return Err("a count is too far from the truth");
        }
    }
    Ok(())
}

//! Estimates the count from a histogram of register values: Ertl's improved raw estimator.
//!
//! The order of the floating-point operations is part of the format: the count is stored in the
//! header, and servers must agree on it.

use super::{REGISTERS, RUN_BITS};

/// The limit of the bias correction for many registers: 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// How many registers have each value.
pub(super) type Histogram = [u32; 64];

/// The estimated number of distinct elements.
pub(super) fn count(histogram: &Histogram) -> u64 {
    let registers = REGISTERS as f64;
    let full = f64::from(histogram[RUN_BITS + 1]);
    let mut z = registers * tau((registers - full) / registers);
    for number in histogram[1..=RUN_BITS].iter().rev() {
        z = (z + f64::from(*number)) * 0.5;
    }
    z += registers * sigma(f64::from(histogram[0]) / registers);
    (ALPHA * registers * registers / z).round() as u64
}

/// Corrects for registers that are zero; `x` is their share.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        let before = z;
        x *= x;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Corrects for registers at the highest value; `x` is the share of the others.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        let before = z;
        x = x.sqrt();
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

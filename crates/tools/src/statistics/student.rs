//! Student's t distribution for whole degrees of freedom, by the finite sums of Abramowitz and
//! Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4.

use std::f64::consts::FRAC_2_PI;

/// Halvings of the interval that holds the quantile.
const HALVINGS: u32 = 80;

/// The value below which the share `probability` of the distribution lies; the share is at least
/// one half.
pub(super) fn quantile(freedom: u32, probability: f64) -> f64 {
    let within = 2.0 * probability - 1.0;
    if within >= 1.0 {
        return f64::INFINITY;
    }
    let mut high = 1.0;
    while share_within(freedom, high) < within && high < f64::MAX / 2.0 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match share_within(freedom, middle) < within {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The share of the distribution between `-t` and `t`.
fn share_within(freedom: u32, t: f64) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2;
    // Each term of the sum is the one before times cos^2 and k / (k + 1).
    let (mut sum, mut term) = (0.0, if odd == 1 { cos } else { 1.0 });
    let mut k = 1 + odd;
    while k < freedom {
        sum += term;
        term *= cos * cos * f64::from(k) / f64::from(k + 1);
        k += 2;
    }
    match odd {
        1 => FRAC_2_PI * (angle + sin * sum),
        _ => sin * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let cases = [
            (1, 0.975, 12.706),
            (2, 0.975, 4.303),
            (3, 0.975, 3.182),
            (4, 0.975, 2.776),
            (9, 0.975, 2.262),
            (10, 0.995, 3.169),
            (30, 0.95, 1.697),
            (120, 0.975, 1.980),
        ];
        for (freedom, probability, expected) in cases {
            let got = quantile(freedom, probability);
            assert!((got - expected).abs() < 0.0006, "{freedom} {probability}: {got}");
        }
        assert_eq!(quantile(5, 1.0), f64::INFINITY);
        assert!(quantile(5, 0.5).abs() < 1e-9);
    }
}

//! How often the intervals contain the truth, for distributions whose truth is known.

use super::*;

/// Repetitions of each experiment, so that a share is known to 0.7 points.
const RUNS: u64 = 1000;

/// A distribution of measurements, with its true mean.
struct Distribution {
    name: &'static str,
    mean: f64,
    draw: fn(&mut Rng) -> f64,
}

const NORMAL: Distribution =
    Distribution { name: "normal", mean: 100.0, draw: |rng| 100.0 + 5.0 * normal(rng) };
const UNIFORM: Distribution =
    Distribution { name: "uniform", mean: 50.0, draw: |rng| 100.0 * rng.f64() };
// Latencies have a long tail to one side.
const EXPONENTIAL: Distribution =
    Distribution { name: "exponential", mean: 1.0, draw: exponential };
const GAMMA: Distribution =
    Distribution { name: "gamma", mean: 4.0, draw: |rng| (0..4).map(|_| exponential(rng)).sum() };
const LOG_NORMAL: Distribution =
    Distribution { name: "log-normal", mean: 1.133_148_453, draw: |rng| (0.5 * normal(rng)).exp() };

fn normal(rng: &mut Rng) -> f64 {
    // Box and Muller; 1 - u is above zero.
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.f64()).ln()
}

impl Distribution {
    fn samples(&self, count: usize, rng: &mut Rng) -> Vec<f64> {
        (0..count).map(|_| (self.draw)(rng)).collect()
    }
}

/// The share of experiments that hold, in percent.
fn percent(experiment: impl Fn(&mut Rng) -> bool) -> f64 {
    let mut seeds = Rng::with_seed(1);
    let held = (0..RUNS).filter(|_| experiment(&mut Rng::with_seed(seeds.u64(..)))).count();
    100.0 * held as f64 / RUNS as f64
}

fn check_coverage(distribution: &Distribution, count: usize) {
    let covered = percent(|rng| {
        let samples = distribution.samples(count, rng);
        let interval = mean_interval(&samples, 0.95, rng.u64(..));
        (interval.low..=interval.high).contains(&distribution.mean)
    });
    println!("{covered}% for {count} samples, {}", distribution.name);
    assert!((93.0..=97.0).contains(&covered), "{covered}% for {count}, {}", distribution.name);
}

#[test]
fn intervals_of_10_samples_contain_the_mean() {
    [NORMAL, UNIFORM].iter().for_each(|distribution| check_coverage(distribution, 10));
}

#[test]
fn intervals_of_10_skewed_samples_contain_the_mean() {
    [EXPONENTIAL, GAMMA, LOG_NORMAL].iter().for_each(|distribution| {
        check_coverage(distribution, 10);
    });
}

#[test]
fn intervals_of_few_and_many_samples_contain_the_mean() {
    check_coverage(&NORMAL, 3);
    [NORMAL, GAMMA].iter().for_each(|distribution| check_coverage(distribution, 5));
    [NORMAL, GAMMA].iter().for_each(|distribution| check_coverage(distribution, 25));
}

#[test]
fn equal_servers_seldom_differ() {
    for (distribution, other) in [(NORMAL, 10), (GAMMA, 10), (LOG_NORMAL, 5)] {
        let equal = percent(|rng| {
            let (a, b) = (distribution.samples(10, rng), distribution.samples(other, rng));
            !compare(&a, &b, 0.95, rng.u64(..)).is_significant
        });
        println!("{equal}% for {other} samples, {}", distribution.name);
        assert!((93.0..=97.0).contains(&equal), "{equal}% for {other}, {}", distribution.name);
    }
}

#[test]
fn a_difference_beyond_the_noise_is_significant() {
    let found = percent(|rng| {
        let more: Vec<f64> = NORMAL.samples(10, rng).iter().map(|rate| 1.1 * rate).collect();
        let difference = compare(&more, &NORMAL.samples(10, rng), 0.95, rng.u64(..));
        difference.is_significant && difference.low > 1.0
    });
    assert!(found > 95.0, "{found}%");
}

#[test]
fn samples_that_say_nothing_have_no_bounds() {
    let alone = mean_interval(&[7.0], 0.95, 1);
    assert_eq!((alone.mean, alone.low, alone.high), (7.0, f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(alone.relative_error(), None);
    assert!(mean_interval(&[], 0.95, 1).mean.is_nan());
    assert!(!compare(&[7.0], &[1.0, 1.1], 0.95, 1).is_significant);
    assert!(!compare(&[0.0, 0.0], &[0.0, 0.0], 0.95, 1).is_significant);
}

#[test]
fn equal_samples_have_no_error() {
    for count in [2, 10] {
        let same = vec![0.1; count];
        let Interval { mean, low, high } = mean_interval(&same, 0.95, 1);
        assert!(low == mean && high == mean, "{low} {mean} {high}");
        assert!(!compare(&same, &same, 0.95, 1).is_significant);
        assert!(compare(&same, &vec![0.2; count], 0.95, 1).is_significant);
        assert_eq!(spread(&same), 0.0);
    }
    // Four of five: every third resample has no error, and the interval is wide but bounded.
    let interval = mean_interval(&[1.0, 1.0, 1.0, 1.0, 2.0], 0.95, 1);
    assert!(interval.low < 1.0 && interval.high > 1.4 && interval.high < 10.0, "{interval:?}");
}

#[test]
fn the_seed_decides() {
    let samples = [1.0, 2.0, 3.5, 2.5, 9.0, 4.0];
    assert_eq!(mean_interval(&samples, 0.95, 3), mean_interval(&samples, 0.95, 3));
    assert!((spread(&[9.0, 11.0]) - 0.141_421).abs() < 1e-5);
}

#[test]
fn medians_ignore_outliers() {
    assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(vec![4.0, 1.0, 2.0, 900.0]), 3.0);
    assert_eq!(median(Vec::new()), 0.0);
}

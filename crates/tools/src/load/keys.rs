//! Which key comes next: in order, or at random by some law.
//!
//! No memory is needed per key, so a range may have any size. Zipf's law is drawn by rejection and
//! inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone
//! discrete distributions", 1996): one or two logarithms, whatever the range.

use std::fmt;
use std::str::FromStr;

use fastrand::Rng;

use super::shape::RequestShape;
use crate::Error;

/// Draws by the normal law outside of the range, before its nearest key is taken.
const GAUSSIAN_DRAWS_MAX: u32 = 64;

/// An exponent closer to 1 than this counts as 1.
const EXPONENT_EPSILON: f64 = 1e-9;

/// The largest exponent: beyond it every draw is the first key anyway.
const EXPONENT_MAX: f64 = 10.0;

/// How the keys of requests are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Law {
    /// Any key, all equally often.
    #[default]
    Uniform,
    /// All keys in order, again and again; every load thread goes through the whole range.
    Sequential,
    /// The same, but every load thread has its own part of the range.
    Parallel,
    /// The normal law around a key.
    Gaussian {
        /// The number of that key; by default the middle of the range.
        median: Option<f64>,
        /// The standard deviation in keys; by default a sixth of the range.
        deviation: Option<f64>,
    },
    /// Zipf's law: the key of rank r is drawn with a probability proportional to `1 / r^exponent`;
    /// the first key has rank 1.
    Zipf {
        /// At least 0, which makes all keys equally likely.
        exponent: f64,
    },
    /// Some keys far more often than the others.
    Hot {
        /// How many, from the first key on.
        keys: u64,
        /// The share of the draws, from 0 to 1, that is one of them.
        share: f64,
    },
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Uniform => f.write_str("uniform"),
            Law::Sequential => f.write_str("in order"),
            Law::Parallel => f.write_str("in order, in parts"),
            Law::Gaussian { .. } => f.write_str("Gaussian"),
            Law::Zipf { exponent } => write!(f, "Zipf {exponent}"),
            Law::Hot { keys, share } => write!(f, "{:.0}% of {keys} hot keys", share * 100.0),
        }
    }
}

/// The laws by which the keys of writes and of reads are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KeyPatterns {
    /// Of writing requests.
    pub writes: Law,
    /// Of reading requests.
    pub reads: Law,
}

/// The letters of the laws, writes before reads, as in `R:R`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letters {
    /// Of writes.
    pub writes: Letter,
    /// Of reads.
    pub reads: Letter,
}

/// A law by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// `R`
    Random,
    /// `S`
    Sequential,
    /// `P`
    Parallel,
    /// `G`
    Gaussian,
    /// `Z`
    Zipf,
}

impl FromStr for Letter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "R" => Ok(Letter::Random),
            "S" => Ok(Letter::Sequential),
            "P" => Ok(Letter::Parallel),
            "G" => Ok(Letter::Gaussian),
            "Z" => Ok(Letter::Zipf),
            _ => Err(format!("'{text}' is no pattern; R, S, P, G and Z are")),
        }
    }
}

impl FromStr for Letters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (writes, reads) = text
            .split_once(':')
            .ok_or_else(|| format!("'{text}' is no pattern for writes and reads; write R:R"))?;
        Ok(Letters { writes: writes.parse()?, reads: reads.parse()? })
    }
}

/// One of the load threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadIndex {
    /// Its number, from 0.
    pub index: usize,
    /// How many there are.
    pub threads: usize,
}

impl ThreadIndex {
    /// The only thread.
    pub const ONLY: ThreadIndex = ThreadIndex { index: 0, threads: 1 };

    /// Its part of a total; the first threads take one more of what does not divide evenly.
    pub fn share(self, total: u64) -> u64 {
        let threads = self.threads as u64;
        total / threads + u64::from((self.index as u64) < total % threads)
    }
}

/// A source of the numbers of keys.
#[derive(Debug, Clone, PartialEq)]
pub struct KeySource {
    first: u64,
    count: u64,
    source: KeyOrder,
}

#[derive(Debug, Clone, PartialEq)]
enum KeyOrder {
    Uniform,
    /// The next one.
    InOrder(u64),
    Gaussian {
        median: f64,
        deviation: f64,
        /// Draws come in pairs.
        spare: Option<f64>,
    },
    Zipf(Zipf),
    Hot {
        keys: u64,
        share: f64,
    },
}

impl KeySource {
    /// The source of one load thread.
    ///
    /// # Errors
    /// The range cannot meet the law.
    pub fn new(law: Law, shape: &RequestShape, thread: ThreadIndex) -> Result<KeySource, Error> {
        shape.check()?;
        let usage = |text: &str| Err(Error::Usage(text.into()));
        let (mut first, mut count) = (shape.first, shape.keys);
        let source = match law {
            Law::Uniform => KeyOrder::Uniform,
            Law::Sequential => KeyOrder::InOrder(0),
            Law::Parallel => {
                (first, count) = part(shape, thread);
                KeyOrder::InOrder(0)
            }
            Law::Gaussian { median, deviation } => {
                let middle = shape.first as f64 + (shape.keys - 1) as f64 / 2.0;
                let median = median.unwrap_or(middle);
                let deviation = deviation.unwrap_or(shape.keys as f64 / 6.0);
                if !median.is_finite() {
                    return usage("the median of keys is a number");
                }
                if !(deviation > 0.0 && deviation.is_finite()) {
                    return usage("a standard deviation of keys is greater than 0");
                }
                KeyOrder::Gaussian { median, deviation, spare: None }
            }
            Law::Zipf { exponent } if (0.0..=EXPONENT_MAX).contains(&exponent) => {
                KeyOrder::Zipf(Zipf::new(shape.keys, exponent))
            }
            Law::Zipf { .. } => return usage("the exponent of Zipf's law is from 0 to 10"),
            Law::Hot { keys, .. } if keys == 0 || keys >= shape.keys => {
                return usage("there must be hot keys, and fewer than all: see --hot-keys");
            }
            Law::Hot { share, .. } if !(0.0..=1.0).contains(&share) => {
                return usage("the share of hot keys is from 0 to 100 percent");
            }
            Law::Hot { keys, share } => KeyOrder::Hot { keys, share },
        };
        Ok(KeySource { first, count, source })
    }

    /// The number of the next key.
    #[inline]
    pub fn draw(&mut self, rng: &mut Rng) -> u64 {
        match &mut self.source {
            KeyOrder::Uniform => self.first + rng.u64(0..self.count),
            KeyOrder::InOrder(next) => {
                let number = self.first + *next;
                *next = if *next + 1 == self.count { 0 } else { *next + 1 };
                number
            }
            KeyOrder::Gaussian { median, deviation, spare } => {
                let draw = || *median + normal(spare, rng) * *deviation - self.first as f64;
                self.first + within(self.count, draw)
            }
            KeyOrder::Zipf(zipf) => self.first + zipf.draw(rng) - 1,
            KeyOrder::Hot { keys, share } => match rng.f64() < *share {
                true => self.first + rng.u64(0..*keys),
                false => self.first + rng.u64(*keys..self.count),
            },
        }
    }
}

/// The part of the range that belongs to a thread; a thread without a key gets the whole range.
fn part(shape: &RequestShape, thread: ThreadIndex) -> (u64, u64) {
    let ThreadIndex { index, threads } = thread;
    let (each, rest) = (shape.keys / threads as u64, shape.keys % threads as u64);
    let index = index as u64;
    match thread.share(shape.keys) {
        0 => (shape.first, shape.keys),
        count => (shape.first + index * each + index.min(rest), count),
    }
}

/// A draw of the standard normal law, by the polar method of Marsaglia, which makes two at a time.
fn normal(spare: &mut Option<f64>, rng: &mut Rng) -> f64 {
    spare.take().unwrap_or_else(|| {
        loop {
            let (x, y) = (rng.f64() * 2.0 - 1.0, rng.f64() * 2.0 - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                *spare = Some(y * factor);
                break x * factor;
            }
        }
    })
}

/// Draws until the rounded number is below `count`; after too many draws, the nearest such number.
fn within(count: u64, mut draw: impl FnMut() -> f64) -> u64 {
    let mut at = 0.0;
    for _ in 0..GAUSSIAN_DRAWS_MAX {
        at = draw().round();
        if at >= 0.0 && at < count as f64 {
            break;
        }
    }
    // A negative number becomes 0.
    (at as u64).min(count - 1)
}

/// Ranks from 1 by Zipf's law; the names are those of the paper.
#[derive(Debug, Clone, PartialEq)]
struct Zipf {
    ranks: u64,
    exponent: f64,
    h_first: f64,
    h_last: f64,
    shift: f64,
}

impl Zipf {
    fn new(ranks: u64, exponent: f64) -> Zipf {
        let h_first = integral(1.5, exponent) - 1.0;
        let h_last = integral(ranks as f64 + 0.5, exponent);
        let inner = integral(2.5, exponent) - 2f64.powf(-exponent);
        let shift = 2.0 - integral_inverse(inner, exponent);
        Zipf { ranks, exponent, h_first, h_last, shift }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_last + rng.f64() * (self.h_first - self.h_last);
            let x = integral_inverse(u, self.exponent);
            let rank = x.round().clamp(1.0, self.ranks as f64);
            let accepted = rank - x <= self.shift
                || u >= integral(rank + 0.5, self.exponent) - rank.powf(-self.exponent);
            if accepted {
                return rank as u64;
            }
        }
    }
}

/// The integral of `x^-s`, which is the logarithm for s = 1.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    match (1.0 - s).abs() < EXPONENT_EPSILON {
        true => log,
        false => ((1.0 - s) * log).exp_m1() / (1.0 - s),
    }
}

fn integral_inverse(y: f64, s: f64) -> f64 {
    match (1.0 - s).abs() < EXPONENT_EPSILON {
        true => y.exp(),
        // Rounding may take the argument just below the domain of the logarithm.
        false => (((1.0 - s) * y).max(-1.0).ln_1p() / (1.0 - s)).exp(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn shape(first: u64, keys: u64) -> RequestShape {
        RequestShape { first, keys, ..RequestShape::default() }
    }

    /// The share of the draws for each key of the range.
    fn shares(law: Law, shape: &RequestShape) -> Vec<f64> {
        let (mut keys, mut rng) =
            (KeySource::new(law, shape, ThreadIndex::ONLY).unwrap(), Rng::with_seed(1));
        let mut counts = vec![0u32; shape.keys as usize];
        (0..DRAWS).for_each(|_| counts[(keys.draw(&mut rng) - shape.first) as usize] += 1);
        counts.into_iter().map(|count| f64::from(count) / DRAWS as f64).collect()
    }

    #[test]
    fn zipf_draws_every_rank_as_often_as_the_law_says() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            let shares = shares(Law::Zipf { exponent }, &shape(7, 50));
            let sum: f64 = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (index, share) in shares.into_iter().enumerate() {
                let expected = (index as f64 + 1.0).powf(-exponent) / sum;
                // Five standard deviations of a share.
                let margin = 5.0 * (expected / DRAWS as f64).sqrt();
                assert!((share - expected).abs() <= margin, "{exponent}: {share} {expected}");
            }
        }
    }

    #[test]
    fn a_huge_range_is_drawn_without_a_table() {
        let (shape, mut rng) = (shape(0, 1_000_000_000_000), Rng::with_seed(1));
        let mut keys =
            KeySource::new(Law::Zipf { exponent: 0.99 }, &shape, ThreadIndex::ONLY).unwrap();
        let drawn: Vec<u64> = (0..1000).map(|_| keys.draw(&mut rng)).collect();
        assert!(drawn.contains(&0) && drawn.iter().any(|key| *key > 1_000_000_000));
    }

    #[test]
    fn the_normal_law_has_its_median_and_deviation() {
        let law = Law::Gaussian { median: Some(150.0), deviation: Some(10.0) };
        let shares = shares(law, &shape(100, 100));
        let within = |from: usize, to: usize| shares[from - 100..=to - 100].iter().sum::<f64>();
        // Draws are rounded to whole keys, so half a key more on either side.
        for (deviations, expected) in [(10, 0.7063), (20, 0.9596), (30, 0.9977)] {
            let share = within(150 - deviations, 150 + deviations);
            assert!((share - expected).abs() < 0.005, "{share} within {deviations}");
        }
        assert!((within(100, 149) - within(151, 199)).abs() < 0.01);
        // Draws outside of the range are repeated; far from it the nearest key is taken.
        let far = Law::Gaussian { median: Some(1e6), deviation: Some(1.0) };
        assert_eq!(self::shares(far, &shape(0, 10))[9], 1.0);
    }

    #[test]
    fn hot_keys_have_their_share() {
        let shares = shares(Law::Hot { keys: 2, share: 0.9 }, &shape(5, 20));
        let hot: f64 = shares[..2].iter().sum();
        assert!((hot - 0.9).abs() < 0.005 && (shares[0] - 0.45).abs() < 0.01, "{shares:?}");
        assert!(shares[2..].iter().all(|share| (share - 0.1 / 18.0).abs() < 0.002), "{shares:?}");
    }

    #[test]
    fn keys_in_order_are_each_drawn_once_a_turn() {
        let thread = |index, threads| ThreadIndex { index, threads };
        let drawn = |law, thread: ThreadIndex, count: usize| -> Vec<u64> {
            let mut keys = KeySource::new(law, &shape(10, 7), thread).unwrap();
            (0..count).map(|_| keys.draw(&mut Rng::with_seed(1))).collect()
        };
        assert_eq!(drawn(Law::Sequential, thread(1, 2), 9), [10, 11, 12, 13, 14, 15, 16, 10, 11]);
        assert_eq!(drawn(Law::Parallel, thread(0, 2), 5), [10, 11, 12, 13, 10]);
        assert_eq!(drawn(Law::Parallel, thread(1, 2), 4), [14, 15, 16, 14]);
        let all: Vec<u64> =
            (0..3).flat_map(|i| drawn(Law::Parallel, thread(i, 3), [3, 2, 2][i])).collect();
        assert_eq!(all, [10, 11, 12, 13, 14, 15, 16]);
        // More threads than keys.
        assert_eq!(drawn(Law::Parallel, thread(8, 9), 1), [10]);
    }

    #[test]
    fn laws_that_make_no_sense_are_refused() {
        for law in [
            Law::Zipf { exponent: -0.1 },
            Law::Zipf { exponent: f64::NAN },
            Law::Zipf { exponent: 11.0 },
            Law::Hot { keys: 0, share: 0.5 },
            Law::Hot { keys: 7, share: 0.5 },
            Law::Hot { keys: 1, share: 1.5 },
            Law::Gaussian { median: None, deviation: Some(0.0) },
        ] {
            assert!(KeySource::new(law, &shape(0, 7), ThreadIndex::ONLY).is_err(), "{law:?}");
        }
    }

    #[test]
    fn a_wrong_median_and_a_wrong_deviation_have_different_errors() {
        for (median, deviation, word) in
            [(Some(f64::NAN), None, "median"), (None, Some(f64::NAN), "deviation")]
        {
            let keys = KeySource::new(
                Law::Gaussian { median, deviation },
                &shape(0, 7),
                ThreadIndex::ONLY,
            );
            let error = keys.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn patterns_are_letters_for_writes_and_reads() {
        let letters = Letters { writes: Letter::Parallel, reads: Letter::Gaussian };
        assert_eq!("P:G".parse(), Ok(letters));
        for text in ["", "R", "R:", "x:R", "R:R:R"] {
            assert!(text.parse::<Letters>().is_err(), "{text}");
        }
    }
}

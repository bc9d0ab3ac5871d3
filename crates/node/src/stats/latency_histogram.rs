//! A histogram of the TSC cycles of a command's calls, written by one thread and read by all.
//!
//! Buckets are log-linear, as in HdrHistogram (<http://hdrhistogram.org>): each power of two has 64
//! buckets of the same width, so the middle of a bucket differs by less than 1% from the values
//! that it counts.
//!
//! ```text
//! cycles  0 .. 127   128 .. 255   256 .. 511   ...   2^36 .. 2^37
//! width      1           2            4        ...      2^30
//! ```
//!
//! Recording is a shift and an increment. Readers convert cycles to time. Buckets are never reset:
//! CONFIG RESETSTAT stores their values and reports show the difference.

use std::array;

use super::counters::Count;

/// Each power of two has `1 << PART_BITS` buckets.
const PART_BITS: u32 = 6;
/// Bits of the largest number of cycles with its own bucket: 45 seconds at 3 GHz.
const CYCLES_BITS: u32 = 37;
/// Number of buckets.
const BUCKETS: usize = ((CYCLES_BITS - PART_BITS + 1) << PART_BITS) as usize;

/// The calls of one command on one thread: 16 KB.
#[derive(Debug)]
pub struct LatencyHistogram {
    buckets: [Count; BUCKETS],
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { buckets: array::from_fn(|_| Count::default()) }
    }
}

/// The bucket of a number of cycles.
#[inline]
fn bucket_of(cycles: u64) -> usize {
    let shift = (cycles | 1 << PART_BITS).ilog2() - PART_BITS;
    let bucket = (u64::from(shift) << PART_BITS) + (cycles >> shift);
    // Longer calls are in the last bucket.
    (bucket as usize).min(BUCKETS - 1)
}

/// The cycles in the middle of a bucket.
fn middle_of(bucket: usize) -> f64 {
    let shift = (bucket >> PART_BITS).saturating_sub(1);
    let first = (bucket - (shift << PART_BITS)) << shift;
    first as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

impl LatencyHistogram {
    /// Counts a call. Only the owning thread may do this.
    #[inline]
    pub fn record(&self, cycles: u64) {
        self.buckets[bucket_of(cycles)].add(1);
    }

    /// The nonempty buckets; values may be a moment old.
    pub fn read(&self) -> Latencies {
        let counts = self.buckets.iter().map(Count::value).enumerate();
        Latencies { buckets: counts.filter(|(_, runs)| *runs != 0).collect() }
    }
}

/// The values of one or several histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Nonempty buckets by number, each with its calls.
    buckets: Vec<(usize, u64)>,
}

impl Latencies {
    /// Number of calls.
    pub fn runs(&self) -> u64 {
        self.buckets.iter().map(|(_, runs)| runs).sum()
    }

    /// Adds the values of another histogram.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// The difference to `base`.
    pub fn since(mut self, base: &Self) -> Self {
        self.combine(base, u64::saturating_sub);
        self.buckets.retain(|(_, runs)| *runs != 0);
        self
    }

    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (bucket, runs) in &other.buckets {
            match self.buckets.binary_search_by_key(bucket, |(number, _)| *number) {
                Ok(at) => self.buckets[at].1 = with(self.buckets[at].1, *runs),
                Err(at) => self.buckets.insert(at, (*bucket, with(0, *runs))),
            }
        }
    }

    /// The cycles that `percent` (0 to 100) of the calls do not exceed; 0 without calls.
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.runs() as f64).round().max(1.0);
        let mut below = 0;
        for (bucket, runs) in &self.buckets {
            below += runs;
            if below as f64 >= rank {
                return middle_of(*bucket);
            }
        }
        self.buckets.last().map_or(0.0, |(bucket, _)| middle_of(*bucket))
    }

    /// The sum of the cycles of all calls, exact to 1%.
    pub fn cycles(&self) -> f64 {
        self.iter().map(|(cycles, runs)| cycles * runs as f64).sum()
    }

    /// Cycles in ascending order, with the number of calls.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> {
        self.buckets.iter().map(|(bucket, runs)| (middle_of(*bucket), *runs))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_are_consecutive_and_limited() {
        let mut last = 0;
        for cycles in 0..100_000 {
            let bucket = bucket_of(cycles);
            assert!(bucket == last || bucket == last + 1, "{cycles}");
            last = bucket;
        }
        assert_eq!(bucket_of((1 << CYCLES_BITS) - 1), BUCKETS - 1);
        assert_eq!(bucket_of(1 << CYCLES_BITS), BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_base_is_subtracted() {
        let histogram = LatencyHistogram::default();
        assert_eq!(histogram.read().percentile(50.0), 0.0);
        histogram.record(100);
        let base = histogram.read();
        histogram.record(100);
        histogram.record(90);
        let since = histogram.read().since(&base);
        assert_eq!(since.iter().collect::<Vec<_>>(), [(90.0, 1), (100.0, 1)]);
        assert_eq!(since.clone().since(&since).runs(), 0);
    }

    proptest! {
        #[test]
        fn percentiles_are_exact_to_one_percent(
            bits in prop::collection::vec((0u32..CYCLES_BITS, any::<u64>()), 1..400),
            percent in 0.0..=100.0_f64,
        ) {
            // All numbers of bits are equally likely.
            let mut cycles: Vec<u64> =
                bits.iter().map(|(bits, any)| (1 << bits) | (any & ((1 << bits) - 1))).collect();
            let threads = [LatencyHistogram::default(), LatencyHistogram::default()];
            for (nth, cycles) in cycles.iter().enumerate() {
                threads[nth % 2].record(*cycles);
            }
            let mut all = threads[0].read();
            all.add(&threads[1].read());
            prop_assert_eq!(all.runs(), cycles.len() as u64);
            cycles.sort_unstable();
            let rank = (percent / 100.0 * cycles.len() as f64).round().max(1.0);
            let exact = cycles[rank as usize - 1] as f64;
            let found = all.percentile(percent);
            prop_assert!((found - exact).abs() <= exact / 100.0, "{found} for {exact}");
        }
    }
}

//! How long the runs of a command take: a histogram of TSC cycles, written by one thread and read
//! by all.
//!
//! Buckets are log-linear, as in HdrHistogram (<http://hdrhistogram.org>): each power of two is cut
//! into 64 buckets of the same width, so that the middle of a bucket differs from what it counts by
//! less than 1%.
//!
//! ```text
//! cycles  0 .. 127   128 .. 255   256 .. 511   ...   2^36 .. 2^37
//! width      1           2            4        ...      2^30
//! ```
//!
//! Recording is a shift and an increment. Cycles become time only when someone reads. Nobody sets a
//! bucket back: CONFIG RESETSTAT remembers what it was.

use std::array;

use super::counters::Count;

/// A power of two is cut into two to the power of this many buckets.
const PART_BITS: u32 = 6;
/// The bits of the greatest number of cycles that is told from others: 45 seconds at 3 GHz.
const CYCLES_BITS: u32 = 37;
/// All buckets.
const BUCKETS: usize = ((CYCLES_BITS - PART_BITS + 1) << PART_BITS) as usize;

/// The runs of one command on one thread: 16 KB.
#[derive(Debug)]
pub struct LatencyHistogram {
    buckets: [Count; BUCKETS],
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { buckets: array::from_fn(|_| Count::default()) }
    }
}

/// The bucket of so many cycles.
#[inline]
fn bucket_of(cycles: u64) -> usize {
    let shift = (cycles | 1 << PART_BITS).ilog2() - PART_BITS;
    let bucket = (u64::from(shift) << PART_BITS) + (cycles >> shift);
    // Whatever takes longer is in the last one.
    (bucket as usize).min(BUCKETS - 1)
}

/// The cycles in the middle of a bucket.
fn middle_of(bucket: usize) -> f64 {
    let shift = (bucket >> PART_BITS).saturating_sub(1);
    let first = (bucket - (shift << PART_BITS)) << shift;
    first as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

impl LatencyHistogram {
    /// Counts a run; only the thread that owns the histogram does.
    #[inline]
    pub fn record(&self, cycles: u64) {
        self.buckets[bucket_of(cycles)].add(1);
    }

    /// The buckets that count anything, each possibly a moment old.
    pub fn read(&self) -> Latencies {
        let counts = self.buckets.iter().map(Count::value).enumerate();
        Latencies { buckets: counts.filter(|(_, runs)| *runs != 0).collect() }
    }
}

/// What histograms counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Buckets by their numbers, each with its runs, of which there are some.
    buckets: Vec<(usize, u64)>,
}

impl Latencies {
    /// Runs.
    pub fn runs(&self) -> u64 {
        self.buckets.iter().map(|(_, runs)| runs).sum()
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// What was counted since the values were `base`.
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

    /// The cycles that `percent` of the runs, 0 to 100, do not exceed; 0 without runs.
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

    /// The cycles of all runs together, to 1%.
    pub fn cycles(&self) -> f64 {
        self.iter().map(|(cycles, runs)| cycles * runs as f64).sum()
    }

    /// Cycles, by their buckets from below, and how many runs took them.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> {
        self.buckets.iter().map(|(bucket, runs)| (middle_of(*bucket), *runs))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_and_end() {
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
    fn a_base_is_taken_off() {
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
            // Each number of bits is as likely as any other.
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

//! Histograms of latencies: nanoseconds inside, microseconds for readers.

use hdrhistogram::Histogram;

/// Latencies above this are counted as this, in nanoseconds: one minute.
pub(crate) const LATENCY_NANOS_MAX: u64 = 60_000_000_000;

/// The most points of a distribution; each has half as many requests above it as the one before.
const DISTRIBUTION_POINTS_MAX: usize = 24;

/// An empty histogram of nanoseconds, exact to three digits. All have the same bounds.
#[allow(clippy::expect_used)]
pub(crate) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, 3).expect("constant bounds, known to be valid")
}

/// A percentile in microseconds.
pub(crate) fn percentile_us(latency: &Histogram<u64>, percentile: f64) -> f64 {
    latency.value_at_quantile(percentile / 100.0) as f64 / 1000.0
}

/// The mean in microseconds.
pub(crate) fn mean_us(latency: &Histogram<u64>) -> f64 {
    latency.mean() / 1000.0
}

/// Percentages of the requests with the latency in microseconds that they do not exceed.
pub(crate) fn distribution(latency: &Histogram<u64>) -> Vec<(f64, f64)> {
    let points = latency.iter_quantiles(1).take(DISTRIBUTION_POINTS_MAX);
    let points = points.map(|point| {
        (point.quantile() * 100.0, point.value_iterated_to().min(latency.max()) as f64 / 1000.0)
    });
    let mut points: Vec<(f64, f64)> = points.collect();
    // Few requests cannot be halved so often.
    points.dedup();
    points
}

//! The parameters of latency monitoring and tracking.

/// The `latency-` parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Milliseconds from which an event is recorded; 0 records none.
    pub monitor_threshold_ms: u64,
    /// Whether the latency of commands is recorded.
    pub tracking: bool,
    /// The percentiles that INFO shows, in millionths of a per cent.
    pub tracking_info_percentiles: Vec<u32>,
}

impl Default for Latency {
    fn default() -> Self {
        let tracking_info_percentiles = vec![50_000_000, 99_000_000, 99_900_000];
        Self { monitor_threshold_ms: 0, tracking: true, tracking_info_percentiles }
    }
}

pub(super) const MILLIONTHS: f64 = 1e6;

/// A percentile in millionths of a per cent as Redis writes it: `99.9`.
pub fn percentile_text(millionths: u32) -> String {
    let text = format!("{:.6}", f64::from(millionths) / MILLIONTHS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

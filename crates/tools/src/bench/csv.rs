//! Lines of comma-separated values.

use super::measured::MeasuredWorkload;
use crate::load::latency::{mean_us, percentile_us};

/// The columns of redis-benchmark under its names, then further ones.
pub const HEADING: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
    \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\",\
    \"p99_9_latency_ms\",\"server_cpu_us\",\"load_cpu_us\",\"errors\",\"run\",\
    \"nulls_per_reply\"\n";

/// One line for each run.
pub fn lines(measured: &MeasuredWorkload) -> String {
    let line = |(index, outcome): (usize, &crate::load::outcome::WindowOutcome)| {
        let latency = &outcome.latency;
        let percentile = |percentile| percentile_us(latency, percentile) / 1000.0;
        let nanos = |nanos: u64| nanos as f64 / 1e6;
        let milliseconds = [
            mean_us(latency) / 1000.0,
            nanos(latency.min()),
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
            nanos(latency.max()),
            percentile(99.9),
        ];
        let milliseconds = milliseconds.map(|time| format!("\"{time:.3}\"")).join(",");
        let server = outcome.server_us().map_or(String::new(), |us| format!("{us:.3}"));
        format!(
            "\"{}\",\"{:.2}\",{milliseconds},\"{server}\",\"{:.3}\",\"{}\",\"{}\",\"{:.4}\"\n",
            measured.name().replace('"', "\"\""),
            outcome.per_second(),
            outcome.load.us_per_request(outcome.requests),
            outcome.errors,
            index + 1,
            outcome.nulls_per_reply
        )
    };
    measured.outcomes.iter().enumerate().map(line).collect()
}

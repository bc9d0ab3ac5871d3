//! The errors of HOTKEYS, whose commands are on layer 5.

use std::fmt;

/// Why a command on hot keys failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotkeysError {
    /// START while a session is running.
    InProgress,
    /// RESET while a session is running.
    StopFirst,
    /// START without METRICS.
    NoMetrics,
    /// The number of metrics is not possible.
    MetricsCount,
    /// There are fewer metrics than announced.
    MetricsMismatch,
    /// None of the metrics is known.
    NoValidMetrics,
    /// A metric is named twice.
    Twice(&'static str),
    /// COUNT is out of range.
    Count,
    /// DURATION is out of range.
    Duration,
    /// SAMPLE is out of range.
    Sample,
    /// SLOTS outside a cluster.
    Slots,
}

impl fmt::Display for HotkeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InProgress => "ERR hotkey tracking session already in progress",
            Self::StopFirst => "ERR hotkey tracking session in progress, stop tracking first",
            Self::NoMetrics => "ERR METRICS parameter is required",
            Self::MetricsCount => "ERR METRICS count must be > 0 and <= 2",
            Self::MetricsMismatch => {
                "ERR METRICS count does not match number of metric types provided"
            }
            Self::NoValidMetrics => "ERR METRICS no valid metrics passed. Supported: CPU|NET",
            Self::Twice(metric) => {
                return write!(f, "ERR METRICS {metric} defined more than once!");
            }
            Self::Count => "ERR COUNT must be between 1 and 64",
            Self::Duration => "ERR DURATION must be between 1 and 1000000",
            Self::Sample => "ERR SAMPLE ratio must be positive",
            Self::Slots => "ERR SLOTS parameter cannot be used in non-cluster mode",
        })
    }
}

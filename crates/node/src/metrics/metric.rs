//! A row in a table of metrics.

use super::MetricsInput;
use super::page::MetricKind;

/// A metric with a sample for each `T`: a thread, a command, or `()` for a metric of one sample.
pub(super) struct Metric<T> {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) help: &'static str,
    pub(super) value: MetricValue<T>,
}

type MetricValue<T> = fn(&MetricsInput<'_>, &T) -> f64;

pub(super) const fn counter<T>(
    name: &'static str,
    help: &'static str,
    value: MetricValue<T>,
) -> Metric<T> {
    Metric { name, kind: MetricKind::Counter, help, value }
}

pub(super) const fn gauge<T>(
    name: &'static str,
    help: &'static str,
    value: MetricValue<T>,
) -> Metric<T> {
    Metric { name, kind: MetricKind::Gauge, help, value }
}

//! A row in a table of metrics.

use super::Snapshot;
use super::page::Kind;

/// A metric with a sample for each `T`: a thread, a command, or `()` for a metric of one sample.
pub(super) struct Metric<T> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) value: MetricValue<T>,
}

type MetricValue<T> = fn(&Snapshot<'_>, &T) -> f64;

pub(super) const fn counter<T>(
    name: &'static str,
    help: &'static str,
    value: MetricValue<T>,
) -> Metric<T> {
    Metric { name, kind: Kind::Counter, help, value }
}

pub(super) const fn gauge<T>(
    name: &'static str,
    help: &'static str,
    value: MetricValue<T>,
) -> Metric<T> {
    Metric { name, kind: Kind::Gauge, help, value }
}

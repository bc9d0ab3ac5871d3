//! `metrics-port` and `metrics-bind`: where monitoring systems find what the server counts.

use super::Config;
use super::parameter::Special;
use super::special::{print_addresses, read_addresses};

/// Where metrics are served over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Addresses, as those of `bind`.
    pub bind: Vec<String>,
    /// The port; 0: nowhere.
    pub port: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { bind: vec!["127.0.0.1".to_owned(), "-::1".to_owned()], port: 0 }
    }
}

impl Metrics {
    /// Whether they are served.
    pub fn is_on(&self) -> bool {
        self.port != 0 && !self.bind.is_empty()
    }
}

/// `metrics-bind`: a list of addresses. A single empty argument, or none, means nowhere.
pub(super) const METRICS_BIND: Special = Special {
    print: |config| config.metrics.bind.join(" "),
    read: |config: &mut Config, args| {
        config.metrics.bind = read_addresses(args)?;
        Ok(())
    },
    lines: |config| vec![print_addresses(&config.metrics.bind)],
    form: "address ...",
};

//! `metrics-port` and `metrics-bind`: where metrics are served over HTTP.

/// Where metrics are served over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Addresses, in the form of `bind`.
    pub bind: Vec<String>,
    /// The port; 0 disables the metrics server.
    pub port: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { bind: vec!["127.0.0.1".to_owned(), "-::1".to_owned()], port: 0 }
    }
}

impl Metrics {
    /// Whether metrics are served.
    pub fn is_on(&self) -> bool {
        self.port != 0 && !self.bind.is_empty()
    }
}

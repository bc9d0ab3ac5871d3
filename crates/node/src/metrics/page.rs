//! The text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).
//!
//! ```text
//! # HELP weft_keys Keys in a database.
//! # TYPE weft_keys gauge
//! weft_keys{db="0"} 3
//! ```
//!
//! A family is opened once and its samples follow it, as the format requires.

use std::fmt::Write;

/// The type of a family's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A present value.
    Gauge,
    /// Counts by upper bounds.
    Histogram,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct MetricsPage {
    pub(super) text: String,
}

/// A family to which samples are added.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl MetricsPage {
    /// Writes the header of a family.
    pub(super) fn family(
        &mut self,
        name: &'static str,
        kind: MetricKind,
        help: &str,
    ) -> Family<'_> {
        let kind = kind.name();
        // Writing to a `String` does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, name }
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.part("", labels, value);
    }

    /// Adds a histogram: the number of values up to each bound, of all values, and their sum.
    pub(super) fn histogram(
        &mut self,
        label: (&str, &str),
        bounds: impl Iterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (bound, below) in bounds {
            self.part("_bucket", &[label, ("le", &bound.to_string())], below as f64);
        }
        self.part("_bucket", &[label, ("le", "+Inf")], count as f64);
        self.part("_sum", &[label], sum);
        self.part("_count", &[label], count as f64);
    }

    fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (nth, (name, value)) in labels.iter().enumerate() {
            self.text.push(if nth == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            push_escaped(self.text, value);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Writes the value of a label, with escapes.
fn push_escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_follow_the_format() {
        let mut page = MetricsPage::default();
        let mut errors = page.family("weft_errors_total", MetricKind::Counter, "Errors.");
        errors.sample(&[("code", "a\"b\\c\nd\r")], 3.0);
        page.family("weft_ratio", MetricKind::Gauge, "A ratio.").sample(&[], 0.25);
        let mut durations = page.family("weft_seconds", MetricKind::Histogram, "Times.");
        durations.histogram(("command", "get"), [(1e-6, 1), (0.5, 4)].into_iter(), 5, 2.5);
        let expected = r#"# HELP weft_errors_total Errors.
# TYPE weft_errors_total counter
weft_errors_total{code="a\"b\\c\nd"} 3
# HELP weft_ratio A ratio.
# TYPE weft_ratio gauge
weft_ratio 0.25
# HELP weft_seconds Times.
# TYPE weft_seconds histogram
weft_seconds_bucket{command="get",le="0.000001"} 1
weft_seconds_bucket{command="get",le="0.5"} 4
weft_seconds_bucket{command="get",le="+Inf"} 5
weft_seconds_sum{command="get"} 2.5
weft_seconds_count{command="get"} 5
"#;
        assert_eq!(page.text, expected.replace("nd\"", "nd\r\""));
    }
}

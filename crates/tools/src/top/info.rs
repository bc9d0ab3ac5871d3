//! The lines of INFO by name.

use std::collections::BTreeMap;

/// The lines of INFO.
#[derive(Clone, Debug, Default)]
pub(super) struct Info(BTreeMap<String, String>);

impl Info {
    /// Reads the text that INFO replies.
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.trim_end().split_once(':'));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Whether there is no line, as in a reply that is not INFO.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text after a name.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The number after a name.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.trim_end_matches('%').parse().ok()
    }

    /// The same; 0 without one.
    pub(super) fn or_zero(&self, name: &str) -> f64 {
        self.number(name).unwrap_or(0.0)
    }

    /// A number in a line of the form `name:a=1,b=2`.
    pub(super) fn part(&self, name: &str, part: &str) -> Option<f64> {
        part_of(self.text(name)?, part)
    }

    /// The lines whose names have this prefix, without it.
    pub(super) fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let from = self.0.range(prefix.to_owned()..);
        from.map_while(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

/// A number in a text of the form `a=1,b=2`.
pub(super) fn part_of(text: &str, part: &str) -> Option<f64> {
    let mut parts = text.split(',').filter_map(|pair| pair.split_once('='));
    parts.find(|(name, _)| *name == part)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_name_and_beginning() {
        let info = Info::parse(
            "# Threads\r\nio_thread_0:clients=2,reads=7\r\nio_thread_1:clients=x\r\n\r\nhz:10\r\n\
             used_memory_peak_perc:90.5%\r\nodd\r\n",
        );
        assert_eq!(info.part("io_thread_0", "reads"), Some(7.0));
        assert_eq!(info.part("io_thread_1", "clients"), None);
        assert_eq!((info.or_zero("hz"), info.or_zero("odd")), (10.0, 0.0));
        assert_eq!(info.number("used_memory_peak_perc"), Some(90.5));
        let names: Vec<_> = info.with_prefix("io_thread_").map(|(name, _)| name).collect();
        assert_eq!(names, ["0", "1"]);
    }
}

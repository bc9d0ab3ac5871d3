//! The accepted differences between Weft and the reference, with their reasons.
//!
//! The table is a text: a line with a reason, then indented lines with its differences:
//!
//! - `accept TEST: REQUEST` is a difference in the reply to a request of a test;
//! - `may TEST: REQUEST` is a difference that depends on time, and does not always occur;
//! - `omit TEST: REQUEST` is a request that is not sent;
//! - `skip TEST` is a test that is not replayed.
//!
//! TEST and REQUEST are globs; a request is written as in the transcript.

use base::glob;

use xtask::Failure;

/// The rows of the table.
pub struct AcceptedTable<'a> {
    rows: Vec<AcceptedRow<'a>>,
}

struct AcceptedRow<'a> {
    /// In the table, from 1.
    line: usize,
    reason: &'a str,
    kind: AcceptedKind,
    test: &'a str,
    /// Empty when the test is skipped.
    request: &'a str,
    is_used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcceptedKind {
    Accept,
    May,
    Omit,
    Skip,
}

impl<'a> AcceptedTable<'a> {
    /// Reads a table.
    ///
    /// # Errors
    /// Names the line that has none of these forms.
    pub fn parse(text: &'a str) -> Result<Self, Failure> {
        let mut rows = Vec::new();
        let mut reason = "";
        for (at, full) in text.lines().enumerate() {
            let line = full.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !full.starts_with(' ') {
                reason = line;
                continue;
            }
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (kind, test, request) = match (verb, rest.split_once(": ")) {
                ("accept", Some((test, request))) => (AcceptedKind::Accept, test, request),
                ("may", Some((test, request))) => (AcceptedKind::May, test, request),
                ("omit", Some((test, request))) => (AcceptedKind::Omit, test, request),
                ("skip", None) => (AcceptedKind::Skip, rest, ""),
                _ => return Err(format!("accepted.txt:{}: {line}", at + 1)),
            };
            if reason.is_empty() {
                return Err(format!("accepted.txt:{}: no reason: {line}", at + 1));
            }
            rows.push(AcceptedRow { line: at + 1, reason, kind, test, request, is_used: false });
        }
        Ok(Self { rows })
    }

    /// The reason not to replay a test, if there is one.
    pub fn skipped(&mut self, test: &str) -> Option<&'a str> {
        self.reason(AcceptedKind::Skip, test, "")
    }

    /// The reason not to send a request, if there is one.
    pub fn omitted(&mut self, test: &str, request: &str) -> Option<&'a str> {
        self.reason(AcceptedKind::Omit, test, request)
    }

    /// The reason to accept a difference, if there is one.
    pub fn accepted(&mut self, test: &str, request: &str) -> Option<&'a str> {
        let always = self.reason(AcceptedKind::Accept, test, request);
        always.or_else(|| self.reason(AcceptedKind::May, test, request))
    }

    fn reason(&mut self, kind: AcceptedKind, test: &str, request: &str) -> Option<&'a str> {
        let is_meant = |row: &&mut AcceptedRow<'_>| {
            row.kind == kind && matches(row.test, test) && matches(row.request, request)
        };
        let row = self.rows.iter_mut().find(is_meant)?;
        row.is_used = true;
        Some(row.reason)
    }

    /// The rows that no test or request needed.
    pub fn unused(&self) -> Vec<String> {
        let unused = self.rows.iter().filter(|row| !row.is_used && row.kind != AcceptedKind::May);
        unused
            .map(|row| {
                let what =
                    if row.kind == AcceptedKind::Accept { "no difference" } else { "not met" };
                format!("accepted.txt:{}: {what}: {}: {}", row.line, row.test, row.request)
            })
            .collect()
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    glob::matches(pattern.as_bytes(), text.as_bytes(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_globs_and_missed_when_unused() -> Result<(), Failure> {
        let text = "# A table.\n\nClocks.\n    accept a::*: TTL k\n    skip b::t\n\
                    \x20   omit c::t: EVAL*\n\
                    Luck.\n    accept a::t: SPOP *\n    may a::t: SORT *\n";
        let mut table = AcceptedTable::parse(text)?;
        assert_eq!(table.accepted("a::t", "TTL k"), Some("Clocks."));
        assert_eq!(table.accepted("a::t", "TTL l"), None);
        assert_eq!(table.accepted("b::t", "TTL k"), None);
        assert_eq!((table.skipped("b::t"), table.skipped("a::t")), (Some("Clocks."), None));
        assert_eq!(table.omitted("c::t", "EVAL 1"), Some("Clocks."));
        assert_eq!(table.omitted("c::t", "GET"), None);
        assert_eq!(table.unused(), ["accepted.txt:8: no difference: a::t: SPOP *"]);
        assert!(AcceptedTable::parse("    skip a\n").is_err());
        assert!(AcceptedTable::parse("Why.\n    allow a\n").is_err());
        Ok(())
    }
}

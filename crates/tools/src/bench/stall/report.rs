//! The results as a Markdown table of the longest replies, and as JSON with percentiles.
//!
//! The names in the JSON stay, and units are in the names. A missing figure has its reason below
//! the table.

use std::fmt::{self, Write};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::{StallCell, StallLine, StallTable};
use crate::Error;
use crate::bench::server_table::ServerTable;
use crate::bench::unsupported::says_unsupported;
use crate::page::{aligned, cell, list};
use crate::servers::target::Role;
use crate::statistics::median;

/// The percentiles, with their names in JSON.
const PERCENTILES: [(f64, &str); 3] = [(50.0, "p50_ms"), (99.0, "p99_ms"), (99.9, "p99_9_ms")];

/// A time in a histogram of nanoseconds, in milliseconds.
fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// A time in milliseconds for people: two digits after the point below ten.
fn shown(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.0}") }
}

impl StallTable {
    /// Failed measurements with their row, server and reason. A peer without the command or the
    /// option is no failure.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str, &Error)> {
        self.errors().filter(|(.., failed, _)| *failed).map(|(row, name, _, why)| (row, name, why))
    }

    /// Every measurement without figures, and whether that is a failure.
    fn errors(&self) -> impl Iterator<Item = (&'static str, &str, bool, &Error)> {
        let of_line = |line: &StallLine| line.row.name;
        self.lines.iter().flat_map(move |line| {
            let cells = self.targets.iter().zip(&line.cells);
            cells.filter_map(move |((name, role), cell)| {
                let error = cell.as_ref().err()?;
                Some((of_line(line), name.as_str(), is_failure(*role, error), error))
            })
        })
    }

    fn notes(&self) -> String {
        let mut out = String::new();
        for (row, name, failed, error) in self.errors() {
            let kind = if failed { "FAILED" } else { "not supported" };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{row} on {name}: {kind}: {error}");
        }
        out
    }
}

impl ServerTable for StallTable {
    /// The longest reply in milliseconds, the median of the repetitions: a column for each server,
    /// and two where victims were on threads that are not involved.
    fn markdown(&self) -> String {
        let mut columns: Vec<(usize, bool)> = Vec::new();
        for index in 0..self.targets.len() {
            let cells = self.lines.iter().filter_map(|line| line.cells[index].as_ref().ok());
            let spread = cells.filter(|cell| cell.threads > 1).count() > 0;
            columns.extend(spread.then_some((index, true)));
            columns.push((index, false));
        }
        let name = |&(index, other): &(usize, bool)| {
            let name = cell(&self.targets[index].0);
            let spread = columns.contains(&(index, true));
            match (spread, other) {
                (false, _) => name,
                (true, true) => format!("{name}, other threads"),
                (true, false) => format!("{name}, same thread"),
            }
        };
        let heading = std::iter::once("longest reply, ms".to_owned());
        let mut lines = vec![heading.chain(columns.iter().map(name)).collect::<Vec<_>>()];
        lines.extend(self.lines.iter().map(|line| {
            let text = |&(index, other): &(usize, bool)| match &line.cells[index] {
                Ok(cell) => cell.longest_of(other, line.row.commands.is_empty()),
                Err(error) if is_failure(self.targets[index].1, error) => "failed".to_owned(),
                Err(_) => "-".to_owned(),
            };
            let label = std::iter::once(line.row.about.to_owned());
            label.chain(columns.iter().map(text)).collect()
        }));
        aligned(lines) + &list(self.notes().lines().map(str::to_owned))
    }

    fn json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            let cells = self.targets.iter().zip(&line.cells);
            let servers = cells.map(|((name, role), cell)| server_json(name, *role, cell));
            let servers = servers.collect::<Vec<_>>();
            json!({ "row": line.row.name, "size": self.size, "servers": servers })
        });
        Value::Array(lines.collect())
    }
}

fn server_json(name: &str, role: Role, cell: &Result<StallCell, Error>) -> Value {
    let (role, error) = (format!("{role:?}").to_lowercase(), cell.as_ref().err());
    let error = error.map(ToString::to_string);
    let Ok(StallCell { latencies, longest, repeats, threads, .. }) = cell else {
        return json!({ "name": name, "role": role, "error": error });
    };
    json!({
        "name": name,
        "role": role,
        "error": error,
        "threads": threads,
        "repeats": repeats,
        "command_ms": cell.as_ref().ok().map(StallCell::command_ms),
        "other_threads": figures(&latencies.other, &longest.other),
        "same_thread": figures(&latencies.same, &longest.same),
        "tool_delay": figures(&latencies.tool, &[]),
    })
}

fn is_failure(role: Role, error: &Error) -> bool {
    let is_refused = matches!(error, Error::Refused { reply, .. } if says_unsupported(reply));
    !(role == Role::Peer && is_refused)
}

/// Percentiles and the longest of each repetition; null without replies.
fn figures(latency: &Histogram<u64>, longest: &[f64]) -> Value {
    if latency.is_empty() {
        return Value::Null;
    }
    let mut figures = serde_json::Map::new();
    for (percentile, key) in PERCENTILES {
        let value = ms(latency.value_at_quantile(percentile / 100.0));
        figures.insert(key.into(), value.into());
    }
    figures.insert("longest_ms".into(), ms(latency.max()).into());
    if !longest.is_empty() {
        figures.insert("longest_of_each_ms".into(), longest.into());
    }
    figures.insert("replies".into(), latency.len().into());
    Value::Object(figures)
}

impl StallCell {
    fn command_ms(&self) -> f64 {
        self.command.as_secs_f64() * 1e3
    }

    /// The longest reply to victims of a place. Without a slow command no thread is involved, and
    /// both columns show the same figure.
    fn longest_of(&self, other: bool, quiet: bool) -> String {
        let longest = if other || quiet { &self.longest.other } else { &self.longest.same };
        match longest.is_empty() {
            true => "-".to_owned(),
            false => shown(median(longest.clone())),
        }
    }
}

impl fmt::Display for StallTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.markdown())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::stall::Longest;
    use crate::bench::stall::table::find;
    use crate::bench::stall::victims::VictimLatencies;

    fn cell(threads: usize, other: &[u64], same: &[u64]) -> StallCell {
        let mut latencies = VictimLatencies::default();
        let into = |histogram: &mut Histogram<u64>, ms: &[u64]| {
            ms.iter().for_each(|ms| histogram.saturating_record(ms * 1_000_000));
        };
        into(&mut latencies.other, other);
        into(&mut latencies.same, same);
        into(&mut latencies.tool, &[2]);
        let longest = |ms: &[u64]| ms.iter().map(|ms| *ms as f64).collect();
        let longest = Longest { other: longest(other), same: longest(same) };
        StallCell { latencies, longest, command: Duration::from_millis(150), repeats: 2, threads }
    }

    fn table() -> StallTable {
        let refused = |reply: &str| Error::Refused { step: "KEYS *".into(), reply: reply.into() };
        let oom = || Err(refused("OOM no memory"));
        let line = |name, cells| StallLine { row: find(name).unwrap(), cells };
        let roles = [("weft", Role::Subject), ("redis", Role::Peer)];
        StallTable {
            targets: roles.map(|(name, role)| (name.to_owned(), role)).into(),
            lines: vec![
                line("none", vec![Ok(cell(3, &[1], &[])), Ok(cell(1, &[3], &[]))]),
                line("keys", vec![Ok(cell(3, &[1, 4, 9], &[140])), Ok(cell(1, &[], &[120]))]),
                line("del", vec![Err(refused("ERR subject")), Err(refused("ERR syntax error"))]),
                line("unlink", vec![Ok(cell(3, &[1], &[])), oom()]),
            ],
            size: 1000,
            planned: 4,
        }
    }

    #[test]
    fn threads_have_columns_where_a_server_has_several() {
        let text = table().markdown();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        let title = ["longest reply, ms", "weft, other threads", "weft, same thread", "redis"];
        assert_eq!(rows[0][1..5], title);
        assert_eq!(rows[2][2..5], ["1.00", "1.00", "3.00"]);
        assert_eq!(rows[3][2..5], ["4.00", "140", "120"]);
        assert_eq!(rows[4][2..5], ["failed", "failed", "-"]);
        assert!(text.contains("del on weft: FAILED: the server refused KEYS \\*: ERR subject"));
        assert!(text.contains("del on redis: not supported:"), "{text}");
    }

    #[test]
    fn a_name_stays_in_its_cell() {
        let mut table = table();
        table.targets[1].0 = "redis | <b>".into();
        let text = table.markdown();
        let title = text.lines().next().unwrap();
        assert!(title.ends_with("| redis \\| &lt;b> |"), "{text}");
        assert!(text.contains("- del on redis | &lt;b>: not supported:"), "{text}");
    }

    #[test]
    fn json_has_figures_or_an_error() {
        let json = table().json();
        let keys = &json[1]["servers"][0];
        assert_eq!(keys["same_thread"]["replies"], 1);
        assert!((keys["other_threads"]["longest_ms"].as_f64().unwrap() - 9.0).abs() < 0.1);
        assert_eq!(keys["other_threads"]["longest_of_each_ms"], json!([1.0, 4.0, 9.0]));
        assert!((keys["other_threads"]["p50_ms"].as_f64().unwrap() - 4.0).abs() < 0.1);
        assert!((keys["tool_delay"]["longest_ms"].as_f64().unwrap() - 2.0).abs() < 0.1);
        let del = &json[2]["servers"][1];
        assert!(del["error"].as_str().unwrap().contains("ERR syntax error"));
        assert_eq!(del["same_thread"], Value::Null);
    }

    #[test]
    fn a_peer_that_does_not_know_a_command_is_no_failure() {
        let table = table();
        let failures: Vec<(&str, &str)> =
            table.failures().map(|(row, name, _)| (row, name)).collect();
        assert_eq!(failures, [("del", "weft"), ("unlink", "redis")]);
    }
}

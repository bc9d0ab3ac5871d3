//! Comparisons as Markdown tables, for a terminal and for a README.
//!
//! One row per figure, one column per server, then the subject's ratios to the floor and to the
//! peer that is best at this figure. Without a subject there are no ratios. Below the table are the
//! reasons why figures are missing.

use serde_json::Value;

use super::compare::{ComparedCell, ComparedFigures, ComparedLine, ComparisonTable};
use super::memory::MemoryTable;
use super::server_table::ServerTable;
use crate::page::{aligned, cell, list, markdown};
use crate::servers::target::Role;

/// One row: its label, a text for each server, and the subject's ratios.
struct MarkdownRow {
    label: String,
    cells: Vec<String>,
    ratios: Vec<Option<f64>>,
}

impl ServerTable for ComparisonTable {
    fn json(&self) -> Value {
        self.json()
    }

    fn markdown(&self) -> String {
        comparison(self)
    }
}

impl ServerTable for MemoryTable {
    fn json(&self) -> Value {
        self.json()
    }

    fn markdown(&self) -> String {
        memory(self)
    }
}

/// Means side by side, case by case.
fn comparison(table: &ComparisonTable) -> String {
    let rows: Vec<MarkdownRow> = table.lines.iter().flat_map(|line| table.rows(line)).collect();
    let has = |role| table.targets.iter().any(|target| target.1 == role);
    let of = [(Role::Floor, "x floor"), (Role::Peer, "x best peer")];
    let shown = of.map(|(role, title)| (has(Role::Subject) && has(role)).then_some(title));
    lay_out(&table.label(), &table.targets, &shown, &rows)
        + &table.differences()
        + &list(table.notes())
}

impl ComparisonTable {
    /// A list of the differences and whether they are significant, if there were enough rounds.
    fn differences(&self) -> String {
        let verdicts = self.lines.iter().flat_map(|line| {
            let text = |verdict| markdown(&format!("{}: {verdict}", line.case.title()));
            line.verdicts.iter().map(move |verdict| format!("- {}\n", text(verdict)))
        });
        let list: String = verdicts.collect();
        if list.is_empty() {
            list
        } else {
            format!("\nRatios of these means, with 95% intervals:\n\n{list}")
        }
    }

    fn rows(&self, line: &ComparedLine) -> Vec<MarkdownRow> {
        let title = line.case.title();
        let (floor_us, floor_rate) = self.best(line, Role::Floor);
        let (peer_us, peer_rate) = self.best(line, Role::Peer);
        let subject = self.targets.iter().position(|target| target.1 == Role::Subject);
        let subject = subject.and_then(|at| line.cells.get(at)?.figures());
        let ratio = |value: Option<f64>, of: Option<f64>| Some(value? / of?);
        let row = |unit: &str,
                   figure: &dyn Fn(&ComparedFigures) -> Option<String>,
                   ratios: [Option<f64>; 2]| {
            let shown = |shown: &ComparedCell| match shown {
                ComparedCell::Failed(_) => "failed".to_owned(),
                ComparedCell::Unknown(_) => "-".to_owned(),
                ComparedCell::Figures(cell) => figure(cell).unwrap_or_else(|| "-".to_owned()),
            };
            let cells = line.cells.iter().map(shown).collect();
            MarkdownRow { label: format!("{title}: {unit}"), cells, ratios: ratios.into() }
        };
        let cpu = subject.and_then(|cell| cell.cpu_us);
        let rate = subject.map(|cell| cell.per_second);
        let mut rows = vec![
            row(
                "CPU us/request",
                &|cell| cell.cpu_us.map(|us| format!("{us:.2}")),
                [ratio(cpu, floor_us), ratio(cpu, peer_us)],
            ),
            row(
                "requests/s",
                &|cell| Some(format!("{:.0}", cell.per_second)),
                [ratio(rate, floor_rate), ratio(rate, peer_rate)],
            ),
            row("p50 us", &|cell| Some(format!("{:.0}", cell.p50_us)), [None; 2]),
            row("p99 us", &|cell| Some(format!("{:.0}", cell.p99_us)), [None; 2]),
        ];
        if line.cells.iter().filter_map(ComparedCell::figures).any(|cell| cell.aborted().is_some())
        {
            rows.push(row("aborted", &ComparedFigures::aborted, [None; 2]));
        }
        rows
    }
}

/// The figures of memory side by side.
fn memory(table: &MemoryTable) -> String {
    let of = |role| move |column: &(&(String, Role), &f64)| column.0.1 == role;
    let has = |role| table.targets.iter().any(|target| target.1 == role);
    let rows = table.lines.iter().map(|line| {
        let columns = || table.targets.iter().zip(&line.values);
        let subject = columns().find(of(Role::Subject)).map(|(_, value)| *value);
        let least = columns().filter(of(Role::Peer)).map(|(_, value)| *value);
        let ratio = subject.zip(least.min_by(f64::total_cmp)).map(|(own, peer)| own / peer);
        let cells = line.values.iter().map(|value| format!("{value:.2}")).collect();
        MarkdownRow { label: line.label.clone(), cells, ratios: vec![ratio] }
    });
    let shown = (has(Role::Subject) && has(Role::Peer)).then_some("x best peer");
    let failed = table.failure.iter().map(ToString::to_string);
    lay_out("", &table.targets, &[shown], &rows.collect::<Vec<_>>()) + &list(failed)
}

/// The table with a label in its corner, and with the ratio columns that have a title.
fn lay_out(
    label: &str,
    targets: &[(String, Role)],
    titles: &[Option<&str>],
    rows: &[MarkdownRow],
) -> String {
    let mut lines = vec![vec![label.to_owned()]];
    lines[0].extend(targets.iter().map(|(name, _)| cell(name)));
    lines[0].extend(titles.iter().flatten().map(|title| (*title).to_owned()));
    for row in rows {
        let text = |ratio: &Option<f64>| ratio.map_or("".to_owned(), |ratio| format!("{ratio:.2}"));
        let ratios = titles.iter().zip(&row.ratios).filter(|(title, _)| title.is_some());
        let mut line = vec![cell(&row.label)];
        line.extend(row.cells.iter().cloned());
        line.extend(ratios.map(|(_, ratio)| text(ratio)));
        lines.push(line);
    }
    aligned(lines)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::bench::compare::tests::{FOUR, figures, table};
    use crate::bench::memory::MemoryLine;

    #[test]
    fn the_subject_is_compared_with_the_floor_and_the_best_peer() {
        let cells = [(2.0, 400.0), (3.0, 300.0), (6.0, 150.0), (4.0, 120.0)];
        let cells = cells.map(|(cpu_us, per_second)| figures(cpu_us, per_second)).to_vec();
        let table = table(&FOUR, cells);
        let text = table.markdown();
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
        assert_eq!(
            rows[0][1..8],
            ["means of 5 rounds", "floor", "weft", "a", "b", "x floor", "x best peer"]
        );
        assert_eq!(rows[2][1], "get, pipeline 1: CPU us/request");
        assert_eq!(rows[2][2..8], ["2.00", "3.00", "6.00", "4.00", "1.50", "0.75"]);
        assert_eq!(rows[3][2..8], ["400", "300", "150", "120", "0.75", "2.00"]);
        assert_eq!(rows[4][2..8], ["1", "1", "1", "1", "", ""]);
        assert!(text.lines().all(|line| line.len() == text.lines().next().unwrap().len()));
    }

    #[test]
    fn a_name_stays_in_its_cell() {
        let line = MemoryLine { label: "a|b".into(), key: "a", values: vec![1.0] };
        let targets = vec![("x | <b>\ny".to_owned(), Role::Peer)];
        let text = MemoryTable { targets, lines: vec![line], failure: None, interrupted: false };
        let text = text.markdown();
        assert!(text.contains("| x \\| &lt;b> y |") && text.contains("| a\\|b "), "{text}");
        assert_eq!(text.lines().count(), 3);
        // A backslash in the name does not unescape the bar after it.
        let targets = vec![("a\\|b".to_owned(), Role::Peer)];
        let text = MemoryTable { targets, lines: vec![], failure: None, interrupted: false };
        assert!(text.markdown().contains("| a\\\\\\|b |"), "{}", text.markdown());
    }

    #[test]
    fn a_failure_is_in_its_cell_and_below_the_table() {
        let cells = vec![
            ComparedCell::Failed("it is <gone>".into()),
            ComparedCell::Unknown("ERR *".into()),
        ];
        let text = table(&[("a|b", Role::Subject), ("c", Role::Peer)], cells).markdown();
        let row = text.lines().find(|line| line.contains("p99")).unwrap();
        assert!(row.contains(" failed | ") && row.contains(" - |"), "{text}");
        let notes: Vec<&str> = text.lines().skip_while(|line| !line.is_empty()).skip(1).collect();
        let failed = "- get, pipeline 1 on a|b: FAILED: it is &lt;gone>";
        assert_eq!(notes, [failed, "- get, pipeline 1 on c: not supported: ERR \\*"], "{text}");
    }

    #[test]
    fn ratios_need_a_subject_and_a_peer() {
        let line = |values: &[f64]| MemoryLine {
            label: "bytes/key".into(),
            key: "bytes_per_key",
            values: values.into(),
        };
        let table = |roles: &[Role], values: &[f64]| MemoryTable {
            targets: roles.iter().map(|role| (format!("{role:?}"), *role)).collect(),
            lines: vec![line(values)],
            failure: None,
            interrupted: false,
        };
        let (subject, peer) = (Role::Subject, Role::Peer);
        let both = table(&[subject, peer, peer], &[60.0, 80.0, 120.0]).markdown();
        assert!(both.lines().last().unwrap().ends_with(" 0.75 |"), "{both}");
        for alone in [table(&[subject], &[60.0]), table(&[peer, peer], &[1.0, 2.0])] {
            assert!(!alone.markdown().contains('x'), "{}", alone.markdown());
        }
    }
}

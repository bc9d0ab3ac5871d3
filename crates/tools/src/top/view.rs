//! A report in words: the lines and tables of the text and of the screen.

use super::report::{ThreadFigures, TopReport};
use crate::printable::printable_line;

/// A table with a title.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextTable {
    pub(super) title: &'static str,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Everything that is shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TopView {
    /// The server.
    pub(super) heading: String,
    /// The limit, and what to change.
    pub(super) limit: [String; 2],
    /// Names and values.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) threads: TextTable,
    pub(super) commands: TextTable,
    pub(super) hot: Option<TextTable>,
    pub(super) slow: Option<TextTable>,
}

/// The most characters of a text of the server.
const TEXT_CHARS_MAX: usize = 200;

/// Unknown values.
const UNKNOWN: &str = "-";

impl TopView {
    /// A report in words, with the server's address and the current time.
    pub(super) fn new(report: &TopReport, address: &str, unix_seconds: i64) -> Self {
        let process = report.process.map_or(String::new(), |pid| format!(", process {pid}"));
        let heading = format!(
            "{} at {address}, up {}{process}",
            report.server,
            duration(report.uptime_seconds)
        );
        let verdict = &report.verdict;
        let facts = facts(report).into_iter().map(|(name, value)| (name, shown(&value)));
        Self {
            heading: shown(&heading),
            limit: [format!("{}: {}", verdict.limit, verdict.finding), verdict.advice.clone()],
            facts: facts.collect(),
            threads: threads(report),
            commands: commands(report),
            hot: report.hot.as_ref().map(|keys| TextTable {
                title: "hot keys",
                head: vec!["key", "db", "requests/s"],
                rows: keys
                    .iter()
                    .map(|hot| {
                        let count = count(hot.requests_per_second as f64);
                        vec![shown(&hot.key), hot.db.to_string(), count]
                    })
                    .collect(),
            }),
            slow: report.slow.as_ref().map(|entries| TextTable {
                title: "slow log",
                head: vec!["command", "ago", "took"],
                rows: entries
                    .iter()
                    .map(|slow| {
                        let ago =
                            duration(unix_seconds.saturating_sub(slow.unix_seconds).max(0) as f64);
                        vec![shown(&slow.words), ago, time(slow.micros as f64)]
                    })
                    .collect(),
            }),
        }
    }

    /// The text of `--once`.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n\nlimit   {}\n", self.heading, self.limit[0]);
        text.push_str(&format!("advice  {}\n\n", self.limit[1]));
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
        for (name, value) in &self.facts {
            text.push_str(&format!("{name:width$}{value}\n"));
        }
        let tables =
            [Some(&self.threads), Some(&self.commands), self.hot.as_ref(), self.slow.as_ref()];
        for table in tables.into_iter().flatten().filter(|table| !table.rows.is_empty()) {
            text.push_str(&format!("\n{}\n", table.text()));
        }
        text
    }
}

impl TextTable {
    /// The greatest width of each column.
    pub(super) fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|name| name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    /// The first column is aligned to the left, the others to the right.
    fn text(&self) -> String {
        let widths = self.widths();
        let line = |cells: &[&str]| {
            let mut line = String::new();
            for (nth, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                match nth {
                    0 => line.push_str(&format!("{cell:width$}")),
                    _ => line.push_str(&format!("  {cell:>width$}")),
                }
            }
            line.trim_end().to_owned()
        };
        let mut lines = vec![self.title.to_uppercase(), line(&self.head)];
        lines.extend(
            self.rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())),
        );
        lines.join("\n")
    }
}

fn facts(report: &TopReport) -> Vec<(&'static str, String)> {
    let TopReport { clients, memory, keys, files, replication, .. } = report;
    let mut facts = vec![
        (
            "load",
            format!(
                "{} commands/s, {} errors/s, {}/s in, {}/s out",
                count(report.commands_per_second),
                count(report.errors_per_second),
                bytes(report.in_bytes_per_second),
                bytes(report.out_bytes_per_second)
            ),
        ),
        ("latency", format!("PING {}", time(report.ping_us))),
        (
            "clients",
            format!(
                "{} of {}, {} blocked, {} new/s, {} refused/s",
                count(clients.connected),
                count(clients.max),
                count(clients.blocked),
                count(clients.new_per_second),
                count(clients.rejected_per_second)
            ),
        ),
        (
            "memory",
            format!(
                "{}{}, at most {} so far, {} resident, fragmentation {:.2}",
                bytes(memory.used),
                match memory.max {
                    0.0 => ", no limit".to_owned(),
                    max => format!(" of {} ({})", bytes(max), memory.policy),
                },
                bytes(memory.peak),
                bytes(memory.rss),
                memory.fragmentation
            ),
        ),
        (
            "keys",
            format!(
                "{}, hit rate {}, {} expired/s, {} evicted/s",
                count(keys.count),
                keys.hit_rate.map_or(UNKNOWN.to_owned(), percent),
                count(keys.expired_per_second),
                count(keys.evicted_per_second)
            ),
        ),
        ("files", files_text(files)),
        (
            "replication",
            match &replication.link {
                Some(link) => format!("{}, link {link}", replication.role),
                None => format!("{}, {} replicas", replication.role, count(replication.replicas)),
            },
        ),
    ];
    if let Some(io_threads) = &report.io_threads {
        facts.push(("io-threads", io_threads.clone()));
    }
    facts
}

fn files_text(files: &super::report::FileFigures) -> String {
    if files.is_loading {
        return "keys are being loaded".to_owned();
    }
    let ok = |is_ok| if is_ok { "ok" } else { "FAILED" };
    let saving = if files.is_saving { ", one is written" } else { "" };
    let append_only = match files.append_only {
        false => "off".to_owned(),
        true => format!(
            "{}, {}{}",
            ok(files.append_only_ok),
            files.append_only_bytes.map_or(UNKNOWN.to_owned(), bytes),
            if files.is_rewriting { ", is rewritten" } else { "" }
        ),
    };
    format!(
        "last save {}, {} changes since{saving}; append-only file {append_only}",
        ok(files.last_save_ok),
        count(files.changes_since_save)
    )
}

fn threads(report: &TopReport) -> TextTable {
    let number = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), count);
    let share = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), percent);
    let row = |thread: &ThreadFigures| {
        vec![
            shown(&thread.name),
            share(thread.cpu),
            share(thread.busy),
            number(thread.clients),
            number(thread.commands_per_second),
            number(thread.reads_per_second),
            number(thread.writes_per_second),
        ]
    };
    TextTable {
        title: "threads",
        head: vec!["thread", "cpu", "busy", "clients", "commands/s", "reads/s", "writes/s"],
        rows: report.threads.iter().map(row).collect(),
    }
}

fn commands(report: &TopReport) -> TextTable {
    let micros = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), time);
    let rows = report.commands.iter().map(|command| {
        vec![
            shown(&command.name),
            count(command.per_second),
            time(command.mean_us),
            micros(command.p50_us),
            micros(command.p99_us),
            count(command.failed_per_second),
        ]
    });
    TextTable {
        title: "commands",
        head: vec!["command", "runs/s", "mean", "p50 so far", "p99 so far", "errors/s"],
        rows: rows.collect(),
    }
}

/// A text of the server in one line of limited length.
fn shown(text: &str) -> String {
    let mut shown = printable_line(text);
    if let Some((end, _)) = shown.char_indices().nth(TEXT_CHARS_MAX) {
        shown.truncate(end);
        shown.push_str("...");
    }
    shown
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

/// 12, 345.6, 12.3k, 4.5M.
fn count(value: f64) -> String {
    for (size, unit) in [(1e9, "G"), (1e6, "M"), (1e4, "k")] {
        if value >= size {
            return format!("{:.1}{unit}", value / if unit == "k" { 1e3 } else { size });
        }
    }
    if value >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn bytes(value: f64) -> String {
    let mut value = value;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" {
                format!("{value:.0} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// A time, given in microseconds, in a suitable unit.
fn time(us: f64) -> String {
    match us {
        0.0..100.0 => format!("{us:.1}us"),
        0.0..1e3 => format!("{us:.0}us"),
        0.0..1e6 => format!("{:.1}ms", us / 1e3),
        _ => format!("{:.2}s", us / 1e6),
    }
}

/// Seconds as days and a time of day.
fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, left) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
    if days == 0 { clock } else { format!("{days}d {clock}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        let counts = [0.0, 0.25, 99.5, 345.6, 9999.0, 12_345.0, 4.5e6, 2e9].map(count);
        assert_eq!(counts, ["0", "0.2", "99.5", "346", "9999", "12.3k", "4.5M", "2.0G"]);
        let sizes = [0.0, 1023.0, 1536.0, 5e6, 3e9, 2e13].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "4.8 MiB", "2.8 GiB", "18.2 TiB"]);
        let times = [0.0, 12.34, 345.0, 1500.0, 2.5e6].map(time);
        assert_eq!(times, ["0.0us", "12.3us", "345us", "1.5ms", "2.50s"]);
        assert_eq!([59.0, 90_061.0].map(duration), ["00:00:59", "1d 01:01:01"]);
    }

    #[test]
    fn tables_are_aligned() {
        let rows = [["get", "1"], ["longer", "12345"]].map(|row| row.map(str::to_owned).to_vec());
        let table =
            TextTable { title: "commands", head: vec!["command", "n"], rows: rows.to_vec() };
        let text = "COMMANDS\ncommand      n\nget          1\nlonger   12345";
        assert_eq!(table.text(), text);
    }
}

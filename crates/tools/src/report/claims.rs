//! What articles on Redis with threads report, beside what was measured here.
//!
//! The articles measured other machines, with more processors and load from outside, so equal
//! numbers are not to be expected: the question is whether the effect is there.

use super::measure::Cell;
use super::verdict::{Results, difference, percent};
use crate::page::Table;

/// A claim, and what answers it for a server.
struct Claim {
    says: &'static str,
    here: fn(&Results<'_>, usize) -> Option<String>,
}

const TABLE: &[Claim] = &[
    Claim { says: "52% more throughput with 8 I/O threads", here: eight_threads },
    Claim { says: "twice the queries a second with asynchronous I/O threads", here: best_threads },
    Claim { says: "30% lower p99 with asynchronous I/O threads", here: p99_of_threads },
    Claim { says: "8 to 9 times the throughput by pipelining", here: pipelining },
    Claim { says: "one core saturated while the second idles", here: two_threads },
];

/// One row for each claim, one column for each of the servers; nothing if nothing answers any.
pub(super) fn table(results: &Results<'_>, servers: &[(usize, String)]) -> Option<Table> {
    let names = servers.iter().map(|(_, name)| format!("{name}, here"));
    let mut table = Table::new(std::iter::once("articles".to_owned()).chain(names));
    let mut answers = 0;
    for claim in TABLE {
        let cells = servers.iter().map(|(server, _)| (claim.here)(results, *server));
        let cells: Vec<Option<String>> = cells.collect();
        answers += cells.iter().flatten().count();
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "not measured".to_owned()));
        table.rows.push(std::iter::once(claim.says.to_owned()).chain(cells).collect());
    }
    (answers > 0).then_some(table)
}

fn eight_threads(results: &Results<'_>, server: usize) -> Option<String> {
    let change = |series| {
        let cell = |label| results.cell("threads", series, label, server);
        Some(percent(&difference(cell("8")?, cell("1")?)))
    };
    Some(format!("reading {}, writing {}", change("reading")?, change("writing")?))
}

/// The fastest of more than one thread, with one thread.
fn best_and_one<'a>(
    results: &'a Results<'_>,
    server: usize,
) -> Option<((usize, &'a Cell), &'a Cell)> {
    let settings = results.settings("reading", server);
    let one = settings.iter().find(|setting| setting.0 == 1)?.1;
    let rate = |cell: &Cell| cell.rate().map_or(0.0, |rate| rate.mean);
    let more = settings.into_iter().filter(|setting| setting.0 > 1);
    let best = more.max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
    Some((best, one))
}

fn best_threads(results: &Results<'_>, server: usize) -> Option<String> {
    let ((threads, best), one) = best_and_one(results, server)?;
    let change = difference(best, one);
    Some(format!("{:.2} times with io-threads {threads}", change.ratio))
}

fn p99_of_threads(results: &Results<'_>, server: usize) -> Option<String> {
    let ((threads, best), one) = best_and_one(results, server)?;
    let p99 = |cell: &Cell| cell.mean(|sample| Some(sample.p99_us));
    let change = (p99(best)? / p99(one)? - 1.0) * 100.0;
    Some(format!("{change:+.0}% with io-threads {threads}"))
}

fn pipelining(results: &Results<'_>, server: usize) -> Option<String> {
    let times = |series| {
        let cell = |label| results.cell("pipelining", series, label, server);
        Some(difference(cell("16")?, cell("1")?).ratio)
    };
    Some(format!("{:.1} times for GET, {:.1} for SET", times("GET")?, times("SET")?))
}

fn two_threads(results: &Results<'_>, server: usize) -> Option<String> {
    let cell = results.cell("threads", "reading", "2", server)?;
    let threads = cell.threads();
    let (first, second) = (threads.first()?, threads.get(1));
    let second = second.map_or("none other".to_owned(), |t| format!("{} {:.0}%", t.0, t.1));
    Some(format!("io-threads 2: {} {:.0}%, {second}", first.0, first.1))
}

//! Several servers side by side: interleaved rounds, means, ratios.
//!
//! Noise on a machine drifts over minutes. Each case therefore goes round the servers several times
//! (A B C A B C ...), so that neighbours in time are compared. All figures are means over the
//! rounds, and all ratios are ratios of these means, with and without an interval. Only the server
//! whose turn it is runs; the others are paused.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::measured::name;
use super::significance::{PairVerdict, verdicts};
use super::unsupported::unknown;
use crate::client::session::ServerSession;
use crate::interrupt;
use crate::load::drive::{check, drive, make_ready_observed};
use crate::load::latency::percentile_us;
use crate::load::noise::MachineNoise;
use crate::load::outcome::WindowOutcome;
use crate::load::spec::LoadSpec;
use crate::load::workload::Workload;
use crate::servers::target::{Role, ServerTarget, TargetServer};
use crate::{Error, FailedMeasurement};

/// The first column of the text: the longest title of a workload.
const TITLE_WIDTH: usize = 36;

/// A workload under a load.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCase {
    /// The workload.
    pub row: &'static Workload,
    /// The load.
    pub load: LoadSpec,
}

impl ComparedCase {
    /// Its name in tables: the pipeline depth, and the settings that belong to the workload.
    pub fn title(&self) -> String {
        let ComparedCase { row: Workload { settings, .. }, load } = self;
        let clients = match (settings.clients, load.clients) {
            (None, _) => String::new(),
            (Some(_), 1) => ", 1 client".into(),
            (Some(_), count) => format!(", {count} clients"),
        };
        let ratio = settings.ratio.map_or(String::new(), |_| format!(", {}", load.ratio));
        format!("{}{clients}{ratio}, pipeline {}", name(self.row, load), load.pipeline)
    }
}

/// The servers and cases of a comparison.
#[derive(Debug, Clone)]
pub struct ComparisonPlan {
    /// The cases, in order.
    pub cases: Vec<ComparedCase>,
    /// Rounds over all servers, at least 1.
    pub rounds: usize,
}

/// Means over the rounds of one case on one server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparedFigures {
    /// Server CPU per request in microseconds, if its process is known.
    pub cpu_us: Option<f64>,
    /// Requests per second.
    pub per_second: f64,
    /// The median latency in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of latency in microseconds.
    pub p99_us: f64,
    /// The share of requests that were transactions aborted by a change of a watched key.
    pub aborted_per_request: f64,
}

impl ComparedFigures {
    /// The aborted transactions in percent; `None` without any.
    pub fn aborted(&self) -> Option<String> {
        let share = self.aborted_per_request;
        (share > 0.0).then(|| format!("{:.2}%", share * 100.0))
    }
}

/// The result of a server in a case.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparedCell {
    /// It was measured.
    Figures(ComparedFigures),
    /// It does not know the command, as this reply says.
    Unknown(String),
    /// It failed for this reason.
    Failed(String),
}

impl ComparedCell {
    /// Its figures, if it has any.
    pub fn figures(&self) -> Option<&ComparedFigures> {
        match self {
            ComparedCell::Figures(cell) => Some(cell),
            ComparedCell::Unknown(_) | ComparedCell::Failed(_) => None,
        }
    }

    /// Why it has none.
    fn reason(&self) -> Option<&str> {
        match self {
            ComparedCell::Unknown(reason) | ComparedCell::Failed(reason) => Some(reason),
            ComparedCell::Figures(_) => None,
        }
    }
}

/// One case over all servers, in the order of [`ComparisonTable::targets`].
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedLine {
    /// The measured case.
    pub case: ComparedCase,
    /// The result of each server.
    pub cells: Vec<ComparedCell>,
    /// Whether they differ, if there were enough rounds.
    pub verdicts: Vec<PairVerdict>,
}

/// The outcome of a comparison; `Display` prints it side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonTable {
    /// Names and roles of the servers.
    pub targets: Vec<(String, Role)>,
    /// The rounds of each case; an interruption leaves fewer.
    pub rounds: usize,
    /// One line per case.
    pub lines: Vec<ComparedLine>,
    /// The use of the machine by others, and the scatter of the windows.
    pub noise: MachineNoise,
    /// Whether it ended early; then the figures are of the rounds until then.
    pub interrupted: bool,
}

/// Starts every server, measures every case in interleaved rounds, and stops the servers.
/// `observe` gets the current step and the share that is done. When `stop` is set, it ends with the
/// rounds so far. A server that fails in a case has no figures for it, and takes part in the next
/// cases if it still answers.
///
/// # Errors
/// A server does not start, there is nothing to measure, or a load makes no sense.
pub fn compare(
    targets: &[ServerTarget],
    plan: &ComparisonPlan,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&str, f64),
) -> Result<ComparisonTable, Error> {
    if plan.rounds == 0 || plan.cases.is_empty() || targets.is_empty() {
        return Err(Error::Usage("a comparison needs servers, workloads and rounds".into()));
    }
    plan.cases.iter().try_for_each(|case| check(case.row, &case.load))?;
    let mut servers = Vec::with_capacity(targets.len());
    for target in targets {
        observe(&format!("starting {}", target.name), 0.0);
        let server = target.start()?;
        server.pause();
        servers.push(server);
    }
    let total = plan.cases.len() as f64;
    let (mut lines, mut noise) = (Vec::new(), MachineNoise::default());
    let names: Vec<_> = targets.iter().map(|target| (target.name.clone(), target.role)).collect();
    let mut running =
        RunningServers { targets, servers: &servers, gone: vec![None; targets.len()], stop };
    for (index, case) in plan.cases.iter().enumerate() {
        let mut progress = |text: &str, share: f64| observe(text, (index as f64 + share) / total);
        let rounds = running.measure_case(case, plan.rounds, &mut progress);
        if rounds.iter().any(|rounds| rounds.as_ref().is_ok_and(Vec::is_empty)) {
            break;
        }
        let outcomes: Vec<_> = rounds.iter().map(|rounds| rounds.as_deref().ok()).collect();
        let verdicts = verdicts(&names, &outcomes);
        outcomes.iter().flatten().for_each(|outcomes| noise.add_runs(outcomes));
        let sum_up = |outcomes: Vec<_>| ComparedCell::Figures(means(&outcomes));
        let cells = rounds.into_iter().map(|rounds| rounds.map_or_else(|cell| cell, sum_up));
        let cells = cells.collect();
        lines.push(ComparedLine { case: case.clone(), cells, verdicts });
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let (rounds, interrupted) = (plan.rounds, stop.load(Ordering::Relaxed));
    Ok(ComparisonTable { targets: names, rounds, lines, noise, interrupted })
}

/// The rounds of one server in a case so far, or why it has none.
type Rounds = Result<Vec<WindowOutcome>, ComparedCell>;

impl ComparedCell {
    /// The same for a server with figures in so many rounds before: it knows the command, so a
    /// refusal is a failure.
    fn after(self, rounds: usize) -> ComparedCell {
        match self {
            ComparedCell::Unknown(reason) | ComparedCell::Failed(reason) if rounds > 0 => {
                ComparedCell::Failed(format!("{reason} (after {rounds} rounds without a failure)"))
            }
            other => other,
        }
    }
}

/// The servers of a comparison while it lasts.
struct RunningServers<'a> {
    targets: &'a [ServerTarget],
    servers: &'a [TargetServer],
    /// Why a server no longer takes part.
    gone: Vec<Option<String>>,
    stop: &'a AtomicBool,
}

impl RunningServers<'_> {
    /// The rounds of one case on each server. An interruption ends them early.
    fn measure_case(
        &mut self,
        case: &ComparedCase,
        rounds: usize,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Vec<Rounds> {
        let ComparedCase { row, load } = case;
        let (mut load, count) = (load.clone(), self.targets.len());
        let mut shown = Vec::with_capacity(count);
        for (index, target) in self.targets.iter().enumerate() {
            progress(&format!("filling {} for {}", target.name, row.name), 0.0);
            let made = match &self.gone[index] {
                Some(reason) => Err(ComparedCell::Failed(reason.clone())),
                None => self.in_turn(index, |running| running.make_ready(row, &load, index)),
            };
            shown.push(made.map(|()| Vec::new()));
        }
        'rounds: for round in 0..rounds {
            load.seed = load.seed.wrapping_add(load.threads as u64);
            for (index, shown) in shown.iter_mut().enumerate() {
                let Ok(outcomes) = shown else { continue };
                if self.is_stopped() {
                    break 'rounds;
                }
                let name = &self.targets[index].name;
                let text = format!("{} x{} {} {name}", row.name, load.pipeline, round + 1);
                progress(&text, (round * count + index) as f64 / (rounds * count) as f64);
                match self.in_turn(index, |running| running.measure(row, &load, index)) {
                    // An interrupted round does not count.
                    _ if self.is_stopped() => {}
                    Ok(outcome) => outcomes.push(outcome),
                    Err(cell) => *shown = Err(cell.after(outcomes.len())),
                }
            }
        }
        shown
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Lets a server run for its turn. After a failure other than an error reply, it sends PING to
    /// find out whether the server still answers.
    fn in_turn<T>(
        &mut self,
        index: usize,
        turn: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, ComparedCell> {
        let server = &self.servers[index];
        server.resume();
        let result = turn(self);
        if let Err(Error::Connect { .. } | Error::Io { .. } | Error::Protocol(_)) = &result {
            let answer = ServerSession::open(&server.endpoint)
                .and_then(|mut session| session.ask("PING", &["PING"]).map(drop));
            self.gone[index] = answer.err().map(|error| format!("it is gone: {error}"));
        }
        server.pause();
        result.map_err(|error| match unknown(&self.targets[index], self.targets, &error) {
            Some(reply) => ComparedCell::Unknown(reply.to_owned()),
            None => ComparedCell::Failed(error.to_string()),
        })
    }

    /// One round on one server.
    fn measure(
        &self,
        row: &Workload,
        load: &LoadSpec,
        index: usize,
    ) -> Result<WindowOutcome, Error> {
        let server = &self.servers[index];
        let mut observe = |_: &_| interrupt::go_on(self.stop);
        let outcome = drive(&server.endpoint, row, load, server.pid, &mut observe)?;
        outcome.refuse_errors(row.name).map(|()| outcome)
    }

    /// Makes the data of a case on one server.
    fn make_ready(&self, row: &Workload, load: &LoadSpec, index: usize) -> Result<(), Error> {
        let server = &self.servers[index];
        if self.targets[index].role == Role::Floor {
            return Ok(());
        }
        let mut observe = |_| interrupt::go_on(self.stop);
        match make_ready_observed(&server.endpoint, row, load, true, &mut observe) {
            Err(Error::Interrupted) => Ok(()),
            made => made,
        }
    }
}

fn means(outcomes: &[WindowOutcome]) -> ComparedFigures {
    let count = outcomes.len().max(1) as f64;
    let over =
        |figure: &dyn Fn(&WindowOutcome) -> f64| outcomes.iter().map(figure).sum::<f64>() / count;
    let cpu: Option<f64> = outcomes.iter().map(WindowOutcome::server_us).sum();
    ComparedFigures {
        cpu_us: cpu.map(|sum| sum / count),
        per_second: over(&WindowOutcome::per_second),
        p50_us: over(&|outcome| percentile_us(&outcome.latency, 50.0)),
        p99_us: over(&|outcome| percentile_us(&outcome.latency, 99.0)),
        aborted_per_request: over(&|outcome| outcome.aborted_per_request),
    }
}

impl ComparisonTable {
    /// The least CPU per request and the most requests per second of the servers with this role.
    pub fn best(&self, line: &ComparedLine, role: Role) -> (Option<f64>, Option<f64>) {
        let all = || self.targets.iter().zip(&line.cells).filter(|(t, _)| t.1 == role);
        let cells = || all().filter_map(|(_, shown)| shown.figures());
        let least = cells().filter_map(|cell| cell.cpu_us).min_by(f64::total_cmp);
        let most = cells().map(|cell| cell.per_second).max_by(f64::total_cmp);
        (least, most)
    }

    /// Measurements that failed, with their case, server and reason.
    pub fn failures(&self) -> impl Iterator<Item = FailedMeasurement> {
        self.without_figures().filter_map(|(what, shown)| match shown {
            ComparedCell::Failed(reason) => {
                Some(FailedMeasurement { what, reason: reason.clone() })
            }
            ComparedCell::Unknown(_) | ComparedCell::Figures(_) => None,
        })
    }

    /// The kind of its figures.
    pub(super) fn label(&self) -> String {
        match self.rounds {
            1 => "one round".into(),
            rounds if self.interrupted => format!("means of up to {rounds} rounds"),
            rounds => format!("means of {rounds} rounds"),
        }
    }

    /// A line for each measurement without figures, and for each reason to doubt the others.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let missing = self.without_figures().filter_map(|(what, shown)| match shown {
            ComparedCell::Unknown(reply) => Some(format!("{what}: not supported: {reply}")),
            ComparedCell::Failed(reason) => {
                Some(FailedMeasurement { what, reason: reason.clone() }.to_string())
            }
            ComparedCell::Figures(_) => None,
        });
        let doubts = self.noise.warnings().into_iter().map(|doubt| format!("note: {doubt}"));
        missing.chain(doubts)
    }

    fn without_figures(&self) -> impl Iterator<Item = (String, &ComparedCell)> {
        self.lines.iter().flat_map(|line| {
            let cells = self.targets.iter().zip(&line.cells);
            let cells = cells.filter(|(_, shown)| shown.reason().is_some());
            cells.map(|((name, _), shown)| (format!("{} on {name}", line.case.title()), shown))
        })
    }

    fn figures(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &str,
        line: &ComparedLine,
        figure: impl Fn(&ComparedFigures) -> Option<String>,
    ) -> fmt::Result {
        let cells = line.cells.iter().map(ComparedCell::figures);
        let texts: Vec<Option<String>> = cells.map(|cell| cell.and_then(&figure)).collect();
        if texts.iter().all(Option::is_none) {
            return Ok(());
        }
        write!(f, "{:<TITLE_WIDTH$}", format!("  {label}"))?;
        for text in texts {
            write!(f, " {:>12}", text.as_deref().unwrap_or("-"))?;
        }
        writeln!(f)
    }
}

impl ComparisonTable {
    /// All figures as JSON.
    pub fn json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            let servers = self.targets.iter().zip(&line.cells).map(|((name, role), shown)| {
                let cell = shown.figures();
                json!({
                    "name": name,
                    "role": format!("{role:?}").to_lowercase(),
                    "cpu_us_per_request": cell.and_then(|cell| cell.cpu_us),
                    "requests_per_second": cell.map(|cell| cell.per_second),
                    "p50_us": cell.map(|cell| cell.p50_us),
                    "p99_us": cell.map(|cell| cell.p99_us),
                    "aborted_per_request": cell.map(|cell| cell.aborted_per_request),
                    "error": shown.reason(),
                })
            });
            json!({
                "workload": name(line.case.row, &line.case.load),
                "clients": line.case.load.clients,
                "pipeline": line.case.load.pipeline,
                "ratio": line.case.row.is_mixed().then(|| line.case.load.ratio.to_string()),
                "servers": servers.collect::<Vec<_>>(),
                "differences": line.verdicts.iter().map(verdict_json).collect::<Vec<_>>(),
            })
        });
        Value::Array(lines.collect())
    }
}

impl fmt::Display for ComparisonTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_ratios = self.lines.iter().any(|line| !line.verdicts.is_empty());
        let of_ratios = if has_ratios { "; ratios of these means, with 95% intervals" } else { "" };
        writeln!(f, "{}{of_ratios}", self.label())?;
        for line in &self.lines {
            write!(f, "{:<TITLE_WIDTH$}", line.case.title())?;
            for (name, _) in &self.targets {
                write!(f, " {name:>12}")?;
            }
            writeln!(f)?;
            let (floor_us, floor_rate) = self.best(line, Role::Floor);
            let (peer_us, peer_rate) = self.best(line, Role::Peer);
            let ratio = |value: Option<f64>, of: Option<f64>| Some(format!("{:.2}", value? / of?));
            let cpu = |cell: &ComparedFigures| cell.cpu_us.map(|us| format!("{us:.3}"));
            let rate = |cell: &ComparedFigures| Some(cell.per_second);
            self.figures(f, "CPU us/request", line, cpu)?;
            self.figures(f, "  x floor", line, |c| ratio(c.cpu_us, floor_us))?;
            self.figures(f, "  x best peer", line, |c| ratio(c.cpu_us, peer_us))?;
            self.figures(f, "requests/s", line, |c| Some(format!("{:.0}", c.per_second)))?;
            self.figures(f, "  x floor", line, |c| ratio(rate(c), floor_rate))?;
            self.figures(f, "  x best peer", line, |c| ratio(rate(c), peer_rate))?;
            self.figures(f, "p50 us", line, |c| Some(format!("{:.0}", c.p50_us)))?;
            self.figures(f, "p99 us", line, |c| Some(format!("{:.0}", c.p99_us)))?;
            self.figures(f, "aborted", line, ComparedFigures::aborted)?;
            line.verdicts.iter().try_for_each(|verdict| writeln!(f, "  {verdict}"))?;
        }
        self.notes().try_for_each(|note| writeln!(f, "{note}"))
    }
}

fn verdict_json(verdict: &PairVerdict) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("name".into(), verdict.name.clone().into());
    object.insert("with".into(), verdict.with.clone().into());
    for (_, key, difference) in &verdict.differences {
        let text = json!({
            "ratio": difference.ratio,
            "low_95": difference.low,
            "high_95": difference.high,
            "is_significant": difference.is_significant,
        });
        object.insert((*key).into(), text);
    }
    Value::Object(object)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;
    use crate::bench::server_table::ServerTable;
    use crate::bench::significance::tests::outcome;
    use crate::load::workload;
    use crate::load::workload::names;

    pub(in crate::bench) const FOUR: [(&str, Role); 4] =
        [("floor", Role::Floor), ("weft", Role::Subject), ("a", Role::Peer), ("b", Role::Peer)];

    /// A table of one line: GET on these servers.
    pub(in crate::bench) fn table(
        targets: &[(&str, Role)],
        cells: Vec<ComparedCell>,
    ) -> ComparisonTable {
        let case = ComparedCase { row: names::find("get").unwrap(), load: LoadSpec::default() };
        ComparisonTable {
            targets: targets.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect(),
            rounds: 5,
            noise: MachineNoise::default(),
            lines: vec![ComparedLine { case, cells, verdicts: vec![] }],
            interrupted: false,
        }
    }

    fn cell(cpu_us: f64, per_second: f64) -> ComparedFigures {
        let cpu_us = Some(cpu_us);
        ComparedFigures { cpu_us, per_second, p50_us: 1.0, p99_us: 2.0, aborted_per_request: 0.0 }
    }

    pub(in crate::bench) fn figures(cpu_us: f64, per_second: f64) -> ComparedCell {
        ComparedCell::Figures(cell(cpu_us, per_second))
    }

    #[test]
    fn ratios_are_to_the_floor_and_to_the_best_peer() {
        let cells = [(2.0, 400.0), (3.0, 300.0), (6.0, 150.0), (4.0, 120.0)];
        let cells = cells.map(|(cpu_us, per_second)| figures(cpu_us, per_second)).to_vec();
        let table = table(&FOUR, cells);
        assert_eq!(table.best(&table.lines[0], Role::Peer), (Some(4.0), Some(150.0)));
        let text = table.to_string();
        let ratios: Vec<&str> = text.lines().filter(|l| l.contains(" x ")).collect();
        assert!(ratios[0].ends_with("1.00         1.50         3.00         2.00"), "{text}");
        assert!(ratios[1].ends_with("0.50         0.75         1.50         1.00"), "{text}");
        assert!(ratios[3].ends_with("2.67         2.00         1.00         0.80"), "{text}");
    }

    #[test]
    fn a_peer_that_refuses_a_command_has_no_figures() {
        let cells =
            vec![figures(3.0, 300.0), ComparedCell::Unknown("ERR no".into()), figures(4.0, 120.0)];
        let table = table(&FOUR[1..], cells);
        assert_eq!(table.best(&table.lines[0], Role::Peer), (Some(4.0), Some(120.0)));
        let text = table.to_string();
        let cpu = text.lines().find(|line| line.contains("CPU")).unwrap();
        assert!(cpu.ends_with("3.000            -        4.000"), "{text}");
    }

    #[test]
    fn every_title_fits_its_column() {
        for row in workload::table::TABLE {
            let clients = row.settings.clients.unwrap_or(50);
            let load = LoadSpec { clients, pipeline: 16, ..LoadSpec::default() };
            let title = ComparedCase { row, load }.title();
            assert!(title.len() <= TITLE_WIDTH, "{title}");
        }
    }

    #[test]
    fn a_refusal_after_rounds_with_figures_is_a_failure() {
        let unknown = || ComparedCell::Unknown("ERR syntax error".into());
        assert_eq!(unknown().after(0), unknown());
        let reason = "ERR syntax error (after 2 rounds without a failure)";
        assert_eq!(unknown().after(2), ComparedCell::Failed(reason.into()));
    }

    #[test]
    fn aborted_transactions_have_a_line_if_there_are_any() {
        let shown = |aborted_per_request| {
            let cells = vec![ComparedCell::Figures(ComparedFigures {
                aborted_per_request,
                ..cell(1.0, 2.0)
            })];
            let table = table(&FOUR[1..2], cells);
            [table.to_string(), table.markdown()].map(|text| text.contains("aborted"))
        };
        assert_eq!((shown(0.0), shown(0.001)), ([false; 2], [true; 2]));
    }

    #[test]
    fn the_sentence_has_the_ratio_of_the_figures_in_the_table() {
        // Another program takes most of two rounds: the medians do not differ, the means do.
        let quiet = [100, 101, 99, 100, 102].map(outcome);
        let loaded = [100, 20, 99, 25, 102].map(outcome);
        let targets = [FOUR[1], FOUR[2]].map(|(name, role)| (name.to_owned(), role));
        let found = verdicts(&targets, &[Some(&quiet), Some(&loaded)]);
        let cells = [&quiet, &loaded].map(|rounds| ComparedCell::Figures(means(rounds)));
        let mut table = table(&FOUR[1..3], cells.to_vec());
        let stated = found[0].differences[0].2.ratio;
        table.lines[0].verdicts = found;
        [&quiet, &loaded].iter().for_each(|rounds| table.noise.add_runs(*rounds));
        let (text, markdown) = (table.to_string(), table.markdown());
        let (_, best) = table.best(&table.lines[0], Role::Peer);
        let shown = table.lines[0].cells[0].figures().unwrap().per_second / best.unwrap();
        assert!((shown - stated).abs() < 1e-9 && stated > 1.4, "{text}");
        for text in [text, markdown] {
            assert!(
                text.contains("means of 5 rounds") && text.contains("of these means"),
                "{text}"
            );
            assert!(text.contains("the machine is noisy"), "{text}");
        }
    }
}

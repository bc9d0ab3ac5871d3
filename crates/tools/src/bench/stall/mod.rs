//! `weft bench stall`: how long other clients wait beside a slow command.
//!
//! ```text
//! main thread      data -> locate -> [ settle | slow command ......... | settle ] -> again
//! victims' thread                    PING GET PING GET ... at a fixed rate, on each server thread
//! ```
//!
//! Each row of [`table`] has a freshly started server, so that it does not slow the next one. The
//! first row has no slow command: its latencies are the cost of the tool and the machine. Data is
//! stored while nothing is measured.
//!
//! Invariants: an error reply to a slow command or to a victim never becomes a figure; an
//! interrupted repetition does not count.

mod busy;
mod clients;
mod report;
pub mod table;
mod victims;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use self::table::SlowCommand;
pub use self::victims::VictimLatencies;

use self::busy::WaitingCrowd;
use self::clients::StallClients;
use self::table::{Fill, sized};
use crate::Error;
use crate::client::session::ServerSession;
use crate::load;
use crate::load::shape::RequestShape;
use crate::servers::pin::allow_open_files;
use crate::servers::target::{Role, ServerTarget, TargetServer};

/// How long victims are watched before the slow command, and after its reply, when the server does
/// what the command deferred.
const SETTLE_BEFORE: Duration = Duration::from_millis(20);
const SETTLE_AFTER: Duration = Duration::from_millis(200);

/// How long the row without a slow command is watched in each repetition.
const QUIET_TIME: Duration = Duration::from_millis(500);

/// Files that the process has open in addition to the sockets of a crowd.
const SPARE_FILES: u64 = 128;

/// The servers and slow commands of a measurement.
#[derive(Debug, Clone)]
pub struct StallPlan {
    /// The slow commands; the row without one should be first.
    pub rows: Vec<&'static SlowCommand>,
    /// Elements of the big values, and keys: N of the table.
    pub size: u64,
    /// Requests a second of each victim.
    pub rate: u32,
    /// The most repetitions of a row on a server, at least 1.
    pub repeats: u32,
    /// After this time, data included, a row is not repeated.
    pub row_time: Duration,
}

/// The result of one row on one server.
#[derive(Debug, Clone)]
pub struct StallCell {
    /// The latencies of the victims in all repetitions.
    pub latencies: VictimLatencies,
    /// The longest replies of each repetition, in milliseconds.
    pub longest: Longest,
    /// The longest time from sending the slow commands to the end of their replies.
    pub command: Duration,
    /// How often the slow commands ran.
    pub repeats: u32,
    /// Threads of the server that have a victim.
    pub threads: usize,
}

/// The longest reply of each repetition in milliseconds. A stall by the server is in each of them,
/// one by the machine only in some.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Longest {
    /// To victims on threads that are not involved; empty without such threads.
    pub other: Vec<f64>,
    /// To victims that share their thread with a slow command.
    pub same: Vec<f64>,
}

impl Longest {
    fn add(&mut self, latencies: &VictimLatencies) {
        let both = [(&mut self.other, &latencies.other), (&mut self.same, &latencies.same)];
        for (longest, latency) in both {
            longest.extend((!latency.is_empty()).then(|| latency.max() as f64 / 1e6));
        }
    }
}

/// One row over all servers, in the order of [`StallTable::targets`].
#[derive(Debug)]
pub struct StallLine {
    /// The slow command.
    pub row: &'static SlowCommand,
    /// The result of each server, or why it has none.
    pub cells: Vec<Result<StallCell, Error>>,
}

/// The outcome; `Display` prints the longest replies.
#[derive(Debug)]
pub struct StallTable {
    /// Names and roles of the servers.
    pub targets: Vec<(String, Role)>,
    /// One line per row.
    pub lines: Vec<StallLine>,
    /// N of the rows.
    pub size: u64,
    /// The rows of the plan: more than lines if `stop` was set.
    pub planned: usize,
}

/// Measures the rows on every server until `stop` is set, which drops the current row. An error of
/// one row on one server is its result, and the other rows are measured.
///
/// # Errors
/// A server does not start, or the plan is empty or out of range.
pub fn measure(
    targets: &[ServerTarget],
    plan: &StallPlan,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&str, f64),
) -> Result<StallTable, Error> {
    if plan.rows.is_empty() || plan.size == 0 || plan.rate == 0 || plan.repeats == 0 {
        return Err(Error::Usage("rows, size, rate and repeats must be at least 1".into()));
    }
    let crowds = plan.rows.iter().filter_map(|row| row.crowd);
    let crowd = crowds.map(|crowd| crowd.connections(plan.size)).max().unwrap_or(0);
    allow_open_files(crowd.saturating_add(SPARE_FILES))?;
    let steps = (plan.rows.len() * targets.len()) as f64;
    let names = targets.iter().map(|target| (target.name.clone(), target.role)).collect();
    let planned = plan.rows.len();
    let mut table = StallTable { targets: names, lines: Vec::new(), size: plan.size, planned };
    for (index, row) in plan.rows.iter().copied().enumerate() {
        let mut cells = Vec::with_capacity(targets.len());
        for (column, target) in targets.iter().enumerate() {
            let step = (index * targets.len() + column) as f64;
            observe(&format!("{} on {}", row.name, target.name), step / steps);
            let server = match target.start() {
                Err(_) if stop.load(Ordering::Relaxed) => return Ok(table),
                started => started?,
            };
            let cell = measure_row(row, &server, plan, stop);
            if stop.load(Ordering::Relaxed) {
                return Ok(table);
            }
            cells.push(cell);
        }
        table.lines.push(StallLine { row, cells });
    }
    Ok(table)
}

fn measure_row(
    row: &SlowCommand,
    server: &TargetServer,
    plan: &StallPlan,
    stop: &AtomicBool,
) -> Result<StallCell, Error> {
    let start = Instant::now();
    let mut clients = StallClients::open(&server.endpoint, row.commands.len())?;
    let mut cell = StallCell {
        latencies: VictimLatencies::default(),
        longest: Longest::default(),
        command: Duration::ZERO,
        repeats: 0,
        threads: clients.victims.len(),
    };
    fill(&mut clients.control, row.data, plan.size)?;
    while cell.repeats < plan.repeats && (cell.repeats == 0 || start.elapsed() < plan.row_time) {
        fill(&mut clients.control, row.before, plan.size)?;
        let open = |crowd| WaitingCrowd::open(&server.endpoint, crowd, plan.size);
        let mut waiting = row.crowd.as_ref().map(open).transpose()?;
        let measured = row.crowd.is_some_and(|crowd| crowd.measured);
        if let (Some(waiting), false) = (&mut waiting, measured) {
            waiting.begin(&mut clients.control, stop)?;
        }
        clients.locate()?;
        if measured {
            // The crowd is on all threads.
            clients.involve_all();
        }
        let waiting = waiting.as_mut().filter(|_| measured);
        let (latencies, command) = repeat(row, &mut clients, waiting, plan, stop)?;
        cell.latencies.add(&latencies);
        cell.longest.add(&latencies);
        cell.command = cell.command.max(command);
        cell.repeats += 1;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(cell)
}

fn fill(control: &mut ServerSession, fills: &[Fill], size: u64) -> Result<(), Error> {
    for (index, fill) in fills.iter().enumerate() {
        let shape = RequestShape { keys: fill.requests(size), ..RequestShape::default() };
        load::fill::fill(control, &sized(fill.command, size), &shape, index as u64 + 1)?;
    }
    Ok(())
}

/// One repetition: the slow commands on this thread, the victims on another.
fn repeat(
    row: &SlowCommand,
    clients: &mut StallClients,
    waiting: Option<&mut WaitingCrowd>,
    plan: &StallPlan,
    stop: &AtomicBool,
) -> Result<(VictimLatencies, Duration), Error> {
    let StallClients { control, victims, busy } = clients;
    let (ended, period) = (AtomicBool::new(false), Duration::from_secs(1) / plan.rate);
    std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new().name("victims".into());
        let watcher = watcher
            .spawn_scoped(scope, || victims::watch(victims, period, &ended))
            .map_err(Error::io("start the victims' thread"))?;
        std::thread::sleep(SETTLE_BEFORE);
        let start = Instant::now();
        let begun = waiting.map_or(Ok(()), |waiting| waiting.begin(control, stop));
        let done = begun.and_then(|()| busy::send_all(row, plan.size, busy, stop));
        let command = start.elapsed();
        if done.is_ok() {
            std::thread::sleep(if row.commands.is_empty() { QUIET_TIME } else { SETTLE_AFTER });
        }
        ended.store(true, Ordering::Release);
        let latencies = watcher.join();
        done?;
        let latencies = latencies
            .unwrap_or_else(|_| Err(Error::Protocol("the victims' thread ended early".into())))?;
        Ok((latencies, command))
    })
}

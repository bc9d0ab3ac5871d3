//! The cost of a server without load: resident bytes per key, per element of collections and per
//! connection, and CPU when idle.
//!
//! Each figure has a freshly started server, because memory left over from an earlier load would
//! hide what the next one takes. Bytes are the difference of resident memory before and after, so
//! the size of the empty server is not in them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::churn;
use super::elements;
use crate::client::session::ServerSession;
use crate::client::stream::ServerStream;
use crate::interrupt;
use crate::load::fill::{fill, fill_slots};
use crate::load::shape::RequestShape;
use crate::servers::account::{CpuSnapshot, resident_bytes};
use crate::servers::pin::allow_open_files;
use crate::servers::target::{Role, ServerTarget, TargetServer};
use crate::{Error, FailedMeasurement};

/// How long a server may take to release memory that it needed only temporarily.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(6);

/// The time between two readings of its memory, and how many equal ones mean that it is stable.
const SETTLE_PERIOD: Duration = Duration::from_millis(500);
const SETTLE_READINGS: u32 = 5;

/// Files that the process has open in addition to the clients' sockets.
const SPARE_FILES: u64 = 64;
/// Requests that fill every buffer between client and server.
const WARMING_REQUESTS: u64 = 10_000;
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemoryFigure {
    /// Resident bytes for each key.
    Keys,
    /// The same when each key has an expiry.
    ExpiringKeys,
    /// Resident bytes for each integer string.
    Integers,
    /// Resident bytes for each field of small hashes.
    SmallHashes,
    /// Resident bytes for each field of one big hash.
    BigHash,
    /// Resident bytes for each member of one big sorted set.
    BigSortedSet,
    /// Resident bytes for each element of one long list.
    List,
    /// Resident bytes for each member of small sets.
    SmallSets,
    /// Resident bytes for each member of one big set.
    BigSet,
    /// Resident bytes for each entry of one stream.
    Stream,
    /// Resident bytes for each idle connection.
    Connections,
    /// Resident memory after many rewrites over that of the same data freshly loaded.
    Churn,
    /// CPU while clients are connected and idle, in percent of a core.
    Idle,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The figures, in the order of the lines.
    pub figures: Vec<MemoryFigure>,
    /// The keys to load; loads of elements use only their number.
    pub shape: RequestShape,
    /// Connections whose memory is measured; the `maxclients` of the servers must allow them.
    pub connections: usize,
    /// Connected clients while idle CPU is measured.
    pub idle_clients: usize,
    /// How long idle CPU is measured.
    pub idle_time: Duration,
}

/// One figure over all servers.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryLine {
    pub label: String,
    /// Its name in JSON, unit included.
    pub key: &'static str,
    /// The figures, in the order of [`MemoryTable::targets`].
    pub values: Vec<f64>,
}

/// The outcome; `Display` prints it side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryTable {
    /// Names and roles of the servers.
    pub targets: Vec<(String, Role)>,
    /// One line per figure that was measured on all servers.
    pub lines: Vec<MemoryLine>,
    /// The figure that failed; those after it were not measured.
    pub failure: Option<FailedMeasurement>,
    /// Whether it ended early; then the figures are those so far.
    pub interrupted: bool,
}

/// Measures the figures on every server until one fails or `stop` is set. The floor stores nothing
/// and is left out.
pub fn measure(
    targets: &[ServerTarget],
    plan: &MemoryPlan,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&str, f64),
) -> Result<MemoryTable, Error> {
    let connections = plan.connections.max(plan.idle_clients) as u64;
    allow_open_files(connections.saturating_add(SPARE_FILES))?;
    let steps = (plan.figures.len() * targets.len()) as f64;
    let names = targets.iter().map(|target| (target.name.clone(), target.role)).collect();
    let lines = Vec::with_capacity(plan.figures.len());
    let mut table = MemoryTable { targets: names, lines, failure: None, interrupted: false };
    for (row, figure) in plan.figures.iter().enumerate() {
        let (label, key) = figure.names(plan);
        let mut values = Vec::with_capacity(targets.len());
        for (column, target) in targets.iter().enumerate() {
            let step = (row * targets.len() + column) as f64;
            observe(&format!("{}: {label}", target.name), step / steps);
            let value = target.start().and_then(|server| figure.of(&server, plan, stop));
            // A figure that an interrupt has ended is no failure.
            if stop.load(Ordering::Relaxed) {
                table.interrupted = true;
                return Ok(table);
            }
            match value {
                Ok(value) => values.push(value),
                Err(error) => {
                    let what = format!("{label} on {}", target.name);
                    table.failure = Some(FailedMeasurement { what, reason: error.to_string() });
                    return Ok(table);
                }
            }
        }
        table.lines.push(MemoryLine { label, key, values });
    }
    Ok(table)
}

impl MemoryFigure {
    /// The label that people read, and the name in JSON.
    fn names(self, plan: &MemoryPlan) -> (String, &'static str) {
        if let Some(elements) = elements::of(self) {
            return (format!("bytes/{}", elements.about), elements.key);
        }
        let RequestShape { keys, key_bytes, value_bytes, .. } = plan.shape;
        let load = format!("bytes/key: {keys} x {key_bytes} + {value_bytes} B");
        match self {
            MemoryFigure::ExpiringKeys => (format!("{load}, expiring"), "bytes_per_expiring_key"),
            MemoryFigure::Connections => {
                let label = format!("bytes/idle connection: {}", plan.connections);
                (label, "bytes_per_idle_connection")
            }
            MemoryFigure::Churn => {
                let label = format!("memory after/before 50 rewrites: {keys} keys");
                (label, "memory_after_rewrites")
            }
            MemoryFigure::Idle => {
                let label = format!("idle CPU, % of a core: {} clients", plan.idle_clients);
                (label, "idle_cpu_percent")
            }
            _ => (load, "bytes_per_key"),
        }
    }

    fn of(self, server: &TargetServer, plan: &MemoryPlan, stop: &AtomicBool) -> Result<f64, Error> {
        if let Some(elements) = elements::of(self) {
            let shape = elements.shape(plan.shape.keys);
            return Ok(per_key(server, elements.fill, &shape, stop)? / elements.per_request as f64);
        }
        let expiring = "SET {key} {value} EX {100000..999999}";
        match self {
            MemoryFigure::ExpiringKeys => per_key(server, expiring, &plan.shape, stop),
            MemoryFigure::Connections => per_connection(server, plan.connections, stop),
            MemoryFigure::Churn => {
                let pid = known_pid(server)?;
                let mut session = ServerSession::open(&server.endpoint)?;
                let empty = settled_bytes(pid, stop)?;
                let mut memory = || Ok(settled_bytes(pid, stop)? - empty);
                churn::measure(&mut session, plan.shape.keys, stop, &mut memory)
            }
            MemoryFigure::Idle => idle_percent(server, plan, stop),
            _ => per_key(server, "SET {key} {value}", &plan.shape, stop),
        }
    }
}

/// Resident bytes for each request of a fill.
fn per_key(
    server: &TargetServer,
    text: &str,
    shape: &RequestShape,
    stop: &AtomicBool,
) -> Result<f64, Error> {
    let pid = known_pid(server)?;
    let mut session = ServerSession::open(&server.endpoint)?;
    // First one key and full batches that store nothing, so that the one-time memory of a first
    // write and of full buffers is not counted for the keys.
    fill(&mut session, text, &RequestShape { keys: 1, ..shape.clone() }, 1)?;
    fill(
        &mut session,
        "ECHO {value}",
        &RequestShape { keys: WARMING_REQUESTS, ..shape.clone() },
        1,
    )?;
    let before = settled_bytes(pid, stop)?;
    fill_slots(&mut session, text, shape, 1, None, &mut |_| interrupt::go_on(stop))?;
    Ok((settled_bytes(pid, stop)? - before) / shape.keys as f64)
}

fn per_connection(server: &TargetServer, count: usize, stop: &AtomicBool) -> Result<f64, Error> {
    let pid = known_pid(server)?;
    drop(connect(server, 1, stop)?);
    let before = settled_bytes(pid, stop)?;
    let connections = connect(server, count, stop)?;
    Ok((settled_bytes(pid, stop)? - before) / connections.len().max(1) as f64)
}

fn idle_percent(server: &TargetServer, plan: &MemoryPlan, stop: &AtomicBool) -> Result<f64, Error> {
    let pid = known_pid(server)?;
    let _connections = connect(server, plan.idle_clients, stop)?;
    settled_bytes(pid, stop)?;
    let look = || CpuSnapshot::take(pid).map_err(Error::io("read the CPU time of the server"));
    let start = look()?;
    interrupt::sleep(plan.idle_time, stop)?;
    let used = start.until(&look()?);
    Ok(used.busy_percent(used.total()))
}

/// Connections with one reply each, because a connection that is not accepted yet costs nothing.
fn connect(
    server: &TargetServer,
    count: usize,
    stop: &AtomicBool,
) -> Result<Vec<ServerStream>, Error> {
    let open = |_| {
        interrupt::check(stop)?;
        let mut session = ServerSession::open(&server.endpoint)?;
        session.ask("PING", &["PING"])?;
        Ok(session.into_stream())
    };
    (0..count).map(open).collect()
}

fn known_pid(server: &TargetServer) -> Result<u32, Error> {
    server.pid.ok_or_else(|| Error::Usage("the server's process is not known; give its pid".into()))
}

/// Resident bytes once they no longer change: servers release query buffers with a delay.
fn settled_bytes(pid: u32, stop: &AtomicBool) -> Result<f64, Error> {
    let mut last = resident_bytes(pid)?;
    let (mut equal, mut waited) = (0, Duration::ZERO);
    while equal < SETTLE_READINGS && waited < SETTLE_TIME_MAX {
        interrupt::sleep(SETTLE_PERIOD, stop)?;
        waited += SETTLE_PERIOD;
        let now = resident_bytes(pid)?;
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
    }
    Ok(last as f64)
}

impl MemoryTable {
    pub fn json(&self) -> Value {
        let servers = self.targets.iter().enumerate().map(|(index, (name, _))| {
            let mut server = serde_json::Map::new();
            server.insert("name".into(), name.as_str().into());
            for line in &self.lines {
                server.insert(line.key.into(), json!(line.values[index]));
            }
            Value::Object(server)
        });
        Value::Array(servers.collect())
    }
}

impl fmt::Display for MemoryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<44}", "")?;
        for (name, _) in &self.targets {
            write!(f, " {name:>12}")?;
        }
        writeln!(f)?;
        for line in &self.lines {
            write!(f, "{:<44}", line.label)?;
            for value in &line.values {
                write!(f, " {value:>12.2}")?;
            }
            writeln!(f)?;
        }
        self.failure.iter().try_for_each(|failure| writeln!(f, "{failure}"))
    }
}

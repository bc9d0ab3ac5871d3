//! What a server costs without load: resident bytes per key, per element of collections and per
//! connection, and CPU when idle.
//!
//! Each figure has a freshly started server to itself, because memory that an earlier load left
//! behind would hide what the next one takes. Bytes are the difference of resident memory before
//! and after, so the empty server's own size is not in them.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::account::{CpuSnapshot, resident_bytes};
use super::churn;
use super::elements::{self, Elements};
use super::pin::allow_open_files;
use super::session::Session;
use super::stream::Stream;
use super::target::{Role, Server, Target};
use super::template::Shape;
use crate::Error;

/// How long a server may take to give back what it needed only for a moment.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(6);

/// The time between two readings of its memory, and how many equal ones mean that it is stable.
const SETTLE_PERIOD: Duration = Duration::from_millis(500);
const SETTLE_READINGS: u32 = 5;

/// Files beside the clients' sockets that the process has open.
const SPARE_FILES: u64 = 64;
/// Requests that fill every buffer between client and server.
const WARMING_REQUESTS: u64 = 10_000;

/// One thing that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Figure {
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

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The figures, in the order of the lines.
    pub figures: Vec<Figure>,
    /// The keys to load; loads of elements have their own sizes and use only the number.
    pub shape: Shape,
    /// Connections whose memory is measured; the servers' own limit of clients must allow them.
    pub connections: usize,
    /// Connected clients while idle CPU is measured.
    pub idle_clients: usize,
    /// How long idle CPU is measured.
    pub idle_time: Duration,
}

/// One figure over all servers.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryLine {
    /// What was measured.
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
    /// One line per figure.
    pub lines: Vec<MemoryLine>,
}

/// Measures the figures on every server. The floor stores nothing and is left out.
///
/// # Errors
/// When a server does not start, its process is unknown, or it refuses keys or connections.
pub fn measure(
    targets: &[Target],
    plan: &MemoryPlan,
    observe: &mut dyn FnMut(&str, f64),
) -> Result<MemoryTable, Error> {
    allow_open_files(plan.connections.max(plan.idle_clients) as u64 + SPARE_FILES)?;
    let steps = (plan.figures.len() * targets.len()) as f64;
    let mut lines = Vec::with_capacity(plan.figures.len());
    for (row, figure) in plan.figures.iter().enumerate() {
        let (label, key) = figure.names(plan);
        let mut values = Vec::with_capacity(targets.len());
        for (column, target) in targets.iter().enumerate() {
            let step = (row * targets.len() + column) as f64;
            observe(&format!("{}: {label}", target.name), step / steps);
            values.push(figure.of(&target.start()?, plan)?);
        }
        lines.push(MemoryLine { label, key, values });
    }
    let targets = targets.iter().map(|target| (target.name.clone(), target.role)).collect();
    Ok(MemoryTable { targets, lines })
}

impl Figure {
    /// The load whose elements are counted, if it is one.
    fn elements(self) -> Option<&'static Elements> {
        match self {
            Figure::Integers => Some(&elements::INTEGERS),
            Figure::SmallHashes => Some(&elements::SMALL_HASHES),
            Figure::BigHash => Some(&elements::BIG_HASH),
            Figure::BigSortedSet => Some(&elements::BIG_SORTED_SET),
            Figure::List => Some(&elements::LIST),
            Figure::SmallSets => Some(&elements::SMALL_SETS),
            Figure::BigSet => Some(&elements::BIG_SET),
            Figure::Stream => Some(&elements::STREAM),
            Figure::Keys | Figure::ExpiringKeys => None,
            Figure::Connections | Figure::Churn | Figure::Idle => None,
        }
    }

    /// The label that people read, and the name in JSON.
    fn names(self, plan: &MemoryPlan) -> (String, &'static str) {
        if let Some(elements) = self.elements() {
            return (format!("bytes/{}", elements.about), elements.key);
        }
        let Shape { keys, key_bytes, value_bytes, .. } = plan.shape;
        let load = format!("bytes/key: {keys} x {key_bytes} + {value_bytes} B");
        match self {
            Figure::ExpiringKeys => (format!("{load}, expiring"), "bytes_per_expiring_key"),
            Figure::Connections => {
                let label = format!("bytes/idle connection: {}", plan.connections);
                (label, "bytes_per_idle_connection")
            }
            Figure::Churn => {
                let label = format!("memory after/before 50 rewrites: {keys} keys");
                (label, "memory_after_rewrites")
            }
            Figure::Idle => {
                let label = format!("idle CPU, % of a core: {} clients", plan.idle_clients);
                (label, "idle_cpu_percent")
            }
            _ => (load, "bytes_per_key"),
        }
    }

    fn of(self, server: &Server, plan: &MemoryPlan) -> Result<f64, Error> {
        if let Some(elements) = self.elements() {
            let shape = elements.shape(plan.shape.keys);
            return Ok(per_key(server, elements.fill, &shape)? / elements.per_request as f64);
        }
        let expiring = "SET {key} {value} EX {100000..999999}";
        match self {
            Figure::ExpiringKeys => per_key(server, expiring, &plan.shape),
            Figure::Connections => per_connection(server, plan.connections),
            Figure::Churn => {
                let pid = known_pid(server)?;
                let mut session = Session::open(&server.endpoint)?;
                let empty = settled_bytes(pid)?;
                let mut memory = || Ok(settled_bytes(pid)? - empty);
                churn::measure(&mut session, plan.shape.keys, &mut memory)
            }
            Figure::Idle => idle_percent(server, plan),
            _ => per_key(server, "SET {key} {value}", &plan.shape),
        }
    }
}

/// Resident bytes for each request of a fill.
fn per_key(server: &Server, fill: &str, shape: &Shape) -> Result<f64, Error> {
    let pid = known_pid(server)?;
    let mut session = Session::open(&server.endpoint)?;
    // One key first and full batches of what stores nothing, so that what a first write and full
    // buffers take once is not counted to the keys.
    session.fill(fill, &Shape { keys: 1, ..shape.clone() }, 1)?;
    session.fill("ECHO {value}", &Shape { keys: WARMING_REQUESTS, ..shape.clone() }, 1)?;
    let before = settled_bytes(pid)?;
    session.fill(fill, shape, 1)?;
    Ok((settled_bytes(pid)? - before) / shape.keys as f64)
}

fn per_connection(server: &Server, count: usize) -> Result<f64, Error> {
    let pid = known_pid(server)?;
    drop(connect(server, 1)?);
    let before = settled_bytes(pid)?;
    let connections = connect(server, count)?;
    Ok((settled_bytes(pid)? - before) / connections.len().max(1) as f64)
}

fn idle_percent(server: &Server, plan: &MemoryPlan) -> Result<f64, Error> {
    let pid = known_pid(server)?;
    let _connections = connect(server, plan.idle_clients)?;
    settled_bytes(pid)?;
    let look = || CpuSnapshot::take(pid).map_err(Error::io("read the CPU time of the server"));
    let start = look()?;
    std::thread::sleep(plan.idle_time);
    let used = start.until(&look()?);
    Ok(used.busy_percent(used.total()))
}

/// Connections that have each been answered once: one that waits to be accepted costs nothing.
fn connect(server: &Server, count: usize) -> Result<Vec<Stream>, Error> {
    let open = |_| {
        let mut session = Session::open(&server.endpoint)?;
        session.ask("PING", &["PING"])?;
        Ok(session.into_stream())
    };
    (0..count).map(open).collect()
}

fn known_pid(server: &Server) -> Result<u32, Error> {
    server.pid.ok_or_else(|| Error::Usage("the server's process is not known; give its pid".into()))
}

/// Resident bytes once they have stopped changing: servers give back query buffers with a delay.
fn settled_bytes(pid: u32) -> Result<f64, Error> {
    let mut last = resident_bytes(pid)?;
    let (mut equal, mut waited) = (0, Duration::ZERO);
    while equal < SETTLE_READINGS && waited < SETTLE_TIME_MAX {
        std::thread::sleep(SETTLE_PERIOD);
        waited += SETTLE_PERIOD;
        let now = resident_bytes(pid)?;
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
    }
    Ok(last as f64)
}

impl MemoryTable {
    /// All figures as JSON.
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
        Ok(())
    }
}

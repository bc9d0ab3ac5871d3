//! Kills a server at random moments while clients write, and starts it again on the same files.
//!
//! ```text
//!   start -> check acknowledged writes -> write, rewrite, change policy -> kill -9 -> start ...
//! ```
//!
//! After each start, all acknowledged writes of each writer are there, and a prefix of its writes
//! without a reply. The writes of a transaction or a script are there completely or not at all. A
//! [`Fault`] damages the files between two rounds and must be found.

#![forbid(unsafe_code)]

mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{Client, Launch, Server, encode};
use writer::{Sent, Writer};

/// Damage to the files of a killed server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The last commands are lost.
    Forget,
    /// Half of a transaction is added.
    Tear,
}

impl Fault {
    /// All faults by name.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("forget", Self::Forget), ("tear", Self::Tear)];
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program and its first arguments.
    pub program: Vec<String>,
    /// How often the server is killed.
    pub rounds: u32,
    /// Where the random numbers begin. Threads meet differently in each run all the same.
    pub seed: u64,
    /// Clients that write.
    pub writers: usize,
    /// The longest time between a start and its kill.
    pub round_max: Duration,
    /// The damage between two rounds.
    pub fault: Option<Fault>,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How often the server was killed.
    pub kills: u32,
    /// Acknowledged commands and transactions.
    pub acknowledged: u64,
    /// Writes that were found although they had no reply.
    pub kept: u64,
    /// Requested rewrites.
    pub rewrites: u32,
    /// Broken promises.
    pub failures: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, acknowledged, kept, rewrites, failures } = self;
        writeln!(
            f,
            "{kills} kills, {rewrites} rewrites, {acknowledged} acknowledged writes, {kept} kept \
             without a reply"
        )?;
        failures.iter().try_for_each(|failure| writeln!(f, "FAILED: {failure}"))
    }
}

/// Runs the rounds of a plan, up to the first failure.
///
/// # Errors
/// When the server cannot be started or its files cannot be changed.
pub fn run(plan: &Plan) -> Result<Report, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut writers: Vec<Sent> = (0..plan.writers).map(|_| Sent::default()).collect();
    let mut report = Report::default();
    for round in 0..=plan.rounds {
        let policy = if random.bool() { "always" } else { "everysec" };
        let threads = random.usize(1..=4);
        let mut server = start(&plan.program, folder.path(), policy, threads)?;
        let mut client = server.client();
        for (number, sent) in writers.iter_mut().enumerate() {
            match sent.check(number, &mut client) {
                Ok(kept) => report.kept += kept,
                Err(failure) => report
                    .failures
                    .push(format!("round {round}, {threads} threads, {policy}: {failure}")),
            }
        }
        if !report.failures.is_empty() || round == plan.rounds {
            break;
        }
        report.rewrites +=
            write_and_kill(plan, &mut server, &mut client, &mut writers, &mut random);
        report.kills += 1;
        if let Some(fault) = plan.fault {
            damage(folder.path(), fault)?;
        }
    }
    report.acknowledged = writers.iter().map(Sent::acknowledged).sum();
    Ok(report)
}

/// Starts a server on the files of a folder, and waits until it has loaded them.
fn start(
    program: &[String],
    folder: &Path,
    policy: &str,
    threads: usize,
) -> Result<Server, String> {
    let threads = threads.to_string();
    let launch = Launch::program(program.iter().map(String::as_str)).at(folder);
    let log_options = ["--appendonly", "yes", "--appendfsync", policy];
    let started = launch.options(&log_options).options(&["--io-threads", &threads]).try_start();
    started.map_err(|log| format!("the server does not start: {log}"))
}

/// Lets the writers write until the server is killed. Returns the number of requested rewrites.
fn write_and_kill(
    plan: &Plan,
    server: &mut Server,
    client: &mut Client,
    writers: &mut [Sent],
    random: &mut fastrand::Rng,
) -> u32 {
    let is_over = AtomicBool::new(false);
    let mut rewrites = 0;
    let address = server.address();
    let connections: Vec<_> = writers.iter().map(|_| Client::try_tcp(address)).collect();
    thread::scope(|scope| {
        for ((number, sent), connection) in writers.iter_mut().enumerate().zip(connections) {
            let Ok(connection) = connection else { continue };
            let (is_over, seed) = (&is_over, random.u64(..));
            scope.spawn(move || Writer::new(number, connection, sent, seed).run(is_over));
        }
        let length = plan.round_max.mul_f64(random.f64());
        if random.bool() {
            thread::sleep(length / 2);
            rewrites += u32::from(client.try_ask(&[b"BGREWRITEAOF"]).is_ok());
        }
        if random.u32(0..4) == 0 {
            let policy: &[u8] = if random.bool() { b"always" } else { b"everysec" };
            let _ = client.try_ask(&[b"CONFIG", b"SET", b"appendfsync", policy]);
        }
        thread::sleep(length / 2);
        server.kill();
        is_over.store(true, Ordering::Relaxed);
    });
    rewrites
}

/// Damages the files of a server.
fn damage(folder: &Path, fault: Fault) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let directory = folder.join("appendonlydir");
    let entries = std::fs::read_dir(&directory).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_, _>>().map_err(failed)?;
    files.sort();
    let ends_with = |file: &&PathBuf, end: &str| file.to_string_lossy().ends_with(end);
    for ring in files.iter().filter(|file| ends_with(file, ".log")) {
        std::fs::remove_file(ring).map_err(failed)?;
    }
    let manifest = files.iter().find(|file| ends_with(file, ".aof.manifest"));
    let text = std::fs::read_to_string(manifest.ok_or("no manifest")?).map_err(failed)?;
    let last = text.lines().filter_map(|line| line.split(' ').nth(1)).next_back();
    let path = directory.join(last.ok_or("no file in the manifest")?);
    let mut bytes = std::fs::read(&path).map_err(failed)?;
    match fault {
        Fault::Forget => bytes.truncate(bytes.len() / 2),
        Fault::Tear => bytes.extend(encode(&[b"INCR", b"tx:a:0"])),
    }
    std::fs::write(&path, bytes).map_err(failed)
}

//! `weft bench`: load a Redis-compatible server and see what it costs.
//!
//! Reading order: [`args`] is the command line; [`workload`] the table of what can be measured,
//! compiled by [`template`], with [`scripts`], [`keys`] and the sizes of [`shape`], and sent in
//! [`batch`]es; [`load`] says how, and `conduct`s the threads of [`worker`] by [`signals`]. They
//! count [`replies`], send at the times of a [`schedule`], [`dial`] anew, or load a [`cluster`]
//! where that is wanted;
//! [`account`] reads the kernel's view of the server's process; `single` puts the runs of one
//! server together and `report` prints. [`floor`] is the server that only answers canned bytes.
//! [`mod@compare`], [`memory`] and [`stall`] put several [`target`]s side by side; a [`preset`] is
//! a few of their command lines by a name. `interrupt` ends all of them early.
//!
//! Invariant: nothing here changes what it measures beyond sending requests, and a run that met
//! error replies never looks like a result.

pub mod account;
pub mod args;
pub mod batch;
pub mod certificates;
mod churn;
pub mod cluster;
pub mod compare;
mod conduct;
mod csv;
pub mod dial;
pub mod elements;
pub mod floor;
pub mod hits;
mod html;
mod idle;
mod interrupt;
pub mod keys;
pub mod load;
pub(crate) mod markdown;
pub mod measured;
pub mod memory;
pub mod names;
pub mod pin;
pub mod preset;
pub mod replies;
pub mod requests;
pub mod schedule;
pub mod scripts;
pub mod series;
pub mod session;
pub mod shape;
pub mod signals;
pub mod significance;
mod single;
pub mod stall;
pub mod stream;
pub mod subscribers;
pub mod target;
pub mod template;
pub mod tls;
mod unsupported;
pub mod worker;
pub mod workload;

pub(crate) mod report;

use std::io::IsTerminal;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub use self::args::BenchArgs;
pub use self::compare::{Case, Plan, Table, compare};
pub use self::target::{Origin, Role, Target};

pub(crate) use self::interrupt::interrupted_flag;

use self::args::{
    BenchCommand, CompareArgs, FloorArgs, HitsArgs, MemoryArgs, StallArgs, TargetArgs,
};
use self::floor::Floor;
use self::memory::{Figure, MemoryPlan};
use self::pin::Cpus;
use self::session::Endpoint;
use self::stall::StallPlan;
use self::stream::Address;
use self::template::Shape;
use self::tls::Tls;
use crate::printable::{printable, printable_line};
use crate::{Error, output};

/// The progress bar's length: it shows shares of the whole.
const BAR_STEPS: f64 = 1000.0;

/// Runs the command line.
///
/// # Errors
/// Whatever kept the measurement from being made, error replies among them.
pub fn run(args: BenchArgs) -> Result<(), Error> {
    match &args.command {
        None => single::run(&args),
        Some(BenchCommand::Floor(args)) => floor(args),
        Some(BenchCommand::Compare(args)) => compare_servers(args),
        Some(BenchCommand::Memory(args)) => measure_memory(args),
        Some(BenchCommand::Stall(args)) => measure_stalls(args),
        Some(BenchCommand::Hits(args)) => measure_hits(args),
        Some(BenchCommand::Preset(args)) => preset::run(args),
    }
}

fn floor(args: &FloorArgs) -> Result<(), Error> {
    args.pin.clone().unwrap_or_default().pin_thread()?;
    let floor = Floor::bind(("127.0.0.1", args.port), args.data_size)?;
    let (address, pid) = (floor.local_addr()?, std::process::id());
    print(&format!(
        "floor: pid {pid} listens on {address}, answers GET with {} bytes and the rest with OK\n\
         try: weft bench --port {} --pid {pid}\n",
        args.data_size,
        address.port()
    ))?;
    floor.run()
}

fn compare_servers(args: &CompareArgs) -> Result<(), Error> {
    args.html.iter().try_for_each(|path| output::check(path))?;
    let targets = targets(&args.targets, &args.running, Some(args.load.sizes.data_size))?;
    let plan = Plan { cases: args.cases()?, rounds: args.rounds.into() };
    let (bar, stop) = (progress_bar(), interrupted_flag()?);
    let table = compare(&targets, &plan, &stop, &mut |text, share| show(&bar, text, share))?;
    bar.finish_and_clear();
    // What has been measured is kept though it cannot be printed, and what was there is kept where
    // nothing has been.
    let written = match &args.html {
        Some(path) if !table.lines.is_empty() => output::write(path, &html::comparison(&table)),
        _ => Ok(()),
    };
    print(&match &args.targets {
        TargetArgs { json: true, .. } => format!("{}\n", table.json()),
        TargetArgs { markdown: true, .. } => table.markdown(),
        _ => table.to_string(),
    })?;
    written?;
    ended(table.interrupted, table.failures().count())
}

fn measure_memory(args: &MemoryArgs) -> Result<(), Error> {
    let targets = targets(&args.targets, &[], None)?;
    let figures = match args.figures.as_slice() {
        [] => Figure::value_variants().to_vec(),
        chosen => chosen.to_vec(),
    };
    let plan = MemoryPlan {
        figures,
        shape: Shape {
            keys: args.keys,
            key_bytes: args.key_size,
            value_bytes: args.data_size,
            ..Shape::default()
        },
        connections: args.connections,
        idle_clients: args.clients,
        idle_time: args.duration,
    };
    let (bar, stop) = (progress_bar(), interrupted_flag()?);
    let mut progress = |text: &str, share| show(&bar, text, share);
    let table = memory::measure(&targets, &plan, &stop, &mut progress)?;
    bar.finish_and_clear();
    print(&match &args.targets {
        TargetArgs { json: true, .. } => format!("{}\n", table.json()),
        TargetArgs { markdown: true, .. } => table.markdown(),
        _ => table.to_string(),
    })?;
    ended(table.interrupted, table.failure.iter().count())
}

fn measure_stalls(args: &StallArgs) -> Result<(), Error> {
    let targets = targets(&args.targets, &[], None)?;
    let plan = StallPlan {
        rows: args.rows(),
        size: args.size,
        rate: args.rate,
        repeats: args.repeats,
        row_time: args.duration,
    };
    let (bar, stop) = (progress_bar(), interrupted_flag()?);
    let table = stall::measure(&targets, &plan, &stop, &mut |text, share| show(&bar, text, share))?;
    bar.finish_and_clear();
    print(&match &args.targets {
        TargetArgs { json: true, .. } => format!("{}\n", table.json()),
        TargetArgs { markdown: true, .. } => table.markdown(),
        _ => table.to_string(),
    })?;
    if table.lines.len() < table.planned {
        say!("interrupted after {} of {} rows", table.lines.len(), table.planned);
    }
    ended(table.lines.len() < table.planned, table.failures().count())
}

fn measure_hits(args: &HitsArgs) -> Result<(), Error> {
    let (bar, stop) = (progress_bar(), interrupted_flag()?);
    let mut progress = |share| bar.set_position((share * BAR_STEPS) as u64);
    let hits = hits::measure(&args.connection.endpoint()?, &args.plan(), &stop, &mut progress)?;
    bar.finish_and_clear();
    let share = hits.share.map(|share| format!("{:.2}%", share * 100.0));
    print(&format!(
        "{} with {}: {} of the reads hit, {} keys at the end\n",
        args.policy,
        args.maxmemory,
        share.as_deref().unwrap_or("an unknown share"),
        hits.keys
    ))?;
    ended(hits.interrupted, 0)
}

/// How a measurement ended whose table is printed.
fn ended(interrupted: bool, failures: usize) -> Result<(), Error> {
    match failures {
        _ if interrupted => Err(Error::Interrupted),
        0 => Ok(()),
        count => Err(Error::NotMeasured { count }),
    }
}

/// The servers of the command line, the floor first if it can take part: it holds no data and
/// speaks no TLS.
fn targets(
    args: &TargetArgs,
    running: &[String],
    floor_bytes: Option<usize>,
) -> Result<Vec<Target>, Error> {
    let cpus: Cpus = args.pin_servers.clone().unwrap_or_default();
    let mut targets = Vec::new();
    if let (Some(bytes), false, false) = (floor_bytes, args.no_floor, args.tls) {
        let program = std::env::current_exe().map_err(Error::io("find this program's file"))?;
        targets.push(Target::floor(&program.to_string_lossy(), bytes, cpus.clone()));
    }
    for text in &args.servers {
        let words = |command| shlex::split(command).filter(|words| !words.is_empty());
        let (name, words) = text
            .split_once('=')
            .and_then(|(name, command)| Some((name.to_owned(), words(command)?)))
            .ok_or_else(|| Error::Usage(format!("'{text}' is not NAME=COMMAND")))?;
        let tls = args.tls.then(|| args.tls_files.options());
        let origin = Origin::Command(words);
        let role = role(args, &name);
        targets.push(Target { name, role, origin, cpus: cpus.clone(), tls });
    }
    for text in running {
        let (name, endpoint) = running_endpoint(args, text)?;
        let origin = Origin::Running(Box::new(endpoint), None);
        let role = role(args, &name);
        targets.push(Target { name, role, origin, cpus: Cpus::default(), tls: None });
    }
    match &args.subject {
        _ if targets.iter().all(|target| target.role == Role::Floor) => {
            Err(Error::Usage("name the servers: --server NAME=COMMAND".into()))
        }
        Some(name) if targets.iter().all(|target| target.role != Role::Subject) => {
            Err(Error::Usage(format!("no --server is called '{name}'")))
        }
        _ => Ok(targets),
    }
}

fn role(args: &TargetArgs, name: &str) -> Role {
    match args.subject.as_deref() == Some(name) {
        true => Role::Subject,
        false => Role::Peer,
    }
}

/// A server that runs already, by `NAME=HOST:PORT`.
fn running_endpoint(args: &TargetArgs, text: &str) -> Result<(String, Endpoint), Error> {
    let parts = text.split_once('=').and_then(|(name, address)| {
        let (host, port) = address.rsplit_once(':')?;
        Some((name, host.trim_matches(['[', ']']), port.parse().ok()?))
    });
    let (name, host, port) =
        parts.ok_or_else(|| Error::Usage(format!("'{text}' is not NAME=HOST:PORT")))?;
    let tls = args.tls.then(|| Tls::new(&args.tls_files.options(), host)).transpose()?;
    let address = Address::Tcp { host: host.to_owned(), port };
    Ok((name.to_owned(), Endpoint { address, tls, ..Endpoint::local(port) }))
}

/// A bar on the terminal, or nothing where there is none.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(
        Some(BAR_STEPS as u64),
        ProgressDrawTarget::stderr_with_hz(5),
    );
    match ProgressStyle::with_template("{bar:30} {percent:>3}% {elapsed} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn show(bar: &ProgressBar, text: &str, share: f64) {
    bar.set_position((share * BAR_STEPS) as u64);
    bar.set_message(format!("{}{}", printable_line(text), left(bar, share)));
}

/// How long the rest takes if it goes on like this, in words.
fn left(bar: &ProgressBar, share: f64) -> String {
    let left = bar.elapsed().as_secs_f64() * (1.0 - share) / share;
    if left.is_finite() { format!(", {:.0} s left", left.ceil()) } else { String::new() }
}

/// Prints at once, so that a reader at the other end of a pipe sees the floor's port. Names of
/// commands and words of servers are among it. Who closes it wants no more.
fn print(text: &str) -> Result<(), Error> {
    output::print(&printable(text))
}

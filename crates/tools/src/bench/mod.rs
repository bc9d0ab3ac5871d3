//! `weft bench`: measure servers under load, in tables that people, programs and documents read.
//!
//! Reading order: `args` is the command line. `single` measures one running server;
//! [`mod@compare`], `memory` and [`stall`] start several and put them side by side; a `preset` is a
//! few of their command lines under a name. [`floor`] is the server that replies with canned bytes.
//! The requests and the threads that send them are in [`load`](crate::load).
//!
//! Invariants: a run that met error replies never looks like a result, and figures that may mislead
//! have their `remarks` in every form that people read.

mod args;
mod churn;
pub mod compare;
mod csv;
mod elements;
pub mod floor;
mod html;
mod idle;
mod markdown;
pub(crate) mod measured;
mod memory;
mod preset;
mod remarks;
mod report;
pub mod requests;
mod server_table;
mod significance;
mod single;
pub mod stall;
mod targets;
mod unsupported;

use clap::ValueEnum;

pub use self::args::BenchArgs;

use self::args::{BenchCommand, CompareArgs, FloorArgs, MemoryArgs, StallArgs};
use self::compare::{ComparisonPlan, compare};
use self::floor::Floor;
use self::memory::{MemoryFigure, MemoryPlan};
use self::server_table::{TableForm, ended, print};
use self::stall::StallPlan;
use crate::interrupt::interrupted_flag;
use crate::load::shape::RequestShape;
use crate::{Error, output, progress};

/// Measures what the command line says.
///
/// # Errors
/// When the measurement failed, or a reply was an error.
pub fn run(args: BenchArgs) -> Result<(), Error> {
    match &args.command {
        None => single::measure(&args),
        Some(BenchCommand::Floor(args)) => serve_floor(args),
        Some(BenchCommand::Compare(args)) => compare_servers(args),
        Some(BenchCommand::Memory(args)) => measure_memory(args),
        Some(BenchCommand::Stall(args)) => measure_stalls(args),
        Some(BenchCommand::Preset(args)) => preset::print_tables(args, run),
    }
}

fn serve_floor(args: &FloorArgs) -> Result<(), Error> {
    args.pin.clone().unwrap_or_default().pin_thread()?;
    let floor = Floor::bind(("127.0.0.1", args.port), args.data_size)?;
    let (address, pid) = (floor.local_addr()?, std::process::id());
    print(&format!(
        "floor: pid {pid} listens on {address}, answers GET with {} bytes and the rest with OK\n\
         try: weft bench --port {} --pid {pid}\n",
        args.data_size,
        address.port()
    ))?;
    floor.serve()
}

fn compare_servers(args: &CompareArgs) -> Result<(), Error> {
    args.html.iter().try_for_each(|path| output::check(path))?;
    let floor_bytes = Some(args.load.sizes.data_size);
    let targets = targets::targets(&args.targets, &args.running, floor_bytes)?;
    let plan = ComparisonPlan { cases: args.cases()?, rounds: args.rounds.into() };
    let stop = interrupted_flag()?;
    let table = compare(&targets, &plan, &stop, &mut progress::observer())?;
    // The file is written even if the table cannot be printed. Without a measured line, an earlier
    // file stays.
    let written = match &args.html {
        Some(path) if !table.lines.is_empty() => output::write(path, &html::comparison(&table)),
        _ => Ok(()),
    };
    let form = args.targets.form();
    form.print(&table)?;
    if form == TableForm::Json {
        table.noise.warnings().iter().for_each(|warning| say!("{warning}"));
    }
    written?;
    ended(table.interrupted, table.failures().count())
}

fn measure_memory(args: &MemoryArgs) -> Result<(), Error> {
    let targets = targets::targets(&args.targets, &[], None)?;
    let figures = match args.figures.as_slice() {
        [] => MemoryFigure::value_variants().to_vec(),
        chosen => chosen.to_vec(),
    };
    let plan = MemoryPlan {
        figures,
        shape: RequestShape {
            keys: args.keys,
            key_bytes: args.key_size,
            value_bytes: args.data_size,
            ..RequestShape::default()
        },
        connections: args.connections,
        idle_clients: args.clients,
        idle_time: args.duration,
    };
    let stop = interrupted_flag()?;
    let table = memory::measure(&targets, &plan, &stop, &mut progress::observer())?;
    args.targets.form().print(&table)?;
    ended(table.interrupted, table.failure.iter().count())
}

fn measure_stalls(args: &StallArgs) -> Result<(), Error> {
    let targets = targets::targets(&args.targets, &[], None)?;
    let plan = StallPlan {
        rows: args.rows(),
        size: args.size,
        rate: args.rate,
        repeats: args.repeats,
        row_time: args.duration,
    };
    let stop = interrupted_flag()?;
    let table = stall::measure(&targets, &plan, &stop, &mut progress::observer())?;
    args.targets.form().print(&table)?;
    let is_interrupted = table.lines.len() < table.planned;
    if is_interrupted {
        say!("interrupted after {} of {} rows", table.lines.len(), table.planned);
    }
    ended(is_interrupted, table.failures().count())
}

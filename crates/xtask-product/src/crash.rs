//! `cargo xtask crash`: kills Weft while clients write, and checks that nothing acknowledged is
//! lost.
//!
//! The work is done by the crate `crash`; here is the command line.

use std::path::Path;
use std::time::Duration;

use crash::{Fault, Plan};

use xtask::Failure;

use crate::server;

/// What to run, and how often.
#[derive(clap::Args)]
pub struct Options {
    /// How often the server is killed
    #[arg(long, default_value_t = 1000, value_name = "N")]
    rounds: u32,
    /// Where the random numbers begin; the order in which threads meet differs all the same
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Clients that write
    #[arg(long, default_value_t = 8, value_name = "N")]
    writers: usize,
    /// The longest time between a start and a kill
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    round_ms: u64,
    /// Spoil the files between two rounds, which has to be found
    #[arg(long, value_name = "NAME", value_parser = fault)]
    fault: Option<Fault>,
    /// Build Weft as it is released
    #[arg(long)]
    release: bool,
}

/// Runs the rounds, and prints what came of them.
///
/// # Errors
/// When something acknowledged was lost, or the server cannot be started.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let program = server::build(root, options.release)?;
    let report = crash::run(&Plan {
        program: vec![program, "server".to_owned()],
        rounds: options.rounds,
        seed: options.seed,
        writers: options.writers,
        round_max: Duration::from_millis(options.round_ms),
        fault: options.fault,
    })?;
    print!("{report}");
    match (report.failures.is_empty(), options.fault) {
        (true, None) | (false, Some(_)) => Ok(()),
        (true, Some(fault)) => Err(format!("{fault:?} was not found")),
        (false, None) => Err("something acknowledged was lost".to_owned()),
    }
}

fn fault(name: &str) -> Result<Fault, String> {
    let found = Fault::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, fault)| *fault).ok_or_else(|| {
        let known: Vec<&str> = Fault::NAMES.iter().map(|(name, _)| *name).collect();
        format!("the faults are {}", known.join(", "))
    })
}

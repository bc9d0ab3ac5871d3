//! `cargo xtask crash`: kills Weft while clients write, and checks that nothing acknowledged is
//! lost.
//!
//! The crate `crash` does the work; this file has the command line.

use std::path::Path;
use std::time::Duration;

use crash::{Fault, Plan};

use xtask::Failure;

use crate::server;

/// The options of a run.
#[derive(clap::Args)]
pub struct Options {
    /// How often the server is killed
    #[arg(long, default_value_t = 1000, value_name = "N")]
    rounds: u32,
    /// Seed of the random numbers; the order of threads still differs from run to run
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Clients that write
    #[arg(long, default_value_t = 8, value_name = "N")]
    writers: usize,
    /// The longest time between a start and a kill
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    round_ms: u64,
    /// Damage the files between two rounds, which the check must find
    #[arg(long, value_name = "NAME",
        value_parser = |name: &str| server::fault(Fault::NAMES, name))]
    fault: Option<Fault>,
    /// Build Weft with the release profile
    #[arg(long)]
    release: bool,
}

/// Runs the rounds, and prints their report.
///
/// # Errors
/// When an acknowledged write was lost, or the server does not start.
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
    server::verdict(report.failures.is_empty(), options.fault, "an acknowledged write was lost")
}

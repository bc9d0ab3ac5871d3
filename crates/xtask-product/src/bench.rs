//! `cargo xtask bench`: builds the release binary and runs its `bench preset`.
//!
//! This program is built for development, so it measures nothing itself. `tools::bench::preset`
//! defines the presets.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use xtask::Failure;

use crate::server;

/// The arguments for `weft bench preset`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Options {
    /// Presets and options of `weft bench preset`; see `cargo xtask bench --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Builds the release binary and runs `weft bench preset` with the arguments.
///
/// # Errors
/// Fails when the binary does not build, or a measurement fails.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let weft = server::build(root, true)?;
    let mut command = Command::new(&weft);
    let status = command.args(["bench", "preset"]).args(&options.arguments).status();
    let status = status.map_err(|e| format!("{weft} did not start: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("weft bench preset: {status}")),
    }
}

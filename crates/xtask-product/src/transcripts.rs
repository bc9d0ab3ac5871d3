//! `cargo xtask transcripts`: updates expectations in place, and replays transcripts on another
//! server.
//!
//! The transcripts are tests of the crate `node`. This command runs them with their comparison off,
//! so that they leave a record of their requests, replies and expectations. From the record,
//!
//! - `--bless` rewrites the expectations that are not met, in the sources;
//! - `--reference HOST:PORT` sends the same requests to a running Redis or Valkey, and prints each
//!   different reply for which `transcripts/accepted.txt` has no reason. The server loses its data
//!   and its clients; its configuration is changed and restored.

use std::path::Path;
use std::process::Command;

use record::Case;
use xtask::Failure;

mod accepted;
mod bless;
mod record;
mod reference;
mod replay;

/// The variable that names the file of the record to the tests.
const RECORD: &str = "WEFT_TRANSCRIPTS_RECORD";

/// The options of the command.
#[derive(clap::Args)]
pub struct Options {
    /// Rewrite the expectations that are not met
    #[arg(long, required_unless_present = "reference", conflicts_with = "reference")]
    bless: bool,
    /// Replay on this server, and delete its data
    #[arg(long, value_name = "HOST:PORT")]
    reference: Option<String>,
    /// Only tests with this text in their names
    #[arg(value_name = "TEST")]
    filter: Option<String>,
}

/// Runs the transcripts, and blesses or replays them.
///
/// # Errors
/// When the tests do not run, when an expectation must be edited by hand, and when the reference
/// differs without a reason.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let cases = recorded(root, options.filter.as_deref().unwrap_or_default())?;
    if cases.is_empty() {
        return Err("no transcript has such a name".to_owned());
    }
    match &options.reference {
        Some(address) => replay::run(root, &cases, address, options.filter.is_none()),
        None if options.bless => bless::run(root, &cases),
        None => Ok(()),
    }
}

/// Runs the tests and reads their record.
fn recorded(root: &Path, filter: &str) -> Result<Vec<Case>, Failure> {
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let path = folder.path().join("record");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With several threads, each test has a thread with its name.
    let words = "test --quiet --package node --test transcripts -- --test-threads 2";
    let output = Command::new(cargo)
        .args(words.split(' '))
        .arg(filter)
        .env(RECORD, &path)
        .current_dir(root)
        .output()
        .map_err(|e| format!("cargo did not start: {e}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        return Err(format!("the tests do not run:\n{}", String::from_utf8_lossy(&text)));
    }
    match std::fs::read_to_string(&path) {
        Ok(text) => record::parse(&text),
        Err(_) => Ok(Vec::new()),
    }
}

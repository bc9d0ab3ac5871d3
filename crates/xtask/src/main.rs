//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! One file per command; this one only names them. A command finds the workspace by walking up from
//! the current directory, so it works from any folder inside. Nothing here is part of the product,
//! and no crate may depend on this one.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod ci;
mod diff;
mod docs;
mod tidy;

/// What went wrong, as a sentence for whoever ran the command.
type Failure = String;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run what CI runs, in its order, up to the first failure
    Ci(ci::Options),
    /// Write the documents that are derived from tables in the source
    Docs(docs::Options),
    /// Measure Weft beside the floor and the peers, and print tables
    Bench(bench::Options),
    /// Send random requests to Weft and to another server, and compare what they answer and hold
    Diff(diff::Options),
    /// Check the rules of style that neither rustfmt nor clippy knows
    Tidy(tidy::Options),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let outcome = workspace_root().and_then(|root| match command {
        Command::Ci(options) => ci::run(&root, &options),
        Command::Docs(options) => docs::run(&root, &options),
        Command::Bench(options) => bench::run(&root, &options),
        Command::Diff(options) => diff::run(&root, &options),
        Command::Tidy(options) => tidy::run(&root, &options),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The nearest folder upwards whose manifest opens a workspace.
fn workspace_root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|e| format!("no current directory: {e}"))?;
    here.ancestors()
        .find(|dir| {
            std::fs::read_to_string(dir.join("Cargo.toml"))
                .is_ok_and(|manifest| manifest.lines().any(|line| line.trim() == "[workspace]"))
        })
        .map(PathBuf::from)
        .ok_or_else(|| format!("{} is not inside the workspace", here.display()))
}

//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! `ci` and `tidy` run here. The others need the product compiled and live in `xtask-product`,
//! which this program builds and runs with the same arguments.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command as Process, ExitCode};

use clap::{Args, Parser, Subcommand};
use xtask::{Failure, tidy, workspace_root};

mod ci;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct XtaskCli {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Run what CI runs, in its order, up to the first failure
    Ci(ci::Options),
    /// Check the rules of style that neither rustfmt nor clippy knows
    Tidy(tidy::Options),
    /// Check what the rows of the commands require: documents, tests, workloads
    #[command(disable_help_flag = true)]
    Rows(Forwarded),
    /// Write the documents that are derived from tables in the source
    #[command(disable_help_flag = true)]
    Docs(Forwarded),
    /// Measure Weft, the floor and the peers, and print tables
    #[command(disable_help_flag = true)]
    Bench(Forwarded),
    /// Send random requests to Weft and to another server, and compare replies and data
    #[command(disable_help_flag = true)]
    Diff(Forwarded),
    /// Kill, pause and move the clients of Weft, and check what each of them sees
    #[command(disable_help_flag = true)]
    Chaos(Forwarded),
    /// Kill Weft while clients write, and check that nothing acknowledged is lost
    #[command(disable_help_flag = true)]
    Crash(Forwarded),
    /// Send concurrent operations to Weft, and check that their history is linearizable
    #[command(disable_help_flag = true)]
    Lin(Forwarded),
    /// Update the expectations of the transcripts, or replay them on another server
    #[command(disable_help_flag = true)]
    Transcripts(Forwarded),
}

/// Arguments that `xtask-product` parses, `--help` included.
#[derive(Args)]
struct Forwarded {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

fn main() -> ExitCode {
    let command = XtaskCli::parse().command;
    let outcome = workspace_root().and_then(|root| match command {
        XtaskCommand::Ci(options) => ci::run(&root, &options),
        XtaskCommand::Tidy(options) => tidy::run(&root, &options),
        XtaskCommand::Rows(forwarded) => forward("rows", &forwarded),
        XtaskCommand::Docs(forwarded) => forward("docs", &forwarded),
        XtaskCommand::Bench(forwarded) => forward("bench", &forwarded),
        XtaskCommand::Diff(forwarded) => forward("diff", &forwarded),
        XtaskCommand::Chaos(forwarded) => forward("chaos", &forwarded),
        XtaskCommand::Crash(forwarded) => forward("crash", &forwarded),
        XtaskCommand::Lin(forwarded) => forward("lin", &forwarded),
        XtaskCommand::Transcripts(forwarded) => forward("transcripts", &forwarded),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command in `xtask-product`, in the current folder.
fn forward(command: &str, forwarded: &Forwarded) -> Result<(), Failure> {
    let run = ["run", "--quiet", "--package", "xtask-product", "--", command];
    let args = run.into_iter().chain(forwarded.args.iter().map(String::as_str));
    cargo(Path::new("."), args, &[])
}

/// Runs cargo in the folder with these arguments and environment.
fn cargo<'a>(
    folder: &Path,
    args: impl IntoIterator<Item = &'a str>,
    env: &[(&str, &str)],
) -> Result<(), Failure> {
    let args: Vec<&str> = args.into_iter().collect();
    // Cargo sets `CARGO` for the programs that it runs, so that they use the same toolchain.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Process::new(cargo)
        .args(&args)
        .envs(env.iter().copied())
        .current_dir(folder)
        .status()
        .map_err(|e| format!("cargo did not start: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {}: {status}", args.join(" "))) }
}

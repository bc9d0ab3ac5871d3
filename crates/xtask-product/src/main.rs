//! The commands of `cargo xtask` that read the product's tables or run it.
//!
//! `cargo xtask` forwards to this program. It is not part of the crate `xtask`, so that checking
//! the rules of style does not compile the product.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::workspace_root;

mod bench;
mod chaos;
mod crash;
mod diff;
mod docs;
mod lin;
mod rows;
mod server;
mod transcripts;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Commands that read the product's tables or run it")]
struct ProductCli {
    #[command(subcommand)]
    command: ProductCommand,
}

#[derive(Subcommand)]
enum ProductCommand {
    /// Check what the rows of the commands require: documents, tests, workloads
    Rows,
    /// Write the documents that are derived from tables in the source
    Docs(docs::Options),
    /// Measure Weft, the floor and the peers, and print tables
    Bench(bench::Options),
    /// Send random requests to Weft and to another server, and compare replies and data
    Diff(diff::Options),
    /// Kill, pause and move the clients of Weft, and check what each of them sees
    Chaos(chaos::Options),
    /// Kill Weft while clients write, and check that nothing acknowledged is lost
    Crash(crash::Options),
    /// Send concurrent operations to Weft, and check that their history is linearizable
    Lin(lin::Options),
    /// Update the expectations of the transcripts, or replay them on another server
    Transcripts(transcripts::Options),
}

fn main() -> ExitCode {
    let command = ProductCli::parse().command;
    let outcome = workspace_root().and_then(|root| match command {
        ProductCommand::Rows => rows::run(&root),
        ProductCommand::Docs(options) => docs::run(&root, &options),
        ProductCommand::Bench(options) => bench::run(&root, &options),
        ProductCommand::Diff(options) => diff::run(&root, &options),
        ProductCommand::Chaos(options) => chaos::run(&root, &options),
        ProductCommand::Crash(options) => crash::run(&root, &options),
        ProductCommand::Lin(options) => lin::run(&root, &options),
        ProductCommand::Transcripts(options) => transcripts::run(&root, &options),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

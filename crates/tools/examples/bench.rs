//! The bench as a separate program, for working on it without the server:
//! `cargo run --release -p tools --example bench -- bench --help`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(Box<tools::bench::BenchArgs>),
}

fn main() -> ExitCode {
    let Command::Bench(args) = Cli::parse().command;
    match tools::bench::run(*args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

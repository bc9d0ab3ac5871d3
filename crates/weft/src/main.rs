//! The `weft` binary: one program, its parts as subcommands.
//!
//! Without a subcommand it is the server, so that the command lines of redis-server work unchanged.
#![forbid(unsafe_code)]

mod check;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use tools::bench::{self, BenchArgs};

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

/// Drives any Redis-compatible server and measures it.
#[derive(Parser)]
#[command(name = "weft bench", bin_name = "weft bench")]
struct Bench {
    #[command(flatten)]
    args: BenchArgs,
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("server") => server::run(&args[1..]),
        Some("bench") => match bench::run(Bench::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Some("check") => match check::Check::parse_from(&args).run() {
            Ok(check::Finding::Whole) => ExitCode::SUCCESS,
            Ok(check::Finding::Damaged) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Some("cli") => tools::cli::run(&args),
        _ => server::run(&args),
    }
}

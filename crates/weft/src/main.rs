//! The `weft` binary, whose parts are subcommands.
//!
//! Without a subcommand it is the server, so the command lines of redis-server work unchanged.
#![forbid(unsafe_code)]

mod check;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use node::config::{IoThreads, Machine};
use tools::bench::{self, BenchArgs};
use tools::report::{self, ReportArgs};
use tools::top::{self, TopArgs};
use tools::tune::{self, TuneArgs};

/// The list of parts, for `--help` and for unknown names.
const PARTS: &str = "\
weft server [FILE] [OPTIONS]  runs the server, with the configuration and options of redis-server
weft FILE [OPTIONS]           the same
weft cli [OPTIONS] [COMMAND]  sends commands to a server
weft bench [OPTIONS]          measures a server
weft report [OPTIONS]         measures several servers and writes a page with the results
weft top [OPTIONS]            shows what a server does, and what limits it
weft check rdb|aof FILE       finds damage in files, and saves what can be loaded
weft tune [--apply]           checks the settings of the host, and changes them

weft PART --help shows more.";

/// The exit status after an error.
const FAILURE: u8 = 1;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

/// Drives any Redis-compatible server and measures it.
#[derive(Parser)]
#[command(name = "weft bench", bin_name = "weft bench")]
struct BenchProgram {
    #[command(flatten)]
    args: BenchArgs,
}

/// Shows what a server does.
#[derive(Parser)]
#[command(name = "weft top", bin_name = "weft top", disable_help_flag = true)]
struct TopProgram {
    #[command(flatten)]
    args: TopArgs,
}

/// Measures several servers and writes a page with the results.
#[derive(Parser)]
#[command(name = "weft report", bin_name = "weft report")]
struct ReportProgram {
    #[command(flatten)]
    args: ReportArgs,
}

/// Checks the settings of the host.
#[derive(Parser)]
#[command(name = "weft tune", bin_name = "weft tune")]
struct TuneProgram {
    #[command(flatten)]
    args: TuneArgs,
}

/// The parts of the server that `weft tune` needs.
const SERVER: tune::ServerDefaults = tune::ServerDefaults {
    threads: |processors| IoThreads::Auto.threads(processors),
    config: |tune::HostMachine { processors, memory_bytes }| {
        let config = Machine { processors, memory_bytes }.config();
        config.map_err(|error| error.to_string())
    },
};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("server") => server::run(&args[1..]),
        Some("bench") => match bench::run(BenchProgram::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, error.exit_code()),
        },
        Some("top") => match top::run(&TopProgram::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, error.exit_code()),
        },
        Some("report") => match report::run(&ReportProgram::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, error.exit_code()),
        },
        Some("tune") => match tune::run(&TuneProgram::parse_from(&args).args, SERVER) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => fail(&error, FAILURE),
        },
        Some("check") => match check::CheckProgram::parse_from(&args).check() {
            Ok(check::CheckOutcome::Valid) => ExitCode::SUCCESS,
            Ok(check::CheckOutcome::Damaged) => ExitCode::FAILURE,
            Err(error) => fail(&error, FAILURE),
        },
        Some("cli") => tools::cli::run(&args),
        Some("-h" | "--help") => match tools::print(&format!("Usage: weft PART\n\n{PARTS}\n")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, FAILURE),
        },
        Some(first) if !first.starts_with('-') && !Path::new(first).exists() => {
            let text = "is neither a part of weft nor a configuration file";
            fail(&format!("'{first}' {text}.\n\n{PARTS}"), FAILURE)
        }
        _ => server::run(&args),
    }
}

/// Prints an error, if possible, and returns the status.
fn fail(why: &dyn Display, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(status)
}

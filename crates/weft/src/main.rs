//! The `weft` binary: one program, its parts as subcommands.
//!
//! Without a subcommand it is the server, so that the command lines of redis-server work unchanged.
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

/// What `weft` can do, for who names something else.
const PARTS: &str = "\
weft server [FILE] [OPTIONS]  serves: the configuration file and the options of redis-server
weft FILE [OPTIONS]           the same
weft cli [OPTIONS] [COMMAND]  talks to a server
weft bench [OPTIONS]          measures a server
weft report [OPTIONS]         measures servers in a whole experiment and writes a page
weft top [OPTIONS]            shows what a server does, and what limits it
weft check rdb|aof FILE       looks through files, and repairs them
weft tune [--apply]           looks at the settings of the host, and changes them

weft PART --help tells more.";

/// The status of what failed, if nothing else is said.
const FAILURE: u8 = 1;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

/// Drives any Redis-compatible server and measures it.
#[derive(Parser)]
#[command(name = "weft bench", bin_name = "weft bench")]
struct Bench {
    #[command(flatten)]
    args: BenchArgs,
}

/// Shows what a server does.
#[derive(Parser)]
#[command(name = "weft top", bin_name = "weft top", disable_help_flag = true)]
struct Top {
    #[command(flatten)]
    args: TopArgs,
}

/// Measures servers in a whole experiment and writes a page about them.
#[derive(Parser)]
#[command(name = "weft report", bin_name = "weft report")]
struct Report {
    #[command(flatten)]
    args: ReportArgs,
}

/// Looks at the settings of the host.
#[derive(Parser)]
#[command(name = "weft tune", bin_name = "weft tune")]
struct Tune {
    #[command(flatten)]
    args: TuneArgs,
}

/// What `weft tune` has to know of the server.
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
        Some("bench") => match bench::run(Bench::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, error.exit_code()),
        },
        Some("top") => match top::run(&Top::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, error.exit_code()),
        },
        Some("report") => match report::run(&Report::parse_from(&args).args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, error.exit_code()),
        },
        Some("tune") => match tune::run(&Tune::parse_from(&args).args, SERVER) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => fail(&error, FAILURE),
        },
        Some("check") => match check::Check::parse_from(&args).run() {
            Ok(check::Finding::Whole) => ExitCode::SUCCESS,
            Ok(check::Finding::Damaged) => ExitCode::FAILURE,
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

/// Says why, and gives the status. What cannot be printed there cannot be told either.
fn fail(why: &dyn Display, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(status)
}

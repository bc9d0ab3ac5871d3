//! The `weft` binary: one program, its parts as subcommands.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("server") => server::run(&args[1..]),
        _ => server::run(&args),
    }
}

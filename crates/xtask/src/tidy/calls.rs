//! Calls that only some crates may make.
//!
//! Below layer 6 a node is a state machine: sockets, files, threads, clocks and the environment are
//! arguments, so that a test runs a node in one thread with a fake clock. Only the tools print, and
//! the server's log and start. Tests may call everything.

use super::Finding;
use super::tree::{File, Tree};

/// Banned paths, each with the reason or the replacement.
const BANNED: &[(&[&str], &str)] = &[
    (&["std", "net"], "sockets are opened by `server`; plain addresses are in `core::net`"),
    (&["unix", "net"], "sockets are opened by `server`"),
    (&["std", "fs"], "files are read and written by `server`"),
    (&["std", "process"], "processes are started by `server` and the tools"),
    (&["std", "env"], "the environment is read by `server` and the binary, and passed in"),
    (&["thread", "spawn"], "threads are started by `server`"),
    (&["thread", "scope"], "threads are started by `server`"),
    (&["thread", "sleep"], "only `server` waits"),
    (&["thread", "Builder"], "threads are started by `server`"),
    (&["Instant", "now"], "time is passed in"),
    (&["SystemTime", "now"], "time is passed in"),
];

/// Crates that do input and output.
const CALL_HOMES: &[&str] = &[
    "sys",
    "server",
    "tools",
    "weft",
    "xtask",
    "xtask-product",
    "clients-test",
    "deploy-test",
    "chaos",
    "crash",
    "diff",
    "lin",
    "model-harness",
    "test-support",
];

/// Macros that print.
const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// Crates and files that print. The start of the server prints `--help`, `--version`, and the
/// reason why it cannot start while there is no log.
const PRINT_HOMES: &[&str] = &[
    "tools",
    "weft",
    "xtask",
    "xtask-product",
    "clients-test",
    "deploy-test",
    "test-support",
    "crates/server/src/system/server_log.rs",
    "crates/server/src/process/start.rs",
];

/// Crates below layer 6 call nothing that reaches outside the process.
pub fn calls(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !is_home(file, CALL_HOMES)) {
        for path in rust.paths.iter().filter(|path| !file.is_test_line(path.line)) {
            let banned = BANNED.iter().find(|(names, _)| path.contains(names));
            if let Some((_, instead)) = banned {
                let message = format!("`{}`: {instead}", path.names.join("::"));
                findings.push(Finding::new(&file.path, path.line, message));
            }
        }
    }
    findings
}

/// Only the tools, the log and the start print.
pub fn prints(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !is_home(file, PRINT_HOMES)) {
        let macros = rust.paths.iter().filter(|path| path.is_macro);
        for path in macros.filter(|path| !file.is_test_line(path.line)) {
            if path.names.last().is_some_and(|name| PRINTS.contains(&name.as_str())) {
                let message =
                    format!("`{}!` outside the tools: use the log", path.names.join("::"));
                findings.push(Finding::new(&file.path, path.line, message));
            }
        }
    }
    findings
}

/// Build scripts talk to cargo by printing, and read its environment.
fn is_home(file: &File, homes: &[&str]) -> bool {
    let build_script = file.path.ends_with("/build.rs") && file.is_crate_root();
    let crate_name = file.crate_name().unwrap_or_default();
    build_script || homes.contains(&crate_name) || homes.contains(&file.path.as_str())
}

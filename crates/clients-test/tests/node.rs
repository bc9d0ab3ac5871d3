//! node-redis and ioredis, installed from the lock file.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients_test::{KINDS, Part, Program, Tool, prepare, run_step, sources};

const TOOLS: [Tool; 2] = [
    Tool { version: &["node", "--version"], at_least: (20, 0) },
    Tool { version: &["npm", "--version"], at_least: (8, 0) },
];

fn program() -> Option<Program> {
    let files: Vec<_> = sources("node", "json").into_iter().chain(sources("node", "js")).collect();
    let folder = prepare("node", &TOOLS, &files, |folder| install(folder, &files))?;
    let main = folder.join("main.js").display().to_string();
    Some(Program { words: vec!["node".into(), main] })
}

fn run(part: Part) {
    if let Some(program) = program() {
        program.run(part);
    }
}

fn run_client(library: &str, without: &[&str]) {
    if let Some(program) = program() {
        program.run_client(library, &KINDS, without);
    }
}

/// The sources move beside their `node_modules`, because that is where modules are looked for.
fn install(folder: &Path, files: &[PathBuf]) {
    for file in files {
        let name = file.file_name().expect("a source has a name");
        fs::copy(file, folder.join(name)).expect("the target folder is writable");
    }
    let quiet = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
    run_step(Command::new("npm").args(quiet).current_dir(folder));
}

#[test]
fn node_redis() {
    run_client("node-redis", &[]);
}

#[test]
fn ioredis() {
    run_client("ioredis", &["caching: until invalidated"]);
}

#[test]
fn resp2() {
    run(Part::Resp2);
}

#[test]
fn resp3() {
    run(Part::Resp3);
}

#[test]
fn auth() {
    run(Part::Auth);
}

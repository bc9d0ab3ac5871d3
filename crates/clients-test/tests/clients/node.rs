//! node-redis and ioredis, installed from the lock file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients_test::{KINDS, Program, Tool, install_step, prepare, sources};

const TOOLS: [Tool; 2] = [
    Tool { version: &["node", "--version"], at_least: (20, 0) },
    Tool { version: &["npm", "--version"], at_least: (8, 0) },
];

fn run(library: &str, without: &[&str]) {
    let files: Vec<_> = sources("node", "json").into_iter().chain(sources("node", "js")).collect();
    if let Some(folder) = prepare("node", &TOOLS, &files, |folder| install(folder, &files)) {
        let main = folder.join("main.js").display().to_string();
        Program { command: vec!["node".into(), main] }.run_library(library, &KINDS, without);
    }
}

/// Copies the sources next to their `node_modules`, where Node looks for modules.
fn install(folder: &Path, files: &[PathBuf]) {
    for file in files {
        let name = file.file_name().expect("a source has a name");
        fs::copy(file, folder.join(name)).expect("the target folder is writable");
    }
    let quiet = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
    install_step(Command::new("npm").args(quiet).current_dir(folder));
}

#[test]
fn node_redis() {
    run("node-redis", &[]);
}

#[test]
fn ioredis() {
    run("ioredis", &["tracking: cached until invalidated"]);
}

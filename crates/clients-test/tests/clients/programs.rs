//! Programs that people run on Redis, unmodified, drive the server from several processes: BullMQ,
//! Bee-Queue, rate-limiter-flexible and Socket.IO with its Redis adapter on Node, Celery on Python.
//!
//! The first three and Celery use scripts, transactions and WATCH: the programs check results that
//! would be wrong if one of these were not atomic. Socket.IO uses channels and patterns: what one
//! process sends must reach the clients of the other.

use std::fs;
use std::process::Command;

use clients_test::{Program, Tool, install_step, prepare, python_program, sources};

const NODE: [Tool; 2] = [
    Tool { version: &["node", "--version"], at_least: (20, 0) },
    Tool { version: &["npm", "--version"], at_least: (8, 0) },
];

fn on_node(name: &str) {
    let mut files = [sources("programs/node", "json"), sources("programs/node", "js")].concat();
    let checks = sources("node", "js").into_iter().filter(|path| path.ends_with("check.js"));
    files.extend(checks);
    let Some(folder) = prepare("node-programs", &NODE, &files, |folder| {
        // Node looks for modules next to the sources.
        for file in &files {
            let name = file.file_name().expect("a source has a name");
            fs::copy(file, folder.join(name)).expect("the target folder is writable");
        }
        let quiet = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
        install_step(Command::new("npm").args(quiet).arg("--omit=optional").current_dir(folder));
    }) else {
        return;
    };
    let main = folder.join("main.js").display().to_string();
    Program { command: vec!["node".into(), main] }.run_on_server(name);
}

#[test]
fn bull() {
    on_node("bull");
}

#[test]
fn bee() {
    on_node("bee");
}

#[test]
fn limiter() {
    on_node("limiter");
}

#[test]
fn socketio() {
    on_node("socketio");
}

#[test]
fn celery() {
    if let Some(program) = python_program("python-programs", "programs/python") {
        program.run_on_server("celery");
    }
}

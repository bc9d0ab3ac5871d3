//! redis-py, in a virtual environment of its own.

use std::path::Path;
use std::process::Command;

use clients_test::{Part, Program, Tool, prepare, run_step, sources};

const TOOLS: [Tool; 2] = [
    Tool { version: &["python3", "--version"], at_least: (3, 10) },
    // Some systems package it apart, and without it there are no virtual environments.
    Tool { version: &["python3", "-m", "ensurepip", "--version"], at_least: (1, 0) },
];

fn run(part: Part) {
    let manifest = sources("python", "txt");
    let Some(folder) = prepare("python", &TOOLS, &manifest, |folder| {
        run_step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")));
        let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let python = folder.join("venv/bin/python");
        run_step(Command::new(python).args(quiet).arg("--requirement").arg(&manifest[0]));
    }) else {
        return;
    };
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/main.py");
    let python = folder.join("venv/bin/python");
    // -B: no compiled files beside the sources.
    let words = [python, "-B".into(), main].map(|word| word.display().to_string());
    Program { words: words.to_vec() }.run(part);
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

#[test]
fn tls() {
    run(Part::Tls);
}

#[test]
fn unix() {
    run(Part::Unix);
}

//! Programs in Python, each in its own virtual environment.

use std::path::Path;
use std::process::Command;

use crate::{Program, Tool, install_step, prepare, sources};

const TOOLS: [Tool; 2] = [
    Tool { version: &["python3", "--version"], at_least: (3, 10) },
    // Virtual environments need it, and some systems package it separately.
    Tool { version: &["python3", "-m", "ensurepip", "--version"], at_least: (1, 0) },
];

/// Installs the packages that the text file in the folder `name` of this crate lists into
/// `target/clients/<environment>`, and returns the folder's program `main.py`. Returns `None` if a
/// tool is missing and the tests must be skipped.
pub fn python_program(environment: &str, name: &str) -> Option<Program> {
    let manifest = sources(name, "txt");
    let folder = prepare(environment, &TOOLS, &manifest, |folder| {
        install_step(
            Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")),
        );
        let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let python = folder.join("venv/bin/python");
        install_step(Command::new(python).args(quiet).arg("--requirement").arg(&manifest[0]));
    })?;
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join(name).join("main.py");
    let python = folder.join("venv/bin/python");
    // -B: no compiled files next to the sources.
    let words = [python, "-B".into(), main].map(|word| word.display().to_string());
    Some(Program { command: words.to_vec() })
}

//! For the tests of `deploy/`: its files, the linters, and servers that are started as the files
//! say.
//!
//! The linters come from PyPI, into virtual environments in `target/clients`. Files for container
//! engines, clusters and clouds, which cannot run here, are only read by their linters; every
//! command line, configuration, probe and script runs.
#![forbid(unsafe_code)]
// Everything here runs inside tests, where a panic with a reason is how a failure is reported.
#![allow(clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clients_test::{Tool, install_step, prepare};
use serde_json::Value;

mod service;

pub use service::{Service, moved_copy};

const TOOLS: [Tool; 2] = [
    Tool { version: &["python3", "--version"], at_least: (3, 10) },
    Tool { version: &["python3", "-m", "ensurepip", "--version"], at_least: (1, 0) },
];

/// The folder of the repository.
pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the crate is in the repository")
}

/// The path of a file of `deploy/`.
pub fn file(name: &str) -> PathBuf {
    repository().join("deploy").join(name)
}

/// The text of a file of `deploy/`.
pub fn text(name: &str) -> String {
    let path = file(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder with the linters' programs. `None`: Python is missing, and the tests that need it
/// must be skipped.
pub fn linters() -> Option<PathBuf> {
    environment("deploy", "requirements.txt")
}

/// The folder with checkov, which needs other versions of the linters' dependencies.
pub fn checkov() -> Option<PathBuf> {
    environment("deploy-checkov", "requirements-checkov.txt")
}

fn environment(name: &str, requirements: &str) -> Option<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(requirements);
    let folder = prepare(name, &TOOLS, std::slice::from_ref(&manifest), |folder| {
        install_step(
            Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")),
        );
        let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let python = folder.join("venv/bin/python");
        install_step(Command::new(python).args(quiet).arg("--requirement").arg(&manifest));
    })?;
    Some(folder.join("venv/bin"))
}

/// The documents of a file in YAML.
pub fn yaml(bin: &Path, path: &Path) -> Vec<Value> {
    let program = "import json,sys,yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let input = fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut python = Command::new(bin.join("python"));
    let output = output(python.args(["-c", program]).stdin(input));
    assert!(output.status.success(), "{}", printed(&output));
    serde_json::from_slice(&output.stdout).expect("json.dumps prints JSON")
}

/// Runs a program to its end and captures its output.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a program to its end without input, and returns whether it succeeded.
pub fn passes(command: &mut Command) -> bool {
    let output = output(command.stdin(Stdio::null()));
    // The test runner shows it if the test fails.
    println!("{command:?}: {}\n{}", output.status, printed(&output));
    output.status.success()
}

/// The output of a program, and then its errors.
pub fn printed(output: &Output) -> String {
    let (out, errors) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(errors))
}

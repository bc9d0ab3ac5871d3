//! go-redis, rueidis and redigo, in a program that is built with caches of its own.

use std::path::Path;
use std::process::Command;

use clients_test::{KINDS, Part, Program, Tool, prepare, run_step, sources};

// From 1.21 on, Go fetches the newer toolchain that a `go.mod` asks for.
const TOOLS: [Tool; 1] = [Tool { version: &["go", "version"], at_least: (1, 21) }];

fn program() -> Option<Program> {
    let files: Vec<_> = ["mod", "sum", "go"].iter().flat_map(|ext| sources("go", ext)).collect();
    let folder = prepare("go", &TOOLS, &files, install)?;
    Some(Program { words: vec![folder.join("clients-test").display().to_string()] })
}

fn run(part: Part) {
    if let Some(program) = program() {
        program.run(part);
    }
}

fn run_client(library: &str, kinds: &[&str], without: &[&str]) {
    if let Some(program) = program() {
        program.run_client(library, kinds, without);
    }
}

fn install(folder: &Path) {
    run_step(
        Command::new("go")
            // Writable modules, so that `cargo clean` can remove them.
            .args(["build", "-modcacherw", "-buildvcs=false", "-o"])
            .arg(folder.join("clients-test"))
            .arg(".")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("go"))
            .env("GOPATH", folder.join("path"))
            .env("GOMODCACHE", folder.join("modules"))
            .env("GOCACHE", folder.join("cache")),
    );
}

#[test]
fn go_redis() {
    run_client("go-redis", &KINDS, &[]);
}

#[test]
fn rueidis() {
    run_client("rueidis", &KINDS, &[]);
}

#[test]
fn redigo() {
    // It speaks RESP2 alone.
    run_client("redigo", &["resp2", "tls"], &["caching: until invalidated"]);
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

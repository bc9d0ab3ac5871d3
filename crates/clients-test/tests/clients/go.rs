//! go-redis, rueidis and redigo, in one program that is built with its own caches.

use std::path::Path;
use std::process::Command;

use clients_test::{KINDS, Program, Tool, install_step, prepare, sources};

// From 1.21 on, Go downloads the newer toolchain that a `go.mod` requires.
const TOOLS: [Tool; 1] = [Tool { version: &["go", "version"], at_least: (1, 21) }];

fn run(library: &str, kinds: &[&str], without: &[&str]) {
    let files: Vec<_> = ["mod", "sum", "go"].iter().flat_map(|ext| sources("go", ext)).collect();
    if let Some(folder) = prepare("go", &TOOLS, &files, install) {
        let program = folder.join("clients-test").display().to_string();
        Program { command: vec![program] }.run_library(library, kinds, without);
    }
}

fn install(folder: &Path) {
    install_step(
        Command::new("go")
            // `cargo clean` can remove only writable modules.
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
    run("go-redis", &KINDS, &[]);
}

#[test]
fn rueidis() {
    run("rueidis", &KINDS, &[]);
}

#[test]
fn redigo() {
    // It speaks only RESP2 and has no methods for shard channels.
    let without = ["pubsub: shard channel", "tracking: cached until invalidated"];
    run("redigo", &["resp2", "tls"], &without);
}

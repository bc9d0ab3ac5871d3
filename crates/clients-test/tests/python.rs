//! redis-py and valkey-py, in a virtual environment of their own.

use clients_test::{KINDS, Part, python_program};

fn run(part: Part) {
    if let Some(program) = python_program("python", "python") {
        program.run(part);
    }
}

fn run_client(library: &str) {
    if let Some(program) = python_program("python", "python") {
        program.run_client(library, &KINDS, &[]);
    }
}

#[test]
fn redis_py() {
    run_client("redis-py");
}

#[test]
fn valkey_py() {
    run_client("valkey-py");
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

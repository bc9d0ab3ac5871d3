//! redis-py, in a virtual environment of its own.

use clients_test::{Part, python_program};

fn run(part: Part) {
    if let Some(program) = python_program("python", "python") {
        program.run(part);
    }
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

//! redis-py and valkey-py.

use clients_test::{KINDS, python_program};

fn run(library: &str) {
    if let Some(program) = python_program("python", "python") {
        program.run_library(library, &KINDS, &[]);
    }
}

#[test]
fn redis_py() {
    run("redis-py");
}

#[test]
fn valkey_py() {
    run("valkey-py");
}

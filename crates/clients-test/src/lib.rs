//! Twelve client libraries of five languages drive the built server: redis-py, valkey-py,
//! node-redis, ioredis, go-redis, rueidis, redigo, Jedis, Lettuce, Redisson, the `redis` crate and
//! fred. Each runs one scenario through its own methods: connecting, pipelines, transactions,
//! scripts, blocking commands, pub/sub, tracking, TLS and reconnecting. `cases/clients.txt` lists
//! its cases.
//!
//! This library installs the packages of each program in `target/clients/<language>`, and runs the
//! programs. `tests/clients/<language>.rs` prepares a language; the programs are in `python/`,
//! `node/`, `go/`, `java/` and `tests/clients/rust/`.
//! `programs/` has programs that people run on Redis, such as BullMQ and Celery, with what drives
//! them.
//!
//! `WEFT_TEST_SERVER` names another server command (split at spaces), to check the tests themselves
//! against Redis: `WEFT_TEST_SERVER=redis-server cargo test -p clients-test`.
//!
//! Not tested here: the replies of each command, which `crates/node/tests/transcripts` covers, and
//! timing, memory and bytes on the wire.
#![forbid(unsafe_code)]
// Everything here runs inside tests, where a panic with a reason is how a failure is reported.
#![allow(clippy::expect_used, clippy::panic)]

mod program;
mod python;

use std::fs;
use std::path::{Path, PathBuf};

pub use program::{KINDS, Program, TestUser, case_names, scenario_server, shared_file};
pub use python::python_program;
pub use test_support::{Tool, install_step, prepare};

/// The sorted files with the extension `ext` in the folder `name` of this crate.
pub fn sources(name: &str, ext: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let entries = fs::read_dir(&folder).expect("a language has a folder of this crate");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ext));
    files.sort();
    files
}

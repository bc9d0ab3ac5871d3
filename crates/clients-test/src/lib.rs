//! Real clients drive the built server: redis-py, node-redis, go-redis, Jedis and the `redis`
//! crate run the same tests of all commands, each in its own language, and stop at the first reply
//! that is not what the same client gets from Redis 8.0. These five and seven more, valkey-py,
//! ioredis, rueidis, redigo, Lettuce, Redisson and fred, do what applications do through their own
//! methods: `cases/clients.txt` lists it.
//!
//! This library finds or builds the `weft` binary, starts servers of it, makes
//! certificates, installs what each client program needs under `target/clients/<language>`, and
//! runs the programs. `tests/<language>.rs` says how a language is prepared; the programs are in
//! `python/`, `node/`, `go/`, `java/` and `tests/rust/`. `cases/` has what they share. Programs
//! that people run on Redis, and what drives them, are in `programs/`.
//!
//! `WEFT_TEST_SERVER` names another server command to drive (split at spaces), so that the tests
//! themselves can be checked against Redis:
//! `WEFT_TEST_SERVER=redis-server cargo test -p clients-test`.
//!
//! It is not part of the product, and it does not test what one client cannot see: timing, memory,
//! or the bytes on the wire.
#![forbid(unsafe_code)]
// Everything here runs inside tests, where a panic with a reason is how a failure is reported.
#![allow(clippy::expect_used, clippy::panic)]

mod binary;
mod certificates;
mod folder;
mod program;
mod python;
mod server;
mod toolchain;

pub use certificates::Certificates;
pub use folder::Folder;
pub use program::{
    KINDS, Part, Program, REPLIES, both_server, case_names, shared_file, tls_servers,
};
pub use python::python_program;
pub use server::Server;

/// The path of the `weft` binary, built first when it is missing or stale.
///
/// # Panics
/// When it does not build.
pub fn weft_program() -> String {
    binary::weft().display().to_string()
}

pub use toolchain::{Tool, prepare, run_step, sources};

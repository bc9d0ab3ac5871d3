//! Black-box tests: they start the `weft` binary and talk to it over sockets.
//!
//! Each test has its own servers, on free ports and in their own folders. It waits for events and
//! never for time to pass, except where the passing of time is tested. The transcripts of `node`
//! test the replies of single commands; these tests cover a whole process: bytes on the wire,
//! threads, limits, start and end.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod append_only;
mod append_only_faults;
mod bench;
mod busy;
mod cli;
mod client_limit;
mod configuration;
mod connections;
mod control_group;
mod counted_memory;
mod crashes;
mod delays;
mod ending;
mod fan_out;
mod fields;
mod final_save;
mod foreign_files;
mod fuzz;
mod interrupts;
mod left_logs;
mod limits;
mod listeners;
mod load;
mod load_libraries;
mod log_kept;
mod measured;
mod memory;
mod memory_limit;
mod metrics;
mod monitor;
mod peer_files;
mod peers;
mod pending;
mod protocol;
mod pubsub;
mod put_aside;
mod refusals;
mod renamed;
mod repairs;
mod report;
mod scripts;
mod slow_disk;
mod snapshot_faults;
mod snapshots;
mod stall;
mod start;
mod stops;
mod stuck;
mod threads;
mod threads_change;
mod time;
mod tracking;
mod undisturbed;
mod users;
mod visits;
mod waitaof;
mod waiting;
mod waits;

use test_support::{Client, Server, Value};

/// How threads may share the work: each way must behave the same.
const MODELS: [&[&str]; 4] = [
    &["--io-threads", "1"],
    &["--io-threads", "3", "--io-threads-execute", "all"],
    &["--io-threads", "3", "--io-threads-execute", "simple"],
    &["--io-threads", "3", "--io-threads-execute", "none"],
];

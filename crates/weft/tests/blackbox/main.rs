//! Black-box tests: they start the `weft` binary and talk to it over sockets.
//!
//! Each test has its own servers, on free ports and in their own folders, and waits for events
//! and never for time to pass, except where the passing of time is what is tested. What one command
//! replies is tested elsewhere (the transcripts of `node`); here it is what only a whole process
//! has: bytes on the wire, threads, limits, start and end.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod connections;
mod fields;
mod fuzz;
mod limits;
mod pending;
mod protocol;
mod server;
mod stall;
mod start;
mod threads;
mod threads_change;
mod waiting;

use client::{Client, Value};
use server::Server;

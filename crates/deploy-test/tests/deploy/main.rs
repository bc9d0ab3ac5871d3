//! The files of `deploy/`: linters read each, and every command line, probe and script runs.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod container;
mod install;
mod kubernetes;
mod lint;
mod metrics;
mod tune;
mod unit;
mod workflow;

//! The files of `deploy/`: each is read by a linter that has been seen to refuse a broken one, and
//! what can be run is run.
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

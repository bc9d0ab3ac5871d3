//! Tests of rules, from their words to the requests that a user may run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod allowed;
mod cost;
mod files;
mod logs;
mod random;
mod same;
mod table;
mod words;

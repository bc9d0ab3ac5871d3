//! Transcripts: what a client says, and what it must hear, for every command and option.
//!
//! One file a family; `check.rs` explains the form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod client;
mod connection;
mod expire;
mod fake;
mod generic;
mod keyspace;
mod scan;
mod string;

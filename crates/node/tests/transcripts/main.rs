//! Transcripts: what a client says, and what it must hear, for every command and option.
//!
//! One file a family; `check.rs` explains the form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bitmap;
mod check;
mod client;
mod command;
mod config;
mod connection;
mod expire;
mod fake;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod info;
mod keyspace;
mod list;
mod scan;
mod server;
mod set;
mod slowlog;
mod sort;
mod sorted_set;
mod stream;
mod string;
mod types;
mod waiting;

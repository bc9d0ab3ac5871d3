//! Transcripts: requests and the replies they must receive, for every command and option.
//!
//! One file a family; `grammar.rs` explains the form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bitmap;
mod check;
mod client;
mod clock;
mod command;
mod config;
mod connection;
mod expire;
mod fake;
mod generic;
mod geo;
mod grammar;
mod hash;
mod hyperloglog;
mod info;
mod keyspace;
mod list;
mod movable_keys;
mod record;
mod reply;
mod runner;
mod scan;
mod server;
mod set;
mod slowlog;
mod sort;
mod sorted_set;
mod stream;
mod string;
mod time;
mod types;
mod waiting;

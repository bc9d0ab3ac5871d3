//! Transcripts: requests and the replies they must receive, for every command and option.
//!
//! One file a family; `grammar.rs` explains the form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acl;
mod append_only;
mod bitmap;
mod busy;
mod check;
mod client;
mod clock;
mod command;
mod config;
mod connection;
mod dump;
mod expire;
mod fake;
mod fake_host;
mod fake_shards;
mod functions;
mod generic;
mod geo;
mod grace;
mod grammar;
mod hash;
mod hotkeys;
mod hyperloglog;
mod info;
mod keyspace;
mod latency;
mod list;
mod logged;
mod memory_limit;
mod monitor;
mod movable_keys;
mod noscript;
mod notifications;
mod persistence;
mod pubsub;
mod record;
mod reply;
mod runner;
mod scan;
mod scripting;
mod server;
mod set;
mod slowlog;
mod sort;
mod sorted_set;
mod stream;
mod string;
mod time;
mod tracking;
mod transactions;
mod types;
mod waiting;
mod weft;

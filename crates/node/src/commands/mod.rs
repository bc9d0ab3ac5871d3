//! Commands on sessions and on the server itself: one file per family, as in `engine`.

mod acl;
mod all_commands;
mod any_handler;
mod append_only;
mod client;
mod cluster;
mod command;
mod config;
mod connection;
mod debug;
mod footprint;
mod function;
mod handshake;
mod help;
mod hotkeys;
mod info;
mod latency;
mod lolwut;
mod map_writer;
mod memory;
mod module;
mod monitor;
mod persistence;
mod populate;
mod pubsub;
mod reload;
mod replication;
mod scripting;
mod server;
mod slowlog;
mod transactions;
mod weft;
mod wiring;

pub use all_commands::table;

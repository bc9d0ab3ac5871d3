//! Commands on sessions and on the server itself: one file per family, as in `engine`.

mod client;
mod command;
mod config;
mod connection;
mod debug;
mod footprint;
mod handshake;
mod help;
mod info;
mod lolwut;
mod memory;
mod server;
mod slowlog;
mod table;

pub use table::table;

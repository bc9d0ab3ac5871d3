//! Commands on sessions and on the server itself: one file per family, as in `engine`.

mod acl;
mod append_only;
mod client;
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
mod memory;
mod module;
mod monitor;
mod persistence;
mod populate;
mod pubsub;
mod reload;
mod scripting;
mod server;
mod slowlog;
mod table;
mod transactions;
mod weft;

pub(crate) use acl::UserChanges;
pub use client::client_line;
pub use function::load_sources;
pub use table::table;
pub(crate) use table::{acl_commands, table_with};

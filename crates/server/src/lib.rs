//! Layer 6: all input and output: event loops, threads, the shard locks, the real files, signals.
//!
//! - `process`: start and end of the process, the configuration file, the log.
//! - `threads`: an I/O thread's event loop, its clients, and what threads ask of one another.
//! - `net`: sockets, TLS, and the bytes that clients send and get.
//! - `disk`: what outlives the process: the log, and files of the keyspace.
//! - `http`: metrics and their page, for monitoring systems and browsers.
//! - `keyspace`: the shards, their locks and the gate around them.
#![forbid(unsafe_code)]

mod disk;
mod http;
mod keyspace;
mod net;
mod process;
mod threads;

pub use disk::real_disk::{RealDisk, RealFile};
pub use process::{log, start::run};

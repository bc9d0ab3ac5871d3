//! Layer 6: all input and output: event loops, threads, the shard locks, the real files, signals.
//!
//! The folders are layers, the lowest first; each uses only those before it:
//! - `system`: files, clocks and the server's log.
//! - `net`: sockets, TLS, and the bytes that clients send and get.
//! - `log`: the log of effects, a ring of bytes in memory.
//! - `keyspace`: the shards, their locks and the gate around them.
//! - `disk`: the append-only file, which reads the log, and RDB files.
//! - `http`: metrics and their page, for monitoring systems and browsers.
//! - `threads`: an I/O thread's event loop, its clients, and the messages between threads.
//! - `process`: start and end of the process, its configuration file, signals.
#![forbid(unsafe_code)]

mod disk;
mod http;
mod keyspace;
mod log;
mod net;
mod process;
mod system;
mod threads;

pub use disk::kept_files::keep_beside;
pub use process::start::run;
pub use system::real_disk::{RealDisk, RealFile};

//! Scripts and functions as commands: how one runs on the keyspace, and what it reaches of the
//! server. The interpreter is in the crate `script`; which scripts there are is in `state`.
//!
//! A script holds the shards of its declared keys while other scripts run. How it starts depends on
//! the keys that it has accessed in earlier runs:
//!
//! ```text
//! only its declared keys               beside other scripts; for another key's shard that is in
//!                                      use it takes the exclusive slot, and waits; if the slot is
//!                                      taken, it begins again, or fails if it has written
//! unknown, others, or it is in EXEC    exclusive among scripts; it waits for further shards
//! all, by a command such as FLUSHALL   exclusive among scripts, on all shards
//! ```
//!
//! A script that calls FLUSHALL or its like for the first time takes all shards if they are free,
//! and is begun again on all of them otherwise: waiting for one shard while it holds the others
//! would stop all clients. If it has written by then, or runs in EXEC, it has to wait like that.
//!
//! Only one script at a time may wait for a shard while it holds others: the exclusive one. It gets
//! every shard in the end, since all other commands release theirs before they wait.
//!
//! A script that has run for longer than `busy-reply-threshold` is *busy* (`BusyScripts`). From
//! then on no thread waits for its shards, and its own thread serves its other clients from within
//! the script's ticks ([`ShardLocks::serve_others`](crate::ShardLocks::serve_others)): they get
//! BUSY, unless their commands can end the script.

mod evaluation;
pub mod libraries;
mod resolution;
mod script_host;
mod vm;

pub(crate) use evaluation::{perform, perform_queued};
pub use vm::{FILE_VM_BYTES_MAX, end_thread};
pub(crate) use vm::{relieve_vm, with_vm};

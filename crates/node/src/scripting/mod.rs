//! Scripts and functions as commands: which there are, how one runs on the keyspace, and what it
//! reaches of the server. The interpreter is in the crate `script`.
//!
//! A script holds the shards of its declared keys while others run on. What it is known to do
//! decides how it starts:
//!
//! ```text
//! seen to keep to its declared keys         beside other scripts; for another key's shard that
//!                                           somebody holds it becomes the one that waits; if there
//!                                           is one, it is begun again, or fails if it has written
//! new, seen to reach beyond, or in EXEC     alone among such scripts; it waits for further shards
//! has called what needs all, as FLUSHALL    alone among such scripts, on all shards
//! ```
//!
//! A script that calls FLUSHALL or its like for the first time takes all shards if they are free,
//! and is begun again on all of them otherwise: waiting for one with the others in hand would stop
//! everyone. If it has written by then, or runs in EXEC, there is no other way than that.
//!
//! Who waits for a shard while holding others must be the only one who does: a script that runs
//! alone. It gets every shard in the end, since all others let go of theirs before they wait.
//!
//! A script that has run for longer than `busy-reply-threshold` is *busy*. From then on nobody
//! waits for what it holds ([`BusyScripts`](crate::state::busy_scripts::BusyScripts)), and its thread serves its other clients from within the
//! script's ticks ([`ShardLocks::serve_others`](crate::ShardLocks::serve_others)): they are
//! answered with BUSY, unless their commands can end the script.

mod evaluation;
pub mod libraries;
mod resolution;
mod script_host;
mod vm;

pub(crate) use evaluation::{perform, perform_queued};
pub use vm::{FILE_VM_BYTES_MAX, end_thread};
pub(crate) use vm::{vm_bytes, with_vm};

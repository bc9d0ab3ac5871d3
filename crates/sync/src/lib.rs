//! Layer 0: state that threads share, model-checked.
//!
//! - [`mailbox`]: how one thread asks something of another.
//! - [`gate`]: how one thread stops all others for a moment.
//! - [`client_location`]: where a client is, and whether it must be closed.
//! - [`completion`]: an outcome that several threads may decide, and one does.
//! - [`fd_guard`]: a client's descriptor, for threads that do not own the client.
//! - [`log_positions`]: which thread writes which bytes of the log, and how far it can be read.
//! - [`log_waits`]: which threads wait until the log reaches a position.
//!
//! They take their atomics, locks and queue from `shim`, so that `tests/models` can compile the
//! same sources against loom and try every interleaving of small cases; no flag or feature is
//! involved. Nothing here makes a system call, except to sleep, or knows what a client, a key or an
//! epoll instance is.
#![forbid(unsafe_code)]

pub mod client_location;
pub mod completion;
pub mod fd_guard;
pub mod gate;
mod gate_slot;
pub mod log_positions;
pub mod log_waits;
pub mod mailbox;
mod shim;

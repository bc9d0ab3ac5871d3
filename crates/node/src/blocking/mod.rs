//! Clients that are blocked: on keys, BLPOP and its like; on the log, WAITAOF.
//!
//! ```text
//!                 a writer serves it             (serve)
//!     blocked --------------------------------------------> served
//!        |  +--- its owner tries again (deadline) --------> served
//!        |  +--- its timeout, CLIENT UNBLOCK -------------> timed out, unblocked
//!        +------ it is closed or killed ------------------> gone
//! ```
//!
//! The client stands in the queues of its keys (`store::waiters`), and its `Waiter` is found by the
//! client's number in `Waits` (both in `state`). The thread that settles its
//! [`Completion`](sync::completion::Completion) first decides how the wait ends. Then the client's
//! owner thread is notified, and [`finish`]es the wait: the reply is sent, and the client goes on
//! with its next requests.
//!
//! A client that waits for the log (`LogWait`) is in no queue: its owner settles the wait when the
//! log is durable that far.
//!
//! Invariants:
//! - Looking for an element and beginning to wait are one step, under the locks of all keys.
//! - An element that a writer takes out of the keyspace for a waiter reaches it: the completion is
//!   settled in the same step. A thread that gives up a wait settles the completion first, so
//!   nothing is taken for it from then on.
//! - The owner is notified after the completion is settled and while no shard is locked. It finds
//!   the result in the waiter, on whatever thread the client is by then.

mod catch_up;
mod deadline;
mod end;
mod serve;

pub use deadline::{Due, due, on_deadline};
pub(crate) use end::begin_log_wait;
pub use end::{EndedWait, finish, give_up};
pub use serve::expire_and_serve;
pub(crate) use serve::{missing, serve_key_changed, serve_ready};

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
//! The client stands in the queues of its keys (`store::waiters`), and its [`Waiter`](crate::state::waiter::Waiter) is found by
//! the client's number in [`Waits`](crate::state::waits::Waits). Whoever settles its
//! [`Completion`](sync::completion::Completion) first decides how the wait ends, on whatever
//! thread; then the client's owner is told, and [`finish`]es it: the reply is sent, and the client
//! goes on with its next requests.
//!
//! One that waits for the log ([`LogWait`](crate::state::durability::LogWait)) is in no queue: its owner
//! settles its wait when the log has come there.
//!
//! Invariants:
//! - Looking for an element and beginning to wait are one step, under the locks of all keys.
//! - What a writer takes out of the keyspace for a waiter reaches it: the completion is settled in
//!   the same step. Whoever gives up a wait settles the completion first, so nothing is taken for
//!   it any more.
//! - The owner is told after the completion is settled and while no shard is locked. It finds the
//!   result in the waiter, wherever the client has moved meanwhile.

mod catch_up;
mod deadline;
mod end;
mod serve;

pub use deadline::{Due, due, on_deadline};
pub(crate) use end::reply_durable;
pub use end::{finish, give_up};
pub use serve::expire_and_serve;
pub(crate) use serve::{missing, serve_key_changed, serve_ready};

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
//! The client stands in the queues of its keys (`store::waiters`), and its [`Waiter`] is found by
//! the client's number in [`Waits`]. Whoever settles its
//! [`Completion`](sync::completion::Completion) first decides how the wait ends, on whatever
//! thread; then the client's owner is told, and [`finish`]es it: the reply is sent, and the client
//! goes on with its next requests.
//!
//! One that waits for the log ([`LogWait`](crate::persistence::LogWait)) is in no queue: its owner
//! settles its wait when the log has come there.
//!
//! Invariants:
//! - Looking for an element and beginning to wait are one step, under the locks of all keys.
//! - What a writer takes out of the keyspace for a waiter reaches it: the completion is settled in
//!   the same step. Whoever gives up a wait settles the completion first, so nothing is taken for
//!   it any more.
//! - The owner is told after the completion is settled and while no shard is locked. It finds the
//!   result in the waiter, wherever the client has moved meanwhile.

mod deadline;
mod end;
mod retry_times;
mod serve;
mod waiter;
mod waits;

pub use deadline::{Due, due, on_deadline};
pub(crate) use end::reply_durable;
pub use end::{finish, give_up};
pub(crate) use serve::{change_awaited, serve_grown, serve_key_changed};
pub use serve::{deliver, expire_and_serve};
pub use waiter::Waiter;
pub(crate) use waiter::WakeEvent;
pub use waits::Waits;

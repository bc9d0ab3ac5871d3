//! What the server sends without being asked, on its way to the clients that follow it.
//!
//! - `publish`: sending messages to the inboxes of threads (`state/inboxes.rs`).
//! - `notifications`: events of keys, as messages.
//! - `requests`: the requests that are executed, for MONITOR.
//! - [`subscribe`]: how a client's subscriptions begin, end and change threads.
//! - [`invalidations`]: clients that track keys, and what they are told of changes.
//!
//! ```text
//!   PUBLISH --> pubsub::ChannelRegistry --> Inboxes::push --> (wake, outside the gate)
//!                                                           |
//!   the client's output <-- server <-- Deliveries <---------+
//! ```

pub mod invalidations;
mod notifications;
mod publish;
mod requests;
pub mod subscribe;

pub(crate) use notifications::publish_changes;
pub(crate) use requests::show_request;

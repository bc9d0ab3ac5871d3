//! Messages that clients get besides replies: pub/sub, MONITOR, keyspace events, invalidations.
//!
//! - `publish`: sending messages to the inboxes of threads (`state/inboxes.rs`).
//! - `notifications`: events of keys, as messages.
//! - `requests`: the requests that are executed, for MONITOR.
//! - [`subscribe`]: how a client's subscriptions begin, end and change threads.
//! - [`invalidations`]: clients that track keys, and their notifications.
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

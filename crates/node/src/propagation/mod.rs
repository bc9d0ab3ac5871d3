//! What the server sends without being asked, on its way to the clients that follow it.
//!
//! - [`inboxes`]: where each thread finds what others have for its clients.
//! - [`deliveries`]: one thread's inbox, and its clients for whom something has come.
//! - `notifications`: events of keys, as messages.
//! - `requests`: the requests that are executed, for MONITOR.
//! - [`subscribe`]: how a client's subscriptions begin, end and change threads.
//! - [`tracking`]: clients that track keys, and what they are told of changes.
//!
//! ```text
//!   PUBLISH --> pubsub::ChannelRegistry --> Inboxes::push --> (wake, outside the gate)
//!                                                           |
//!   the client's output <-- server <-- Deliveries <---------+
//! ```

pub mod deliveries;
pub mod inboxes;
mod notifications;
pub(crate) mod requests;
pub mod subscribe;
pub mod tracking;

pub use deliveries::Deliveries;
pub use inboxes::{Delivery, Inboxes};
pub use tracking::{ClientAudience, Trackers};

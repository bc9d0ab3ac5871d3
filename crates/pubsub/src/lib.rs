//! Layer 4: channels, patterns, and their subscribers.
//!
//! ```text
//!    PUBLISH, on any thread             what all threads share
//!   +--------------------------+  locks   +---------------------+
//!   | ChannelRegistry::publish |--------->| channel -> threads  |
//!   |  counts receivers        |          | pattern -> threads  |
//!   +--------------------------+          +---------------------+
//!              |                                      the thread of some subscribers
//!              | while locked, a PublishedMessage    +----------------------+
//!              +---- for each thread: its inbox ---->| Subscribers::receive |
//!                                                    |  channel -> clients  |
//!                                                    +----------------------+
//!                                             one write for all messages of a client
//! ```
//!
//! - [`registry`]: on which threads a channel or pattern has subscribers, and how many.
//! - [`pattern_index`]: the patterns that may match a channel, found without trying all.
//! - `pattern_search`: those of them that match, found without holding up other threads.
//! - [`subscribers`]: the subscribers of one thread, and the messages for each.
//! - `pending_messages`: these messages, shared by the subscribers.
//! - [`subscriptions`]: the subscriptions of one client.
//! - [`message`]: a published message, encoded once for all receivers.
//!
//! The layers above know the clients, carry messages to other threads and send bytes. A
//! subscription lasts from one moment under the lock of its channel to another. The registry
//! numbers these moments, and messages carry the number, so a client receives exactly the messages
//! that publishers counted it for.
#![forbid(unsafe_code)]

pub mod message;
pub mod pattern_index;
mod pattern_search;
mod pending_messages;
pub mod registry;
mod shim;
pub mod subscribers;
pub mod subscriptions;
mod threads;

pub use message::{ChannelId, ChannelKind, PublishedMessage, SharedName};
pub use registry::{ChannelRegistry, Registered};
pub use subscribers::{PendingClient, Subscribers, WrittenMessages};
pub use subscriptions::ClientSubscriptions;

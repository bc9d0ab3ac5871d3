//! Layer 4: channels, patterns, and who is subscribed to them.
//!
//! ```text
//!    PUBLISH, on any thread           what all threads share
//!   +---------------------+   locks   +---------------------+
//!   | Registry::publish   |---------->| channel -> threads  |
//!   |  counts receivers   |           | pattern -> threads  |
//!   +---------------------+           +---------------------+
//!              |                                     the thread of some subscribers
//!              | while locked, one Published        +----------------------+
//!              +---- for each thread: its inbox --->| Subscribers::receive |
//!                                                   |  channel -> clients  |
//!                                                   +----------------------+
//!                                           one write for all that waits for a client
//! ```
//!
//! - [`registry`]: on which threads a channel or pattern has subscribers, and how many.
//! - [`pattern_index`]: the patterns that may match a channel, found without trying all.
//! - [`subscribers`]: the subscribers of one thread, and what has been published for each.
//! - [`subscriptions`]: what one client is subscribed to.
//! - [`message`]: a published message, encoded once for all who receive it.
//!
//! Who the clients are, how a message reaches another thread and how bytes leave is the business of
//! the layers above. A subscription counts from one moment under the lock of its channel to
//! another; the registry numbers these moments, and messages carry the number, so that a client
//! receives exactly the messages that publishers have counted it for.
#![forbid(unsafe_code)]

pub mod message;
pub mod pattern_index;
pub mod registry;
mod shim;
pub mod subscribers;
pub mod subscriptions;
mod threads;

pub use message::{ChannelId, ChannelKind, Name, PublishedMessage};
pub use registry::{ChannelRegistry, Registered};
pub use subscribers::{PendingClient, Subscribers};
pub use subscriptions::Subscriptions;

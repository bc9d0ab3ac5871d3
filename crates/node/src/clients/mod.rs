//! A client: what all threads may know of it, and what only its owner does.

pub mod client_tracking;
pub(crate) mod counted;
pub mod record;
pub mod registry;
pub mod reserve;
pub mod session;
pub(crate) mod transaction_queue;
pub mod users;
pub(crate) mod watched_keys;

pub use record::ClientRecord;
pub use registry::Registry;
pub use session::{ReplyMode, Session};
pub use users::UserRegistry;

//! A client: what all threads may know of it, and what only its owner does.

pub mod record;
pub mod reserve;
pub mod session;
pub mod tracking;
pub mod users;

pub use record::{ClientRecord, Registry};
pub use session::{ReplyMode, Session};
pub use users::UserRegistry;

//! Transactions: MULTI queues commands, EXEC runs them as one, WATCH makes EXEC depend on keys.
//!
//! EXEC takes the shards of all queued commands at once, so that others see all of a transaction or
//! nothing. A command that visits each shard makes EXEC take all of them, and one that changes the
//! server makes it stop all others. A command that needs the main thread makes the whole EXEC run
//! there.

mod exec;
mod queue;
mod watched_keys;

pub(crate) use queue::{Transaction, changes_scripts, changes_server};
pub(crate) use watched_keys::WatchedKeys;
pub use watched_keys::forget;

//! What the node knows of its files: why writes are refused, what is durable, and what INFO tells.

pub mod append_only;
pub mod durability;
pub mod refusal;
pub mod snapshots;

pub use append_only::AppendOnlyFigures;
pub use durability::{Durability, LogWait};
pub use refusal::{Cause, Refusals};
pub use snapshots::{Due, LoadProgress, Purpose, SaveProgress, SnapshotFigures, Snapshots};

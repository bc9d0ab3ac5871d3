//! What the node knows of its files: why writes are refused, and what INFO tells.

pub mod append_only;
pub mod refusal;
pub mod snapshots;

pub use append_only::AppendOnlyFigures;
pub use refusal::{Cause, Refusals};
pub use snapshots::{Due, LoadProgress, Purpose, SaveProgress, SnapshotFigures, Snapshots};

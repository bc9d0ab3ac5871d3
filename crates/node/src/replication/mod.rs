//! Applying logged commands: those of the append-only file, and later those of a primary.

mod applier;

pub use applier::{Applier, ApplyOutcome, StreamOrigin};

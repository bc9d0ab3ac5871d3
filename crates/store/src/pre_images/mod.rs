//! What is kept for a running snapshot of keys that change before it has visited them.

pub(crate) mod collection;
pub(crate) mod pending;
pub(crate) mod progress;
pub(crate) mod queue;
pub(crate) mod sink;

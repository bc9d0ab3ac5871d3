//! State of a running snapshot: keys saved before they changed, collections to be walked, and the
//! progress in each database.

pub(crate) mod collection;
pub(crate) mod pending;
pub(crate) mod progress;
pub(crate) mod queue;
pub(crate) mod shared_texts;
pub(crate) mod sink;

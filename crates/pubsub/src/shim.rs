//! The synchronization primitives of the registry, each under one name.
//!
//! The registry imports them from `super::shim`. `tests/models` includes the same source with a
//! shim of shuttle's types. Nothing else belongs here.

pub(crate) use parking_lot::{Mutex, RwLock};
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};

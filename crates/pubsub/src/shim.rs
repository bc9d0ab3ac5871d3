//! The primitives under the registry, by one name each.
//!
//! The registry names them `super::shim::...`; `tests/models` includes the same source beside a
//! shim made of shuttle's types. Nothing else belongs here.

pub(crate) use parking_lot::{Mutex, RwLock};
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};

//! The primitives under the shard locks, by one name each.
//!
//! The shard locks name them `super::shim::...`; `tests/models` includes the same source beside a
//! shim made of shuttle's types. Nothing else belongs here.

use std::time::Duration;

pub(crate) use parking_lot::{Mutex, MutexGuard};
use store::Time;
pub(crate) use sync::gate::Pass;

use crate::threads::clock::time_at;

/// Locks a mutex that is in use, for which it waits no longer than `wait`.
pub(crate) fn wait_to_lock<T>(mutex: &Mutex<T>, wait: Duration) -> Option<MutexGuard<'_, T>> {
    try_lock_for(mutex, wait)
}

/// Locks a mutex, for which it waits no longer than `wait`.
pub(crate) fn try_lock_for<T>(mutex: &Mutex<T>, wait: Duration) -> Option<MutexGuard<'_, T>> {
    if wait.is_zero() { mutex.try_lock() } else { mutex.try_lock_for(wait) }
}

/// How often a command on several shards waits for one of them before it goes through the gate.
pub(crate) const WAITS_MAX: u32 = 16;

/// The time on the clock that all threads share.
pub(crate) fn time() -> Time {
    time_at(sys::clock::tsc())
}

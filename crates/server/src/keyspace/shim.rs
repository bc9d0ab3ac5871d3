//! The primitives under the shard locks, by one name each.
//!
//! The shard locks name them `super::shim::...`; `tests/models` includes the same source beside a
//! shim made of shuttle's types. Nothing else belongs here.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::hint::spin_loop;
use store::Time;
pub(crate) use sync::gate::{GracePeriod, Pass};

use sys::clock::{tsc, tsc_per_micro};

use crate::system::clock::time_at;

/// How long a thread waits for a shard in use before its request is deferred, in microseconds: most
/// commands are over by then, and a longer wait would cost where there is no second processor.
const SPIN_US: f64 = 5.0;

/// Locks a mutex that is in use, for which it waits for some microseconds. It keeps the processor:
/// a thread that yields it may get it back much later, and has other clients.
pub(crate) fn wait_to_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let (start, ticks) = (tsc(), (SPIN_US * tsc_per_micro()) as u64);
    while tsc().wrapping_sub(start) < ticks {
        if !mutex.is_locked()
            && let Some(guard) = mutex.try_lock()
        {
            return Some(guard);
        }
        spin_loop();
    }
    None
}

/// Locks a mutex, for which it waits no longer than `wait`.
pub(crate) fn try_lock_for<T>(mutex: &Mutex<T>, wait: Duration) -> Option<MutexGuard<'_, T>> {
    if wait.is_zero() { mutex.try_lock() } else { mutex.try_lock_for(wait) }
}

/// How often a command on several shards waits for one of them before it asks for all at once.
pub(crate) const WAITS_MAX: u32 = 16;

/// How long a thread that closes the gate waits for the commands on other threads, in microseconds.
/// If they run on, it opens the gate again: meanwhile other clients wait for them as well.
pub(crate) const CLOSE_US: u64 = 2000;

/// The time on the clock that all threads share.
pub(crate) fn time() -> Time {
    time_at(tsc())
}

/// Microseconds by the TSC.
pub(crate) fn now_us() -> u64 {
    (tsc() as f64 / tsc_per_micro()) as u64
}

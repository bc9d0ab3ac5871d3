//! The primitives under the mailbox, the gate, the location, the completion, the guard and the
//! positions of the log, by one name each.
//!
//! The sources name them `super::shim::...`; `tests/models` includes the same sources beside a shim
//! made of loom's types. Nothing else belongs here.

pub(crate) use crossbeam_queue::SegQueue;
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU64, Ordering, fence};
use std::time::Duration;

/// How often a closer looks before it sleeps: one to two microseconds, less than falling asleep and
/// being woken costs, and short enough not to show where there is no second core.
pub(crate) const SPINS_MAX: u32 = 64;

/// Between two checks of a waiting thread whether to give up: short for the clients of all threads,
/// which wait while the gate is closed, and long compared with the cost of falling asleep.
const WHILE: Duration = Duration::from_millis(1);

/// Waits for a notice, but no longer than a while. `guard` holds `mutex`, before and after.
pub(crate) fn wait_for_a_while<'a, T>(
    notice: &Condvar,
    _mutex: &'a Mutex<T>,
    mut guard: MutexGuard<'a, T>,
) -> MutexGuard<'a, T> {
    notice.wait_for(&mut guard, WHILE);
    guard
}

/// Locks a mutex, for which it waits no longer than a while.
pub(crate) fn lock_for_a_while<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock_for(WHILE)
}

//! The primitives under the mailbox, the gate, the location, the completion and the guard, by one
//! name each.
//!
//! The sources name them `super::shim::...`; `tests/models` includes the same sources beside a shim
//! made of loom's types. Nothing else belongs here.

pub(crate) use crossbeam_queue::SegQueue;
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU64, Ordering, fence};

/// How often a closer looks before it sleeps: one to two microseconds, less than falling asleep and
/// being woken costs, and short enough not to show where there is no second core.
pub(crate) const SPINS_MAX: u32 = 64;

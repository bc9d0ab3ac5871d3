//! The primitives under the shard locks, by one name each.
//!
//! The shard locks name them `super::shim::...`; `tests/models` includes the same source beside a
//! shim made of shuttle's types. Nothing else belongs here.

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use sync::gate::{Inside, Pass};

/// Rounds of try-lock before a command on several shards goes through the gate.
pub(crate) const TRIES_MAX: u32 = 64;
/// Of these, the rounds in which a command waits for a holder that is running on another core.
const SPINS_MAX: u32 = 8;

/// Waits until every thread that is inside the gate has left it.
pub(crate) fn barrier(pass: &Pass) {
    pass.exclusively(|| {});
}

/// Waits a moment between two rounds.
pub(crate) fn back_off(round: u32) {
    if round < SPINS_MAX {
        std::hint::spin_loop();
    } else {
        // A holder that was preempted needs the processor more than we do.
        std::thread::yield_now();
    }
}

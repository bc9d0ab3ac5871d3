//! Keeping memory below `maxmemory`: before a command, and between turns.
//!
//! ```text
//!   a command -> below the limit? -------------------------------------------------> runs
//!                     | no: evict for a slice of time
//!                     +-> below now ------------------------------------------------> runs
//!                     +-> not yet: memory may not grow meanwhile -> waits for a turn, or runs
//!                     +-> no key may go --------------------> is refused if it may take memory
//! ```
//!
//! The thread that executes a command evicts first, inside the gate and while it holds no shard, so
//! that only its own clients wait, for a millisecond at most. The rest follows between the turns of
//! the thread, and before the next command.
//!
//! Invariants: no eviction happens between the commands of a transaction or script, since it holds
//! its shards; a command that was refused or waits has done nothing. Counted memory exceeds the
//! limit by no more than 0.4%, the amounts that threads have not published yet
//! (`stats/used_memory.rs`), and the memory of commands that were admitted below the limit.
//!
//! Notifications and invalidations do not count while they wait, on their way between threads and
//! in the outputs of clients. Clients are notified of evictions too, so otherwise one eviction
//! would cause the next until no key was left. Messages that clients publish count, as replies do,
//! and so do notifications beyond a bound (`stats/used_memory.rs`): then keys are evicted for
//! clients that do not read.
//!
//! As in Redis a command is refused only if it may take memory and no key may be evicted, and
//! during CLIENT PAUSE no key is evicted.

mod clients;
mod evictor;
mod keep_to_memory;

use evictor::Step;
pub(crate) use keep_to_memory::keep_to_memory;

use crate::execution::worker::Worker;
use crate::host::{ClientWaker, ShardLocks};
use crate::state::eviction_pool::Evictor;
use crate::state::memory_limit::EvictsOn;

/// Evictions between two looks at the time.
const STEPS_A_LOOK: u32 = 16;
/// Milliseconds between two looks at the memory freed in the background.
const FREED_LOOK_MS: i32 = 1;
/// Attempts without success, one after another, before a thread looks at the time.
const MISSES_A_LOOK: u32 = 16;

/// The state of memory after a thread has evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Below the limit.
    Enough,
    /// Above it, and there is more to evict or to be freed.
    Soon,
    /// The same, and memory would grow.
    NotYet,
    /// Above it, and no key may be evicted.
    None,
}

/// The outcome of a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evicted {
    /// There may be more.
    Some,
    /// Commands hold the shards of all keys that were tried.
    InUse,
    /// No key may be evicted.
    NoneLeft,
}

impl Worker {
    /// The bytes in use as far as this thread knows.
    #[inline]
    fn used_bytes<L: ShardLocks>(&self, locks: &L) -> i64 {
        let (used, limit) = (&self.node.used_memory, self.limit.bytes);
        used.look(&self.memory, locks.thread_bytes(), limit) + self.beyond_uncounted
    }

    /// Whether memory is over its limit.
    #[inline]
    pub(crate) fn is_over<L: ShardLocks>(&self, locks: &L) -> bool {
        self.used_bytes(locks) > self.limit.bytes
    }

    /// Evicts keys for a slice of time if memory is over its limit. No shard is held.
    pub(crate) fn make_room<L: ShardLocks>(&mut self, locks: &L, waker: &dyn ClientWaker) -> Room {
        if !self.is_over(locks) {
            return Room::Enough;
        }
        // Subscribers may be gone since the end of the last turn.
        self.beyond_uncounted = self.node.used_memory.beyond_uncounted(self.limit.bytes);
        if !self.is_over(locks) {
            return Room::Enough;
        }
        let steady_ms = self.turn.steady_ms;
        if self.mask_with_access.is_some() || self.node.pause_left_ms(steady_ms) > 0 {
            return Room::Enough;
        }
        let Some(mut evictor) = self.evictor.take() else { return Room::Enough };
        let start = locks.tsc();
        let came_of = self.evict(&mut evictor, locks, start);
        let took_us = self.micros(locks.tsc().wrapping_sub(start));
        self.note_latency("eviction-cycle", took_us / 1000);
        self.evictor = Some(evictor);
        // Now, because threads wait for the memory and this turn may last long.
        let evicted = self.turn.lazy_free.take_evicted();
        if !evicted.is_empty() {
            waker.free_evicted(evicted);
        }
        self.deliver_wakes(waker);
        let used = self.used_bytes(locks);
        let state = &self.node.eviction;
        if used <= self.limit.bytes {
            state.keep_up(steady_ms);
            return Room::Enough;
        }
        let may_not_grow = state.fall_behind(&self.limit, used, steady_ms);
        let doomed = self.node.used_memory.doomed();
        if came_of == Evicted::NoneLeft && doomed <= 0 {
            return Room::None;
        }
        let waits = came_of != Evicted::Some || used - doomed <= self.limit.bytes;
        self.evicts_on = if waits { EvictsOn::WhenFreed } else { EvictsOn::AtOnce };
        if may_not_grow { Room::NotYet } else { Room::Soon }
    }

    /// Evicts until memory is below its limit, or will be when the background has freed its queue,
    /// or until the slice of time is over, which began at `start`.
    fn evict<L: ShardLocks>(&mut self, evictor: &mut Evictor, locks: &L, start: u64) -> Evicted {
        let limit = self.limit;
        let Some(choice) = limit.choice else { return Evicted::NoneLeft };
        let is_measured = self.config.latency.monitor_threshold_ms != 0;
        let (mut steps, mut misses, mut in_use) = (0, 0, 0);
        loop {
            let over = self.used_bytes(locks) - self.node.used_memory.doomed() - limit.bytes;
            if over <= 0 {
                return Evicted::Some;
            }
            let step_start = is_measured.then(|| locks.tsc());
            match evictor.step(self, locks, &limit, choice) {
                Step::NoneLeft => return Evicted::NoneLeft,
                Step::Evicted => {
                    if let Some(start) = step_start {
                        let took_us = self.micros(locks.tsc().wrapping_sub(start));
                        self.note_latency("evict-del", took_us / 1000);
                    }
                    (misses, in_use) = (0, 0);
                    steps += 1;
                }
                Step::Missed => (misses, in_use) = (misses + 1, 0),
                Step::InUse => (misses, in_use) = (misses + 1, in_use + 1),
            }
            if in_use >= MISSES_A_LOOK {
                return Evicted::InUse;
            }
            let looks = misses >= MISSES_A_LOOK || steps >= STEPS_A_LOOK;
            if looks && self.micros(locks.tsc().wrapping_sub(start)) as f64 >= limit.slice_us {
                return Evicted::Some;
            }
            if looks {
                (steps, misses) = (0, 0);
            }
        }
    }

    /// Goes on between two turns where evictions have not kept up. Returns whether there is more to
    /// do.
    pub fn go_on_evicting<L: ShardLocks>(&mut self, locks: &L, waker: &dyn ClientWaker) -> bool {
        self.evicts_on = EvictsOn::No;
        self.is_limited() && matches!(self.make_room(locks, waker), Room::Soon | Room::NotYet)
    }

    /// In how many milliseconds [`go_on_evicting`](Self::go_on_evicting) has work; `None` if it has
    /// none.
    pub fn evicts_in_ms(&self) -> Option<i32> {
        match self.evicts_on {
            EvictsOn::No => None,
            EvictsOn::AtOnce => Some(0),
            EvictsOn::WhenFreed => Some(FREED_LOOK_MS),
        }
    }

    /// Whether the limit has changed since the last call, on the main thread.
    pub fn take_limit_changed(&mut self) -> bool {
        std::mem::take(&mut self.limit_changed)
    }

    /// Announces to all threads that a client's input will take so many bytes, and evicts for them.
    /// Returns whether they may be taken now; otherwise try in a later turn. Call
    /// [`received`](Self::received) when they are taken.
    pub fn expect_input<L: ShardLocks>(
        &mut self,
        locks: &L,
        waker: &dyn ClientWaker,
        bytes: usize,
    ) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
        self.node.used_memory.announce(&self.memory, locks.thread_bytes(), bytes);
        self.make_room(locks, waker) != Room::NotYet
    }

    /// The announced bytes have been taken, or will not be.
    pub fn received(&mut self, thread_bytes: i64) {
        self.node.used_memory.announce(&self.memory, thread_bytes, 0);
    }

    /// Ends a turn: publishes the bytes that this thread has taken.
    pub fn publish_memory(&mut self, thread_bytes: i64) {
        let limit = self.limit.bytes;
        let used = self.node.used_memory.end_turn(&self.memory, thread_bytes, limit);
        if limit != 0 {
            self.beyond_uncounted = self.node.used_memory.beyond_uncounted(limit);
            if used + self.beyond_uncounted <= limit {
                self.node.eviction.keep_up(self.turn.steady_ms);
            }
        }
    }
}

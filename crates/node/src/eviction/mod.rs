//! Keeping to `maxmemory`: before a command, and between turns.
//!
//! ```text
//!   a command -> below the limit? -------------------------------------------------> runs
//!                     | no: evict for a slice of time
//!                     +-> below now ------------------------------------------------> runs
//!                     +-> not yet: memory may not grow meanwhile -> waits for a turn, or runs
//!                     +-> no key may go --------------------> is refused if it may take memory
//! ```
//!
//! The thread that would execute a command evicts first, inside the gate and while it holds no
//! shard, so that nothing waits for it but its own clients, for a millisecond at most. What it does
//! not get done goes on between the turns of the thread, and before the next command.
//!
//! Invariants: an eviction never falls between the commands of a transaction or script, since it
//! holds its shards; a command that was refused or waits has done nothing. What counts of memory is
//! over the limit by no more than 0.4%, what threads have not shared yet
//! (`stats/used_memory.rs`), and what the commands take that were let in below it.
//!
//! What tells clients of keys does not count while it waits: notifications and invalidations, on
//! their way between threads and in the outputs of clients. Evictions are told as well, to each who
//! listens, so that otherwise one would cause the next until no key were left. What clients publish
//! counts, as replies do, and so does what is beyond a bound (`stats/used_memory.rs`): keys go then
//! for clients that do not read.
//!
//! As in Redis a command is refused only if it may take memory and no key is left that may go, and
//! during CLIENT PAUSE nothing is evicted.

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
/// Between two looks at what is freed in the background, in milliseconds.
const FREED_LOOK_MS: i32 = 1;
/// Attempts without success, one after another, before a thread looks at the time.
const MISSES_A_LOOK: u32 = 16;

/// What memory is like after a thread has evicted what it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Below the limit.
    Enough,
    /// Above it, and there is more to evict or to be freed.
    Soon,
    /// The same, and memory would grow.
    NotYet,
    /// Above it, and no key may go.
    None,
}

/// What came of a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evicted {
    /// There may be more.
    Some,
    /// Commands hold the shards of all keys that it has come to.
    InUse,
    /// No key is left that may go.
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
        // Listeners may be gone since the end of the last turn.
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

    /// Evicts until memory is below its limit, or will be when what waits is freed, or until the
    /// time is over, which began at `start`.
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

    /// When [`go_on_evicting`](Self::go_on_evicting) has something to do, in milliseconds. None: it
    /// has nothing to do.
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

    /// Lets everyone see that a client's input is about to take so many bytes, and evicts for them.
    /// Returns whether they may be taken now; in a later turn otherwise. When they are,
    /// [`received`](Self::received) has to be told.
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

    /// What was expected has been taken, or will not be.
    pub fn received(&mut self, thread_bytes: i64) {
        self.node.used_memory.announce(&self.memory, thread_bytes, 0);
    }

    /// Ends a turn: the others may see what this thread has taken.
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

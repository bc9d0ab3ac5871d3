//! When the background tick of a thread is due.

use crate::threads::expiry_walk::ExpiryWalk;

/// Between two searches for idle clients.
pub(super) const IDLE_CHECK_MS: i64 = 1000;

/// How long a thread sleeps that has nothing to do.
const SLEEP_MS_MAX: i32 = 60 * 60 * 1000;

/// When a thread's background work is due, on the steady scale.
#[derive(Debug, Default)]
pub struct Cron {
    next_ms: i64,
    pub(super) next_idle_check_ms: i64,
    pub(super) walk: ExpiryWalk,
}

impl Cron {
    /// How long the thread may sleep, if it has clients and if it tends shards.
    pub fn wait_ms(&self, steady_ms: i64, has_clients: bool, tends_shards: bool) -> i32 {
        match (tends_shards, has_clients) {
            (true, _) => (self.next_ms - steady_ms).clamp(0, 1000) as i32,
            (false, true) => (self.next_idle_check_ms - steady_ms).clamp(0, IDLE_CHECK_MS) as i32,
            // A thread that gives this one a client or shards sends a message.
            (false, false) => SLEEP_MS_MAX,
        }
    }

    /// Whether a tick is due. The caller then says when the [next](Self::schedule) one is.
    pub fn is_due(&self, steady_ms: i64, tends_shards: bool) -> bool {
        steady_ms >= if tends_shards { self.next_ms } else { self.next_idle_check_ms }
    }

    /// Schedules the next tick for the end of this interval: the same moment in all threads, so
    /// that keys with the same expiry are removed together.
    pub fn schedule(&mut self, steady_ms: i64, interval_ms: i64) {
        self.next_ms = (steady_ms / interval_ms + 1) * interval_ms;
    }
}

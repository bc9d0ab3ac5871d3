//! `maxmemory` and its options, as a thread needs them before each command; and by how much memory
//! exceeds it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use store::eviction::EvictionChoice;
use store::{LfuTuning, Turn};

use crate::config::Config;

/// Microseconds that a thread evicts before a command at most. Its other clients come next; if the
/// configuration asks for more, the client waits and the thread goes on.
const SLICE_US_MAX: f64 = 1000.0;
/// The part of the limit by which memory may be over it before writes wait for evictions.
const SLACK_PER_LIMIT: i64 = 256;

/// Bytes that may be in use beyond the known ones when the limit changes.
const BEGIN_BYTES: i64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EvictsOn {
    #[default]
    No,
    AtOnce,
    /// The bytes that wait to be freed are enough, or commands hold all shards with keys that may
    /// be evicted.
    WhenFreed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    /// Bytes; 0 if there is no limit.
    pub(crate) bytes: i64,
    /// How keys are chosen; `None` if no key may be evicted.
    pub(crate) choice: Option<EvictionChoice>,
    /// Keys looked at to choose one.
    pub(crate) samples: usize,
    /// How long a thread evicts before it looks at the time, in microseconds.
    pub(crate) slice_us: f64,
    /// Every command waits until memory is below the limit, not only those that take more.
    pub(crate) is_tenacious: bool,
}

impl Limit {
    pub(crate) fn new(config: &Config) -> Self {
        let eviction = &config.eviction;
        let wait_budget_us = wait_budget_us(eviction.maxmemory_eviction_tenacity);
        Self {
            bytes: i64::try_from(eviction.maxmemory).unwrap_or(i64::MAX),
            choice: eviction.maxmemory_policy.choice(),
            samples: eviction.maxmemory_samples as usize,
            slice_us: wait_budget_us.min(SLICE_US_MAX),
            is_tenacious: wait_budget_us > SLICE_US_MAX,
        }
    }

    /// The bytes above which commands that take memory wait.
    pub(crate) fn bytes_max(&self) -> i64 {
        self.bytes.saturating_add(self.bytes / SLACK_PER_LIMIT)
    }
}

/// Makes a thread's turns note the use of keys, and evictions, as a configuration asks.
pub(crate) fn follow_config(turn: &mut Turn, config: &Config) {
    let eviction = &config.eviction;
    let policy = eviction.maxmemory_policy;
    turn.access.lfu = policy.is_lfu().then_some(LfuTuning {
        log_factor: eviction.lfu_log_factor,
        decay_minutes: eviction.lfu_decay_time_minutes,
    });
    turn.access.shares_values = eviction.maxmemory == 0 || !(policy.is_lfu() || policy.is_lru());
    turn.unlink_evicted = config.lazyfree.lazy_eviction;
}

/// How long a command waits for evictions, in microseconds: as in Redis, 50 us more for each step
/// up to 500 us, then 15% more.
fn wait_budget_us(tenacity: u32) -> f64 {
    match tenacity {
        0..=10 => 50.0 * f64::from(tenacity),
        11..=99 => 500.0 * 1.15f64.powi(tenacity as i32 - 10),
        _ => f64::INFINITY,
    }
}

/// How far memory is over its limit, and since when.
#[derive(Debug, Default)]
pub struct EvictionState {
    /// A ceiling for memory while it is over the limit. It follows memory down: a limit may be set
    /// far below the memory in use, and then writes go on during the evictions.
    ceiling: AtomicI64,
    /// Since when evictions have not kept up, in milliseconds on the steady scale; 0: they do.
    behind_since_ms: AtomicI64,
    /// Milliseconds for which that was the case earlier.
    behind_ms: AtomicU64,
}

impl EvictionState {
    /// The limit has changed while about `used` bytes are in use.
    pub(crate) fn begin(&self, used: i64) {
        self.ceiling.store(used.saturating_add(BEGIN_BYTES), Ordering::Relaxed);
    }

    /// Evictions have not kept up: `used` bytes are in use. Returns whether commands that take
    /// memory have to wait.
    pub(crate) fn fall_behind(&self, limit: &Limit, used: i64, steady_ms: i64) -> bool {
        if self.behind_since_ms.load(Ordering::Relaxed) == 0 {
            self.behind_since_ms.store(steady_ms.max(1), Ordering::Relaxed);
        }
        let used_max = limit.bytes_max();
        let ceiling = self.ceiling.load(Ordering::Relaxed).max(used_max);
        if used < ceiling {
            // Another thread may store a higher value at the same moment, which the next one
            // corrects.
            self.ceiling.store(used.max(used_max), Ordering::Relaxed);
        }
        used > ceiling
    }

    /// Memory is below its limit.
    #[inline]
    pub(crate) fn keep_up(&self, steady_ms: i64) {
        if self.behind_since_ms.load(Ordering::Relaxed) != 0 {
            let since_ms = self.behind_since_ms.swap(0, Ordering::Relaxed);
            self.ceiling.store(0, Ordering::Relaxed);
            if since_ms != 0 {
                let ms = u64::try_from(steady_ms - since_ms).unwrap_or(0);
                self.behind_ms.fetch_add(ms, Ordering::Relaxed);
            }
        }
    }

    /// How long evictions have not kept up, in milliseconds: in all, and since they last did.
    pub(crate) fn behind_ms(&self, steady_ms: i64) -> (u64, u64) {
        let now_ms = match self.behind_since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => u64::try_from(steady_ms - since_ms).unwrap_or(0),
        };
        (self.behind_ms.load(Ordering::Relaxed) + now_ms, now_ms)
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset(&self, steady_ms: i64) {
        self.behind_ms.store(0, Ordering::Relaxed);
        if self.behind_since_ms.load(Ordering::Relaxed) != 0 {
            self.behind_since_ms.store(steady_ms.max(1), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenacity_is_a_time() {
        let us: Vec<f64> = [0, 1, 10, 11, 15].map(wait_budget_us).to_vec();
        assert_eq!(us[..3], [0.0, 50.0, 500.0]);
        assert!((us[3] - 575.0).abs() < 1e-6 && (us[4] - 1005.678).abs() < 1e-2);
        // About two minutes.
        assert!((100e6..150e6).contains(&wait_budget_us(99)));
        assert_eq!(wait_budget_us(100), f64::INFINITY);
    }

    #[test]
    fn memory_may_shrink_slowly_but_not_grow() {
        let state = EvictionState::default();
        let limit = Limit { bytes: 256_000, ..Limit::default() };
        assert!(state.fall_behind(&limit, 257_001, 0));
        state.keep_up(0);
        // The limit is set below what is used: writes go on, as long as it gets less.
        state.begin(900_000);
        assert!(!state.fall_behind(&limit, 900_000, 0));
        assert!(!state.fall_behind(&limit, 800_000, 5));
        assert!(state.fall_behind(&limit, 800_001, 10));
        assert!(!state.fall_behind(&limit, 300_000, 10));
        assert!(state.fall_behind(&limit, 300_001, 10));
        // At last only the slack is left.
        assert!(!state.fall_behind(&limit, 256_100, 20));
        assert!(!state.fall_behind(&limit, 257_000, 20));
        assert!(state.fall_behind(&limit, 257_001, 20));
        let before_ms = state.behind_ms.load(Ordering::Relaxed);
        assert_eq!(state.behind_ms(31), (before_ms + 30, 30));
        state.keep_up(41);
        assert_eq!(state.behind_ms(50), (before_ms + 40, 0));
    }
}

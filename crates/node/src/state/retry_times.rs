//! Waits that time alone may answer: XREADGROUP CLAIM waits also for entries to have been pending
//! for long, and such a one becomes ready without anybody writing to its stream.
//!
//! Each attempt to answer says when the next is worth while, under the lock of the key it looked
//! at. The waiter keeps that time for each of its keys; its owner looks at the soonest, on the way
//! on which a writer would: whoever waits for the key is served, first come first served.
//!
//! Invariants:
//! - The owner looks at the soonest time or earlier. Who makes it sooner than the owner knows finds
//!   that out in the same step and tells the owner, as if the wait were over.
//! - Who makes it later tells nobody: the owner comes in vain, and knows then. So a key that is
//!   always being written to costs no messages, and looks are at least a millisecond apart.
//! - During CLIENT PAUSE nobody looks: what waits may write.

use engine::ServeOutcome;
use parking_lot::Mutex;

/// No time at all: only a write can make the key ready.
const NEVER_MS: i64 = i64::MAX;

/// When a wait's keys are worth a look.
pub(crate) struct RetryTimes(Option<Mutex<Times>>);

struct Times {
    /// For each key, in milliseconds since 1970.
    retry_at_ms: Vec<i64>,
    /// The owner looks at this time at the latest.
    known_ms: i64,
}

impl Times {
    fn soonest_ms(&self) -> i64 {
        self.retry_at_ms.iter().copied().min().unwrap_or(NEVER_MS)
    }
}

impl RetryTimes {
    /// The times that the request named, for each of its keys or none.
    pub(crate) fn new(retry_at_ms: &[Option<i64>]) -> Self {
        // The owner is on its way to ask.
        let times = || Times {
            retry_at_ms: retry_at_ms
                .iter()
                .map(|retry_at_ms| retry_at_ms.unwrap_or(NEVER_MS))
                .collect(),
            known_ms: i64::MIN,
        };
        Self((!retry_at_ms.is_empty()).then(|| Mutex::new(times())))
    }

    /// Notes what an attempt at those keys that `tried` names came to, at `now_ms`. Returns whether
    /// the owner has to be told.
    pub(crate) fn record(
        &self,
        attempt: ServeOutcome,
        tried: impl Iterator<Item = bool>,
        now_ms: i64,
    ) -> bool {
        let Some(times) = &self.0 else { return false };
        let retry_at_ms = match attempt {
            ServeOutcome::Replied => return false,
            ServeOutcome::Nothing => NEVER_MS,
            ServeOutcome::NothingUntil(retry_at_ms) => retry_at_ms.max(now_ms.saturating_add(1)),
        };
        let times = &mut *times.lock();
        for (slot, _) in times.retry_at_ms.iter_mut().zip(tried).filter(|(_, tried)| *tried) {
            *slot = retry_at_ms;
        }
        let soonest_ms = times.soonest_ms();
        let is_news = soonest_ms < times.known_ms;
        times.known_ms = times.known_ms.min(soonest_ms);
        is_news
    }

    /// When the owner has to look, which it knows now.
    pub(crate) fn know(&self) -> Option<i64> {
        let mut times = self.0.as_ref()?.lock();
        times.known_ms = times.soonest_ms();
        Some(times.known_ms).filter(|ms| *ms != NEVER_MS)
    }

    /// Takes the keys out whose time has come, by their places, to be looked at by the owner, which
    /// asks again afterwards.
    pub(crate) fn take_due(&self, now_ms: i64) -> Vec<usize> {
        let Some(times) = &self.0 else { return Vec::new() };
        let times = &mut *times.lock();
        times.known_ms = i64::MIN;
        let ripe: Vec<usize> =
            (0..times.retry_at_ms.len()).filter(|at| times.retry_at_ms[*at] <= now_ms).collect();
        ripe.iter().for_each(|at| times.retry_at_ms[*at] = NEVER_MS);
        ripe
    }

    /// Puts a key back that was not looked at, and is due still. The owner asks again afterwards.
    pub(crate) fn put_back(&self, at: usize, now_ms: i64) {
        let Some(times) = &self.0 else { return };
        if let Some(retry_at_ms) = times.lock().retry_at_ms.get_mut(at) {
            *retry_at_ms = now_ms.min(*retry_at_ms);
        }
    }
}

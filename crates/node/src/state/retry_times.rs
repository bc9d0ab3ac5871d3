//! Waits that time may answer: XREADGROUP CLAIM waits also until entries have been pending for
//! long, and such an entry becomes ready without a write to its stream.
//!
//! Each attempt to answer says when the next one is worthwhile, under the lock of its key. The
//! waiter keeps that time for each of its keys. Its owner retries at the soonest time, in the same
//! way as a writer: the clients that wait for the key are served, first come first served.
//!
//! Invariants:
//! - The owner retries at the soonest time or earlier. A thread that makes it sooner than the owner
//!   knows notices that in the same step and notifies the owner, as if the wait were over.
//! - A thread that makes it later notifies no one: the owner retries in vain, and learns the time
//!   then. So a key with frequent writes costs no messages, and retries are at least a millisecond
//!   apart.
//! - During CLIENT PAUSE there are no retries, because the waiting command may write.

use engine::ServeOutcome;
use parking_lot::Mutex;

/// No time: only a write can make the key ready.
const NEVER_MS: i64 = i64::MAX;

pub(crate) struct RetryTimes(Option<Mutex<Times>>);

struct Times {
    /// For each key, in milliseconds since 1970.
    retry_at_ms: Vec<i64>,
    /// The owner retries at this time at the latest.
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
        // The owner will ask.
        let times = || Times {
            retry_at_ms: retry_at_ms
                .iter()
                .map(|retry_at_ms| retry_at_ms.unwrap_or(NEVER_MS))
                .collect(),
            known_ms: i64::MIN,
        };
        Self((!retry_at_ms.is_empty()).then(|| Mutex::new(times())))
    }

    /// Notes the outcome of an attempt at the keys that `tried` names, at `now_ms`. Returns whether
    /// the owner must be notified.
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

    /// When the owner has to retry, which it knows now.
    pub(crate) fn know(&self) -> Option<i64> {
        let mut times = self.0.as_ref()?.lock();
        times.known_ms = times.soonest_ms();
        Some(times.known_ms).filter(|ms| *ms != NEVER_MS)
    }

    /// Takes out the keys whose time has come, by their indexes, for the owner, which asks again
    /// afterwards.
    pub(crate) fn take_due(&self, now_ms: i64) -> Vec<usize> {
        let Some(times) = &self.0 else { return Vec::new() };
        let times = &mut *times.lock();
        times.known_ms = i64::MIN;
        let ripe: Vec<usize> =
            (0..times.retry_at_ms.len()).filter(|at| times.retry_at_ms[*at] <= now_ms).collect();
        ripe.iter().for_each(|at| times.retry_at_ms[*at] = NEVER_MS);
        ripe
    }

    /// Puts back a key that was not tried, and is still due. The owner asks again afterwards.
    pub(crate) fn put_back(&self, at: usize, now_ms: i64) {
        let Some(times) = &self.0 else { return };
        if let Some(retry_at_ms) = times.lock().retry_at_ms.get_mut(at) {
            *retry_at_ms = now_ms.min(*retry_at_ms);
        }
    }
}

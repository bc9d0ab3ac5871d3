//! What the owner of a blocked client does when time passes: it lets the wait time out, and tries
//! again what time alone makes ready (see `retry_times`).

use super::serve::{deliver, try_key};
use super::waiter::Waiter;
use crate::execution::worker::Worker;
use crate::host::{ClientWaker, ShardLocks};

/// When the owner of a waiting client has to [come back](on_deadline) to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// At this time, in milliseconds on the steady scale.
    pub at_ms: Option<i64>,
    /// When CLIENT PAUSE ends.
    pub after_pause: bool,
}

/// When the owner of the session's client has to come back to its wait, if it has one. The owner
/// asks when the wait begins or the client becomes its own, when it is told that something may have
/// changed, and after it came back.
pub fn due(worker: &Worker, waiter: &Waiter) -> Due {
    let (until_ms, now_ms) = (waiter.until_ms(), worker.turn.steady_ms);
    // Entries of streams age by the system's clock.
    let to_steady =
        |look_ms: i64| look_ms.saturating_sub(worker.turn.unix_ms).saturating_add(now_ms);
    match waiter.retries.know().map(to_steady) {
        Some(look_ms) if look_ms <= now_ms && worker.node.is_paused(true, now_ms) => {
            Due { at_ms: until_ms, after_pause: true }
        }
        look_ms => Due { at_ms: look_ms.into_iter().chain(until_ms).min(), after_pause: false },
    }
}

/// Does what the time asks for: tries the keys that are worth it, and lets a wait end whose time is
/// over. Either may settle the wait. For the client's owner, inside the gate.
pub fn on_deadline<L: ShardLocks>(
    worker: &mut Worker,
    waiter: &Waiter,
    locks: &L,
    waker: &dyn ClientWaker,
) {
    let now_ms = worker.turn.steady_ms;
    if !worker.node.is_paused(true, now_ms) {
        for at in waiter.retries.take_due(worker.turn.unix_ms) {
            if let Some(key) = waiter.keys().nth(at) {
                try_key(worker, waiter.db, key, locks);
            }
        }
        deliver(worker, waker);
    }
    if waiter.until_ms().is_some_and(|until_ms| until_ms <= now_ms) {
        // When someone has served it a moment ago, it gets that.
        waiter.time_out();
    }
}

//! The work of a blocked client's owner as time passes: it lets the wait time out, and retries
//! waits that time may answer (see `retry_times`).

use std::time::Duration;

use super::serve::try_key;
use crate::execution::outcome::Outcome;
use crate::execution::recheck::Admission;
use crate::execution::worker::Worker;
use crate::host::{ClientWaker, ShardLocks};
use crate::state::waiter::Waiter;

/// Milliseconds between two tries in a shard that is in use.
const IN_USE_RETRY_MS: i64 = 1;
/// The same when a busy script may be using it.
const BUSY_RETRY_MS: i64 = 10;

/// When the owner of a waiting client has to [come back](on_deadline) to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// At this time, in milliseconds on the steady scale.
    pub at_ms: Option<i64>,
    /// When CLIENT PAUSE ends.
    pub after_pause: bool,
}

/// When the owner of a client must come back to its wait. The owner asks when the wait begins, when
/// it gets the client, when it is notified of a change, and after it came back.
pub fn due(worker: &Worker, waiter: &Waiter) -> Due {
    let (until_ms, now_ms) = (waiter.until_ms(), worker.turn.steady_ms);
    if !waiter.waits() {
        // It is over, but the client still stands in the queue of a key whose shard is in use.
        return Due { at_ms: Some(now_ms + retry_ms(worker)), after_pause: false };
    }
    // Entries of streams age by the system's clock.
    let to_steady =
        |look_ms: i64| look_ms.saturating_sub(worker.turn.unix_ms).saturating_add(now_ms);
    match waiter.retries.know().map(to_steady) {
        Some(look_ms) if look_ms <= now_ms && worker.node.is_paused(true, now_ms) => {
            Due { at_ms: until_ms, after_pause: true }
        }
        look_ms => {
            // Only a shard that is in use leaves a retry that is due already.
            let look_ms = look_ms.map(|look_ms| match look_ms > now_ms {
                true => look_ms,
                false => now_ms + retry_ms(worker),
            });
            Due { at_ms: look_ms.into_iter().chain(until_ms).min(), after_pause: false }
        }
    }
}

/// Retries the keys that are due, and lets the wait time out if its timeout is over. Either may
/// settle the wait. For the client's owner, inside the gate.
pub fn on_deadline<L: ShardLocks>(
    worker: &mut Worker,
    waiter: &Waiter,
    locks: &L,
    waker: &dyn ClientWaker,
) {
    let now_ms = worker.turn.steady_ms;
    if !worker.node.is_paused(true, now_ms) {
        // A thread that changes users ends the waits that they deny.
        let users = worker.node.users.generation();
        let (record, may_write) = (&waiter.record, true);
        let admission = Admission { record, may_write, steady_ms: now_ms, users, user: None };
        for at in waiter.retries.take_due(worker.turn.unix_ms) {
            let Some(key) = waiter.keys().nth(at) else { continue };
            let shard = worker.node.map.shard_of(worker.turn.key(key).hash);
            if !locks.try_visit(shard, Duration::ZERO, &mut |_| ()) {
                waiter.retries.put_back(at, worker.turn.unix_ms);
                continue;
            }
            let outcome = try_key(worker, waiter.db, key, locks, Some(admission));
            let is_deferred = matches!(outcome, Outcome::Paused | Outcome::ShardInUse);
            if worker.refusal.take().is_some() || is_deferred {
                // Shards were in use, a pause began, or users changed, before the key's shards were
                // held.
                waiter.retries.put_back(at, worker.turn.unix_ms);
            }
        }
        worker.deliver_wakes(waker);
    }
    if waiter.until_ms().is_some_and(|until_ms| until_ms <= now_ms) {
        // If a writer has just served it, that result counts.
        waiter.time_out();
    }
}

/// Milliseconds between two tries in a shard that is in use.
fn retry_ms(worker: &Worker) -> i64 {
    if worker.node.scripting.busy.any() { BUSY_RETRY_MS } else { IN_USE_RETRY_MS }
}

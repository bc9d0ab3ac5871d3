//! Clients whose next request needs a shard that another command keeps in use. Their thread goes on
//! with its other clients and comes back to them, so that a slow command delays those who need its
//! keys, and not those who share a thread with them.
//!
//! Invariants:
//! - A request that is put aside has done nothing and holds nothing. It is executed from the
//!   beginning, with all that it has to be admitted by. Those behind it stay in its client's queue.
//! - What a thread waits for shards in one turn is bounded, whatever its clients ask for
//!   ([`Patience`](crate::keyspace::shard_locks::Patience)).
//! - Nobody starves. Those who wait are tried in the order in which they were put aside, and while
//!   one is, it stands in the queue of its shard: all the time in a thread without anything else to
//!   do; in any other for a part of the time that grows while the client waits, from a twentieth
//!   to about a third. Whoever stands there when a shard is let go that was held for long gets it
//!   before those who come later. So for each time that the shard is let go, the chance is that
//!   part. A command on several shards closes the gate after a number of waits in which it got one.
//! - Nobody is tried more often than once in a millisecond while the thread has other work.
//!
//! A script that has to be alone among scripts waits in the same way while another one is.
//!
//! Entries of clients that are gone or have moved on stay until the next look.

use std::time::Duration;

use crate::threads::client_state::ClientState;
use crate::threads::io_thread::IoThread;

/// Between two looks at those who wait.
const LOOK_AGAIN_MS: i64 = 1;
/// What a thread waits first in a turn, when all is well or there is nothing else to do. All waits
/// of the turn take twice as much at most.
const WAIT_MAX: Duration = Duration::from_micros(500);
/// The same when others have found the shards in use and the thread has other clients to serve.
const WAIT_MIN: Duration = Duration::from_micros(50);

/// How a client's request waits for shards.
#[derive(Clone, Copy, Debug)]
pub struct ShardWait {
    /// Since when, in milliseconds on the steady scale.
    pub since_ms: i64,
    /// How often it has got one of several shards and then found another in use.
    pub rounds: u32,
}

/// The clients of one thread that wait for shards.
#[derive(Debug, Default)]
pub(crate) struct ShardWaits {
    /// By slot, number, and the time since when they wait: the longest first.
    waiting: Vec<(usize, u64, i64)>,
    looked_ms: i64,
    /// The thread has nothing else to do.
    is_idle: bool,
}

impl ShardWaits {
    /// How long the thread may sleep before it looks again. None: nobody waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        // Instead of sleeping it waits for the shards.
        let wait_ms = if self.is_idle { 0 } else { LOOK_AGAIN_MS };
        (!self.waiting.is_empty()).then_some(wait_ms)
    }

    /// A turn begins, in which the thread has something else to do or not. Returns how long it
    /// waits for the first shard that is in use.
    #[inline]
    pub(crate) fn begin_turn(&mut self, steady_ms: i64, is_idle: bool) -> Duration {
        match self.waiting.first() {
            None => {
                self.is_idle = false;
                WAIT_MAX
            }
            Some((.., since_ms)) => {
                self.is_idle = is_idle;
                if is_idle { WAIT_MAX } else { wait_beside_others(steady_ms - since_ms) }
            }
        }
    }

    /// Takes out those who wait, if it is time to look at them.
    fn take_due(&mut self, steady_ms: i64) -> Vec<(usize, u64, i64)> {
        match self.is_idle || steady_ms - self.looked_ms >= LOOK_AGAIN_MS {
            true => std::mem::take(&mut self.waiting),
            false => Vec::new(),
        }
    }
}

/// How long a thread with other work waits, after the client that has waited longest has done so
/// for this time: a thousandth, within bounds.
fn wait_beside_others(waited_ms: i64) -> Duration {
    Duration::from_micros(waited_ms.unsigned_abs()).clamp(WAIT_MIN, WAIT_MAX / 2)
}

impl IoThread {
    /// Keeps a client whose request waits for a shard.
    pub(crate) fn begin_shard_wait(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        let since_ms = client.shard_wait.map_or_else(|| self.steady_ms(), |wait| wait.since_ms);
        self.shard_waits.waiting.push((slot, client.session.record.id, since_ms));
        self.after_send(slot);
    }

    /// Tries the requests that wait for shards again.
    pub(crate) fn retry_shard_waits(&mut self) {
        let due = self.shard_waits.take_due(self.steady_ms());
        if due.is_empty() {
            return;
        }
        for (slot, id, since_ms) in due {
            let Some(client) = self.slots.client(slot) else { continue };
            let waits = matches!(client.state, ClientState::AwaitsShard);
            if client.session.record.id != id || !waits {
                continue;
            }
            if client.held_back {
                // It goes on when more of its output has left.
                self.shard_waits.waiting.push((slot, id, since_ms));
                continue;
            }
            self.proceed(slot);
        }
        // The time has gone on meanwhile.
        self.shard_waits.looked_ms = self.steady_ms();
    }

    /// A client that was put aside on its own thread is executed on this one, which serves others.
    pub(crate) fn limit_patience(&self) {
        if let Some(access) = &self.access {
            access.patience.limit(WAIT_MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_other_work_waits_longer_for_those_who_have_waited_long() {
        let mut waits = ShardWaits::default();
        assert_eq!(waits.wait_ms(), None);
        assert_eq!(waits.begin_turn(0, true), WAIT_MAX);
        waits.waiting.push((0, 7, 100));
        let by_age = [101, 150, 300, 5000].map(|now_ms| waits.begin_turn(now_ms, false));
        assert_eq!(by_age, [50, 50, 200, 250].map(Duration::from_micros));
        assert_eq!(waits.wait_ms(), Some(LOOK_AGAIN_MS));
        assert_eq!(waits.begin_turn(101, true), WAIT_MAX);
        assert_eq!(waits.wait_ms(), Some(0));
    }

    #[test]
    fn those_who_wait_are_looked_at_once_in_a_millisecond_beside_other_work() {
        let mut waits = ShardWaits::default();
        let entries = vec![(3, 7, 100), (1, 8, 101)];
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.take_due(101), entries);
        waits.looked_ms = 101;
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.take_due(101), []);
        waits.begin_turn(101, true);
        assert_eq!(waits.take_due(101), entries);
    }
}

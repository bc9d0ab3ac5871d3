//! How a client's request waits for shards, and which clients of a thread wait.

use std::time::Duration;

use crate::keyspace::shard_locks::ThreadShards;
use crate::keyspace::shard_queues::{Ticket, gather_us};
use crate::keyspace::shards::Shards;
use crate::keyspace::shim::now_us;
use crate::keyspace::thread_waits::Waited;

/// Between two checks of the waiting clients, for events that bring no message: a reservation has
/// ended, or the thread that closed the gate has released a shard.
const LOOK_AGAIN_MS: i64 = 1;
/// How long a command that visits shards waits for one of them, in the first wait of a turn.
pub(crate) const VISIT_WAIT_MAX: Duration = Duration::from_micros(500);

/// How a client's request waits for shards.
#[derive(Clone, Debug)]
pub struct ShardWait {
    pub since_us: u64,
    /// How often it has found a shard in use or reserved for another one.
    pub rounds: u32,
    /// The shards in whose queues it stands. If there are none, it is tried again without a call;
    /// if there are several, it gathers them.
    pub(super) shards: Vec<usize>,
    /// Until when it gathers shards, in microseconds.
    pub(super) gathers_until_us: u64,
    /// Its turn had come, and it tries.
    pub(super) has_turn: bool,
}

impl ShardWait {
    pub(crate) fn begin() -> Self {
        let (since_us, rounds, shards) = (now_us(), 0, Vec::new());
        Self { since_us, rounds, shards, gathers_until_us: 0, has_turn: false }
    }

    /// The same after another try.
    pub(crate) fn after_try(&self, shards: &Shards, locks: &ThreadShards<'_>) -> Self {
        let in_use: Vec<usize> = locks.take_in_use().into_iter().collect();
        // The request was tried for another reason than that its turn had come.
        let is_as_before = !self.has_turn
            && !in_use.is_empty()
            && self.shards == in_use
            && in_use.iter().all(|it| shards.is_in_use(*it));
        let rounds = if is_as_before { self.rounds } else { locks.rounds() };
        let needed = locks.take_needed();
        let mut wait = Self { rounds, has_turn: false, ..self.clone() };
        if needed.len() > 1 && !is_as_before {
            let now_us = now_us();
            if !self.gathers() {
                let waited_us = now_us.saturating_sub(self.since_us);
                wait.gathers_until_us = now_us + gather_us(waited_us);
            }
            wait.shards = needed;
        } else {
            wait.shards = in_use;
        }
        wait
    }

    /// The same in no queue.
    pub(crate) fn outside(&self) -> Self {
        Self { shards: Vec::new(), ..self.clone() }
    }

    /// Whether it stands in several queues.
    pub(super) fn gathers(&self) -> bool {
        self.shards.len() > 1
    }

    pub(super) fn ticket(&self, client: u64) -> Ticket {
        Ticket { since_us: self.since_us, client }
    }

    /// The same, for the code that takes shards for this client.
    pub(crate) fn waited(&self, client: u64) -> Waited {
        Waited { ticket: Some(self.ticket(client)), rounds: self.rounds }
    }
}

/// The clients of one thread that wait for shards.
#[derive(Debug, Default)]
pub(crate) struct ShardWaits {
    /// By slot and number.
    pub(super) waiting: Vec<(usize, u64)>,
    pub(super) looked_ms: i64,
    /// A shard was let go before its client could be called.
    pub(super) has_free: bool,
}

impl ShardWaits {
    /// How long the thread may sleep before the next check. `None` if no client waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        let wait_ms = if self.has_free { 0 } else { LOOK_AGAIN_MS };
        (!self.waiting.is_empty()).then_some(wait_ms)
    }

    /// Takes out the clients that wait, if a check is due.
    pub(super) fn take_due(&mut self, steady_ms: i64) -> Vec<(usize, u64)> {
        match std::mem::take(&mut self.has_free) || steady_ms - self.looked_ms >= LOOK_AGAIN_MS {
            true => std::mem::take(&mut self.waiting),
            false => Vec::new(),
        }
    }

    /// Takes out a client that was called.
    pub(super) fn take(&mut self, slot: usize) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == slot) {
            self.waiting.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_clients_are_checked_once_in_a_millisecond_or_when_a_shard_is_free() {
        let mut waits = ShardWaits::default();
        assert_eq!(waits.wait_ms(), None);
        let entries = vec![(3, 7), (1, 8)];
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.wait_ms(), Some(LOOK_AGAIN_MS));
        assert_eq!(waits.take_due(101), entries);
        waits.looked_ms = 101;
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.take_due(101), []);
        waits.has_free = true;
        assert_eq!(waits.wait_ms(), Some(0));
        assert_eq!(waits.take_due(101), entries);
        waits.waiting.clone_from(&entries);
        assert_eq!(waits.take_due(101), []);
        waits.take(3);
        assert_eq!(waits.take_due(102), entries[1..]);
    }
}

//! How the clients of one thread wait for shards: what their commands leave here until the thread
//! is outside the gate and acts on it. Nothing here waits.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::shard_queues::{Ticket, WakeCall};
use super::stop_waits::StopWaits;

/// Shorter waits are skipped: waking up takes longer, and many of them would add up.
const WAIT_MIN: Duration = Duration::from_micros(10);

/// How long commands that visit shards still wait in a turn. Each wait in vain leaves half of it,
/// so they add up to no more than twice the first.
#[derive(Debug, Default)]
pub struct WaitBudget(pub(super) Cell<Duration>);

impl WaitBudget {
    /// The first wait in a turn may take this long.
    #[inline]
    pub fn renew(&self, wait: Duration) {
        self.0.set(wait);
    }

    pub(super) fn lose(&self) {
        let left = self.0.get() / 2;
        self.0.set(if left < WAIT_MIN { Duration::ZERO } else { left });
    }
}

/// How the clients of a thread wait for shards.
#[derive(Debug, Default)]
pub struct ThreadWaits {
    pub wait_budget: WaitBudget,
    /// The shard that the last command has not got.
    pub(super) in_use: Cell<Option<usize>>,
    /// All that it needs, when it has waited for one of them so often that it asks for all.
    pub(super) needed: RefCell<Vec<usize>>,
    /// Clients that may take their shards now. Their threads are notified outside the gate.
    pub(super) calls: RefCell<Vec<WakeCall>>,
    /// Clients whose commands stop all other threads, and wait for the running commands.
    pub(super) stops: StopWaits,
}

impl ThreadWaits {
    #[inline]
    pub fn has_calls(&self) -> bool {
        !self.calls.borrow().is_empty()
    }

    /// Whether a client's request waits to stop all other threads.
    pub fn waits_to_stop(&self, ticket: Ticket) -> bool {
        self.stops.has(ticket)
    }

    /// The clients that were called since the last call. Their threads must be notified.
    pub fn take_calls(&self) -> Vec<WakeCall> {
        self.calls.take()
    }
}

/// How the command that runs has tried to get its shards.
#[derive(Default)]
pub(super) struct Tries {
    /// There is something to forget when it is over.
    pub(super) any: Cell<bool>,
    /// How often it has found a shard in use or reserved for another one.
    pub(super) rounds: Cell<u32>,
    /// Shards that it has had in its turn: see `ShardLocks::keep_turn`.
    pub(super) kept: RefCell<Vec<usize>>,
}

/// The client for which a thread takes shards, when it has been deferred before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waited {
    /// How it stands in the queues of shards.
    pub ticket: Option<Ticket>,
    /// How often its first command has found a shard in use or reserved for another one.
    pub rounds: u32,
}

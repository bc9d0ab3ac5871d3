//! All shards, each behind its lock, and the queues of the clients that wait for them.

use crossbeam_utils::CachePadded;
use store::{Db, Shard};

use super::shard_queues::{Owner, ShardQueues, Ticket};
use super::shim::{Mutex, MutexGuard, now_us};
use super::stop_waits::Stoppers;

/// All shards, and who waits for them.
pub struct Shards {
    /// Each on cache lines of its own: with its lock and what nearly all commands use of it, it
    /// fills the first of them. So what is known of its queue is elsewhere.
    cells: Box<[CachePadded<Mutex<Shard>>]>,
    pub(super) queues: ShardQueues,
    pub(super) stoppers: Stoppers,
}

impl Shards {
    /// `shards` empty shards.
    pub fn new(shards: usize) -> Self {
        let shard = || CachePadded::new(Mutex::new(Shard::default()));
        let cells = (0..shards).map(|_| shard()).collect();
        Self { cells, queues: ShardQueues::new(shards + 1), stoppers: Stoppers::new() }
    }

    /// The number of a queue behind those of the shards: of the scripts that have to be alone among
    /// scripts.
    pub fn alone(&self) -> usize {
        self.cells.len()
    }

    /// Shards in all.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    #[inline]
    pub(super) fn mutex(&self, shard: usize) -> &Mutex<Shard> {
        &self.cells[shard]
    }

    /// Locks one shard, whoever waits for it.
    #[inline]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.cells[shard].lock()
    }

    /// Puts a client that has found a shard in use into its queue, or into those of all that it
    /// needs. The caller looks then whether they are [in use](Self::is_in_use): nobody tells it if
    /// they are not.
    pub fn stand_in_queues(&self, shards: &[usize], ticket: Ticket, owner: Owner) {
        self.queues.stand(shards, ticket, owner);
    }

    /// Takes a client out of queues, where it stands there.
    pub fn leave_queues(&self, shards: &[usize], ticket: Ticket) {
        self.queues.leave(shards, ticket);
    }

    /// Whether it is a client's turn to take all shards in whose queues it stands, as its thread
    /// asks.
    pub fn is_first_in_queues(&self, shards: &[usize], ticket: Ticket, thread: usize) -> bool {
        self.queues.is_first(shards, ticket, thread, now_us())
    }

    /// Whose turn it is to take a shard that is free, as a thread asks that has somebody in the
    /// queue.
    pub fn first_in_queue(&self, shard: usize, thread: usize) -> Option<Ticket> {
        self.queues.first(shard, thread, now_us())
    }

    /// Whether a command holds a shard.
    pub fn is_in_use(&self, shard: usize) -> bool {
        self.cells.get(shard).is_some_and(|shard| shard.is_locked())
    }

    /// Asks the processor for the shard itself.
    #[inline]
    pub fn prefetch_shard(&self, shard: usize) {
        sys::prefetch(&*self.cells[shard]);
    }

    /// Shows a database's part of a shard to `look`, which asks the processor for what lies in it.
    /// Skips a shard that is in use: its lines are moving to another core anyway.
    #[inline]
    pub fn try_peek<T: Default>(&self, shard: usize, db: usize, look: impl FnOnce(&Db) -> T) -> T {
        match self.cells[shard].try_lock() {
            Some(shard) => look(shard.db_ref(db)),
            None => T::default(),
        }
    }
}

//! All shards, each behind its lock, and the queues of the clients that wait for them.

use crossbeam_utils::CachePadded;
use store::{Db, Shard};

use super::shard_queues::{ShardQueues, Ticket};
use super::shim::{Mutex, MutexGuard, now_us};
use super::stop_waits::Stoppers;

/// All shards, and the clients that wait for them.
pub struct Shards {
    /// Each on cache lines of its own: with its lock and the fields that nearly all commands use,
    /// it fills the first of them. So the queues are elsewhere.
    cells: Box<[CachePadded<Mutex<Shard>>]>,
    /// A client that joins a queue then looks whether the shard is [in use](Self::is_in_use): no
    /// call comes if it is not.
    pub queues: ShardQueues,
    pub stoppers: Stoppers,
}

impl Shards {
    /// `shards` empty shards.
    pub fn new(shards: usize) -> Self {
        let shard = || CachePadded::new(Mutex::new(Shard::default()));
        let cells = (0..shards).map(|_| shard()).collect();
        Self { cells, queues: ShardQueues::new(shards + 1), stoppers: Stoppers::new() }
    }

    /// The number of the queue after those of the shards, for scripts that must be exclusive among
    /// scripts.
    pub fn exclusive_queue(&self) -> usize {
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

    /// Locks one shard, regardless of its queue.
    #[inline]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.cells[shard].lock()
    }

    /// Whether it is a client's turn to take all shards in whose queues it stands, as its thread
    /// asks.
    pub fn is_first_in_queues(&self, shards: &[usize], ticket: Ticket, thread: usize) -> bool {
        self.queues.is_first(shards, ticket, thread, now_us())
    }

    /// The client that may take a free shard, for a thread that has a client in the queue.
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

    /// Shows a database's part of a shard to `look`, which prefetches from it. Skips a shard in
    /// use: its lines are moving to another core anyway.
    #[inline]
    pub fn try_peek<T: Default>(&self, shard: usize, db: usize, look: impl FnOnce(&Db) -> T) -> T {
        match self.cells[shard].try_lock() {
            Some(shard) => look(shard.db_ref(db)),
            None => T::default(),
        }
    }
}

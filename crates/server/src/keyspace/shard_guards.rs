//! Locked shards: one, several, or all of them behind the closed gate.
//!
//! A thread that releases a shard calls the first client of its queue. Behind the closed gate no
//! client is called: the waiting clients try again a moment later.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use engine::HeldShards;
use store::Shard;

use super::shard_locks::ThreadShards;
use super::shards::Shards;
use super::shim::{MutexGuard, try_lock_for};

pub(super) struct ShardGuard<'a> {
    // Let go of first.
    shard: MutexGuard<'a, Shard>,
    after: AfterRelease<'a>,
}

/// When dropped, the shard is let go.
struct AfterRelease<'a> {
    locks: &'a ThreadShards<'a>,
    number: usize,
}

impl<'a> ShardGuard<'a> {
    /// Of the shard of this number, which a thread has locked.
    #[inline]
    pub(super) fn new(
        shard: MutexGuard<'a, Shard>,
        locks: &'a ThreadShards<'a>,
        number: usize,
    ) -> Self {
        Self { shard, after: AfterRelease { locks, number } }
    }

    #[inline]
    pub(super) fn number(&self) -> usize {
        self.after.number
    }
}

impl Drop for AfterRelease<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.locks.shards.queues.any() {
            self.locks.has_let_go(self.number);
        }
    }
}

impl Deref for ShardGuard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for ShardGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

/// Locked shards by ascending number.
pub(super) struct ShardGuards<'a> {
    pub(super) locks: &'a ThreadShards<'a>,
    pub(super) held: Vec<ShardGuard<'a>>,
}

impl<'a> ShardGuards<'a> {
    fn find(&self, number: usize) -> Result<usize, usize> {
        self.held.binary_search_by_key(&number, ShardGuard::number)
    }

    fn place_of(&self, number: usize) -> usize {
        self.find(number).unwrap_or_else(|_| unreachable!("the shards of all keys are locked"))
    }

    fn insert(&mut self, number: usize, lock: impl FnOnce() -> Option<MutexGuard<'a, Shard>>) {
        if let Err(at) = self.find(number)
            && let Some(shard) = lock()
        {
            if self.locks.shards.queues.any() {
                self.locks.has_passed(number);
            }
            self.held.insert(at, ShardGuard::new(shard, self.locks, number));
        }
    }
}

impl HeldShards for ShardGuards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        let at = self.place_of(number);
        &mut self.held[at]
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        &self.held[self.place_of(number)]
    }

    fn try_visit(&mut self, number: usize, work: &mut dyn FnMut(&mut Shard)) -> bool {
        if let Ok(at) = self.find(number) {
            work(&mut self.held[at]);
            return true;
        }
        let guard = self.locks.try_any(number);
        guard.map(|mut shard| work(&mut shard)).is_some()
    }

    fn holds(&self, number: usize) -> bool {
        self.find(number).is_ok()
    }

    fn try_add(&mut self, number: usize) -> bool {
        let shards = self.locks.shards;
        self.insert(number, || shards.mutex(number).try_lock());
        self.holds(number)
    }

    fn add(&mut self, number: usize, wait: Duration) -> bool {
        let shards = self.locks.shards;
        self.insert(number, || try_lock_for(shards.mutex(number), wait));
        self.holds(number)
    }
}

/// All shards, behind the closed gate: each is locked when it is first used, and stays so.
pub(super) struct AllShardGuards<'a> {
    shards: &'a Shards,
    held: Box<[OnceCell<MutexGuard<'a, Shard>>]>,
}

impl<'a> AllShardGuards<'a> {
    pub(super) fn new(shards: &'a Shards) -> Self {
        Self { shards, held: (0..shards.len()).map(|_| OnceCell::new()).collect() }
    }

    fn lock(&self, number: usize) -> &MutexGuard<'a, Shard> {
        self.held[number].get_or_init(|| self.shards.lock(number))
    }
}

impl HeldShards for AllShardGuards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        self.lock(number);
        match self.held[number].get_mut() {
            Some(guard) => guard,
            None => unreachable!("it has just been locked"),
        }
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        self.lock(number)
    }

    fn try_visit(&mut self, number: usize, work: &mut dyn FnMut(&mut Shard)) -> bool {
        work(self.shard(number));
        true
    }

    fn holds(&self, _: usize) -> bool {
        true
    }

    fn try_add(&mut self, _: usize) -> bool {
        true
    }

    fn add(&mut self, _: usize, _: Duration) -> bool {
        true
    }
}

//! The keyspace as all threads share it: shards behind short locks, and the gate around them all.
//!
//! That locks provide the shards is this file's secret; everything below sees `&mut Shard`.
//!
//! Nothing can deadlock, because nobody waits for a shard while holding one. A command on several
//! shards takes them all by try-lock. When one of them is busy, it releases the others, waits for
//! that one alone, and then tries the others again with that one in hand. So it waits for the
//! commands that hold its shards and stops nobody else. Only after `WAITS_MAX` such waits does it
//! close the gate, behind which every lock is free: the gate waits for everyone inside, which
//! turns a wait of one thread into a wait of all.
//!
//! A thread that waits for a shard stays inside the gate. Whoever holds that shard is inside as
//! well, so a closer gains nothing if the waiting thread leaves; and a command that leaves has to
//! check again what it was admitted by, such as CLIENT PAUSE. A command that visits one shard
//! after another changes nothing, takes long and lets closers come first between two visits.
//!
//! `tests/models` runs this source on other locks.

use std::cell::Cell;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use engine::{ExclusiveShards, HeldShards, ShardAccess};
use node::ShardLocks;
use node::host::GateAccess;
use store::{Db, Shard, Time};

use super::shim::{Mutex, MutexGuard, Pass, WAITS_MAX, barrier, time, try_lock_for};

/// All shards, each on cache lines of its own.
pub struct Shards(Box<[CachePadded<Mutex<Shard>>]>);

impl Shards {
    /// `shards` empty shards.
    pub fn new(shards: usize) -> Self {
        let shard = || CachePadded::new(Mutex::new(Shard::default()));
        Self((0..shards).map(|_| shard()).collect())
    }

    /// Shards in all.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Locks one shard.
    #[inline]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.0[shard].lock()
    }

    /// Asks the processor for the shard itself.
    #[inline]
    pub fn prefetch_shard(&self, shard: usize) {
        sys::prefetch(&*self.0[shard]);
    }

    /// Shows a database's part of a shard to `look`, which asks the processor for what lies in it.
    /// Skips a shard that is in use: its lines are moving to another core anyway.
    #[inline]
    pub fn try_peek<T: Default>(&self, shard: usize, db: usize, look: impl FnOnce(&Db) -> T) -> T {
        match self.0[shard].try_lock() {
            Some(shard) => look(shard.db_ref(db)),
            None => T::default(),
        }
    }
}

impl ShardAccess for Shards {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) {
        work(&mut self.lock(shard));
    }
}

/// The shards as one thread sees them while it is inside the gate, which it leaves when this is
/// dropped.
pub struct ThreadShards<'a> {
    shards: &'a Shards,
    /// The thread's way through the gate.
    pub pass: &'a Pass,
    /// The thread has waited for the gate or a shard, and time has passed.
    waited: Cell<bool>,
}

impl Drop for ThreadShards<'_> {
    fn drop(&mut self) {
        self.pass.leave();
    }
}

impl<'a> ThreadShards<'a> {
    /// Enters the gate by a thread's pass.
    #[inline]
    pub fn enter(shards: &'a Shards, pass: &'a Pass) -> Self {
        let waited = Cell::new(pass.enter());
        Self { shards, pass, waited }
    }

    /// Lets those who want to close the gate do so first. Costs a relaxed load when there are none.
    /// No shard may be locked.
    #[inline]
    pub fn make_way(&self) {
        if self.pass.make_way() {
            self.waited.set(true);
        }
    }

    /// Runs `work` with one shard, for which it waits no longer than `wait`. None: a command holds
    /// the shard, and nothing was done.
    pub fn try_one<R>(
        &self,
        shard: usize,
        wait: Duration,
        work: impl FnOnce(&mut Shard) -> R,
    ) -> Option<R> {
        try_lock_for(&self.shards.0[shard], wait).map(|mut shard| work(&mut shard))
    }
}

/// Locked shards by ascending number.
struct ShardGuards<'a>(Vec<(usize, MutexGuard<'a, Shard>)>);

impl ShardGuards<'_> {
    fn place_of(&self, number: usize) -> usize {
        let at = self.0.partition_point(|(held, _)| *held < number);
        assert!(self.0[at].0 == number, "the shards of all keys are held");
        at
    }
}

impl HeldShards for ShardGuards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        let at = self.place_of(number);
        &mut self.0[at].1
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        &self.0[self.place_of(number)].1
    }
}

/// All shards, behind the closed gate: each is locked for a visit, all are from when the first is
/// asked for on.
struct AllShardGuards<'a> {
    shards: &'a Shards,
    held: Vec<MutexGuard<'a, Shard>>,
}

impl ShardAccess for AllShardGuards<'_> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) {
        debug_assert!(self.held.is_empty(), "visits come before holding");
        self.shards.visit(shard, work);
    }
}

impl HeldShards for AllShardGuards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        if self.held.is_empty() {
            let shards = self.shards;
            self.held.extend((0..shards.len()).map(|shard| shards.lock(shard)));
        }
        &mut self.held[number]
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        // What is looked at again was looked at before, and all are held since.
        &self.held[number]
    }
}

impl ThreadShards<'_> {
    /// Locks one shard.
    #[inline]
    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        match self.shards.0[shard].try_lock() {
            Some(guard) => guard,
            None => self.wait_for(shard),
        }
    }

    #[cold]
    fn wait_for(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.waited.set(true);
        self.shards.lock(shard)
    }

    /// Locks all of `shards`, of which `held` may be locked already, without waiting. When one is
    /// busy, none is locked any more, and its number is returned.
    fn try_lock_all<'a>(
        &'a self,
        shards: &[usize],
        mut held: Option<(usize, MutexGuard<'a, Shard>)>,
    ) -> Result<ShardGuards<'a>, usize> {
        let mut locked = Vec::with_capacity(shards.len());
        for shard in shards {
            match held.take_if(|(number, _)| number == shard) {
                Some(guard) => locked.push(guard),
                None => locked.push((*shard, self.shards.0[*shard].try_lock().ok_or(*shard)?)),
            }
        }
        Ok(ShardGuards(locked))
    }
}

impl ShardAccess for ThreadShards<'_> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) {
        debug_assert!(self.pass.is_inside(), "shards are visited inside the gate");
        work(&mut self.lock(shard));
        self.make_way();
    }
}

impl GateAccess for ThreadShards<'_> {
    fn leave(&self) {
        self.pass.leave();
    }

    fn enter(&self) {
        self.pass.enter();
    }

    fn barrier(&self) {
        barrier(self.pass);
    }
}

impl ShardLocks for ThreadShards<'_> {
    #[inline]
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> R {
        work(&mut self.lock(shard))
    }

    fn many<R>(&self, shards: &[usize], work: impl FnOnce(&mut dyn HeldShards) -> R) -> R {
        let mut held = None;
        for _ in 0..WAITS_MAX {
            match self.try_lock_all(shards, held) {
                Ok(mut locked) => return work(&mut locked),
                Err(busy) => held = Some((busy, self.wait_for(busy))),
            }
        }
        drop(held);
        self.waited.set(true);
        self.pass.exclusively(|| {
            let lock = |shard: &usize| (*shard, self.shards.lock(*shard));
            work(&mut ShardGuards(shards.iter().map(lock).collect()))
        })
    }

    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn ExclusiveShards) -> R) -> R {
        let shards = self.shards;
        self.waited.set(true);
        self.pass.exclusively(|| work(&mut AllShardGuards { shards, held: Vec::new() }))
    }

    #[inline]
    fn prefetch(&self, shard: usize) {
        self.shards.prefetch_shard(shard);
    }

    #[inline]
    fn tsc(&self) -> u64 {
        sys::clock::tsc()
    }

    fn time(&self) -> Time {
        time()
    }

    #[inline]
    fn time_after_wait(&self) -> Option<Time> {
        self.waited.take().then(time)
    }
}

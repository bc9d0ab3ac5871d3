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
//! A wait is short: a thread has other clients, and so much [`Patience`] in a turn. A command whose
//! shard stays in use is told so, has done nothing, and is executed anew a moment later
//! (`threads::shard_waits`). The waits in which it has got a shard are counted on.
//!
//! Nobody waits for a busy script (`node::scripting::busy`): who needs a shard that one holds is
//! told so at once, and who needs all of them, or to be alone, if there is any. While a busy script
//! is alone behind the closed gate, the others stay outside: such a [`ThreadShards`] reaches no
//! shard.
//!
//! A thread that waits for a shard stays inside the gate. Whoever holds that shard is inside as
//! well, so a closer gains nothing if the waiting thread leaves; and a command that leaves has to
//! check again what it was admitted by, such as CLIENT PAUSE. A command that visits one shard
//! after another changes nothing, takes long and lets closers come first between two visits.
//!
//! `tests/models` runs this source on other locks.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use engine::{HeldShards, ScriptError, ShardAccess};
use node::ShardLocks;
use node::host::GateAccess;
use node::scripting::busy::BusyScripts;
use store::{Db, Shard, Time};

use super::shim::{Mutex, MutexGuard, Pass, WAITS_MAX, time, try_lock_for, wait_to_lock};

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

/// A shorter wait is none: waking up takes longer, and many of them would take many times as long.
const WAIT_MIN: Duration = Duration::from_micros(10);

/// How long a thread still waits for shards in a turn. Each wait in vain leaves half of it, so they
/// add up to no more than twice the first.
#[derive(Debug, Default)]
pub struct Patience(Cell<Duration>);

impl Patience {
    /// The first wait in a turn may take this long.
    #[inline]
    pub fn renew(&self, wait: Duration) {
        self.0.set(wait);
    }

    /// The next one may take no longer than this.
    pub fn limit(&self, wait: Duration) {
        self.0.set(self.0.get().min(wait));
    }

    fn lose(&self) {
        let left = self.0.get() / 2;
        self.0.set(if left < WAIT_MIN { Duration::ZERO } else { left });
    }
}

/// What a thread does for its other clients while one of them runs a busy script.
pub trait ServesOthers {
    /// Serves them once. It neither uses the thread's pass nor waits for anything.
    fn serve_others(&self);
}

/// A thread that has nobody else to serve: it runs no script.
pub struct Nobody;

impl ServesOthers for Nobody {
    fn serve_others(&self) {}
}

/// The shards as one thread sees them while it is inside the gate, which it leaves when this is
/// dropped.
pub struct ThreadShards<'a> {
    shards: &'a Shards,
    /// The thread's pass of the gate. None: it has none, because it runs a busy script and serves
    /// its other clients meanwhile.
    pass: Option<&'a Pass>,
    /// The thread is inside, or has closed the gate.
    is_inside: Cell<bool>,
    /// The thread has waited for the gate or a shard, and time has passed.
    waited: Cell<bool>,
    busy: &'a BusyScripts,
    others: &'a dyn ServesOthers,
    /// None: it waits for no shard.
    patience: Option<&'a Patience>,
    /// How often the command has got one of several shards and then found another in use.
    rounds: Cell<u32>,
}

impl Drop for ThreadShards<'_> {
    fn drop(&mut self) {
        self.leave_gate();
    }
}

impl<'a> ThreadShards<'a> {
    /// Enters the gate by a thread's pass. It stays outside without a pass, and while a busy script
    /// is alone behind the closed gate.
    #[inline]
    pub fn enter(
        shards: &'a Shards,
        pass: Option<&'a Pass>,
        busy: &'a BusyScripts,
        others: &'a dyn ServesOthers,
    ) -> Self {
        let (is_inside, waited) = (Cell::new(false), Cell::new(false));
        let (patience, rounds) = (None, Cell::new(0));
        let locks = Self { shards, pass, is_inside, waited, busy, others, patience, rounds };
        locks.enter_gate();
        locks
    }

    /// The same, which waits for shards that are in use, for a client. Its first command has been
    /// through so many [rounds](Self::rounds).
    #[inline]
    #[must_use]
    pub fn waiting(mut self, patience: &'a Patience, rounds: u32) -> Self {
        self.patience = Some(patience);
        self.rounds.set(rounds);
        self
    }

    /// How often the command that did not get its shards has got one of them. It goes on from here
    /// when it is tried again, so that it gets them in the end.
    pub fn rounds(&self) -> u32 {
        self.rounds.get()
    }

    /// Whether it is inside the gate; otherwise it reaches no shard.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.is_inside.get()
    }

    /// Lets those who want to close the gate do so first. Costs a relaxed load when there are none.
    /// No shard may be locked. Returns whether it is inside.
    #[inline]
    pub fn make_way(&self) -> bool {
        if self.is_inside.get() && self.pass.is_some_and(Pass::is_awaited) {
            self.leave_for_closers();
        }
        self.is_inside.get()
    }

    #[cold]
    fn leave_for_closers(&self) {
        self.leave_gate();
        self.enter_gate();
    }

    #[inline]
    fn enter_gate(&self) {
        if let Some(pass) = self.pass {
            let entered = pass.enter_unless(&|| self.busy.is_exclusive());
            if entered != Some(false) {
                self.waited.set(true);
            }
            self.is_inside.set(entered.is_some());
        }
    }

    #[inline]
    fn leave_gate(&self) {
        if let Some(pass) = self.pass
            && self.is_inside.replace(false)
        {
            pass.leave();
        }
    }

    /// Runs `work` with one shard, for which it waits no longer than `wait`. None: a command holds
    /// the shard, or this is outside the gate, and nothing was done.
    pub fn try_one_for<R>(
        &self,
        shard: usize,
        wait: Duration,
        work: impl FnOnce(&mut Shard) -> R,
    ) -> Option<R> {
        let guard = self.is_inside.get().then(|| try_lock_for(&self.shards.0[shard], wait));
        guard.flatten().map(|mut shard| work(&mut shard))
    }
}

/// Locked shards by ascending number.
struct ShardGuards<'a> {
    shards: &'a Shards,
    held: Vec<(usize, MutexGuard<'a, Shard>)>,
}

impl<'a> ShardGuards<'a> {
    fn find(&self, number: usize) -> Result<usize, usize> {
        self.held.binary_search_by_key(&number, |(held, _)| *held)
    }

    fn place_of(&self, number: usize) -> usize {
        self.find(number).unwrap_or_else(|_| unreachable!("the shards of all keys are held"))
    }

    fn insert(&mut self, number: usize, lock: impl FnOnce() -> Option<MutexGuard<'a, Shard>>) {
        if let Err(at) = self.find(number)
            && let Some(guard) = lock()
        {
            self.held.insert(at, (number, guard));
        }
    }
}

impl HeldShards for ShardGuards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        let at = self.place_of(number);
        &mut self.held[at].1
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        &self.held[self.place_of(number)].1
    }

    fn try_visit(&mut self, number: usize, work: &mut dyn FnMut(&mut Shard)) -> bool {
        if let Ok(at) = self.find(number) {
            work(&mut self.held[at].1);
            return true;
        }
        let guard = self.shards.0[number].try_lock();
        guard.map(|mut shard| work(&mut shard)).is_some()
    }

    fn holds(&self, number: usize) -> bool {
        self.find(number).is_ok()
    }

    fn try_add(&mut self, number: usize) -> bool {
        let shards = self.shards;
        self.insert(number, || shards.0[number].try_lock());
        self.holds(number)
    }

    fn add(&mut self, number: usize, wait: Duration) -> bool {
        let shards = self.shards;
        self.insert(number, || try_lock_for(&shards.0[number], wait));
        self.holds(number)
    }
}

/// All shards, behind the closed gate: each is locked when it is first asked for, and stays so.
struct AllShardGuards<'a> {
    shards: &'a Shards,
    held: Box<[OnceCell<MutexGuard<'a, Shard>>]>,
}

impl<'a> AllShardGuards<'a> {
    fn new(shards: &'a Shards) -> Self {
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

impl ThreadShards<'_> {
    /// Locks one shard.
    #[inline]
    fn lock(&self, shard: usize) -> Result<MutexGuard<'_, Shard>, ScriptError> {
        if self.is_inside.get()
            && let Some(guard) = self.shards.0[shard].try_lock()
        {
            return Ok(guard);
        }
        self.wait_for(shard)
    }

    #[cold]
    fn wait_for(&self, shard: usize) -> Result<MutexGuard<'_, Shard>, ScriptError> {
        if !self.is_inside.get() {
            return Err(self.busy.at_gate());
        }
        self.waited.set(true);
        if let Some(refusal) = self.busy.holder(shard) {
            self.rounds.set(0);
            return Err(refusal);
        }
        let mut guard = None;
        self.wait(&mut |time| {
            guard = wait_to_lock(&self.shards.0[shard], time);
            guard.is_some()
        });
        guard.ok_or(ScriptError::ShardInUse)
    }

    /// Runs `work` behind the closed gate.
    fn exclusively<R>(&self, work: impl FnOnce() -> R) -> Result<R, ScriptError> {
        self.waited.set(true);
        let Some(pass) = self.pass.filter(|_| self.is_inside.get()) else {
            return Err(self.busy.at_gate());
        };
        pass.exclusively_unless(&|| self.busy.any(), work).ok_or_else(|| {
            let refusal = self.busy.at_gate();
            self.enter_gate();
            refusal
        })
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
        Ok(ShardGuards { shards: self.shards, held: locked })
    }
}

impl ShardAccess for ThreadShards<'_> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) -> Result<(), ScriptError> {
        work(&mut *self.lock(shard)?);
        self.make_way();
        Ok(())
    }

    fn try_visit(&self, shard: usize, wait: Duration, work: &mut dyn FnMut(&mut Shard)) -> bool {
        let visited = self.try_one_for(shard, wait, work).is_some();
        self.make_way();
        visited
    }
}

impl GateAccess for ThreadShards<'_> {
    fn leave(&self) {
        self.leave_gate();
    }

    fn enter(&self) {
        self.enter_gate();
    }
}

impl ShardLocks for ThreadShards<'_> {
    #[inline]
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Result<R, ScriptError> {
        Ok(work(&mut *self.lock(shard)?))
    }

    #[inline]
    fn try_one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Option<R> {
        let guard = self.is_inside.get().then(|| self.shards.0[shard].try_lock());
        guard.flatten().map(|mut shard| work(&mut shard))
    }

    fn many<R>(
        &self,
        shards: &[usize],
        work: impl FnOnce(&mut dyn HeldShards) -> R,
    ) -> Result<R, ScriptError> {
        while self.is_inside.get() {
            let mut held = None;
            while self.rounds.get() < WAITS_MAX {
                match self.try_lock_all(shards, held) {
                    Ok(mut locked) => {
                        self.rounds.set(0);
                        return Ok(work(&mut locked));
                    }
                    Err(in_use) => held = Some((in_use, self.wait_for(in_use)?)),
                }
                self.rounds.set(self.rounds.get() + 1);
            }
            drop(held);
            self.rounds.set(0);
            let locked = self.exclusively(|| {
                let lock = |shard: &usize| (*shard, self.shards.lock(*shard));
                ShardGuards { shards: self.shards, held: shards.iter().map(lock).collect() }
            });
            // It may take long, so the gate is open again. If there is a busy script, it stays so,
            // and the locks are the only way.
            if let Ok(mut locked) = locked {
                return Ok(work(&mut locked));
            }
        }
        Err(self.busy.at_gate())
    }

    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn HeldShards) -> R) -> Result<R, ScriptError> {
        self.exclusively(|| work(&mut AllShardGuards::new(self.shards)))
    }

    fn wait(&self, wait: &mut dyn FnMut(Duration) -> bool) -> bool {
        self.waited.set(true);
        let Some(patience) = self.patience else { return false };
        let has_come = wait(patience.0.get());
        if !has_come {
            patience.lose();
        }
        has_come
    }

    fn serve_others(&self) {
        self.others.serve_others();
    }

    #[inline]
    fn prefetch(&self, shard: usize) {
        self.shards.prefetch_shard(shard);
    }

    #[inline]
    fn thread_bytes(&self) -> i64 {
        sys::allocator::thread_bytes()
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

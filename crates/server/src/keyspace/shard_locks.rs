//! The keyspace as all threads share it: shards behind short locks, and the gate around them all.
//!
//! That locks provide the shards is this file's secret; everything below sees `&mut Shard`.
//!
//! Nothing can deadlock, because no command waits for a shard while holding one. A command on
//! several shards takes them all by try-lock. When one of them is busy, it releases the others,
//! waits for that one only, and then tries the others again with that one locked. So it waits for
//! the commands that hold its shards and stops no other command. After `WAITS_MAX` such waits it
//! asks for all of its shards: its client stands in all their queues.
//!
//! A thread has other clients, so it waits only a few microseconds for a command of its own kind,
//! without giving up the processor. A command whose shard stays in use ends with `ShardInUse`, has
//! done nothing, and is executed again when it is called (`threads::shard_waits`): until then its
//! client stands in a queue (`shard_queues`), and commands that come later and find the shard free
//! release it again. The waits in which it has got a shard are counted across attempts.
//!
//! A script that waits for a shard while it holds others, background work, and a thread that has
//! closed the gate take a free shard regardless of its queue.
//!
//! No command waits for a busy script (`node::state::busy_scripts`): a command that needs a shard
//! of a busy script is refused immediately, and so is one that needs all shards, or must be
//! exclusive, while there is any busy script. While a busy script is exclusive, other threads stay
//! outside the gate: such a [`ThreadShards`] reaches no shard.
//!
//! A thread that waits for a shard stays inside the gate. The holder of that shard is inside as
//! well, so a closer would gain nothing if the waiting thread left; and a command that leaves must
//! repeat its admission checks, such as CLIENT PAUSE. A command that visits one shard after another
//! changes nothing, takes long, and lets closers go first between two visits.
//!
//! `tests/models` runs this source on other locks.

use std::cell::Cell;
use std::time::Duration;

use engine::{HeldShards, ScriptError, ShardAccess};
use node::ShardLocks;
use node::host::GateAccess;
use node::state::busy_scripts::BusyScripts;
use store::{Shard, Time};

use super::shard_guards::{AllShardGuards, ShardGuard, ShardGuards};
use super::shard_queues::Ticket;
use super::shards::Shards;
use super::shim::{MutexGuard, Pass, WAITS_MAX, now_us, time, try_lock_for, wait_to_lock};
use super::stop_waits::closed_until_us;
use super::thread_waits::{ThreadWaits, Tries, Waited};

/// How a thread serves its other clients while one of them runs a busy script.
pub trait ServesOthers {
    /// Serves them once. It neither uses the thread's pass nor waits for anything.
    fn serve_others(&self);
}

/// A thread that has no other clients to serve: it runs no script.
pub struct NoOtherClients;

impl ServesOthers for NoOtherClients {
    fn serve_others(&self) {}
}

/// The shards as one thread sees them while it is inside the gate, which it leaves when this is
/// dropped.
pub struct ThreadShards<'a> {
    pub(super) shards: &'a Shards,
    /// The thread's pass of the gate. `None` if it has none, because it runs a busy script and
    /// serves its other clients.
    pass: Option<&'a Pass>,
    /// The thread is inside, or has closed the gate.
    is_inside: Cell<bool>,
    /// The thread has waited for the gate or a shard, and time has passed.
    waited: Cell<bool>,
    busy: &'a BusyScripts,
    others: &'a dyn ServesOthers,
    /// `None` if it waits for no shard.
    waits: Option<&'a ThreadWaits>,
    /// How its client stands in the queues of shards.
    ticket: Option<Ticket>,
    tries: Tries,
}

impl Drop for ThreadShards<'_> {
    fn drop(&mut self) {
        self.leave_gate();
    }
}

impl<'a> ThreadShards<'a> {
    /// Enters the gate by a thread's pass. It stays outside without a pass, and while a busy script
    /// is exclusive.
    #[inline]
    pub fn enter(
        shards: &'a Shards,
        pass: Option<&'a Pass>,
        busy: &'a BusyScripts,
        others: &'a dyn ServesOthers,
    ) -> Self {
        let (is_inside, waited) = (Cell::new(false), Cell::new(false));
        let (waits, ticket, tries) = (None, None, Tries::default());
        let locks = Self { shards, pass, is_inside, waited, busy, others, waits, ticket, tries };
        locks.enter_gate();
        locks
    }

    /// The same, which waits for shards that are in use, for a client.
    #[inline]
    #[must_use]
    pub fn waiting(mut self, waits: &'a ThreadWaits, waited: Waited) -> Self {
        self.waits = Some(waits);
        self.ticket = waited.ticket;
        self.tries.rounds.set(waited.rounds);
        self
    }

    /// How often the command that did not get its shards has found one in use or reserved. The next
    /// attempt continues from here, so that the command gets them eventually.
    pub fn rounds(&self) -> u32 {
        self.tries.rounds.get()
    }

    /// A command is over, and another one of the client follows.
    #[inline]
    pub fn end_command(&self) {
        if self.tries.any.take() {
            self.tries.rounds.set(0);
            self.tries.kept.borrow_mut().clear();
        }
    }

    fn set_rounds(&self, rounds: u32) {
        self.tries.rounds.set(rounds);
        self.tries.any.set(true);
    }

    /// Whether the command takes this shard if it is free, regardless of its queue: it cannot be
    /// deferred, or has had the shard in its turn.
    fn is_let_through(&self, shard: usize) -> bool {
        self.waits.is_none() || self.tries.kept.borrow().contains(&shard)
    }

    /// The queue to wait in, for a command that has ended with
    /// [`ShardInUse`](ScriptError::ShardInUse): that of a shard, or [of exclusive
    /// scripts](Shards::exclusive_queue).
    pub fn take_in_use(&self) -> Option<usize> {
        self.waits.and_then(|waits| waits.in_use.take())
    }

    /// All shards that it needs, that one among them, if it asks for all of them at once.
    pub fn take_needed(&self) -> Vec<usize> {
        self.waits.map(|waits| waits.needed.take()).unwrap_or_default()
    }

    /// Whether it is inside the gate; otherwise it reaches no shard.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.is_inside.get()
    }

    /// Whether a thread wants to close the gate. Costs a relaxed load.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.is_inside.get() && self.pass.is_some_and(Pass::is_awaited)
    }

    /// Lets threads that want to close the gate go first. Costs a relaxed load when there are none.
    /// No shard may be locked. Returns whether it is inside.
    #[inline]
    pub fn make_way(&self) -> bool {
        if self.is_awaited() {
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

    /// Runs `work` with one shard, for which it waits no longer than `wait`. Returns `None`, and
    /// does nothing, if a command holds the shard or this is outside the gate.
    pub fn try_one_for<R>(
        &self,
        shard: usize,
        wait: Duration,
        work: impl FnOnce(&mut Shard) -> R,
    ) -> Option<R> {
        let locked = self.is_inside.get().then(|| try_lock_for(self.shards.mutex(shard), wait));
        let locked = locked.flatten().map(|locked| ShardGuard::new(locked, self, shard));
        locked.map(|mut shard| work(&mut shard))
    }
}

impl ThreadShards<'_> {
    #[inline]
    fn lock(&self, shard: usize) -> Result<ShardGuard<'_>, ScriptError> {
        if self.is_inside.get()
            && let Some(guard) = self.try_lock(shard)
        {
            return Ok(guard);
        }
        let guard = self.wait_for(shard)?;
        self.ticket.inspect(|ticket| self.shards.queues.leave(&[shard], *ticket));
        Ok(guard)
    }

    /// Locks one shard, if it is free and it is this client's turn.
    #[inline]
    fn try_lock(&self, shard: usize) -> Option<ShardGuard<'_>> {
        let locked = self.shards.mutex(shard).try_lock()?;
        if self.shards.queues.any() {
            return self.admit(locked, shard);
        }
        Some(ShardGuard::new(locked, self, shard))
    }

    /// The same for one of several that the command needs.
    #[inline]
    fn try_lock_among(&self, shard: usize) -> Option<ShardGuard<'_>> {
        let locked = self.shards.mutex(shard).try_lock()?;
        if self.shards.queues.any() {
            return self.admit_among(locked, shard);
        }
        Some(ShardGuard::new(locked, self, shard))
    }

    /// Locks one shard if it is free, regardless of its queue.
    #[inline]
    pub(super) fn try_any(&self, shard: usize) -> Option<ShardGuard<'_>> {
        let locked = self.shards.mutex(shard).try_lock()?;
        Some(ShardGuard::new(locked, self, shard))
    }

    /// Keeps a shard that has just been locked, unless it is another client's turn.
    #[cold]
    fn admit<'a>(&'a self, locked: MutexGuard<'a, Shard>, shard: usize) -> Option<ShardGuard<'a>> {
        let guard = self.admit_among(locked, shard)?;
        self.ticket.inspect(|ticket| self.shards.queues.leave(&[shard], *ticket));
        Some(guard)
    }

    /// The same for one of several that the command needs: its client stays in the queue until it
    /// has all of them.
    #[cold]
    fn admit_among<'a>(
        &'a self,
        locked: MutexGuard<'a, Shard>,
        shard: usize,
    ) -> Option<ShardGuard<'a>> {
        let guard = ShardGuard::new(locked, self, shard);
        let admits = || self.shards.queues.admits(shard, self.ticket, now_us());
        (self.is_let_through(shard) || admits()).then_some(guard)
    }

    /// A shard was released while clients wait for shards.
    #[cold]
    pub(super) fn has_let_go(&self, shard: usize) {
        if let Some(waits) = self.waits {
            waits.calls.borrow_mut().extend(self.shards.queues.let_go(shard, now_us()));
        }
    }

    /// A script has taken a shard in the middle of its work while clients wait for shards.
    #[cold]
    pub(super) fn has_passed(&self, shard: usize) {
        self.shards.queues.pass(shard, self.ticket, now_us());
    }

    #[cold]
    fn wait_for(&self, shard: usize) -> Result<ShardGuard<'_>, ScriptError> {
        let waits = self.may_wait_for(shard)?;
        // Counted also when the command is deferred: otherwise two commands, each called for the
        // shard that the other one needs next, would continue like that for ever.
        self.set_rounds(self.rounds().saturating_add(1));
        // The clients in the queue go first.
        let queues = &self.shards.queues;
        let is_first = || self.ticket.is_some() && queues.admits(shard, self.ticket, now_us());
        if (self.is_let_through(shard) || !queues.has(shard) || is_first())
            && let Some(locked) = wait_to_lock(self.shards.mutex(shard))
            && let Some(guard) = self.admit_among(locked, shard)
        {
            return Ok(guard);
        }
        waits.in_use.set(Some(shard));
        Err(ScriptError::ShardInUse)
    }

    /// Whether a shard that is in use is worth a wait.
    fn may_wait_for(&self, shard: usize) -> Result<&ThreadWaits, ScriptError> {
        if !self.is_inside.get() {
            return Err(self.busy.at_gate());
        }
        self.waited.set(true);
        if let Some(refusal) = self.busy.holder(shard) {
            self.set_rounds(0);
            return Err(refusal);
        }
        self.waits.ok_or(ScriptError::ShardInUse)
    }

    /// The command has waited often for one of its shards, and found another one in use then. It is
    /// deferred until it gets all of them.
    #[cold]
    fn ask_for_all(&self, in_use: usize, shards: &[usize]) -> ScriptError {
        if let Some(waits) = self.waits {
            waits.in_use.set(Some(in_use));
            *waits.needed.borrow_mut() = shards.to_vec();
        }
        ScriptError::ShardInUse
    }

    /// Locks one of many shards that a command visits. The command has been at work for a while and
    /// would have to start again, so it waits longer.
    fn lock_for_visit(&self, shard: usize) -> Result<ShardGuard<'_>, ScriptError> {
        let refusal = match self.lock(shard) {
            Err(ScriptError::ShardInUse) => ScriptError::ShardInUse,
            done => return done,
        };
        let Some(waits) = self.waits.filter(|_| !self.shards.queues.has(shard)) else {
            return Err(refusal);
        };
        let locked = try_lock_for(self.shards.mutex(shard), waits.wait_budget.0.get());
        let Some(locked) = locked else {
            waits.wait_budget.lose();
            return Err(refusal);
        };
        self.admit(locked, shard).ok_or(refusal)
    }

    /// Runs `work` behind the closed gate. Ends with [`ShardInUse`](ScriptError::ShardInUse) if
    /// commands on other threads run on: all clients would wait for them.
    fn exclusively<R>(&self, work: impl FnOnce() -> R) -> Result<R, ScriptError> {
        self.waited.set(true);
        let Some(pass) = self.pass.filter(|_| self.is_inside.get()) else {
            return Err(self.busy.at_gate());
        };
        let deferred = self.waits.zip(self.ticket);
        let attempts = deferred.map_or(0, |(waits, ticket)| waits.stops.attempts(ticket.client));
        let until_us = closed_until_us(attempts);
        let gives_up = || self.busy.any() || now_us() >= until_us;
        let work = || {
            self.end_stop_wait();
            work()
        };
        pass.exclusively_unless(&gives_up, work).ok_or_else(|| {
            let refusal = match self.busy.any() {
                true => self.busy.at_gate(),
                false => ScriptError::ShardInUse,
            };
            self.enter_gate();
            refusal
        })
    }

    /// The command has stopped all other threads.
    fn end_stop_wait(&self) {
        self.shards.stoppers.end_wait();
        if let (Some(waits), Some(ticket)) = (self.waits, self.ticket) {
            waits.stops.end(ticket.client);
        }
    }

    /// Locks all of `shards`, of which `held` may already be locked, without waiting. If one is
    /// busy, releases all of them and returns its number.
    fn try_lock_all<'a>(
        &'a self,
        shards: &[usize],
        mut held: Option<ShardGuard<'a>>,
    ) -> Result<ShardGuards<'a>, usize> {
        let mut locked = Vec::with_capacity(shards.len());
        for shard in shards {
            match held.take_if(|held| held.number() == *shard) {
                Some(guard) => locked.push(guard),
                None => locked.push(self.try_lock_among(*shard).ok_or(*shard)?),
            }
        }
        if self.shards.queues.any()
            && let Some(ticket) = self.ticket
        {
            self.shards.queues.leave(shards, ticket);
        }
        Ok(ShardGuards { locks: self, held: locked })
    }
}

impl ShardAccess for ThreadShards<'_> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) -> Result<(), ScriptError> {
        work(&mut *self.lock_for_visit(shard)?);
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
        let guard = self.is_inside.get().then(|| self.try_any(shard));
        guard.flatten().map(|mut shard| work(&mut shard))
    }

    fn many<R>(
        &self,
        shards: &[usize],
        work: impl FnOnce(&mut dyn HeldShards) -> R,
    ) -> Result<R, ScriptError> {
        let (mut held, rounds_max) = (None, self.rounds().saturating_add(WAITS_MAX));
        while self.is_inside.get() {
            let in_use = match self.try_lock_all(shards, held) {
                Ok(mut locked) => return Ok(work(&mut locked)),
                Err(in_use) => in_use,
            };
            held = match self.wait_for(in_use) {
                Ok(guard) if self.rounds() < rounds_max => Some(guard),
                Ok(_) | Err(ScriptError::ShardInUse) if self.rounds() >= WAITS_MAX => {
                    return Err(self.ask_for_all(in_use, shards));
                }
                waited => Some(waited?),
            };
        }
        Err(self.busy.at_gate())
    }

    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn HeldShards) -> R) -> Result<R, ScriptError> {
        self.exclusively(|| work(&mut AllShardGuards::new(self.shards)))
    }

    fn keep_turn(&self, shards: &[usize]) {
        self.tries.any.set(true);
        self.tries.kept.borrow_mut().extend_from_slice(shards);
    }

    fn may_stop_others(&self) -> bool {
        let (Some(pass), Some(waits)) = (self.pass, self.waits) else { return true };
        // Closing the gate fails then, and says why.
        if !self.is_inside.get() || self.busy.any() {
            return true;
        }
        waits.in_use.set(None);
        waits.stops.may_stop_others(self.ticket, pass, &self.shards.stoppers)
    }

    fn keeps_exclusive_slot(&self) -> bool {
        let Shards { queues, .. } = self.shards;
        let queue = self.shards.exclusive_queue();
        let keeps = !queues.any() || queues.admits(queue, self.ticket, now_us());
        if keeps && let Some(ticket) = self.ticket {
            queues.leave(&[queue], ticket);
        }
        keeps
    }

    fn left_exclusive_slot(&self) {
        if self.shards.queues.any() {
            self.has_let_go(self.shards.exclusive_queue());
        }
    }

    fn wait_for_exclusive_slot(&self) {
        self.waited.set(true);
        if let Some(waits) = self.waits {
            waits.in_use.set(Some(self.shards.exclusive_queue()));
        }
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

//! The names of the product's shims, of `server` and of `sync`, made of shuttle's types, and the
//! faults that can be planted in them and in the models.
//!
//! Shuttle runs the threads of a model as coroutines on one thread of the system, so the planted
//! fault is a plain thread-local and tests with different faults run beside one another.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;
use store::Time;

use store::Shard;

pub(crate) use crate::gate::Pass;
pub(crate) use shuttle::hint::spin_loop;
pub(crate) use shuttle::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

/// One look before a closer sleeps: both ways out of the spin are explored, and no more.
pub(crate) const SPINS_MAX: u32 = 1;
/// Few enough for the way through the gate to be explored as often as the other.
pub(crate) const WAITS_MAX: u32 = 2;

/// The gate is closed and opened, unless that is what is broken.
pub(crate) fn barrier(pass: &Pass) {
    if !Fault::NoBarrier.is_planted() {
        pass.exclusively(|| {});
    }
}

/// Time does not pass in a model.
pub(crate) fn try_lock_for(mutex: &Mutex<Shard>, _: Duration) -> Option<MutexGuard<'_, Shard>> {
    mutex.try_lock()
}

/// The time as the models' threads have set it stays: it never runs backwards.
pub(crate) fn time() -> Time {
    Time::default()
}

/// What is broken in the shim or in a model.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Try-lock succeeds and locks nothing.
    OpenLocks,
    /// Every second try-lock that fails waits instead, whatever its thread holds.
    WaitingTryLock,
    /// Setting bits yields zero, as if none had been set: a closer of the gate that does not wait.
    BlindMark,
    /// Notices of condition variables are not given.
    NoNotice,
    /// A client that comes back is not asked whether it was killed.
    KillForgottenOnReturn,
    /// A client that is adopted is not asked whether it was killed.
    KillForgottenOnAdoption,
    /// A thread that leaves ends without the clients that are away.
    LeavesTheAway,
    /// A thread that leaves does not hand over the clients that are here.
    KeepsTheOthers,
    /// A parked thread moves its clients and is not told that it takes none any more.
    ParkedInName,
    /// Clients are given to a thread that is parked.
    GivesToTheParked,
    /// Every thread chooses to which thread its clients go.
    EveryoneChooses,
    /// Queued requests are executed from the newest on.
    NewestFirst,
    /// A barrier waits for nobody.
    NoBarrier,
    /// Nobody is told that a wait is over.
    NoWake,
    /// A client whose time is over is told so, whoever was faster.
    TimeOutAnyway,
    /// Who gets a client that waits does not look whether its wait is over.
    DeafOnArrival,
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    static FAILED_TRIES: Cell<u64> = const { Cell::new(0) };
}

thread_local! {
    static SWITCHES_AT_LOCKS: Cell<bool> = const { Cell::new(false) };
}

/// From now on threads may be switched before a lock that is free, where shuttle does not.
pub(crate) fn switch_at_locks() {
    SWITCHES_AT_LOCKS.set(true);
}

impl Fault {
    /// Plants the fault for all that this test does: each test has its thread.
    pub(crate) fn plant(self) {
        PLANTED.set(Some(self));
    }

    pub(crate) fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

/// Shuttle's byte, and a fault.
pub(crate) struct AtomicU8(shuttle::sync::atomic::AtomicU8);

impl AtomicU8 {
    pub(crate) fn new(value: u8) -> Self {
        Self(shuttle::sync::atomic::AtomicU8::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u8 {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u8, order: Ordering) {
        self.0.store(value, order);
    }

    pub(crate) fn fetch_sub(&self, value: u8, order: Ordering) -> u8 {
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_or(&self, bits: u8, order: Ordering) -> u8 {
        let found = self.0.fetch_or(bits, order);
        if Fault::BlindMark.is_planted() { 0 } else { found }
    }

    pub(crate) fn compare_exchange(
        &self,
        current: u8,
        new: u8,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u8, u8> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// Shuttle's mutex with the interface of parking_lot's.
pub(crate) struct Mutex<T> {
    mutex: shuttle::sync::Mutex<T>,
    reached: AtomicU64,
}

pub(crate) enum MutexGuard<'a, T> {
    Held(shuttle::sync::MutexGuard<'a, T>),
    /// Only while a condition variable has the guard.
    Waiting,
    /// What a try-lock gives that locks nothing.
    Forged(Box<T>),
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { mutex: shuttle::sync::Mutex::new(value), reached: AtomicU64::new(0) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        if SWITCHES_AT_LOCKS.get() {
            self.reached.load(Ordering::Relaxed);
        }
        MutexGuard::Held(self.mutex.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Mutex<Shard> {
    /// Only shards are locked so.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Shard>> {
        if Fault::OpenLocks.is_planted() {
            return Some(MutexGuard::Forged(Box::new(Shard::default())));
        }
        if SWITCHES_AT_LOCKS.get() {
            self.reached.load(Ordering::Relaxed);
        }
        let guard = self.mutex.try_lock().ok().map(MutexGuard::Held);
        if guard.is_none() && Fault::WaitingTryLock.is_planted() {
            FAILED_TRIES.set(FAILED_TRIES.get() + 1);
            return FAILED_TRIES.get().is_multiple_of(2).then(|| self.lock());
        }
        guard
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Held(guard) => guard,
            Self::Forged(value) => value,
            Self::Waiting => panic!("held"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Held(guard) => guard,
            Self::Forged(value) => value,
            Self::Waiting => panic!("held"),
        }
    }
}

/// Shuttle's condition variable with the interface of parking_lot's.
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let MutexGuard::Held(held) = std::mem::replace(guard, MutexGuard::Waiting) {
            *guard = MutexGuard::Held(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(crate) fn notify_one(&self) {
        if !Fault::NoNotice.is_planted() {
            self.0.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if !Fault::NoNotice.is_planted() {
            self.0.notify_all();
        }
    }
}

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

pub(crate) use crate::gate::{GracePeriod, Pass};
pub(crate) use shuttle::hint::spin_loop;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering};

/// One look before a closer sleeps: both ways out of the spin are explored, and no more.
pub(crate) const SPINS_MAX: u32 = 1;
/// Few enough for shards to be gathered as often as they are got without.
pub(crate) const WAITS_MAX: u32 = 2;

/// Waits for a notice; in models in which [time passes](let_time_pass), for no longer than a while.
pub(crate) fn wait_for_a_while<'a, T>(
    notice: &Condvar,
    mutex: &'a Mutex<T>,
    mut guard: MutexGuard<'a, T>,
) -> MutexGuard<'a, T> {
    if TIME_PASSES.get() {
        drop(guard);
        shuttle::thread::yield_now();
        return mutex.lock();
    }
    notice.wait(&mut guard);
    guard
}

/// Locks a mutex; the same. A shard is mostly locked in the end, and sometimes waited for in vain:
/// a command that [gives up](give_up_shards) does so immediately.
pub(crate) fn wait_to_lock(mutex: &Mutex<Shard>) -> Option<MutexGuard<'_, Shard>> {
    if GIVES_UP.get() {
        return mutex.try_hold();
    }
    lock_for_a_while(mutex)
}

/// Locks a mutex; the same.
pub(crate) fn lock_for_a_while<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    if TIME_PASSES.get() {
        let guard = mutex.try_hold();
        if guard.is_none() {
            shuttle::thread::yield_now();
        }
        return guard;
    }
    Some(mutex.lock())
}

/// Time does not pass in a model.
pub(crate) fn try_lock_for(mutex: &Mutex<Shard>, _: Duration) -> Option<MutexGuard<'_, Shard>> {
    mutex.try_lock()
}

/// The time as the models' threads have set it stays: it never runs backwards.
pub(crate) fn time() -> Time {
    Time::default()
}

/// A thread that closes the gate waits for the commands on other threads.
pub(crate) const CLOSE_US: u64 = u64::MAX;

/// The time by which shards are reserved. It passes with each look.
pub(crate) fn now_us() -> u64 {
    let (now_us, look_us) = CLOCK.get();
    let passes = now_us < 8 * look_us || !Fault::EndlessReservation.is_planted();
    CLOCK.set((now_us + if passes { look_us } else { 0 }, look_us));
    CLOCK.get().0
}

/// The clock of [`now_us`] starts again, and advances by `look_us` with each reading.
pub(crate) fn begin_time(look_us: u64) {
    CLOCK.set((0, look_us));
}

/// So much time passes at once.
pub(crate) fn let_pass(us: u64) {
    let (now_us, look_us) = CLOCK.get();
    CLOCK.set((now_us + us, look_us));
}

/// The faults that can be planted in the shim or in a model.
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
    /// A thread that leaves ends without its clients that are on the main thread.
    LeavesClientsOnMain,
    /// A thread that leaves does not hand over the clients that are here.
    KeepsTheOthers,
    /// A parked thread moves its clients and does not learn that it takes no more.
    ParkedInName,
    /// Clients are given to a thread that is parked.
    GivesToTheParked,
    /// Every thread chooses to which thread its clients go.
    EveryoneChooses,
    /// Queued requests are executed from the newest on.
    NewestFirst,
    /// A grace period waits for no thread.
    NoGracePeriod,
    /// A client whose retry was deferred for a pause does not try again when that is over.
    DeafAfterPause,
    /// No thread is notified that a wait is over.
    NoWake,
    /// A client whose time is over gets the timeout's reply, even if it was served first.
    TimeOutAnyway,
    /// A thread that gets a waiting client does not check whether its wait is over.
    DeafOnArrival,
    /// EXEC lets go of a shard between two uses of it.
    LetsGo,
    /// EXEC runs each queued command by itself.
    SplitExec,
    /// A client's reads are remembered when its shard is released.
    RemembersLate,
    /// Invalidations are written before the replies that the client has got earlier.
    NotifiesFirst,
    /// Writers do not see yet that a client tracks keys.
    TracksLate,
    /// EXEC checks the watched keys before it takes its shards.
    ChecksFirst,
    /// No thread is notified that its client was called.
    NoCall,
    /// A client does not check whether its shard is free after it has joined the queue.
    SleepsAtOnce,
    /// A client that tries in vain goes to the end of the queue.
    LosesPlace,
    /// Later commands take a shard that is free, regardless of its queue.
    TakesAnyway,
    /// A reservation has no end.
    EndlessReservation,
    /// A command on several shards that is deferred starts to count again.
    ForgetsRounds,
    /// A command on several shards always waits for one of them.
    WaitsForOne,
    /// A client continues to gather shards while one of them is in use.
    GathersOn,
    /// Scripts that take shards past the queues begin, even if a client was passed.
    LetsScriptsBegin,
    /// A closed client stays in the queue.
    StaysInQueue,
    /// WATCH does not register at a shard that is busy.
    PassesBusyShards,
    /// No thread forgets the keys that a closed client watches.
    WatchOutlives,
}

/// The commands that faults and counts concern.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Command {
    Exec,
    Watch,
    Other,
}

impl Command {
    /// The thread executes this request from now on.
    pub(crate) fn begin(words: &str) {
        let command = match words.split(' ').next() {
            Some("EXEC") => Self::Exec,
            Some("WATCH") => Self::Watch,
            _ => Self::Other,
        };
        COMMAND.with(|now| now.set(command));
    }

    fn runs(self) -> bool {
        COMMAND.with(|now| now.get() == self)
    }
}

shuttle::thread_local! {
    /// The command that the model's thread executes.
    static COMMAND: Cell<Command> = Cell::new(Command::Other);
}

thread_local! {
    static BUSY_WATCHES: Cell<u64> = const { Cell::new(0) };
    static EXEC_CLOSINGS: Cell<u64> = const { Cell::new(0) };
}

/// How often WATCH has found its shard busy in this test since the last call.
pub(crate) fn take_busy_watches() -> u64 {
    BUSY_WATCHES.take()
}

/// How many slots of the gate EXEC has closed in this test since the last call.
pub(crate) fn take_exec_closings() -> u64 {
    EXEC_CLOSINGS.take()
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    static FAILED_TRIES: Cell<u64> = const { Cell::new(0) };
}

thread_local! {
    /// The time, and how much passes with a reading.
    static CLOCK: Cell<(u64, u64)> = const { Cell::new((0, 1)) };
}

thread_local! {
    static SWITCHES_AT_LOCKS: Cell<bool> = const { Cell::new(false) };
}

thread_local! {
    static TIME_PASSES: Cell<bool> = const { Cell::new(false) };
    static GIVES_UP: Cell<bool> = const { Cell::new(false) };
}

/// From now on a thread that waits for at most a while checks again instead of sleeping. Then
/// threads that wait for ever do not block: the schedule never ends.
pub(crate) fn let_time_pass() {
    TIME_PASSES.set(true);
}

/// From now on every wait for a shard in use is in vain.
pub(crate) fn give_up_shards() {
    GIVES_UP.set(true);
}

/// From now on threads may be switched before a lock that is free, and before EXEC uses one that it
/// holds, where shuttle does not.
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

    pub(crate) fn fetch_sub(&self, value: u8, order: Ordering) -> u8 {
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_or(&self, bits: u8, order: Ordering) -> u8 {
        if Command::Exec.runs() {
            EXEC_CLOSINGS.set(EXEC_CLOSINGS.get() + 1);
        }
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
    /// Whether it is locked. Checking that is no step, as it is none in the product: a check that
    /// locked would look like a holder to other threads.
    is_suspended: std::sync::atomic::AtomicBool,
}

/// A lock, marked as held.
pub(crate) struct Held<'a, T> {
    guard: Option<shuttle::sync::MutexGuard<'a, T>>,
    is_suspended: &'a std::sync::atomic::AtomicBool,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.is_suspended.store(false, Ordering::Relaxed);
        }
    }
}

pub(crate) enum MutexGuard<'a, T> {
    Held(Held<'a, T>),
    /// The guard of a try-lock that locks nothing.
    Forged(Box<T>),
    /// The lock that is released before each use, and taken again.
    Loose(&'a Mutex<T>, Option<shuttle::sync::MutexGuard<'a, T>>),
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            mutex: shuttle::sync::Mutex::new(value),
            reached: AtomicU64::new(0),
            is_suspended: std::sync::atomic::AtomicBool::new(false),
        }
    }

    fn held<'a>(&'a self, guard: shuttle::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let is_suspended = &self.is_suspended;
        is_suspended.store(true, Ordering::Relaxed);
        MutexGuard::Held(Held { guard: Some(guard), is_suspended })
    }

    fn try_hold(&self) -> Option<MutexGuard<'_, T>> {
        self.mutex.try_lock().ok().map(|guard| self.held(guard))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        if SWITCHES_AT_LOCKS.get() {
            self.reached.load(Ordering::Relaxed);
        }
        self.held(self.mutex.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Mutex<Shard> {
    /// Whether a thread holds it.
    pub(crate) fn is_locked(&self) -> bool {
        self.is_suspended.load(Ordering::Relaxed)
    }

    /// Only shards are locked so.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Shard>> {
        if Fault::OpenLocks.is_planted() {
            return Some(MutexGuard::Forged(Box::new(Shard::default())));
        }
        if SWITCHES_AT_LOCKS.get() {
            self.reached.load(Ordering::Relaxed);
        }
        let guard = self.try_hold();
        if guard.is_none() && Fault::WaitingTryLock.is_planted() {
            FAILED_TRIES.set(FAILED_TRIES.get() + 1);
            return FAILED_TRIES.get().is_multiple_of(2).then(|| self.lock());
        }
        if guard.is_none() && Command::Watch.runs() {
            BUSY_WATCHES.set(BUSY_WATCHES.get() + 1);
            if Fault::PassesBusyShards.is_planted() {
                return Some(MutexGuard::Forged(Box::new(Shard::default())));
            }
        }
        match guard {
            Some(MutexGuard::Held(mut held))
                if Fault::LetsGo.is_planted() && Command::Exec.runs() =>
            {
                Some(MutexGuard::Loose(self, held.guard.take()))
            }
            guard => guard,
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Held(Held { guard: Some(guard), .. }) | Self::Loose(_, Some(guard)) => guard,
            Self::Forged(value) => value,
            Self::Held(_) | Self::Loose(_, None) => panic!("held"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        if SWITCHES_AT_LOCKS.get() && Command::Exec.runs() {
            AtomicU64::new(0).load(Ordering::Relaxed);
        }
        match self {
            Self::Held(Held { guard: Some(guard), .. }) => guard,
            Self::Forged(value) => value,
            Self::Loose(mutex, guard) => {
                *guard = None;
                guard.insert(mutex.mutex.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Self::Held(_) => panic!("held"),
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
        if let MutexGuard::Held(held) = guard
            && let Some(waiting) = held.guard.take()
        {
            held.guard = Some(self.0.wait(waiting).unwrap_or_else(PoisonError::into_inner));
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

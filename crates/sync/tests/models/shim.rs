//! The same names as the product's shim, made of loom's types, and the faults that can be planted
//! in them.
//!
//! Loom runs the threads of a model as coroutines on one thread of the system, so the planted fault
//! is a plain thread-local and tests with different faults run beside one another.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicUsize as PlainUsize;
use std::sync::{Mutex as PlainMutex, PoisonError};

pub(crate) use loom::sync::atomic::Ordering;

/// One look before the sleep: both ways out of the spin are explored, and no more.
pub(crate) const SPINS_MAX: u32 = 1;

/// The name of threads that send, so that a fault can be limited to them.
pub(crate) const PRODUCER: &str = "producer";

/// The faults that can be planted in the shim, and so in the sources above it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Every atomic access is relaxed.
    Relaxed,
    /// A compare-and-exchange is a read and then a write.
    TornExchange,
    /// The producer's fence is missing.
    NoProducerFence,
    /// The owner's fence is missing.
    NoOwnerFence,
    /// Setting bits yields zero, as if none had been set: a closer that does not wait.
    BlindMark,
    /// A byte that is stored or released is zero: a gate that opens and forgets to put waiting
    /// threads inside, or puts threads outside that are inside.
    ZeroStore,
    /// The queue always claims to be empty, as if the owner did not check again before sleeping.
    BlindRecheck,
    /// The queue hands out the newest message first.
    NewestFirst,
    /// Notices of condition variables are not given.
    NoNotice,
    /// A notice for all reaches one.
    OneNotice,
    /// A condition variable lets go of the lock before it listens.
    LateListen,
    /// Adding to a count yields zero, as if no thread had counted before.
    NoCount,
    /// A lock is released and taken again between a check of the data it guards and the change.
    TornLock,
    /// A thread does not announce a reservation before it makes it.
    Unannounced,
    /// A database counts as selected as soon as a unit that selects it has its place.
    SelectedEarly,
    /// The end does not show that there is an overflow unit.
    HiddenOverflow,
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    static SLEEPS: Cell<usize> = const { Cell::new(0) };
}

/// How often a thread of this test has gone to sleep on a condition variable.
pub(crate) fn sleeps() -> usize {
    SLEEPS.get()
}

impl Fault {
    /// Plants the fault for all that this test does: each test has its thread.
    pub(crate) fn plant(self) {
        PLANTED.set(Some(self));
    }

    fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

fn weaken(order: Ordering) -> Ordering {
    if Fault::Relaxed.is_planted() { Ordering::Relaxed } else { order }
}

pub(crate) fn fence(order: Ordering) {
    let missing = match loom::thread::current().name() {
        Some(PRODUCER) => Fault::NoProducerFence,
        _ => Fault::NoOwnerFence,
    };
    if !missing.is_planted() {
        loom::sync::atomic::fence(order);
    }
}

pub(crate) fn spin_loop() {
    loom::hint::spin_loop();
}

/// The value under a fault.
trait Altered: Sized {
    fn altered(self) -> Self {
        self
    }
}

impl Altered for bool {}
impl Altered for u8 {}
impl Altered for isize {}

/// The word of the log's end.
impl Altered for u64 {
    fn altered(self) -> Self {
        if Fault::SelectedEarly.is_planted() && self & 0xff == 0xff {
            // The models of this fault have one database.
            return self & !0xff | 1;
        }
        if Fault::HiddenOverflow.is_planted() { self & !(1 << 8) } else { self }
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty $(, $update:ident)*) => {
        pub(crate) struct $name(loom::sync::atomic::$name);

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(weaken(order))
            }

            #[allow(dead_code)]
            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let zeroed = Fault::ZeroStore.is_planted() && success == Ordering::AcqRel;
                let new = if zeroed { <$value>::default() } else { new.altered() };
                if Fault::TornExchange.is_planted() {
                    let found = self.0.load(Ordering::Acquire);
                    if found != current {
                        return Err(found);
                    }
                    self.0.store(new, Ordering::Release);
                    return Ok(found);
                }
                self.0.compare_exchange(current, new, weaken(success), weaken(failure))
            }

            $(
                pub(crate) fn $update(&self, value: $value, order: Ordering) -> $value {
                    self.0.$update(value, weaken(order))
                }
            )*
        }
    };
}

atomic!(AtomicBool, bool, swap);

impl AtomicBool {
    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.0.store(value, weaken(order));
    }
}

atomic!(AtomicU8, u8, fetch_sub);

impl AtomicU8 {
    pub(crate) fn fetch_or(&self, bits: u8, order: Ordering) -> u8 {
        let found = self.0.fetch_or(bits, weaken(order));
        if Fault::BlindMark.is_planted() { 0 } else { found }
    }
}

atomic!(AtomicIsize, isize, fetch_add, fetch_sub);
atomic!(AtomicU64, u64, fetch_or, swap);

impl AtomicU64 {
    pub(crate) fn store(&self, value: u64, order: Ordering) {
        let is_announcement = value != u64::MAX && value >> 63 == 1;
        if !(is_announcement && Fault::Unannounced.is_planted()) {
            self.0.store(value, weaken(order));
        }
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        let found = self.0.fetch_add(value, weaken(order));
        if Fault::NoCount.is_planted() { 0 } else { found }
    }
}

/// A queue that promises as little as the sources ask for: a push publishes with Release, a look
/// acquires, and a look may be stale. Whatever more the real queue orders must not be needed.
///
/// The items are behind a lock that loom does not see; nothing of loom's happens while it is held.
pub(crate) struct SegQueue<T> {
    items: PlainMutex<VecDeque<T>>,
    pushed: loom::sync::atomic::AtomicUsize,
    /// Only the owner reads and writes it.
    popped: PlainUsize,
}

impl<T> SegQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: PlainMutex::new(VecDeque::new()),
            pushed: loom::sync::atomic::AtomicUsize::new(0),
            popped: PlainUsize::new(0),
        }
    }

    pub(crate) fn push(&self, item: T) {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if Fault::NewestFirst.is_planted() {
            items.push_front(item);
        } else {
            items.push_back(item);
        }
        drop(items);
        self.pushed.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let popped = self.popped.load(Ordering::Relaxed);
        if self.pushed.load(Ordering::Acquire) == popped {
            return None;
        }
        self.popped.store(popped + 1, Ordering::Relaxed);
        self.items.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        if Fault::BlindRecheck.is_planted() {
            return true;
        }
        self.pushed.load(Ordering::Acquire) == self.popped.load(Ordering::Relaxed)
    }
}

/// Loom's mutex with the interface of parking_lot's.
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// Empty only while a condition variable has it.
    guard: Option<loom::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { mutex: self, guard: Some(guard) }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        if Fault::TornLock.is_planted() {
            self.guard = None;
            loom::thread::yield_now();
            self.guard = self.mutex.lock().guard.take();
        }
        self.guard.as_mut().expect("held")
    }
}

/// Loom's condition variable with the interface of parking_lot's.
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if Fault::LateListen.is_planted() {
            guard.guard = None;
            loom::thread::yield_now();
            guard.guard = guard.mutex.lock().guard.take();
        }
        SLEEPS.set(SLEEPS.get() + 1);
        let held = guard.guard.take().expect("held");
        guard.guard = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn notify_one(&self) {
        if !Fault::NoNotice.is_planted() {
            self.0.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if Fault::OneNotice.is_planted() {
            self.0.notify_one();
        } else if !Fault::NoNotice.is_planted() {
            self.0.notify_all();
        }
    }
}

/// Time does not pass in a model: the notice comes.
pub(crate) fn wait_for_a_while<'a, T>(
    notice: &Condvar,
    _mutex: &'a Mutex<T>,
    mut guard: MutexGuard<'a, T>,
) -> MutexGuard<'a, T> {
    notice.wait(&mut guard);
    guard
}

/// The lock becomes free.
pub(crate) fn lock_for_a_while<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    Some(mutex.lock())
}

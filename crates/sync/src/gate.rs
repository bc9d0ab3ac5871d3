//! The gate: how one thread stops all others for a moment.
//!
//! Threads are inside while they work on shared state, any number at a time. A thread that closes
//! the gate waits until all are outside and is alone until it opens the gate again.
//!
//! Each thread holds a [`Pass`], which is one slot: an atomic on its own cache line, written
//! by its thread and by closers. All that they must agree on is in that one atomic, so its
//! modification order decides who was first, and neither side needs a fence:
//!
//! ```text
//!                  enter                         close
//!     OUTSIDE <------------> INSIDE      INSIDE ---------> INSIDE|CLOSED
//!        |         leave       ^                             |
//!        | close               | open                        | leave, counts down `pending`:
//!        v         enter       |                             v the last one wakes the closer
//!     CLOSED ----------> CLOSED|WAITING                    CLOSED
//!        |                                                   |
//!        +--> OUTSIDE (open)                                 +--> OUTSIDE (open)
//! ```
//!
//! The usual `enter` is one compare-and-swap and the usual `leave` one atomic subtraction, both on
//! a line that the thread's own core holds: about 5 ns each on x86-64. The textbook's plain store
//! and read of a shared flag needs a sequentially consistent fence between the two, in `leave` as
//! well if a sleeping closer is to be woken, and costs the same.
//!
//! Invariants, each with a model in `tests/models`:
//! - While a [`Closed`] lives, nobody else is inside and no other `Closed` exists; what was written
//!   inside is visible to the closer, and what the closer wrote to all who enter after.
//! - A closer with a pass leaves first and competes from outside, so closers cannot block one
//!   another.
//! - A thread that waits in `enter` is inside when the gate opens (`open` puts it there), so a row
//!   of closers cannot starve it.
//! - Every slot is closed, handed out or not: a thread that registers meanwhile finds it closed.
//!
//! What it deliberately does not do: nest (neither `enter` in `enter` nor `close` in `close`), time
//! out, or exclude threads that hold no pass.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::shim::{
    AtomicIsize, AtomicU8, Condvar, Mutex, MutexGuard, Ordering, SPINS_MAX, spin_loop,
};

/// The states of a slot: `OUTSIDE`, or a sum of the bits below.
const OUTSIDE: u8 = 0;
/// The thread works on shared state. Set by the thread, or for it by `open`.
const INSIDE: u8 = 1;
/// A closer has been here: no entering. Set and cleared by closers.
const CLOSED: u8 = 2;
/// The thread sleeps in `enter`. Only together with `CLOSED`.
const WAITING: u8 = 4;

/// A gate. Cloning gives another handle to the same gate.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

/// One thread's right to enter. It can be moved to another thread but not shared; dropping it
/// leaves the gate and returns the slot.
pub struct Pass {
    gate: Gate,
    slot: usize,
    /// This pass has closed the gate. A second close would wait for itself. Also makes the type
    /// `!Sync`: the states of a slot know only one owner.
    closing: Cell<bool>,
}

/// Inside, until dropped.
#[must_use = "dropping it leaves the gate"]
pub struct Inside<'a> {
    pass: &'a Pass,
}

/// Alone, until dropped. Dropping it opens the gate.
#[must_use = "dropping it opens the gate"]
pub struct Closed<'a> {
    gate: &'a Shared,
    own: Option<&'a Pass>,
    /// The closer was inside and will be inside again.
    reenter: bool,
    /// Released after the gate is open: fields are dropped after `drop` has run.
    _turn: MutexGuard<'a, ()>,
}

struct Shared {
    slots: Box<[CachePadded<AtomicU8>]>,
    /// Slots without a pass.
    free: Mutex<Vec<usize>>,
    /// Held by the closer: one at a time.
    turn: Mutex<()>,
    /// How many threads the closer waits for. Negative for a moment: threads that have left before
    /// the closer had counted them. Zero while nobody closes.
    pending: CachePadded<AtomicIsize>,
    /// Guards nothing but the moment between looking and sleeping, for both condition variables.
    parking: Mutex<()>,
    /// `pending` came to zero.
    emptied: Condvar,
    /// Waiting threads were put inside.
    opened: Condvar,
}

impl Gate {
    /// An open gate for at most `threads_max` threads at a time. Closing visits that many slots.
    pub fn new(threads_max: usize) -> Self {
        let shared = Shared {
            slots: (0..threads_max).map(|_| CachePadded::new(AtomicU8::new(OUTSIDE))).collect(),
            free: Mutex::new((0..threads_max).rev().collect()),
            turn: Mutex::new(()),
            pending: CachePadded::new(AtomicIsize::new(0)),
            parking: Mutex::new(()),
            emptied: Condvar::new(),
            opened: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A pass for one more thread, outside; `None` while `threads_max` passes exist. Never waits
    /// for a closer.
    pub fn register(&self) -> Option<Pass> {
        let slot = self.shared.free.lock().pop()?;
        Some(Pass { gate: self.clone(), slot, closing: Cell::new(false) })
    }

    /// Waits for other closers, then until every thread is outside.
    ///
    /// `own` is the caller's own pass, if it holds one: when inside, it leaves first and is inside
    /// again when the gate opens. **Other closers may come first**, so whatever the caller has read
    /// inside may have changed, and it must hold no lock that a thread inside may wait for.
    ///
    /// # Panics
    /// When `own` belongs to another gate or has already closed this one: the program is wrong.
    pub fn close<'a>(&'a self, own: Option<&'a Pass>) -> Closed<'a> {
        let shared = &*self.shared;
        let reenter = own.is_some_and(|pass| {
            assert!(Arc::ptr_eq(&pass.gate.shared, &self.shared), "the pass of another gate");
            assert!(!pass.closing.replace(true), "closed twice");
            let inside = pass.is_inside();
            if inside {
                pass.leave();
            }
            inside
        });
        let turn = shared.turn.lock();
        shared.close_slots();
        shared.wait_until_empty();
        Closed { gate: shared, own, reenter, _turn: turn }
    }
}

impl Pass {
    /// Goes inside; sleeps while the gate is closed. Returns whether it was.
    ///
    /// # Panics
    /// When already inside: the program is wrong.
    #[inline]
    pub fn enter(&self) -> bool {
        // Acquire: what closers did before they opened this slot is visible from here on.
        let entered =
            self.state().compare_exchange(OUTSIDE, INSIDE, Ordering::Acquire, Ordering::Relaxed);
        if let Err(state) = entered {
            self.enter_closed(state);
        }
        entered.is_err()
    }

    /// Goes outside. It never waits.
    ///
    /// # Panics
    /// When not inside: the program is wrong.
    #[inline]
    pub fn leave(&self) {
        // Release: what was done inside is visible to the closer. A subtraction, because x86-64 has
        // an instruction that subtracts and returns the old value, and none that clears a bit so.
        let state = self.state().fetch_sub(INSIDE, Ordering::Release);
        if state != INSIDE {
            self.leave_closed(state);
        }
    }

    /// Lets a closer that waits come first: goes outside and inside again, and so waits until the
    /// gate has been closed and opened. Returns whether there was one.
    ///
    /// For work that takes long and may be interrupted here: what it has read inside may have
    /// changed, and it must hold no lock that a thread inside may wait for.
    ///
    /// # Panics
    /// When not inside: the program is wrong.
    #[inline]
    pub fn make_way(&self) -> bool {
        // Relaxed: a closer that is not seen yet is seen by the next call.
        let is_closing = self.state().load(Ordering::Relaxed) & CLOSED != 0;
        if is_closing {
            self.leave();
            self.enter();
        }
        is_closing
    }

    /// [`enter`](Self::enter), and [`leave`](Self::leave) when the guard is dropped.
    #[inline]
    pub fn inside(&self) -> Inside<'_> {
        self.enter();
        Inside { pass: self }
    }

    /// Whether this pass is inside now.
    pub fn is_inside(&self) -> bool {
        // Only this thread, or a closer while this thread sleeps, changes the bit.
        self.state().load(Ordering::Relaxed) & INSIDE != 0
    }

    /// Runs `work` alone. Inside or outside, the pass is afterwards where it was before; see
    /// [`Gate::close`] for what may happen in between.
    pub fn exclusively<R>(&self, work: impl FnOnce() -> R) -> R {
        let _closed = self.gate.close(Some(self));
        work()
    }

    fn state(&self) -> &AtomicU8 {
        &self.gate.shared.slots[self.slot]
    }

    #[cold]
    fn enter_closed(&self, mut state: u8) {
        let (slot, shared) = (self.state(), &*self.gate.shared);
        loop {
            assert!(state & INSIDE == 0 && !self.closing.get(), "entered twice");
            // `state` is what the last exchange found: CLOSED, or OUTSIDE when the gate has opened.
            let (next, order) = match state {
                OUTSIDE => (INSIDE, Ordering::Acquire),
                _ => (CLOSED | WAITING, Ordering::Relaxed),
            };
            match slot.compare_exchange(state, next, order, Ordering::Relaxed) {
                Ok(_) if next == INSIDE => return,
                Ok(_) => break,
                Err(found) => state = found,
            }
        }
        // From here `open` will put this thread inside. It takes `parking` before it notifies, so
        // the notice cannot fall between the look and the sleep. The next closer may already have
        // marked the slot again, which is why the bit is asked for and not the whole state.
        let mut parking = shared.parking.lock();
        while slot.load(Ordering::Acquire) & WAITING != 0 {
            shared.opened.wait(&mut parking);
        }
    }

    #[cold]
    fn leave_closed(&self, state: u8) {
        assert!(state == INSIDE | CLOSED, "left twice");
        let shared = &*self.gate.shared;
        // Release: the closer, seeing zero, sees what each of the counted threads did inside, for
        // every later update of `pending` continues the release sequence of this one.
        if shared.pending.fetch_sub(1, Ordering::Release) == 1 {
            // The closer looks at `pending` under this lock: now it has either seen zero or sleeps.
            drop(shared.parking.lock());
            shared.emptied.notify_one();
        }
    }
}

impl Shared {
    /// Marks every slot, and counts in `pending` those that have yet to leave.
    fn close_slots(&self) {
        let mut inside = 0;
        for slot in &self.slots {
            // Acquire: pairs with the `leave` of a thread found outside.
            if slot.fetch_or(CLOSED, Ordering::Acquire) & INSIDE != 0 {
                inside += 1;
            }
        }
        // Relaxed: `wait_until_empty` acquires.
        self.pending.fetch_add(inside, Ordering::Relaxed);
    }

    fn wait_until_empty(&self) {
        for _ in 0..SPINS_MAX {
            if self.pending.load(Ordering::Acquire) == 0 {
                return;
            }
            spin_loop();
        }
        let mut parking = self.parking.lock();
        while self.pending.load(Ordering::Acquire) != 0 {
            self.emptied.wait(&mut parking);
        }
    }

    /// Opens every slot and puts those who wait inside, as well as `own`, the slot of a closer that
    /// was inside.
    fn open_slots(&self, own: Option<usize>) {
        let mut waiting = false;
        for (index, slot) in self.slots.iter().enumerate() {
            // Release: what the closer did is visible to whoever enters.
            if own == Some(index) {
                slot.store(INSIDE, Ordering::Release);
            } else if slot
                .compare_exchange(CLOSED, OUTSIDE, Ordering::Release, Ordering::Relaxed)
                .is_err()
            {
                // CLOSED|WAITING: the thread has nothing more to say until it is put inside.
                slot.store(INSIDE, Ordering::Release);
                waiting = true;
            }
        }
        if waiting {
            // A waiting thread looks at its slot under this lock.
            drop(self.parking.lock());
            self.opened.notify_all();
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let own = self.own.filter(|_| self.reenter).map(|pass| pass.slot);
        self.gate.open_slots(own);
        if let Some(pass) = self.own {
            pass.closing.set(false);
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.pass.leave();
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_inside() {
            self.leave();
        }
        self.gate.shared.free.lock().push(self.slot);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("threads_max", &self.shared.slots.len()).finish()
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("slot", &self.slot).finish_non_exhaustive()
    }
}

//! The gate: how one thread stops all others for a moment.
//!
//! Threads are inside while they work on shared state, any number at a time. A thread that closes
//! the gate waits until all are outside and is exclusive until it opens the gate again. A thread
//! that only needs to know when all visits of this moment are over begins a [`GracePeriod`] and
//! asks from time to time whether it has ended, which stops no thread, itself included.
//!
//! Each thread holds a [`Pass`], which is one slot: an atomic on its own cache line, written by its
//! thread and by closers. All that they must agree on is in that one atomic, so its modification
//! order decides which was first, and neither side needs a fence:
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
//!
//!            grace period                leave, counts up `ended`, then clears `AWAITED`
//!     INSIDE ------------> INSIDE|AWAITED ---------> AWAITED ---------> OUTSIDE
//! ```
//!
//! Grace periods run at the same time as others and as closers: `AWAITED` may join each of the
//! other bits of a thread that is inside, and `CLOSED` may join it.
//!
//! The usual `enter` is one compare-and-swap and the usual `leave` one atomic subtraction, both on
//! a line in the cache of the thread's own core: about 5 ns each on x86-64. The textbook's plain
//! store and read of a shared flag needs a sequentially consistent fence between the two, in
//! `leave` as well if a sleeping closer must be woken, and costs the same.
//!
//! Invariants, each with a model in `tests/models`:
//! - While a [`Closed`] lives, no other thread is inside and no other `Closed` exists; writes made
//!   inside are visible to the closer, and the closer's writes to all threads that enter
//!   afterwards.
//! - A closer with a pass leaves first and competes from outside, so closers cannot block one
//!   another.
//! - A thread that waits in `enter` is inside when the gate opens (`open` puts it there), so a row
//!   of closers cannot starve it. One that gives up (`CLOSED|WAITING` becomes `CLOSED`) is outside,
//!   or finds itself inside.
//! - A closer that gives up leaves no trace: threads that are inside stay there (`INSIDE|CLOSED`
//!   becomes `INSIDE`) and are no longer counted.
//! - Every slot is closed, handed out or not: a thread that registers meanwhile finds it closed.
//! - When a grace period is over, writes made in visits that had begun before it are visible to the
//!   asking thread, and all other visits see the writes before it began. A closer's exclusive work
//!   counts as a visit.
//!
//! The gate does not nest (neither `enter` in `enter` nor `close` in `close`), time out, notify of
//! the end of a grace period, or exclude threads that hold no pass.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::gate_slot::{AWAITED, CLOSED, GateSlot, INSIDE, OUTSIDE, WAITING};
use super::shim::{
    AtomicIsize, AtomicU8, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, SPINS_MAX,
    lock_for_a_while, spin_loop, wait_for_a_while,
};

/// A gate. Cloning gives another handle to the same gate.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<GateState>,
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

/// Whether a waiting thread gives up. Called before it sleeps and at intervals while it does; it
/// must not use the gate. `None` stands for never.
type GivesUp<'a> = Option<&'a dyn Fn() -> bool>;

/// Inside, until dropped.
#[must_use = "dropping it leaves the gate"]
pub struct Inside<'a> {
    pass: &'a Pass,
}

/// Exclusive, until dropped. Dropping it opens the gate.
#[must_use = "dropping it opens the gate"]
pub struct Closed<'a> {
    gate: &'a GateState,
    own: Option<&'a Pass>,
    /// The closer was inside and will be inside again.
    reenter: bool,
    /// Released after the gate is open: fields are dropped after `drop` has run.
    _turn: MutexGuard<'a, ()>,
}

/// The visits of one moment, until they are over.
#[derive(Debug)]
pub struct GracePeriod {
    gate: Gate,
    /// Slots whose threads were inside and may still be, and the value of `ended` then.
    visits: Vec<(usize, u64)>,
    /// The value of `exclusive`, if a closer was exclusive.
    exclusive: Option<u64>,
}

struct GateState {
    slots: Box<[CachePadded<GateSlot>]>,
    /// Slots without a pass.
    free: Mutex<Vec<usize>>,
    /// Locked by the thread that closes the gate: one at a time.
    turn: Mutex<()>,
    /// Counts up when a closer becomes exclusive and when that ends: odd while one is.
    exclusive: AtomicU64,
    /// How many threads the holder of `turn` waits for. Negative for a moment: threads that have
    /// left before they were counted. Zero while no closer waits.
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
        let shared = GateState {
            slots: (0..threads_max).map(|_| CachePadded::new(GateSlot::new())).collect(),
            free: Mutex::new((0..threads_max).rev().collect()),
            turn: Mutex::new(()),
            exclusive: AtomicU64::new(0),
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

    /// The pass with this number, less than `threads_max`, outside; `None` while it is taken.
    pub fn register_as(&self, number: usize) -> Option<Pass> {
        let mut free = self.shared.free.lock();
        let at = free.iter().position(|slot| *slot == number)?;
        Some(Pass { gate: self.clone(), slot: free.swap_remove(at), closing: Cell::new(false) })
    }

    /// Waits for other closers, then until every thread is outside.
    ///
    /// `own` is the caller's own pass, if it holds one: when inside, it leaves first and is inside
    /// again when the gate opens. **Other closers may come first**, so everything that the caller
    /// has read inside may have changed, and it must hold no lock that a thread inside may wait
    /// for.
    ///
    /// # Panics
    /// When `own` belongs to another gate or has already closed this one: the program is wrong.
    pub fn close<'a>(&'a self, own: Option<&'a Pass>) -> Closed<'a> {
        self.try_close(own, None).unwrap_or_else(|| unreachable!("no closer gives up here"))
    }

    /// Returns `None` if it has given up; then `own` is outside.
    fn try_close<'a>(&'a self, own: Option<&'a Pass>, gives_up: GivesUp<'_>) -> Option<Closed<'a>> {
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
        let turn = shared.await_turn(gives_up);
        if let Some(turn) = turn {
            shared.close_slots();
            if shared.wait_until_empty(gives_up) {
                // Acquire: a grace period that does not wait for this one began before.
                shared.exclusive.fetch_add(1, Ordering::AcqRel);
                return Some(Closed { gate: shared, own, reenter, _turn: turn });
            }
            shared.count_off(shared.open_slots(None));
        }
        if let Some(pass) = own {
            pass.closing.set(false);
        }
        None
    }

    /// Begins a grace period (as with read-copy-update): the time until every thread that is inside
    /// at this moment has left once. Nothing is closed, and no thread waits. The caller's own visit
    /// is one of them.
    pub fn grace_period(&self) -> GracePeriod {
        let shared = &*self.shared;
        let visits = shared.slots.iter().enumerate();
        let visits = visits.filter_map(|(index, slot)| Some((index, slot.await_visit()?)));
        let visits = visits.collect();
        // Written back though nothing changes. Acquire: pairs with the end of exclusive work.
        // Release: pairs with the next one.
        let exclusive = shared.exclusive.fetch_add(0, Ordering::AcqRel);
        let exclusive = Some(exclusive).filter(|exclusive| !exclusive.is_multiple_of(2));
        GracePeriod { gate: self.clone(), visits, exclusive }
    }
}

impl GracePeriod {
    /// Whether all visits of the moment when it began are over. Costs a load for each that was not
    /// when it was last asked.
    ///
    /// Their writes are visible to the caller then; all other visits see the writes before the
    /// grace period began.
    pub fn is_over(&mut self) -> bool {
        self.is_over_but_for(|_| false, false)
    }

    /// The same without some visits: of passes with these numbers, and of a closer's exclusive
    /// work.
    pub fn is_over_but_for(&mut self, excused: impl Fn(usize) -> bool, exclusive: bool) -> bool {
        let shared = &*self.gate.shared;
        // Acquire: pairs with the count of the visit's thread.
        self.visits
            .retain(|(slot, ended)| shared.slots[*slot].ended.load(Ordering::Acquire) == *ended);
        self.exclusive = self
            .exclusive
            .filter(|exclusive| shared.exclusive.load(Ordering::Acquire) == *exclusive);
        self.visits.iter().all(|(slot, _)| excused(*slot))
            && (exclusive || self.exclusive.is_none())
    }
}

impl Pass {
    /// Goes inside; sleeps while the gate is closed. Returns whether it was.
    ///
    /// # Panics
    /// When already inside: the program is wrong.
    #[inline]
    pub fn enter(&self) -> bool {
        // Acquire: the writes of closers before they opened this slot are visible from here on.
        let entered =
            self.state().compare_exchange(OUTSIDE, INSIDE, Ordering::Acquire, Ordering::Relaxed);
        if let Err(state) = entered {
            self.enter_closed(state, None);
        }
        entered.is_err()
    }

    /// [`enter`](Self::enter), unless `gives_up` says so while the gate is closed. `gives_up` is
    /// called before it sleeps and at intervals while it does; it must not use the gate. Returns
    /// `None` if the pass is outside.
    #[inline]
    pub fn enter_unless(&self, gives_up: &dyn Fn() -> bool) -> Option<bool> {
        let entered =
            self.state().compare_exchange(OUTSIDE, INSIDE, Ordering::Acquire, Ordering::Relaxed);
        match entered {
            Ok(_) => Some(false),
            Err(state) => self.enter_closed(state, Some(gives_up)).then_some(true),
        }
    }

    /// Goes outside. It never waits.
    ///
    /// # Panics
    /// When not inside: the program is wrong.
    #[inline]
    pub fn leave(&self) {
        // Release: writes made inside are visible to a waiting closer. A subtraction, because
        // x86-64 has an instruction that subtracts and returns the old value, and none that clears
        // a bit so.
        let state = self.state().fetch_sub(INSIDE, Ordering::Release);
        if state != INSIDE {
            self.leave_awaited(state);
        }
    }

    /// Lets closers that wait for this thread go first: goes outside and inside again, and so waits
    /// until a gate that is being closed has been opened. Returns whether there was one.
    ///
    /// For long work that may be interrupted here: everything that it has read inside may have
    /// changed, and it must hold no lock that a thread inside may wait for.
    ///
    /// # Panics
    /// When not inside: the program is wrong.
    #[inline]
    pub fn make_way(&self) -> bool {
        let is_awaited = self.is_awaited();
        if is_awaited {
            self.leave();
            self.enter();
        }
        is_awaited
    }

    /// Whether another thread waits for this one, which is inside, to leave.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        // Relaxed: a closer that is not seen yet is seen by the next call.
        self.state().load(Ordering::Relaxed) != INSIDE
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

    /// Runs `work` exclusively. Inside or outside, the pass is afterwards where it was before; see
    /// [`Gate::close`] for the commands that may come in between.
    pub fn exclusively<R>(&self, work: impl FnOnce() -> R) -> R {
        let _closed = self.gate.close(Some(self));
        work()
    }

    /// [`exclusively`](Self::exclusively), unless `gives_up` says so while it waits, as in
    /// [`enter_unless`](Self::enter_unless). Returns `None` if nothing was done; then the pass is
    /// outside.
    pub fn exclusively_unless<R>(
        &self,
        gives_up: &dyn Fn() -> bool,
        work: impl FnOnce() -> R,
    ) -> Option<R> {
        let _closed = self.gate.try_close(Some(self), Some(gives_up))?;
        Some(work())
    }

    /// Begins a [grace period](Gate::grace_period).
    pub fn grace_period(&self) -> GracePeriod {
        self.gate.grace_period()
    }

    /// How many visits of a grace period are not over, except for this thread's own. Stops no
    /// thread.
    pub fn visits_left(&self, period: &mut GracePeriod) -> usize {
        period.is_over();
        let others = period.visits.iter().filter(|(slot, _)| *slot != self.slot);
        others.count() + usize::from(period.exclusive.is_some())
    }

    /// The pass's number.
    pub fn number(&self) -> usize {
        self.slot
    }

    fn slot(&self) -> &GateSlot {
        &self.gate.shared.slots[self.slot]
    }

    fn state(&self) -> &AtomicU8 {
        &self.slot().state
    }

    #[cold]
    fn enter_closed(&self, mut state: u8, gives_up: GivesUp<'_>) -> bool {
        let (slot, shared) = (self.state(), &*self.gate.shared);
        loop {
            assert!(state & INSIDE == 0 && !self.closing.get(), "entered twice");
            // `state` is the result of the last exchange: CLOSED, or OUTSIDE when the gate has
            // opened.
            let (next, order) = match state {
                OUTSIDE => (INSIDE, Ordering::Acquire),
                _ => (CLOSED | WAITING, Ordering::Relaxed),
            };
            match slot.compare_exchange(state, next, order, Ordering::Relaxed) {
                Ok(_) if next == INSIDE => return true,
                Ok(_) => break,
                Err(found) => state = found,
            }
        }
        // From here `open` will put this thread inside. It takes `parking` before it notifies, so
        // the notice cannot fall between the look and the sleep. The next closer may already have
        // marked the slot again, which is why the bit is asked for and not the whole state.
        let is_inside = || slot.load(Ordering::Acquire) & WAITING == 0;
        if shared.sleep_until(&is_inside, &shared.opened, gives_up) {
            return true;
        }
        // Unless `open` has put this thread inside by now. Acquire: then it sees the writes of
        // closers.
        let (waiting, closed) = (CLOSED | WAITING, CLOSED);
        slot.compare_exchange(waiting, closed, Ordering::Relaxed, Ordering::Acquire).is_err()
    }

    #[cold]
    fn leave_awaited(&self, state: u8) {
        assert!(state & INSIDE != 0, "left twice");
        if state & AWAITED != 0 {
            // Release: a thread that asks for the end of the visit sees its writes.
            self.slot().ended.fetch_add(1, Ordering::Release);
            // Release: a thread that finds it inside again sees the count.
            self.state().fetch_sub(AWAITED, Ordering::Release);
        }
        if state & CLOSED == 0 {
            return;
        }
        let shared = &*self.gate.shared;
        // Release: a closer that sees zero sees the writes of each counted thread, because every
        // later update of `pending` continues the release sequence of this one.
        if shared.pending.fetch_sub(1, Ordering::Release) == 1 {
            // A closer reads `pending` under this lock: it has either seen zero or sleeps now.
            drop(shared.parking.lock());
            shared.emptied.notify_one();
        }
    }
}

impl GateState {
    /// Marks every slot, and counts in `pending` those whose threads have not left yet.
    fn close_slots(&self) {
        let mut inside = 0;
        for slot in &self.slots {
            // Acquire: pairs with the `leave` of a thread found outside.
            if slot.state.fetch_or(CLOSED, Ordering::Acquire) & INSIDE != 0 {
                inside += 1;
            }
        }
        // Relaxed: `wait_until_empty` acquires.
        self.pending.fetch_add(inside, Ordering::Relaxed);
    }

    /// Waits for the caller's turn to close the gate. Returns `None` if it has given up.
    fn await_turn(&self, gives_up: GivesUp<'_>) -> Option<MutexGuard<'_, ()>> {
        let Some(gives_up) = gives_up else { return Some(self.turn.lock()) };
        while !gives_up() {
            if let Some(turn) = lock_for_a_while(&self.turn) {
                return Some(turn);
            }
        }
        None
    }

    /// Sleeps until `has_happened`, which `notice` announces. Returns false if it has given up
    /// first.
    fn sleep_until(
        &self,
        has_happened: &dyn Fn() -> bool,
        notice: &Condvar,
        gives_up: GivesUp<'_>,
    ) -> bool {
        let mut parking = self.parking.lock();
        while !has_happened() {
            match gives_up {
                None => notice.wait(&mut parking),
                Some(gives_up) if gives_up() => return false,
                Some(_) => parking = wait_for_a_while(notice, &self.parking, parking),
            }
        }
        true
    }

    /// Returns false when it has given up before.
    fn wait_until_empty(&self, gives_up: GivesUp<'_>) -> bool {
        for _ in 0..SPINS_MAX {
            if self.pending.load(Ordering::Acquire) == 0 {
                return true;
            }
            spin_loop();
        }
        let is_empty = || self.pending.load(Ordering::Acquire) == 0;
        self.sleep_until(&is_empty, &self.emptied, gives_up)
    }

    /// Opens every slot and puts waiting threads inside, as well as `own`, the slot of a closer
    /// that was inside. Returns how many threads were inside all the time: none, unless the closer
    /// gives up.
    fn open_slots(&self, own: Option<usize>) -> isize {
        let (mut waiting, mut inside) = (false, 0);
        for (index, slot) in self.slots.iter().enumerate() {
            let is_own = own == Some(index);
            let state = slot.open(is_own);
            if !is_own {
                waiting |= state & WAITING != 0;
                inside += isize::from(state & INSIDE != 0);
            }
        }
        if waiting {
            // A waiting thread reads its slot under this lock.
            drop(self.parking.lock());
            self.opened.notify_all();
        }
        inside
    }

    /// Subtracts from `pending` the threads that are inside and will not count themselves. The
    /// others are about to.
    fn count_off(&self, inside: isize) {
        if inside != 0 {
            self.pending.fetch_sub(inside, Ordering::Relaxed);
            self.wait_until_empty(None);
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        // Release: exclusive writes are visible to a thread that asks for their end.
        self.gate.exclusive.fetch_add(1, Ordering::Release);
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

//! The gate: closers are exclusive and see everything, no thread sleeps for ever, closers do not
//! block one another, threads may register while it is closed; a grace period waits for all visits,
//! stops no thread and is seen by later visits.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool as PlainBool;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::gate::{Gate, GracePeriod, Pass};
use super::shim::{self, Fault};
use super::{fails, fails_with, holds};

/// The data that the gate protects. Relaxed reads and writes in two steps: a thread that is not
/// exclusive, or does not see earlier writes, sees the halves differ.
#[derive(Default)]
struct World {
    /// Written by closers, read by threads inside.
    common: Halves,
    /// Written by one thread inside each, read by closers.
    of_thread: [Halves; 2],
}

#[derive(Default)]
struct Halves {
    left: AtomicUsize,
    right: AtomicUsize,
}

impl Halves {
    fn change(&self) {
        let next = self.left.load(Ordering::Relaxed) + 1;
        self.left.store(next, Ordering::Relaxed);
        self.right.store(next, Ordering::Relaxed);
    }

    fn read(&self) -> usize {
        let left = self.left.load(Ordering::Relaxed);
        assert_eq!(left, self.right.load(Ordering::Relaxed), "not exclusive");
        left
    }
}

impl World {
    /// The work of a thread inside.
    fn visit(&self, thread: usize) {
        self.common.read();
        self.of_thread[thread].change();
    }

    /// The work of a closer.
    fn rebuild(&self) {
        self.common.change();
        for halves in &self.of_thread {
            halves.read();
        }
    }
}

fn visit(pass: &Pass, world: &World, thread: usize) {
    let _inside = pass.inside();
    world.visit(thread);
}

/// `threads` visit once while another closes `CLOSES` times.
fn exclusion<const THREADS: usize, const CLOSES: usize>() {
    let gate = Gate::new(THREADS);
    let world = Arc::new(World::default());
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let pass = gate.register().unwrap();
            let world = Arc::clone(&world);
            thread::spawn(move || visit(&pass, &world, index))
        })
        .collect();
    for _ in 0..CLOSES {
        let closed = gate.close(None);
        world.rebuild();
        drop(closed);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(world.common.read(), CLOSES);
}

/// One thread gives up at once while another closes twice; inside or not, it comes once more.
fn giving_up() {
    let gate = Gate::new(1);
    let world = Arc::new(World::default());
    let pass = gate.register().unwrap();
    let visitor = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let entered = pass.enter_unless(&|| true);
            assert_eq!(entered.is_some(), pass.is_inside(), "neither inside nor outside");
            if entered.is_some() {
                world.visit(0);
                pass.leave();
            }
            visit(&pass, &world, 0);
        })
    };
    for _ in 0..2 {
        let closed = gate.close(None);
        world.rebuild();
        drop(closed);
    }
    visitor.join().unwrap();
    assert_eq!(world.common.read(), 2);
}

/// Says no the first time it is asked, and yes from then on.
fn second_time() -> impl Fn() -> bool {
    let asked = Cell::new(false);
    move || asked.replace(true)
}

/// One thread comes twice while another closes, gives up if it must wait, and then closes until it
/// is exclusive.
fn a_closer_that_gives_up() {
    let gate = Gate::new(2);
    let world = Arc::new(World::default());
    let pass = gate.register().unwrap();
    let visitor = {
        let world = Arc::clone(&world);
        thread::spawn(move || (0..2).for_each(|_| visit(&pass, &world, 0)))
    };
    let own = gate.register().unwrap();
    own.enter();
    let closed = own.exclusively_unless(&second_time(), || world.rebuild());
    assert!(closed.is_some() || !own.is_inside(), "inside after giving up");
    own.exclusively(|| world.rebuild());
    visitor.join().unwrap();
    assert_eq!(world.common.read(), 1 + usize::from(closed.is_some()));
}

/// How two threads that are both inside close.
type Close = fn(&Gate, &Pass, &World);

fn exclusively(_gate: &Gate, pass: &Pass, world: &World) {
    pass.exclusively(|| world.rebuild());
}

/// The mistake that `close` takes the caller's pass to prevent.
fn without_leaving(gate: &Gate, _pass: &Pass, world: &World) {
    let _closed = gate.close(None);
    world.rebuild();
}

/// Two threads that are inside both close, and are inside again when they have.
fn two_closers(close: Close) {
    let gate = Gate::new(2);
    let world = Arc::new(World::default());
    let work = |thread: usize| {
        let (gate, world) = (gate.clone(), Arc::clone(&world));
        let pass = gate.register().unwrap();
        move || {
            let inside = pass.inside();
            world.visit(thread);
            close(&gate, &pass, &world);
            assert!(pass.is_inside(), "not inside again");
            world.visit(thread);
            drop(inside);
        }
    };
    let other = thread::spawn(work(1));
    work(0)();
    other.join().unwrap();
    assert_eq!(world.common.read(), 2);
}

/// A thread that sleeps in `enter` comes inside before the same closer is exclusive again.
fn turn_of_waiting_thread() {
    let gate = Gate::new(1);
    // A plain atomic, which loom does not see: the real order of events.
    let visited = Arc::new(PlainBool::new(false));
    let closed = gate.close(None);
    let sleeps = shim::sleeps();
    let waiting = {
        let (pass, visited) = (gate.register().unwrap(), Arc::clone(&visited));
        thread::spawn(move || {
            let _inside = pass.inside();
            visited.store(true, Ordering::Relaxed);
        })
    };
    while shim::sleeps() == sleeps {
        thread::yield_now();
    }
    drop(closed);
    let closed = gate.close(None);
    assert!(visited.load(Ordering::Relaxed), "starved");
    drop(closed);
    waiting.join().unwrap();
}

/// A thread that stays inside for long makes way for a closer between two visits.
fn making_way() {
    let gate = Gate::new(1);
    let world = Arc::new(World::default());
    let long = {
        let (pass, world) = (gate.register().unwrap(), Arc::clone(&world));
        thread::spawn(move || {
            let _inside = pass.inside();
            world.visit(0);
            pass.make_way();
            assert!(pass.is_inside(), "not inside again");
            world.visit(0);
        })
    };
    let closed = gate.close(None);
    world.rebuild();
    drop(closed);
    long.join().unwrap();
}

/// A thread registers, visits and goes, and another takes over its slot, while the gate is closed
/// and opened.
fn registration() {
    let gate = Gate::new(1);
    let world = Arc::new(World::default());
    let coming = {
        let (gate, world) = (gate.clone(), Arc::clone(&world));
        thread::spawn(move || {
            for thread in 0..2 {
                let pass = gate.register().expect("the slot is free");
                pass.enter();
                world.visit(thread);
                // Dropping the pass leaves.
            }
        })
    };
    let closed = gate.close(None);
    world.rebuild();
    drop(closed);
    coming.join().unwrap();
}

/// The work of threads unless it is stopped: the flag is relaxed, only the gate orders it.
#[derive(Default)]
struct Stoppable {
    stopped: AtomicBool,
    of_thread: [Halves; 2],
}

impl Stoppable {
    fn change_unless_stopped(&self, thread: usize) {
        if !self.stopped.load(Ordering::Relaxed) {
            self.of_thread[thread].change();
        }
    }

    fn read(&self) -> [usize; 2] {
        [self.of_thread[0].read(), self.of_thread[1].read()]
    }
}

/// How a thread works twice, in one visit or exclusively.
type Worker = fn(&Pass, &Stoppable, usize);

fn in_two_visits(pass: &Pass, world: &Stoppable, thread: usize) {
    for _ in 0..2 {
        let _inside = pass.inside();
        world.change_unless_stopped(thread);
    }
}

fn on_both_sides_of_a_way_made(pass: &Pass, world: &Stoppable, thread: usize) {
    let _inside = pass.inside();
    world.change_unless_stopped(thread);
    pass.make_way();
    world.change_unless_stopped(thread);
}

fn alone(pass: &Pass, world: &Stoppable, thread: usize) {
    let _inside = pass.inside();
    pass.exclusively(|| world.change_unless_stopped(thread));
    world.change_unless_stopped(thread);
}

/// How everything is stopped.
type Stop = fn(&Gate, &Stoppable) -> GracePeriod;

fn then_wait(gate: &Gate, world: &Stoppable) -> GracePeriod {
    world.stopped.store(true, Ordering::Relaxed);
    gate.grace_period()
}

/// The mistake of waiting before other threads can see the reason.
fn after_waiting(gate: &Gate, world: &Stoppable) -> GracePeriod {
    let period = gate.grace_period();
    world.stopped.store(true, Ordering::Relaxed);
    period
}

/// One that begins and is forgotten, and another.
fn after_another(gate: &Gate, world: &Stoppable) -> GracePeriod {
    let mut another = gate.grace_period();
    another.is_over();
    then_wait(gate, world)
}

/// Threads work while this one stops them. Once that is over, nothing changes, and when they have
/// ended it is.
fn stop<const WORKERS: usize>(workers: [Worker; WORKERS], stop: Stop) {
    let gate = Gate::new(WORKERS);
    let world = Arc::new(Stoppable::default());
    let threads: Vec<_> = (0..)
        .zip(workers)
        .map(|(index, work)| {
            let (pass, world) = (gate.register().unwrap(), Arc::clone(&world));
            thread::spawn(move || work(&pass, &world, index))
        })
        .collect();
    let mut period = stop(&gate, &world);
    let stopped = [(); 2].map(|()| period.is_over().then(|| world.read()));
    for thread in threads {
        thread.join().unwrap();
    }
    for stopped in stopped.into_iter().flatten() {
        assert_eq!(world.read(), stopped, "changed later");
    }
    assert!(period.is_over(), "never over");
}

/// The number of threads changes while one waits for those that are inside.
fn registration_in_a_grace_period() {
    let gate = Gate::new(2);
    let world = Arc::new(Stoppable::default());
    let coming = {
        let (gate, world) = (gate.clone(), Arc::clone(&world));
        thread::spawn(move || {
            for thread in 0..2 {
                let pass = gate.register().expect("the slot is free");
                pass.enter();
                world.change_unless_stopped(thread);
                // Dropping the pass leaves.
            }
        })
    };
    let mut period = then_wait(&gate, &world);
    let stopped = period.is_over().then(|| world.read());
    coming.join().unwrap();
    assert!(stopped.is_none_or(|stopped| world.read() == stopped), "changed later");
    assert!(period.is_over(), "never over");
}

#[test]
fn a_closer_is_exclusive_and_sees_everything() {
    holds(3, exclusion::<2, 1>);
}

#[test]
fn a_closer_and_one_thread_more_deeply() {
    holds(9, exclusion::<1, 1>);
}

#[test]
fn two_closes_with_two_threads() {
    holds(3, exclusion::<2, 2>);
}

#[test]
fn a_waiting_thread_enters_between_two_closes() {
    holds(9, turn_of_waiting_thread);
}

#[test]
fn two_closers_that_were_inside_both_come_through() {
    holds(3, || two_closers(exclusively));
}

#[test]
fn a_thread_that_makes_way_is_outside_while_a_closer_is_exclusive() {
    holds(9, making_way);
}

#[test]
fn a_thread_that_makes_way_must_be_waited_for() {
    fails_with(Fault::BlindMark, "not exclusive", 3, making_way);
}

#[test]
fn threads_may_come_while_the_gate_is_closed() {
    holds(3, registration);
}

#[test]
fn a_closer_that_does_not_wait_is_not_exclusive() {
    fails_with(Fault::BlindMark, "not exclusive", 2, exclusion::<1, 1>);
}

#[test]
fn with_relaxed_orderings_a_closer_does_not_see_everything() {
    fails_with(Fault::Relaxed, "not exclusive", 2, exclusion::<1, 1>);
}

#[test]
fn without_notices_closer_and_threads_sleep_for_ever() {
    fails_with(Fault::NoNotice, "deadlock", 2, exclusion::<1, 1>);
}

#[test]
fn of_two_waiting_threads_both_must_be_noticed() {
    fails_with(Fault::OneNotice, "deadlock", 2, exclusion::<2, 1>);
}

#[test]
fn a_notice_between_look_and_sleep_is_missed() {
    fails_with(Fault::LateListen, "deadlock", 2, exclusion::<1, 1>);
}

#[test]
fn a_thread_that_gives_up_is_inside_or_outside() {
    holds(3, giving_up);
}

#[test]
fn giving_up_while_the_gate_opens_must_be_noticed() {
    fails_with(Fault::TornExchange, "", 3, giving_up);
}

#[test]
fn a_closer_that_has_given_up_leaves_the_gate_open_and_the_next_one_is_exclusive() {
    holds(3, a_closer_that_gives_up);
}

#[test]
fn threads_inside_stay_there_when_a_closer_gives_up() {
    fails_with(Fault::ZeroStore, "left twice", 3, a_closer_that_gives_up);
}

#[test]
fn a_waiting_thread_starves_unless_it_is_put_inside() {
    fails_with(Fault::ZeroStore, "starved", 2, turn_of_waiting_thread);
}

#[test]
fn two_closers_that_stay_inside_block_one_another() {
    fails("deadlock", 2, || two_closers(without_leaving));
}

#[test]
fn a_thread_that_registers_must_be_waited_for() {
    fails_with(Fault::BlindMark, "not exclusive", 3, registration);
}

#[test]
fn after_a_grace_period_nothing_goes_on_that_was_stopped() {
    holds(3, || stop([in_two_visits, in_two_visits], then_wait));
}

#[test]
fn a_grace_period_and_one_thread_more_deeply() {
    holds(9, || stop([in_two_visits], then_wait));
}

#[test]
fn a_thread_that_makes_way_for_a_grace_period_continues() {
    holds(9, || stop([on_both_sides_of_a_way_made], then_wait));
}

#[test]
fn exclusive_work_is_waited_for() {
    holds(3, || stop([alone], then_wait));
}

#[test]
fn exclusive_work_next_to_visits_is_waited_for() {
    holds(2, || stop([alone, in_two_visits], then_wait));
}

#[test]
fn grace_periods_do_not_hide_visits_from_one_another() {
    holds(3, || stop([in_two_visits, in_two_visits], after_another));
    holds(6, || stop([in_two_visits], after_another));
    holds(3, || stop([on_both_sides_of_a_way_made], after_another));
    holds(2, || stop([alone], after_another));
}

#[test]
fn threads_may_come_during_a_grace_period() {
    holds(3, registration_in_a_grace_period);
}

#[test]
fn what_stops_threads_must_be_written_before_the_grace_period() {
    fails("changed later", 2, || stop([in_two_visits], after_waiting));
}

#[test]
fn with_relaxed_orderings_a_grace_period_orders_nothing() {
    fails_with(Fault::Relaxed, "changed later", 2, || stop([in_two_visits], then_wait));
}

#[test]
fn a_grace_period_that_overlooks_a_visit_is_found() {
    fails_with(Fault::BlindMark, "changed later", 2, || stop([in_two_visits], then_wait));
}

#[test]
fn a_visit_that_ends_while_it_is_marked_must_not_be_awaited() {
    fails_with(Fault::TornExchange, "", 2, || stop([in_two_visits], then_wait));
}

#[test]
fn exclusive_work_must_be_counted() {
    fails_with(Fault::NoCount, "changed later", 3, || stop([alone], then_wait));
}

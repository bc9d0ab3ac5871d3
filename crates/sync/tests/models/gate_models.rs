//! The gate: closers are alone and see everything, nobody sleeps for ever, closers do not block one
//! another, threads may come while it is closed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool as PlainBool;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::gate::{Gate, Pass};
use super::shim::{self, Fault};
use super::{fails, fails_with, holds};

/// What the gate protects. Relaxed reads and writes in two steps: whoever is not alone, or does not
/// see what was done before it came, sees the halves differ.
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
        assert_eq!(left, self.right.load(Ordering::Relaxed), "not alone");
        left
    }
}

impl World {
    /// What a thread does inside.
    fn visit(&self, thread: usize) {
        self.common.read();
        self.of_thread[thread].change();
    }

    /// What a closer does.
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

/// A thread that sleeps in `enter` comes inside before the same closer is alone again.
fn turn_of_who_waits() {
    let gate = Gate::new(1);
    // A plain atomic, which loom does not see: what has really happened.
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

#[test]
fn a_closer_is_alone_and_sees_everything() {
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
fn who_waits_is_let_in_between_two_closes() {
    holds(9, turn_of_who_waits);
}

#[test]
fn two_closers_that_were_inside_both_come_through() {
    holds(3, || two_closers(exclusively));
}

#[test]
fn who_makes_way_is_outside_while_a_closer_is_alone() {
    holds(9, making_way);
}

#[test]
fn who_makes_way_must_be_waited_for() {
    fails_with(Fault::BlindMark, "not alone", 3, making_way);
}

#[test]
fn threads_may_come_while_the_gate_is_closed() {
    holds(3, registration);
}

#[test]
fn a_closer_that_does_not_wait_is_not_alone() {
    fails_with(Fault::BlindMark, "not alone", 2, exclusion::<1, 1>);
}

#[test]
fn with_relaxed_orderings_a_closer_does_not_see_everything() {
    fails_with(Fault::Relaxed, "not alone", 2, exclusion::<1, 1>);
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
fn who_waits_starves_unless_it_is_put_inside() {
    fails_with(Fault::ZeroStore, "starved", 2, turn_of_who_waits);
}

#[test]
fn two_closers_that_stay_inside_block_one_another() {
    fails("deadlock", 2, || two_closers(without_leaving));
}

#[test]
fn who_registers_meanwhile_must_be_waited_for() {
    fails_with(Fault::BlindMark, "not alone", 3, registration);
}

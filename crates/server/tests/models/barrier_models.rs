//! Models of services of the process, which commands use outside the gate.

use shuttle::thread;

use crate::blocked::{Owner, World};
use crate::{fails, holds};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 1500;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

/// A thread uses a service of the process that waits for all others, one of whom stops the world.
fn a_service_outside_the_gate() {
    let world = World::new();
    let mut main = Owner::new(&world);
    let (slot, seen) = main.connect();
    let mut other = Owner::new(&world);
    let (flushing, _) = other.connect();
    let other = thread::spawn(move || other.request(flushing, "FLUSHALL"));
    main.request(slot, "MEMORY PURGE");
    main.request(slot, "DBSIZE");
    other.join().expect("it ends");
    assert_eq!(seen.told(), ["+OK", ":0"]);
}

fn a_service_inside_the_gate() {
    Owner::new(&World::new()).purge_inside();
}

#[test]
fn services_of_the_process_are_used_outside_the_gate() {
    holds(SCHEDULES, a_service_outside_the_gate);
}

#[test]
fn a_service_used_inside_the_gate_is_found() {
    fails("deadlock", SCHEDULES_TO_FAIL, a_service_inside_the_gate);
}

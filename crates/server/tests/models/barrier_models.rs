//! Models of CLIENT PAUSE and CLIENT KILL: when they are answered, what was admitted before has
//! taken effect, and nothing that they hold back takes effect later. A write reaches its shards in
//! one of three ways: by the lock of one, by the locks of several, or behind the closed gate.

use shuttle::thread;

use crate::blocked::{Owner, World};
use crate::client_state::ClientState;
use crate::shim::{Fault, switch_at_locks};
use crate::{fails, fails_with, holds};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 1500;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

/// One client sends writes while another sends what `barrier` makes of the first one's number.
/// After that is answered, the keyspace stays as it is.
fn nothing_is_written_after(barrier: fn(u64) -> String) {
    switch_at_locks();
    let world = World::new();
    let [first, second] = world.keys();
    let mut main = Owner::new(&world);
    let (slot, seen) = main.connect();
    let mut writer = Owner::new(&world);
    let (writing, written) = writer.connect();
    let named = |write: &&str| write.replace("first", &first).replace("second", &second);
    let writes: Vec<String> = WRITES.iter().map(named).collect();
    let id = written.record.id;
    let writer = thread::spawn(move || {
        for write in writes {
            if !matches!(writer.execute(writing, &write), ClientState::Reading) {
                break;
            }
        }
    });
    main.request(slot, &barrier(id));
    let read = format!("GET {first}");
    main.request(slot, &read);
    thread::yield_now();
    main.request(slot, &read);
    writer.join().expect("it ends");
    main.request(slot, &read);
    let told = seen.told();
    let [_, before, during, after] = &told[..] else { panic!("four replies: {told:?}") };
    assert!(before == during && before == after, "a write took effect later: {told:?}");
}

/// All ways, one after another.
const WRITES: &[&str] =
    &["MSET first 1 second 1", "FLUSHALL", "SET first 2", "MSET first 3 second 3"];

fn a_pause() {
    nothing_is_written_after(|_| "CLIENT PAUSE 100000 WRITE".to_owned());
}

fn a_kill() {
    nothing_is_written_after(|id| format!("CLIENT KILL ID {id}"));
}

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

#[test]
fn nothing_is_written_after_a_pause_is_answered() {
    holds(SCHEDULES, a_pause);
}

#[test]
fn nothing_is_written_for_a_client_after_its_kill_is_answered() {
    holds(SCHEDULES, a_kill);
}

#[test]
fn a_pause_without_a_barrier_is_found() {
    fails_with(Fault::NoBarrier, "later", SCHEDULES_TO_FAIL, a_pause);
}

#[test]
fn a_kill_without_a_barrier_is_found() {
    fails_with(Fault::NoBarrier, "later", SCHEDULES_TO_FAIL, a_kill);
}

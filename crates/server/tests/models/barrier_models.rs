//! Models of CLIENT PAUSE and CLIENT KILL: when they are answered, commands admitted before have
//! taken effect, and commands that they stop take effect no later. A write reaches its shards in
//! one of three ways: by the lock of one, by the locks of several, or behind the closed gate.

use shuttle::thread;

use crate::blocked::{Owner, START_MS, World};
use crate::client_state::ClientState;
use crate::shim::{Fault, switch_at_locks};
use crate::{fails, fails_with, holds};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 1500;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

/// One client sends writes while another sends the command that `barrier` makes of the first one's
/// number. After that is answered, the keyspace stays as it is.
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
    let received = seen.received();
    let [_, before, during, after] = &received[..] else { panic!("four replies: {received:?}") };
    assert!(before == during && before == after, "a write took effect later: {received:?}");
}

/// All ways, one after another.
const WRITES: &[&str] =
    &["MSET first 1 second 1", "FLUSHDB", "SET first 2", "MSET first 3 second 3"];

fn a_pause() {
    nothing_is_written_after(|_| "CLIENT PAUSE 100000 WRITE".to_owned());
}

fn a_kill() {
    nothing_is_written_after(|id| format!("CLIENT KILL ID {id}"));
}

/// A key expires while a client reads it and another pauses writes. It is removed before the pause
/// is answered or not before its end, also when the reader closes the gate.
fn a_key_expires_in_a_pause() {
    switch_at_locks();
    let world = World::new();
    let [key] = world.keys();
    let mut main = Owner::new(&world);
    let (slot, seen) = main.connect();
    main.request(slot, &format!("RPUSH {key} v"));
    main.request(slot, &format!("PEXPIRE {key} 100"));
    let mut reader = Owner::new(&world);
    let (reading, _) = reader.connect();
    reader.go_on_to(START_MS + 1000);
    let sort = format!("SORT_RO {key} BY weight_*");
    let reader = thread::spawn(move || reader.request(reading, &sort));
    main.request(slot, "CLIENT PAUSE 100000 WRITE");
    // For this thread it has not expired yet.
    let exists = format!("EXISTS {key}");
    main.request(slot, &exists);
    thread::yield_now();
    main.request(slot, &exists);
    reader.join().expect("it ends");
    main.request(slot, &exists);
    let received = seen.received();
    let [_, _, _, before, during, after] = &received[..] else {
        panic!("six replies: {received:?}")
    };
    assert!(before == during && before == after, "it was removed later: {received:?}");
}

/// A pending entry becomes old enough for a client that waits for one while another client pauses
/// writes, and others use the shards that serving it takes. It is claimed before the pause or
/// after.
fn a_claim_is_due_in_a_pause() {
    switch_at_locks();
    const IDLE_MS: i64 = 1000;
    let world = World::new();
    let [stream, list] = world.keys();
    let mut main = Owner::new(&world);
    let (slot, seen) = main.connect();
    // Its destination is among the shards that a writer of the stream must take.
    let mut mover = Owner::new(&world);
    let (moving, _) = mover.connect();
    assert!(mover.request(moving, &format!("BLMOVE {stream} {list} LEFT LEFT 0")), "it blocks");
    for request in [
        format!("XGROUP CREATE {stream} g 0 MKSTREAM"),
        format!("XADD {stream} 1-1 f v"),
        format!("XREADGROUP GROUP g dead STREAMS {stream} >"),
    ] {
        main.request(slot, &request);
    }
    let mut owner = Owner::new(&world);
    let (waiting, claimed) = owner.connect();
    let wait = format!("XREADGROUP GROUP g me BLOCK 0 CLAIM {IDLE_MS} STREAMS {stream} >");
    assert!(owner.request(waiting, &wait), "it blocks");
    let owner = thread::spawn(move || {
        owner.come_due_before(waiting, START_MS + 2 * IDLE_MS);
        owner
    });
    let busy = [(); 2].map(|()| {
        let (mut owner, both) = (Owner::new(&world), format!("EXISTS {stream} {list}"));
        let (slot, _) = owner.connect();
        thread::spawn(move || {
            owner.request(slot, &both);
            owner.request(slot, &both);
        })
    });
    let before = seen.received().len();
    main.request(slot, "CLIENT PAUSE 100000 WRITE");
    let read = format!("XPENDING {stream} g - + 1");
    main.request(slot, &read);
    thread::yield_now();
    main.request(slot, &read);
    busy.into_iter().for_each(|thread| thread.join().expect("it ends"));
    let mut owner = owner.join().expect("it ends");
    main.request(slot, &read);
    let received = seen.received();
    let pending: Vec<bool> =
        received[before + 1..].iter().map(|received| received.contains("dead")).collect();
    assert!(
        pending.windows(2).all(|two| two[0] == two[1]),
        "a write took effect later: {received:?}"
    );
    world.node.unpause_clients();
    owner.resume(waiting);
    owner.come_due_before(waiting, START_MS + 2 * IDLE_MS);
    assert_eq!(claimed.received().len(), 1, "a retry is lost");
}

/// A thread uses a service of the process that waits for all other threads, one of which stops them
/// all.
fn a_service_outside_the_gate() {
    let world = World::new();
    let mut main = Owner::new(&world);
    let (slot, seen) = main.connect();
    let mut other = Owner::new(&world);
    let (flushing, _) = other.connect();
    let other = thread::spawn(move || other.request(flushing, "FLUSHDB"));
    main.request(slot, "MEMORY PURGE");
    main.request(slot, "DBSIZE");
    other.join().expect("it ends");
    assert_eq!(seen.received(), ["+OK", ":0"]);
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
fn nothing_is_claimed_after_a_pause_is_answered() {
    holds(SCHEDULES, a_claim_is_due_in_a_pause);
}

#[test]
fn no_key_is_removed_after_a_pause_is_answered() {
    holds(SCHEDULES, a_key_expires_in_a_pause);
}

#[test]
fn a_pause_without_a_grace_period_is_found() {
    fails_with(Fault::NoGracePeriod, "later", SCHEDULES_TO_FAIL, a_pause);
}

#[test]
fn a_claim_that_is_not_tried_again_is_found() {
    let lost = "a retry is lost";
    fails_with(Fault::DeafAfterPause, lost, SCHEDULES_TO_FAIL, a_claim_is_due_in_a_pause);
}

#[test]
fn a_kill_without_a_grace_period_is_found() {
    fails_with(Fault::NoGracePeriod, "later", SCHEDULES_TO_FAIL, a_kill);
}

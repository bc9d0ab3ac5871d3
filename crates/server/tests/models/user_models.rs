//! Models of users: when a change of a user is answered, no command takes effect that only the
//! former rules allowed, whatever thread the user's clients are on, whether they write, wait for a
//! key or authenticate at that moment.

use std::sync::Arc;

use shuttle::thread;

use crate::blocked::{Owner, World};
use crate::client_state::ClientState;
use crate::shim::{Fault, switch_at_locks};
use crate::{fails_with, holds};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 1000;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

/// A user with all permissions.
const ADD: &str = "ACL SETUSER u on >x +@all ~*";
const LOG_IN: &str = "AUTH u x";

/// A main thread with a client of the default user, which adds the user. The returned closure keeps
/// everything that the client received.
fn begin(world: &Arc<World>) -> (Owner, usize, impl Fn() -> Vec<String> + use<>) {
    switch_at_locks();
    let mut main = Owner::new(world);
    let (slot, seen) = main.connect();
    main.request(slot, ADD);
    (main, slot, move || seen.received())
}

/// A client logs in and sends requests from another thread until it is closed, while `changes` are
/// made. After that the keyspace stays as it is.
fn nothing_is_written_after(changes: &[&str], requests: &[&str]) {
    let world = World::new();
    let [first, second] = world.keys();
    let (mut main, slot, received) = begin(&world);
    let mut writer = Owner::new(&world);
    let (writing, wrote) = writer.connect();
    let named = |request: &&str| request.replace("first", &first).replace("second", &second);
    let requests: Vec<String> = requests.iter().map(named).collect();
    let writer = thread::spawn(move || {
        writer.execute(writing, LOG_IN);
        // As the default user it could write for ever.
        let is_user = wrote.received().last().is_some_and(|received| received == "+OK");
        for request in requests.into_iter().filter(|_| is_user) {
            if !matches!(writer.execute(writing, &request), ClientState::Reading) {
                break;
            }
        }
    });
    for change in changes {
        main.request(slot, change);
    }
    let read = format!("GET {first}");
    main.request(slot, &read);
    thread::yield_now();
    main.request(slot, &read);
    writer.join().expect("it ends");
    main.request(slot, &read);
    let received = received();
    let [.., before, during, after] = &received[..] else { panic!("replies: {received:?}") };
    assert!(before == during && before == after, "a write took effect later: {received:?}");
}

/// A write reaches its shards by the lock of one, by the locks of several, or behind the closed
/// gate.
const WRITES: &[&str] =
    &["MSET first 1 second 1", "FLUSHDB", "SET first 2", "MSET first 3 second 3"];

fn a_changed_user() {
    nothing_is_written_after(&["ACL SETUSER u -@write"], WRITES);
}

fn a_deleted_user() {
    nothing_is_written_after(&["ACL DELUSER u"], WRITES);
}

/// A client that has authenticated before is not taken for the user that has the name now.
fn a_user_of_the_same_name() {
    let again = "ACL SETUSER u on >y +@all ~*";
    nothing_is_written_after(&["ACL DELUSER u", again], &["SET first 1", "SET first 2"]);
}

/// A client of the user waits for a key, or is about to, while the key is denied to it.
fn a_blocked_client() {
    let world = World::new();
    let [key] = world.keys();
    let (mut main, slot, received) = begin(&world);
    let mut popper = Owner::new(&world);
    let (popping, popped) = popper.connect();
    popper.request(popping, LOG_IN);
    let pop = format!("BLPOP {key} 0");
    let popper = thread::spawn(move || {
        popper.request(popping, &pop);
        popper.until_received(popping);
    });
    main.request(slot, "ACL SETUSER u resetkeys");
    main.request(slot, &format!("RPUSH {key} e"));
    main.request(slot, &format!("LLEN {key}"));
    assert_eq!(received().last().map(String::as_str), Some(":1"), "an element was taken");
    popper.join().expect("it ends");
    let denied = "-NOPERM No permissions to access a key";
    assert_eq!(popped.received().last().map(String::as_str), Some(denied));
}

#[test]
fn nothing_is_written_after_a_user_was_changed() {
    holds(SCHEDULES, a_changed_user);
}

#[test]
fn nothing_is_written_after_a_user_was_deleted() {
    holds(SCHEDULES, a_deleted_user);
}

#[test]
fn nothing_is_written_for_another_user_of_the_same_name() {
    holds(SCHEDULES, a_user_of_the_same_name);
}

#[test]
fn a_wait_ends_when_its_key_is_denied() {
    holds(SCHEDULES, a_blocked_client);
}

#[test]
fn a_change_without_a_grace_period_is_found() {
    fails_with(Fault::NoGracePeriod, "later", SCHEDULES_TO_FAIL, a_changed_user);
}

#[test]
fn a_deletion_without_a_grace_period_is_found() {
    fails_with(Fault::NoGracePeriod, "later", SCHEDULES_TO_FAIL, a_deleted_user);
}

#[test]
fn a_client_of_a_former_user_is_found() {
    fails_with(Fault::NoGracePeriod, "later", SCHEDULES_TO_FAIL, a_user_of_the_same_name);
}

#[test]
fn a_wait_whose_end_is_not_notified_is_found() {
    fails_with(Fault::NoWake, "deadlock", SCHEDULES_TO_FAIL, a_blocked_client);
}

//! Models of waiting: every pushed element is served to waiting clients, once, in whatever order
//! pushes, timeouts, kills and moves from thread to thread meet.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, JoinHandle};

use crate::blocked::{Owner, START_MS, Seen, World};
use crate::message::Message;
use crate::shim::Fault;
use crate::{fails_with, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 400;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

/// Starts a thread with one client, on which `work` is done.
fn client(
    world: &Arc<World>,
    work: impl FnOnce(&mut Owner, usize) + Send + 'static,
) -> (Seen, JoinHandle<()>) {
    let mut owner = Owner::new(world);
    let (slot, seen) = owner.connect();
    (seen, thread::spawn(move || work(&mut owner, slot)))
}

/// Starts a thread whose client sends requests that do not wait.
fn sender(world: &Arc<World>, requests: Vec<String>) -> (Seen, JoinHandle<()>) {
    client(world, move |owner, slot| {
        for request in requests {
            assert!(!owner.request(slot, &request), "it is answered");
        }
    })
}

/// Starts a thread whose client sends one request and waits for the reply.
fn waiter(world: &Arc<World>, request: String) -> (Seen, JoinHandle<()>) {
    client(world, move |owner, slot| {
        owner.request(slot, &request);
        owner.until_received(slot);
    })
}

/// The elements of lists, by a client of its own.
fn left(world: &Arc<World>, keys: &[&String]) -> Vec<String> {
    let mut owner = Owner::new(world);
    let (slot, seen) = owner.connect();
    for key in keys {
        owner.request(slot, &format!("LRANGE {key} 0 -1"));
    }
    assert_eq!(world.node.waits.count(), 0, "a client still waits");
    seen.received().iter().flat_map(|received| elements(received)).collect()
}

/// The elements in a reply: they have one character, and are no lengths.
fn elements(received: &str) -> Vec<String> {
    let words: Vec<&str> = received.split(' ').collect();
    let pairs = words.windows(2).filter(|pair| pair[0] == "$1");
    pairs.map(|pair| pair[1].to_owned()).collect()
}

/// The elements received and those left, together.
fn sorted(mut elements: Vec<String>) -> Vec<String> {
    elements.sort_unstable();
    elements
}

/// Two clients wait for a key. The time of one of them runs out, or another client unblocks or
/// closes it, while two elements are pushed one by one.
fn a_push_meets_every_other_end() {
    let world = World::new();
    let _main = Owner::new(&world);
    let [key] = world.keys();
    let ending = thread_rng().gen_range(0..3);
    let wait_budget = thread_rng().gen_range(0..4);
    let wait = format!("BLPOP {key} 100");
    let (hasty, hasty_thread) = client(&world, move |owner, slot| {
        owner.request(slot, &wait);
        (0..wait_budget).for_each(|_| thread::yield_now());
        match ending {
            0 => owner.time_out(slot),
            1 => owner.until_received(slot),
            _ => owner.close(slot),
        }
    });
    let (patient, patient_thread) = waiter(&world, format!("BLPOP {key} 0"));
    let pushes = vec![format!("RPUSH {key} a"), format!("RPUSH {key} b")];
    let (_, pusher) = sender(&world, pushes);
    let unblock = format!("CLIENT UNBLOCK {} ERROR", hasty.record.id);
    let (unblocker, unblocker_thread) = sender(&world, vec![unblock]);
    join([hasty_thread, patient_thread, pusher, unblocker_thread]);

    let received = hasty.received();
    let is_closed = received.last().is_some_and(|received| received == "closed");
    assert_eq!(
        received.len(),
        1 + usize::from(is_closed && received.len() > 1),
        "received twice: {received:?}"
    );
    assert_eq!(patient.received().len(), 1, "received twice or never");
    let mut all: Vec<String> = left(&world, &[&key]);
    all.extend(
        [hasty, patient].iter().flat_map(Seen::received).flat_map(|received| elements(&received)),
    );
    // An element served to a client that was closed a moment later is lost with its connection.
    let lost_with_it = usize::from(is_closed && received.len() == 1 && all.len() == 1);
    let all = sorted(all);
    assert!(all == ["a", "b"] || lost_with_it == 1, "an element is lost or doubled: {all:?}");
    let unblocked = received.iter().any(|received| received.starts_with("-UNBLOCKED"));
    assert!(unblocker.received() == [":1"] || !unblocked, "unblocked by no client");
    let is_told = unblocker.received() == [":0"] || unblocked || is_closed;
    assert!(is_told, "an unblocking is lost");
}

/// Two clients wait for two keys each, of two shards; both keys are pushed to.
fn waits_for_two_keys() {
    let world = World::new();
    let _main = Owner::new(&world);
    let [k, l] = world.keys();
    let (first, first_thread) = waiter(&world, format!("BLPOP {k} {l} 0"));
    let (second, second_thread) = waiter(&world, format!("BLPOP {l} {k} 0"));
    let (_, to_k) = sender(&world, vec![format!("RPUSH {k} a")]);
    let (_, to_l) = sender(&world, vec![format!("RPUSH {l} b")]);
    join([first_thread, second_thread, to_k, to_l]);
    assert!(left(&world, &[&k, &l]).is_empty(), "an element is left");
    let received: Vec<String> = [first, second].iter().flat_map(Seen::received).collect();
    let received = sorted(received.iter().flat_map(|received| elements(received)).collect());
    assert_eq!(received, ["a", "b"], "an element is lost or doubled");
}

/// Moves from list to list over three shards, all of them awaited or not yet.
fn a_chain_over_shards() {
    let world = World::new();
    let _main = Owner::new(&world);
    let [k, l, m] = world.keys();
    let (first, first_thread) = waiter(&world, format!("BLMOVE {k} {l} LEFT RIGHT 0"));
    let (second, second_thread) = waiter(&world, format!("BLMOVE {l} {m} LEFT RIGHT 0"));
    let (last, last_thread) = waiter(&world, format!("BLPOP {m} 0"));
    let (_, to_k) = sender(&world, vec![format!("RPUSH {k} a")]);
    let (_, to_l) = sender(&world, vec![format!("RPUSH {l} b")]);
    join([first_thread, second_thread, last_thread, to_k, to_l]);
    for seen in [&first, &second, &last] {
        assert_eq!(seen.received().len(), 1, "received twice or never");
    }
    let mut all = left(&world, &[&k, &l, &m]);
    assert_eq!(all.len(), 1, "one is left");
    all.extend(last.received().iter().flat_map(|received| elements(received)));
    assert_eq!(sorted(all), ["a", "b"], "an element is lost or doubled");
}

/// When every client of a chain already waits, no client can take an element on its way.
fn no_client_takes_an_element_on_its_way() {
    let world = World::new();
    let _main = Owner::new(&world);
    let [k, l, m] = world.keys();
    let mut owner = Owner::new(&world);
    let clients = [
        format!("BLMOVE {k} {l} LEFT RIGHT 0"),
        format!("BLMOVE {l} {m} LEFT RIGHT 0"),
        format!("BLPOP {m} 0"),
    ]
    .map(|request| {
        let (slot, seen) = owner.connect();
        assert!(owner.request(slot, &request), "it blocks");
        (slot, seen)
    });
    let (_, pusher) = sender(&world, vec![format!("RPUSH {k} a")]);
    let (thief, thief_thread) =
        sender(&world, vec![format!("LPOP {l}"), format!("LPOP {m}"), format!("LPOP {k}")]);
    for (slot, seen) in &clients {
        owner.until_received(*slot);
        assert_eq!(seen.received().len(), 1, "received twice or never");
    }
    join([pusher, thief_thread]);
    assert_eq!(thief.received(), ["$-1", "$-1", "$-1"], "an element was stolen");
    assert!(left(&world, &[&k, &l, &m]).is_empty());
}

/// A waiting client moves to another thread while it is served, or killed.
fn a_waiting_client_moves() {
    let world = World::new();
    let mut main = Owner::new(&world);
    let [key] = world.keys();
    let mut old = Owner::new(&world);
    let mut new = Owner::new(&world);
    let (slot, seen) = old.connect();
    let (_, pusher) = sender(&world, vec![format!("RPUSH {key} a")]);
    let kills = thread_rng().gen_range(0..2) == 1;
    let killer = {
        let (world, record) = (Arc::clone(&world), Arc::clone(&seen.record));
        thread::spawn(move || {
            if kills {
                world.kill(&record);
            }
        })
    };
    let wait = format!("BLPOP {key} 0");
    let first = thread::spawn(move || {
        if old.request(slot, &wait) {
            old.give_away(slot);
            return true;
        }
        false
    });
    let second = thread::spawn(move || {
        main.turn();
        main
    });
    let moved = first.join().expect("it ends");
    if moved {
        while world.node.waits.count() != 0 || new.waits(0) {
            new.turn();
        }
    } else {
        // The main thread waits for something.
        world.send(0, Message::Wake { id: 0, slot: 0 });
    }
    join([pusher, killer]);
    drop(second);
    let received = seen.received();
    if !kills {
        assert_eq!(received.len(), 1, "received twice or never: {received:?}");
        assert!(left(&world, &[&key]).is_empty(), "the element is left");
    }
}

/// A list comes by an exchange of databases.
fn a_list_comes_with_a_database() {
    let world = World::new();
    let _main = Owner::new(&world);
    let [k, l] = world.keys();
    let (first, first_thread) = waiter(&world, format!("BLMOVE {k} {l} LEFT RIGHT 0"));
    let (second, second_thread) = waiter(&world, format!("BLPOP {l} 0"));
    let fill = vec!["SELECT 1".to_owned(), format!("RPUSH {k} a"), "SWAPDB 0 1".to_owned()];
    let (_, filler) = sender(&world, fill);
    join([first_thread, second_thread, filler]);
    assert_eq!(first.received(), ["$1 a"]);
    assert_eq!(second.received().len(), 1, "received twice or never");
    assert!(left(&world, &[&k, &l]).is_empty());
}

/// An entry of a stream is pending with a consumer that does nothing.
fn pending(world: &Arc<World>, key: &str) {
    let mut owner = Owner::new(world);
    let (slot, _) = owner.connect();
    let add = format!("XADD {key} 1-1 f v");
    let group = format!("XGROUP CREATE {key} g 0");
    for request in [&add, &group, &format!("XREADGROUP GROUP g dead STREAMS {key} >")] {
        assert!(!owner.request(slot, request), "it is answered");
    }
}

/// How long an entry must be pending, and how much older it is made than it is.
const IDLE_MS: i64 = 1000;
const OLDER_MS: i64 = 600;

fn wait_for_pending(key: &str) -> String {
    format!("XREADGROUP GROUP g me BLOCK 0 CLAIM {IDLE_MS} STREAMS {key} >")
}

fn make_older(key: &str) -> String {
    format!("XCLAIM {key} g other 0 1-1 IDLE {OLDER_MS} JUSTID")
}

/// Two clients wait for a pending entry, which is made older: they are not late. The second gets it
/// after the first.
fn a_pending_entry_is_made_older() {
    let world = World::new();
    let _main = Owner::new(&world);
    let [key] = world.keys();
    pending(&world, &key);
    let clients = [(); 2].map(|()| {
        let key = key.clone();
        client(&world, move |owner, slot| {
            assert!(owner.request(slot, &wait_for_pending(&key)), "it blocks");
            // When the entry would be old enough if no client claimed it, and when the second
            // client gets it.
            let (late_ms, again_ms) = (START_MS + IDLE_MS, START_MS + 2 * IDLE_MS - OLDER_MS);
            while owner.waits(slot) {
                if owner.due_ms(slot) == Some(again_ms) {
                    owner.come_due_before(slot, again_ms + 1);
                } else if !owner.come_due_before(slot, late_ms) {
                    owner.turn();
                }
            }
        })
    });
    let (_, older) = sender(&world, vec![make_older(&key)]);
    let [(first, first_thread), (second, second_thread)] = clients;
    join([first_thread, second_thread, older]);
    for seen in [first, second] {
        let received = seen.received();
        assert_eq!(received.len(), 1, "received twice or never");
        assert!(received[0].contains(&format!(":{IDLE_MS}")), "late: {received:?}");
    }
    assert_eq!(world.node.waits.count(), 0, "a client still waits");
}

/// The same while the client moves to another thread.
fn a_pending_entry_is_made_older_on_the_way() {
    let world = World::new();
    let mut main = Owner::new(&world);
    let [key] = world.keys();
    let mut old = Owner::new(&world);
    let mut new = Owner::new(&world);
    pending(&world, &key);
    let (slot, seen) = old.connect();
    let (_, older) = sender(&world, vec![make_older(&key)]);
    let first = thread::spawn(move || {
        assert!(old.request(slot, &wait_for_pending(&key)), "it blocks");
        old.give_away(slot);
    });
    let second = thread::spawn(move || {
        main.turn();
        main
    });
    first.join().expect("it ends");
    while world.node.waits.count() != 0 {
        if !new.come_due_before(0, START_MS + IDLE_MS) {
            new.turn();
        }
    }
    join([older]);
    drop(second);
    assert_eq!(seen.received().len(), 1, "received twice or never");
}

#[test]
fn every_wait_ends_with_one_reply() {
    holds(SCHEDULES, a_push_meets_every_other_end);
}

#[test]
fn a_client_that_waits_for_several_keys_is_served_once() {
    holds(SCHEDULES, waits_for_two_keys);
}

#[test]
fn chains_end_and_lose_nothing() {
    holds(SCHEDULES, a_chain_over_shards);
}

#[test]
fn an_element_on_its_way_has_one_client() {
    holds(SCHEDULES, no_client_takes_an_element_on_its_way);
}

#[test]
fn a_wait_moves_with_its_client() {
    holds(SCHEDULES, a_waiting_client_moves);
}

#[test]
fn exchanged_databases_serve() {
    holds(SCHEDULES, a_list_comes_with_a_database);
}

#[test]
fn readers_of_what_is_pending_are_not_late() {
    holds(SCHEDULES, a_pending_entry_is_made_older);
    holds(SCHEDULES, a_pending_entry_is_made_older_on_the_way);
}

#[test]
fn without_a_wake_readers_of_what_is_pending_are_late() {
    fails_with(Fault::NoWake, "deadlock", SCHEDULES_TO_FAIL, a_pending_entry_is_made_older);
}

#[test]
fn a_client_not_checked_on_arrival_reads_too_late() {
    let model = a_pending_entry_is_made_older_on_the_way;
    fails_with(Fault::DeafOnArrival, "deadlock", SCHEDULES_TO_FAIL, model);
}

#[test]
fn without_a_wake_clients_wait_for_ever() {
    fails_with(Fault::NoWake, "deadlock", SCHEDULES_TO_FAIL, a_push_meets_every_other_end);
}

#[test]
fn a_timeout_that_does_not_ask_loses_an_element_or_an_unblocking() {
    let model = a_push_meets_every_other_end;
    fails_with(Fault::TimeOutAnyway, "is lost", SCHEDULES_TO_FAIL, model);
}

#[test]
fn without_locks_a_wake_is_lost() {
    fails_with(Fault::OpenLocks, "deadlock", SCHEDULES_TO_FAIL, waits_for_two_keys);
}

#[test]
fn without_locks_a_chain_breaks() {
    fails_with(
        Fault::OpenLocks,
        "deadlock",
        SCHEDULES_TO_FAIL,
        no_client_takes_an_element_on_its_way,
    );
}

#[test]
fn a_client_not_checked_on_arrival_waits_for_ever() {
    fails_with(Fault::DeafOnArrival, "deadlock", SCHEDULES_TO_FAIL, a_waiting_client_moves);
}

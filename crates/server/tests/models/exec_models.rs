//! Models of EXEC: its changes are seen whole or not at all, no client changes a key between its
//! commands, and it always ends, whichever way it gets its shards: by their locks, or behind the
//! gate because a command needs all shards.

use std::cell::Cell;
use std::sync::Arc;

use shuttle::thread::{self, JoinHandle};

use crate::blocked::{Owner, World};
use crate::shim::{Fault, switch_at_locks, take_exec_closings};
use crate::{fails_with, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 500;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

thread_local! {
    /// Transactions of this test that closed the gate, and all of them: none needs to.
    static THROUGH_GATE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Starts a thread whose client sends requests one after another. Commands between semicolons are a
/// transaction. `look` gets each reply except those to SET and MSET.
fn client(world: &Arc<World>, requests: &[&str], look: fn(&str)) -> JoinHandle<()> {
    let requests: Vec<String> = requests.iter().map(|request| world.name_keys(request)).collect();
    let mut owner = Owner::new(world);
    let (slot, _) = owner.connect();
    thread::spawn(move || {
        for request in requests {
            let commands: Vec<&str> = request.split("; ").collect();
            match &commands[..] {
                [command] => {
                    let received = owner.ask(slot, command);
                    if received != "+OK" {
                        look(&received);
                    }
                }
                commands => look(&owner.transaction(slot, commands)),
            }
        }
    })
}

/// The strings in a reply, `-` for none.
fn strings(received: &str) -> Vec<&str> {
    let words: Vec<&str> = received.split(' ').collect();
    let lengths = words.iter().enumerate().filter(|(_, word)| word.starts_with('$'));
    lengths.map(|(at, word)| if *word == "$-1" { "-" } else { words[at + 1] }).collect()
}

/// The integers in a reply.
fn integers(received: &str) -> Vec<&str> {
    received.split(' ').filter_map(|word| word.strip_prefix(':')).collect()
}

/// Every two strings in a reply are the values of two keys that are only written together.
fn same_pairs(received: &str) {
    for pair in strings(received).chunks(2) {
        assert!(pair[0] == pair[1], "half of a transaction was seen: {received}");
    }
}

/// Transactions and MSET write two keys of two shards, MGET and a transaction read them.
fn transactions_on_two_shards() {
    switch_at_locks();
    let world = World::new();
    let requests: [&[&str]; 3] = [
        &["SET first 1; SET second 1", "MGET first second", "SET second 2; SET first 2"],
        &["MSET first 3 second 3", "MSET second 4 first 4; MGET first second"],
        &["MGET first second", "GET first; GET second", "MGET second first"],
    ];
    join(requests.map(|requests| client(&world, requests, same_pairs)));
}

/// Transactions on two of three shards each, in a ring, and commands between them. The counts of a
/// transaction still hold at its end.
fn a_ring_of_transactions() {
    switch_at_locks();
    take_exec_closings();
    let world = World::new();
    let count = |received: &str| {
        if received.starts_with('*') {
            let closed = u64::from(take_exec_closings() > 0);
            let (gate, all) = THROUGH_GATE.get();
            THROUGH_GATE.set((gate + closed, all + 1));
            assert_eq!(integers(received), strings(received), "changed within a transaction");
        }
    };
    let ring = [["first", "second"], ["second", "third"], ["first", "third"]];
    join(ring.map(|[a, b]| {
        let transaction = format!("INCR {a}; INCR {b}; GET {a}; GET {b}");
        let requests = [&*transaction, &format!("INCR {b}"), &*transaction];
        client(&world, &requests, count)
    }));
    let mut owner = Owner::new(&world);
    let (slot, _) = owner.connect();
    let totals = owner.ask(slot, &world.name_keys("MGET first second third"));
    assert_eq!(strings(&totals), ["4", "5", "6"], "an update was lost");
}

/// A transaction that counts all keys, one that removes them, and writers of two keys at once.
fn transactions_on_all_shards() {
    switch_at_locks();
    let world = World::new();
    let requests: [&[&str]; 3] = [
        &["SET first 1; SET second 1; DBSIZE", "FLUSHDB; SET second 2; SET first 2; DBSIZE"],
        &["MSET first 3 second 3", "DEL first; SET first 4; SET second 4; DBSIZE"],
        &["MGET first second", "GET first; GET second", "MGET second first"],
    ];
    join(requests.map(|requests| {
        client(&world, requests, |received| {
            same_pairs(received);
            // Removed keys come before.
            let keys = integers(received).last().copied().unwrap_or("2");
            assert_eq!(keys, "2", "half of a transaction was seen: {received}");
        })
    }));
}

/// Transactions that write two keys or remove them, and one that reads all keys.
fn a_transaction_that_visits_all_shards() {
    switch_at_locks();
    let world = World::new();
    let requests: [&[&str]; 3] = [
        &["MSET first 1 second 1", "DEL first; DEL second"],
        &["EXISTS first second; KEYS *; EXISTS second; EXISTS first second"],
        &["SET second 2; SET first 2", "GET second; GET first"],
    ];
    join(requests.map(|requests| {
        client(&world, requests, |received| {
            let Some(keys) = received.split(" *").nth(1) else { return };
            let count = &keys[..1];
            let both = integers(received);
            assert_eq!(
                [both[0], both[2]],
                [count; 2],
                "half of a transaction was seen: {received}"
            );
        })
    }));
}

/// A transaction adds an element, removes it and adds another, while a client waits for one.
fn a_transaction_feeds_a_blocked_client() {
    switch_at_locks();
    let world = World::new();
    let _main = Owner::new(&world);
    let transaction = "RPUSH first a; LPOP first; INCR second; RPUSH first b";
    let feeder = client(&world, &[transaction], |_| ());
    let mut owner = Owner::new(&world);
    let (slot, seen) = owner.connect();
    let wait = world.name_keys("BLPOP first 0");
    let waiter = thread::spawn(move || {
        owner.request(slot, &wait);
        owner.until_received(slot);
    });
    join([feeder, waiter]);
    let received = seen.received();
    assert_eq!(strings(&received[0])[1], "b", "half of a transaction was seen: {received:?}");
}

#[test]
fn a_transaction_is_seen_whole() {
    holds(SCHEDULES, transactions_on_two_shards);
}

#[test]
fn transactions_on_several_shards_end_and_lose_nothing() {
    THROUGH_GATE.set((0, 0));
    holds(SCHEDULES, a_ring_of_transactions);
    let (gate, all) = THROUGH_GATE.get();
    assert!(gate == 0 && all > 0, "{gate} of {all} through the gate");
}

#[test]
fn a_transaction_on_all_shards_is_seen_whole() {
    holds(SCHEDULES, transactions_on_all_shards);
    holds(SCHEDULES, a_transaction_that_visits_all_shards);
}

#[test]
fn a_client_is_served_what_a_transaction_has_left() {
    holds(SCHEDULES, a_transaction_feeds_a_blocked_client);
}

#[test]
fn a_split_transaction_is_found() {
    let half = "half of a transaction";
    fails_with(Fault::SplitExec, half, SCHEDULES_TO_FAIL, transactions_on_two_shards);
}

#[test]
fn a_transaction_that_lets_go_of_a_shard_is_found() {
    let changed = "changed within a transaction";
    fails_with(Fault::LetsGo, changed, SCHEDULES_TO_FAIL, a_ring_of_transactions);
}

#[test]
fn without_notices_a_transaction_at_the_gate_sleeps_for_ever() {
    fails_with(Fault::NoNotice, "deadlock", SCHEDULES_TO_FAIL, transactions_on_all_shards);
}

#[test]
fn a_transaction_on_all_shards_that_is_split_is_found() {
    let half = "half of a transaction";
    fails_with(Fault::SplitExec, half, SCHEDULES_TO_FAIL, transactions_on_all_shards);
}

#[test]
fn a_split_transaction_that_visits_all_shards_is_found() {
    let (half, model) = ("half of a transaction", a_transaction_that_visits_all_shards);
    fails_with(Fault::SplitExec, half, SCHEDULES_TO_FAIL, model);
}

#[test]
fn a_split_transaction_that_feeds_a_client_is_found() {
    let half = "half of a transaction";
    fails_with(Fault::SplitExec, half, SCHEDULES_TO_FAIL, a_transaction_feeds_a_blocked_client);
}

//! Models of WATCH against writers on other threads: EXEC runs only if no watched key has changed
//! since WATCH, and it does run if none has.
//!
//! A watching client reads its keys after WATCH and again in the transaction, and the model notes
//! when each request began and ended. So it finds a change that EXEC has missed, in the order of
//! the keyspace and in that of replies, and an EXEC that fails without a change.

use std::cell::Cell;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, JoinHandle};

use crate::blocked::{NOT_EXECUTED, Owner, World};
use crate::shim::{Fault, switch_at_locks, take_busy_watches};
use crate::{fails_with, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 400;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;

thread_local! {
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    /// Transactions of this test that ran, and those that a watched key prevented.
    static OUTCOMES: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// When something began and ended.
#[derive(Clone, Copy, Debug)]
struct Period {
    call: u64,
    ret: u64,
}

fn tick() -> u64 {
    CLOCK.set(CLOCK.get() + 1);
    CLOCK.get()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Period, T) {
    let call = tick();
    let result = work();
    (Period { call, ret: tick() }, result)
}

/// One WATCH and the EXEC that depends on it.
#[derive(Debug)]
struct Attempt {
    watch: Period,
    exec: Period,
    executed: bool,
}

impl Attempt {
    /// Checks it against all changes of the watched keys by other clients.
    fn check(&self, changes: &[Period]) {
        let Self { watch, exec, executed } = self;
        let between = |change: &Period| watch.ret < change.call && change.ret < exec.call;
        let meets = |change: &Period| watch.call < change.ret && change.call < exec.ret;
        let missed = *executed && changes.iter().any(between);
        assert!(!missed, "a change was missed: {self:?}, {changes:?}");
        let unfounded = !*executed && !changes.iter().any(meets);
        assert!(!unfounded, "nothing has changed: {self:?}, {changes:?}");
    }
}

/// WATCH, a read, and a transaction that reads again and sets the first key, which is a change.
fn attempt(owner: &mut Owner, slot: usize, keys: &[String], value: &str) -> Attempt {
    let (watch, received) = timed(|| owner.ask(slot, &format!("WATCH {}", keys.join(" "))));
    assert_eq!(received, "+OK");
    let read = format!("MGET {}", keys.join(" "));
    let before = owner.ask(slot, &read);
    let set = format!("SET {} {value}", keys[0]);
    let (exec, received) = timed(|| owner.transaction(slot, &[&read, &set]));
    let executed = received != NOT_EXECUTED;
    let (ran, kept) = OUTCOMES.get();
    OUTCOMES.set((ran + u64::from(executed), kept + u64::from(!executed)));
    let same = received == format!("*2 {before} +OK");
    assert!(!executed || same, "a change was missed: {before}, then {received}");
    Attempt { watch, exec, executed }
}

/// Clients next to the watching ones.
struct Case {
    /// How many keys are watched, each in a shard of its own.
    watched: usize,
    /// The requests of each writer, all of which change a watched key. Commands between semicolons
    /// are a transaction.
    changes: &'static [&'static [&'static str]],
    /// Requests of another client, none of which changes a watched key.
    beside: &'static [&'static str],
}

/// One and two locked shards, and transactions, which hold their shards for long.
const WRITES: Case = Case {
    watched: 1,
    changes: &[&["APPEND first x", "MSET second x first y"], &["SET second z; APPEND first z"]],
    beside: &[],
};

/// The same with keys of two shards.
const WRITES_TO_TWO: Case = Case {
    watched: 2,
    changes: &[&["APPEND second x", "SET second y; SET first y"], &["APPEND first z"]],
    beside: &[],
};

/// Changes of whole databases.
const FLUSHES: Case =
    Case { watched: 1, changes: &[&["SET first x", "FLUSHDB", "SET first y"]], beside: &[] };

/// The key is in one of the databases at least.
const SWAPS: Case = Case {
    watched: 2,
    changes: &[&["SWAPDB 0 1", "SWAPDB 0 1"], &["APPEND first x"]],
    beside: &[],
};

/// Changes that leave the value, and those that move it.
const EXPIRIES: Case = Case {
    watched: 1,
    changes: &[&["EXPIRE first 100", "COPY second first REPLACE", "EXPIRE first 100"]],
    beside: &[],
};

/// Changes of another key in the same shard, of the key in another database, and of nothing.
const OTHERS: Case = Case {
    watched: 2,
    changes: &[],
    beside: &[
        "APPEND neighbour x",
        "DEL nothing",
        "SWAPDB 1 1",
        "PERSIST first",
        "SELECT 1",
        "SET first x",
        "FLUSHDB",
    ],
};

/// The world, in which two keys exist.
fn begin() -> (Arc<World>, [String; 2]) {
    switch_at_locks();
    let world = World::new();
    let mut owner = Owner::new(&world);
    let (slot, _) = owner.connect();
    owner.ask(slot, &world.name_keys("MSET first 0 second 0"));
    let keys = world.keys();
    (world, keys)
}

/// Starts a client that sends requests, and says when each was under way.
fn writer(world: &Arc<World>, requests: &[&str]) -> JoinHandle<Vec<Period>> {
    let requests: Vec<String> = requests.iter().map(|request| world.name_keys(request)).collect();
    let mut owner = Owner::new(world);
    let (slot, _) = owner.connect();
    thread::spawn(move || {
        let send = |request: &String| {
            let commands: Vec<&str> = request.split("; ").collect();
            let (period, _) = timed(|| match &commands[..] {
                [command] => owner.ask(slot, command),
                commands => owner.transaction(slot, commands),
            });
            period
        };
        requests.iter().map(send).collect()
    })
}

/// Starts a client that makes two attempts.
fn watcher(world: &Arc<World>, keys: &[String], name: &str) -> JoinHandle<Vec<Attempt>> {
    let mut owner = Owner::new(world);
    let (slot, _) = owner.connect();
    let (keys, values) = (keys.to_vec(), [1, 2].map(|number| format!("{name}{number}")));
    thread::spawn(move || {
        values.map(|value| attempt(&mut owner, slot, &keys, &value)).into_iter().collect()
    })
}

/// Checks the attempts of all clients against the changes by writers and by one another.
fn check(world: &World, changes: &[Period], attempts: &[Vec<Attempt>]) {
    for (number, own) in attempts.iter().enumerate() {
        let others = attempts.iter().enumerate().filter(|(other, _)| *other != number);
        let executed = others.flat_map(|(_, attempts)| attempts).filter(|it| it.executed);
        let changes: Vec<Period> =
            changes.iter().copied().chain(executed.map(|attempt| attempt.exec)).collect();
        own.iter().for_each(|attempt| attempt.check(&changes));
    }
    assert!(!world.is_watched(), "a watch has outlived its client");
}

/// Watching clients and writers.
fn watchers_among(case: &Case, watchers: &[&str]) {
    let (world, keys) = begin();
    let writers: Vec<_> = case.changes.iter().map(|requests| writer(&world, requests)).collect();
    let beside = writer(&world, case.beside);
    let watchers: Vec<_> =
        watchers.iter().map(|name| watcher(&world, &keys[..case.watched], name)).collect();
    let changes: Vec<Period> = join(writers).into_iter().flatten().collect();
    join([beside]);
    check(&world, &changes, &join(watchers));
}

/// A client ends its watch or is closed while another one watches the same keys.
fn a_watcher_that_ends() {
    let (world, keys) = begin();
    let watches = watcher(&world, &keys, "w");
    let mut owner = Owner::new(&world);
    let (slot, _) = owner.connect();
    let last = ["WATCH first second", "MULTI", "SET second x"];
    let last = last.map(|request| world.name_keys(request));
    let ending = thread_rng().gen_range(0..4);
    let ends = thread::spawn(move || {
        let begun = if ending == 0 { 1 } else { last.len() };
        last[..begun].iter().for_each(|request| {
            owner.ask(slot, request);
        });
        match ending {
            0 => drop(owner.ask(slot, "UNWATCH")),
            1 => drop(owner.ask(slot, "DISCARD")),
            2 => drop(owner.ask(slot, "RESET")),
            _ => owner.close(slot),
        }
    });
    let writer = writer(&world, &["APPEND first x"]);
    join([ends]);
    let changes = join([writer]);
    check(&world, &changes[0], &join([watches]));
}

/// Clients that watch keys which do not change.
fn watchers_of_unchanged_keys() {
    watchers_among(&OTHERS, &["w"]);
}

fn watchers_and_writes() {
    watchers_among(&WRITES, &["v", "w"]);
}

fn watchers_and_writes_to_two() {
    watchers_among(&WRITES_TO_TWO, &["v", "w"]);
}

fn watchers_and_flushes() {
    watchers_among(&FLUSHES, &["v", "w"]);
}

fn watchers_and_swaps() {
    watchers_among(&SWAPS, &["w"]);
}

fn watchers_and_expiries() {
    watchers_among(&EXPIRIES, &["v", "w"]);
}

/// The model holds, and has seen transactions that ran and others that did not.
fn holds_with_both_outcomes(model: fn()) {
    OUTCOMES.set((0, 0));
    holds(SCHEDULES, model);
    let (ran, kept) = OUTCOMES.get();
    assert!(ran > 0 && kept > 0, "{ran} ran, {kept} did not");
}

#[test]
fn a_change_of_a_watched_key_is_never_missed() {
    take_busy_watches();
    holds_with_both_outcomes(watchers_and_writes);
    assert!(take_busy_watches() > 0, "no writer held the shard that WATCH needed");
    holds_with_both_outcomes(watchers_and_writes_to_two);
    holds_with_both_outcomes(watchers_and_expiries);
}

#[test]
fn a_change_of_a_whole_database_is_never_missed() {
    holds_with_both_outcomes(watchers_and_flushes);
    holds_with_both_outcomes(watchers_and_swaps);
}

#[test]
fn a_transaction_runs_if_no_watched_key_has_changed() {
    OUTCOMES.set((0, 0));
    holds(SCHEDULES, watchers_of_unchanged_keys);
    assert_eq!(OUTCOMES.get().1, 0);
}

#[test]
fn a_watch_ends_only_with_its_client() {
    holds_with_both_outcomes(a_watcher_that_ends);
}

#[test]
fn a_watch_that_is_checked_before_the_shards_are_taken_is_found() {
    fails_with(Fault::ChecksFirst, "missed", SCHEDULES_TO_FAIL, watchers_and_writes);
}

#[test]
fn a_watch_that_is_checked_before_a_flush_is_found() {
    fails_with(Fault::ChecksFirst, "missed", SCHEDULES_TO_FAIL, watchers_and_flushes);
}

#[test]
fn a_watch_that_is_checked_before_databases_are_swapped_is_found() {
    fails_with(Fault::ChecksFirst, "missed", SCHEDULES_TO_FAIL, watchers_and_swaps);
}

#[test]
fn a_watch_that_is_checked_under_shards_let_go_of_is_found() {
    fails_with(Fault::LetsGo, "missed", SCHEDULES_TO_FAIL, watchers_and_writes_to_two);
}

#[test]
fn a_registration_that_is_lost_at_a_busy_shard_is_found() {
    fails_with(Fault::PassesBusyShards, "missed", SCHEDULES_TO_FAIL, watchers_and_writes);
}

#[test]
fn a_watch_that_outlives_its_client_is_found() {
    fails_with(Fault::WatchOutlives, "outlived", SCHEDULES_TO_FAIL, a_watcher_that_ends);
}

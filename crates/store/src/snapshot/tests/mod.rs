//! Compares snapshots of a randomly changing keyspace with its contents at the cut.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod values;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use base::uncounted::thread_snapshot_bytes;

use self::values::{Collector, dump};
use self::world::{SnapshotFault, SnapshotWorld};
use crate::db::ExpiryChange;
use crate::new::string::NewString;

/// Schedules of a test, unless `SNAPSHOT_SCHEDULES` in the environment sets another number.
const SCHEDULES: u64 = 300;
/// Schedules within which a planted fault is found.
const SCHEDULES_TO_FAIL: u64 = 300;

/// One random schedule.
fn run(seed: u64, fault: Option<SnapshotFault>) {
    let mut world = SnapshotWorld::new(seed);
    for _ in 0..world.below(800) {
        world.happen();
    }
    let wanted = dump(&mut world.shards);
    let mut snapshot = world.cut();
    world.fault = fault;
    let (happening, bytes_max) = (world.below(4), [300, 3000, 20_000][world.below(3) as usize]);
    let mut sink = Collector::default();
    world.finish(&mut snapshot, &mut sink, happening, bytes_max);
    assert_eq!(sink.dump.len(), wanted.len(), "keys");
    for (key, value) in &wanted {
        assert_eq!(sink.dump.get(key), Some(value), "{key:?}");
    }
    assert!(!snapshot.is_damaged() && snapshot.saved_bytes() == 0);
    assert!(world.is_clean());
}

/// Which check finds a planted fault, if one does.
fn is_found(fault: SnapshotFault) -> bool {
    (0..SCHEDULES_TO_FAIL)
        .any(|seed| catch_unwind(AssertUnwindSafe(|| run(seed, Some(fault)))).is_err())
}

#[test]
fn planted_faults_are_found() {
    let faults = [
        SnapshotFault::HookSkipped,
        SnapshotFault::CursorAhead,
        SnapshotFault::CursorBehind,
        SnapshotFault::ChangesForgotten,
        SnapshotFault::WalkLost,
        SnapshotFault::ArrivalNotNoted,
        SnapshotFault::NotHandedOver,
    ];
    for fault in faults {
        assert!(is_found(fault), "{fault:?} is not found");
    }
}

#[test]
fn an_aborted_snapshot_frees_its_memory() {
    for seed in 0..SCHEDULES / 5 {
        let mut world = SnapshotWorld::new(seed);
        (0..world.below(600)).for_each(|_| world.happen());
        let mut snapshot = world.cut();
        let mut before = Collector::default();
        for _ in 0..world.below(60) {
            world.step(&mut snapshot, &mut before, 2, 1000);
        }
        snapshot.abort();
        let mut after = Collector::default();
        world.finish(&mut snapshot, &mut after, 2, 1000);
        assert!(after.dump.is_empty(), "seed {seed}");
        assert!(world.is_clean() && snapshot.saved_bytes() == 0, "seed {seed}");
        let wanted = dump(&mut world.shards);
        let mut next = world.cut();
        let mut sink = Collector::default();
        world.finish(&mut next, &mut sink, 2, 1000);
        assert!(sink.dump == wanted, "seed {seed}");
    }
}

#[test]
fn a_snapshot_is_the_state_at_the_cut() {
    let schedules = std::env::var("SNAPSHOT_SCHEDULES").ok();
    let schedules = schedules.map_or(SCHEDULES, |schedules| schedules.parse().unwrap());
    for seed in 0..schedules {
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| run(seed, None))) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(cause);
        }
    }
}

/// A part of a database that had no key at the cut gets a long string that the snapshot shares.
#[test]
fn a_string_is_excluded_when_its_new_database_drops_it() {
    const NAME: &[u8] = b"text";
    for copies in [false, true] {
        let mut world = SnapshotWorld::new(1);
        let long = vec![b'x'; 17_000];
        world.with_db(0, NAME, |db, turn| {
            let key = turn.key(NAME);
            db.put(turn, key, NewString::raw(&long, None), ExpiryChange::Clear)
        });
        let mut snapshot = world.cut();
        let record = world.with_db(0, NAME, |db, turn| {
            let key = turn.key(NAME);
            if copies { db.duplicate(turn, key, NAME) } else { db.take(turn, key) }
        });
        world.with_db(1, NAME, |db, turn| {
            let key = turn.key(NAME);
            db.insert(turn, key, record.unwrap());
        });
        for db in 0..2 {
            let is_excluded = thread_snapshot_bytes() >= long.len() as i64;
            assert!(!is_excluded, "copies: {copies}");
            world.with_db(db, NAME, |db, turn| {
                let key = turn.key(NAME);
                db.remove(turn, key);
            });
            world.turn.lazy_free.clear();
        }
        assert!(thread_snapshot_bytes() >= long.len() as i64, "copies: {copies}");
        let mut sink = Collector::default();
        world.finish(&mut snapshot, &mut sink, 0, 1000);
        assert_eq!(sink.dump.len(), 1);
        assert!(world.is_clean());
    }
}

/// While the parts of databases leave a snapshot that was aborted, strings go from parts that it
/// has still to parts that have left it.
#[test]
fn no_part_of_a_database_joins_a_snapshot_that_was_aborted() {
    let mut world = SnapshotWorld::new(1);
    let name_of = |key: u32| format!("text{key}").into_bytes();
    for key in 0..100 {
        let (name, long) = (name_of(key), vec![b'x'; 17_000]);
        world.with_db(0, &name, |db, turn| {
            let key = turn.key(&name);
            db.put(turn, key, NewString::raw(&long, None), ExpiryChange::Clear)
        });
    }
    let mut snapshot = world.cut();
    snapshot.abort();
    let mut sink = Collector::default();
    while world.step(&mut snapshot, &mut sink, 0, 1000) {
        for key in 0..100 {
            let (name, next) = (name_of(key), name_of(key + 1));
            let record = world.with_db(0, &name, |db, turn| {
                let key = turn.key(&name);
                db.duplicate(turn, key, &next)
            });
            world.with_db(1, &next, |db, turn| {
                let key = turn.key(&next);
                db.remove(turn, key);
                db.insert(turn, key, record.unwrap());
            });
            world.turn.lazy_free.clear();
        }
    }
    assert!(sink.dump.is_empty() && world.is_clean());
}

/// A reply has the string of a key while that is removed. The walker does nothing.
#[test]
fn a_string_that_a_reply_had_is_excluded_when_another_key_changes() {
    let mut world = SnapshotWorld::new(1);
    let long = vec![b'x'; 17_000];
    for name in [&b"text"[..], b"other"] {
        world.with_db(0, name, |db, turn| {
            let key = turn.key(name);
            db.put(turn, key, NewString::raw(&long, None), ExpiryChange::Clear)
        });
    }
    let mut snapshot = world.cut();
    let mut reply = world.with_db(0, b"text", |db, turn| {
        let key = turn.key(b"text");
        db.duplicate(turn, key, b"text")
    });
    for (name, excluded) in [(&b"text"[..], 0), (b"other", 2)] {
        world.with_db(0, name, |db, turn| {
            let key = turn.key(name);
            db.remove(turn, key);
        });
        world.turn.lazy_free.clear();
        let strings = thread_snapshot_bytes() / long.len() as i64;
        assert_eq!(strings, excluded, "{name:?}");
        drop(reply.take());
    }
    let mut sink = Collector::default();
    world.finish(&mut snapshot, &mut sink, 0, 1000);
    assert_eq!(sink.dump.len(), 2);
    assert!(world.is_clean());
}

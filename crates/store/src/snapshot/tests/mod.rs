//! Compares snapshots of a randomly changing keyspace with its contents at the cut.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod values;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::values::{Collector, dump};
use self::world::{SnapshotFault, SnapshotWorld};

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

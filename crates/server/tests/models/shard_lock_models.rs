//! Models of the shard locks: threads that work on one shard, on several and on the whole world.
//!
//! The contents of a shard do not matter; each has a cell that is read and written in two steps
//! between which other threads may run, so that a thread that is not excluded does harm.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use engine::{HeldShards, ScriptError, ShardAccess};
use node::ShardLocks;
use node::host::GateAccess;
use node::state::busy_scripts::BusyScripts;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::gate::{Gate, Pass};
use crate::shard_locks::{NoOtherClients, ThreadShards};
use crate::shards::Shards;
use crate::shim::{Command, Fault, give_up_shards, take_exec_closings};
use crate::thread_waits::{ThreadWaits, Waited};
use crate::{fails, fails_with, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 800;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 5000;
const SHARDS: usize = 3;
/// Steps of a command that holds its shard for long.
const LONG_STEPS: usize = 20;

pub(crate) struct World {
    pub(crate) shards: Shards,
    pub(crate) gate: Gate,
    pub(crate) busy: BusyScripts,
    cells: [AtomicU64; SHARDS],
    /// Threads that work on some shard now.
    working: AtomicU64,
}

thread_local! {
    /// Commands on several shards of this test that asked for all of them at once, and all tries.
    static ASKED_FOR_ALL: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// Commands that visit each shard in this test and had a closer between two visits.
    static INTERRUPTED: Cell<u64> = const { Cell::new(0) };
    /// Commands of this test that did not get a shard and were tried again later.
    static DEFERRED: Cell<u64> = const { Cell::new(0) };
}

impl World {
    pub(crate) fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: Shards::new(SHARDS),
            gate: Gate::new(threads),
            busy: BusyScripts::default(),
            cells: [const { AtomicU64::new(0) }; SHARDS],
            working: AtomicU64::new(0),
        })
    }

    /// Starts a thread that does `work` inside the gate, as commands are executed.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        work: impl Fn(&Self, &ThreadShards<'_>) + Send + 'static,
    ) -> thread::JoinHandle<()> {
        let world = Arc::clone(self);
        let pass = world.gate.register().expect("there are as many passes as threads");
        thread::spawn(move || world.execute(&pass, work))
    }

    pub(crate) fn execute(&self, pass: &Pass, work: impl Fn(&Self, &ThreadShards<'_>)) {
        let waits = ThreadWaits::default();
        work(self, &self.enter(pass, &waits, Waited::default()));
    }

    pub(crate) fn enter<'a>(
        &'a self,
        pass: &'a Pass,
        waits: &'a ThreadWaits,
        waited: Waited,
    ) -> ThreadShards<'a> {
        ThreadShards::enter(&self.shards, Some(pass), &self.busy, &NoOtherClients)
            .waiting(waits, waited)
    }

    /// Tries a command that needs shards until it gets them: between two attempts its thread is
    /// outside the gate, as when it serves other clients.
    pub(crate) fn until_free<R>(
        &self,
        locks: &ThreadShards<'_>,
        mut run: impl FnMut() -> Result<R, ScriptError>,
    ) -> Result<R, ScriptError> {
        loop {
            match run() {
                Err(ScriptError::ShardInUse) => {
                    DEFERRED.set(DEFERRED.get() + 1);
                    locks.leave();
                    thread::yield_now();
                    locks.enter();
                }
                done => return done,
            }
        }
    }

    /// Adds one to a cell, in two steps.
    pub(crate) fn add(&self, shard: usize) {
        let count = self.cells[shard].load(Ordering::Relaxed);
        self.cells[shard].store(count + 1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, shard: usize) -> u64 {
        self.cells[shard].load(Ordering::Relaxed)
    }

    pub(crate) fn add_on_one(&self, locks: &ThreadShards<'_>, shard: usize) {
        let add = |_: &mut _| {
            self.working.fetch_add(1, Ordering::Relaxed);
            self.add(shard);
            self.working.fetch_sub(1, Ordering::Relaxed);
        };
        self.until_free(locks, || locks.one(shard, add)).expect("no script is busy");
    }

    fn on_many<R>(&self, locks: &ThreadShards<'_>, shards: &[usize], work: impl Fn() -> R) -> R {
        // That it closes the gate would be seen.
        Command::begin("EXEC");
        let run = |held: &mut dyn HeldShards| {
            self.working.fetch_add(1, Ordering::Relaxed);
            for shard in shards {
                held.shard(*shard);
            }
            let result = work();
            self.working.fetch_sub(1, Ordering::Relaxed);
            result
        };
        let try_many = || {
            let done = locks.many(shards, run);
            let (asked, tries) = ASKED_FOR_ALL.get();
            let asks = u64::from(!locks.take_needed().is_empty());
            ASKED_FOR_ALL.set((asked + asks, tries + 1));
            done
        };
        self.until_free(locks, try_many).expect("no script is busy")
    }

    pub(crate) fn add_on_many(&self, locks: &ThreadShards<'_>, shards: &[usize]) {
        self.on_many(locks, shards, || shards.iter().for_each(|shard| self.add(*shard)));
    }
}

/// Three commands on two of three shards each, in a ring, and single-shard commands between them.
fn a_ring_of_writers() {
    let world = World::new(4);
    let ring = [[0, 1], [1, 2], [0, 2]];
    let mut threads: Vec<_> = ring
        .into_iter()
        .map(|pair| {
            world.spawn(move |world, locks| {
                world.add_on_many(locks, &pair);
                world.add_on_one(locks, pair[1]);
                world.add_on_many(locks, &pair);
            })
        })
        .collect();
    threads.push(world.spawn(|world, locks| {
        (0..SHARDS).for_each(|shard| world.add_on_one(locks, shard));
    }));
    join(threads);
    let counts = [0, 1, 2].map(|shard| world.read(shard));
    assert_eq!(counts, [5, 6, 7], "an update was lost");
}

/// Another command sees the writes of one command to two shards whole or not at all.
fn readers_and_a_writer_of_two_shards() {
    let world = World::new(4);
    let writer = world.spawn(|world, locks| {
        world.add_on_many(locks, &[0, 2]);
        world.add_on_many(locks, &[0, 2]);
    });
    let read = |world: &World, locks: &ThreadShards<'_>| {
        let (first, second) = world.on_many(locks, &[0, 2], || (world.read(0), world.read(2)));
        assert_eq!(first, second, "half of a command was seen");
    };
    let readers = [world.spawn(read), world.spawn(read)];
    let all = world.spawn(|world, locks| {
        locks
            .exclusive(|_| assert_eq!(world.read(0), world.read(2), "half of a command was seen"))
            .expect("no script is busy");
    });
    writer.join().expect("it ends");
    join(readers);
    all.join().expect("it ends");
}

/// Two commands on the whole world, one on all shards and two on one.
fn a_stopped_world_is_exclusive() {
    let world = World::new(4);
    let exclusively = |world: &World, locks: &ThreadShards<'_>| {
        world.add_on_one(locks, 0);
        locks
            .exclusive(|visit| {
                for shard in 0..SHARDS {
                    let working = world.working.load(Ordering::Relaxed);
                    assert_eq!(working, 0, "a command runs while the world is stopped");
                    {
                        visit.shard(shard);
                        world.add(shard);
                    }
                }
            })
            .expect("no script is busy");
        world.add_on_one(locks, 1);
    };
    let threads = [
        world.spawn(exclusively),
        world.spawn(exclusively),
        world.spawn(|world, locks| world.add_on_many(locks, &[0, 1, 2])),
        world.spawn(|world, locks| {
            world.add_on_one(locks, 2);
            world.add_on_many(locks, &[1, 2]);
        }),
    ];
    join(threads);
    let counts = [0, 1, 2].map(|shard| world.read(shard));
    assert_eq!(counts, [5, 6, 5], "an update was lost");
}

/// A command that holds a shard for long, and one that needs this shard and another.
fn a_long_command_and_one_on_two_shards() {
    let world = World::new(3);
    let threads = [
        world.spawn(|world, locks| {
            locks
                .one(0, |_| {
                    (0..LONG_STEPS).for_each(|_| thread::yield_now());
                    world.add(0);
                })
                .expect("no script is busy");
        }),
        world.spawn(|world, locks| world.add_on_many(locks, &[0, 1])),
        world.spawn(|world, locks| world.add_on_one(locks, 2)),
    ];
    join(threads);
    assert_eq!([0, 1, 2].map(|shard| world.read(shard)), [2, 1, 1], "an update was lost");
}

/// A command that visits one shard after another, and one that must stop all others.
fn a_visitor_and_a_closer() {
    let world = World::new(2);
    let visitor = world.spawn(|world, locks| {
        let closings = world.read(0);
        (0..SHARDS).for_each(|shard| {
            locks
                .visit(shard, &mut |_| {
                    world.working.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    world.working.fetch_sub(1, Ordering::Relaxed);
                })
                .expect("no script is busy");
        });
        INTERRUPTED.set(INTERRUPTED.get() + world.read(0) - closings);
    });
    let closer = world.spawn(|world, locks| {
        locks
            .exclusive(|_| {
                let working = world.working.load(Ordering::Relaxed);
                assert_eq!(working, 0, "a command runs while the world is stopped");
                world.add(0);
            })
            .expect("no script is busy");
    });
    join([visitor, closer]);
}

/// A command that holds a shard for long, and one that must stop all others.
fn a_long_command_and_a_closer() {
    let world = World::new(2);
    let long = world.spawn(|world, locks| {
        locks
            .one(0, |_| {
                world.working.fetch_add(1, Ordering::Relaxed);
                (0..LONG_STEPS).for_each(|_| thread::yield_now());
                world.working.fetch_sub(1, Ordering::Relaxed);
            })
            .expect("no script is busy");
    });
    let closer = world.spawn(|world, locks| {
        locks
            .exclusive(|_| {
                let working = world.working.load(Ordering::Relaxed);
                assert_eq!(working, 0, "a command runs while the world is stopped");
            })
            .expect("no script is busy");
    });
    join([long, closer]);
}

/// Forbidden for commands: waiting for a shard while holding another.
fn waiting_while_holding() {
    let world = World::new(2);
    let nested = |first: usize, second: usize| {
        move |world: &World, locks: &ThreadShards<'_>| {
            locks.one(first, |_| world.add_on_one(locks, second)).expect("no script is busy");
        }
    };
    let threads = [world.spawn(nested(0, 1)), world.spawn(nested(1, 0))];
    join(threads);
}

#[test]
fn commands_on_several_shards_end_and_lose_nothing() {
    ASKED_FOR_ALL.set((0, 0));
    take_exec_closings();
    holds(SCHEDULES, a_ring_of_writers);
    let (asked, tries) = ASKED_FOR_ALL.get();
    assert!(asked > 0 && asked < tries, "both ways are taken: {asked} of {tries}");
    assert_eq!(take_exec_closings(), 0, "the gate was closed");
}

#[test]
fn deferred_commands_end_and_lose_nothing() {
    give_up_shards();
    DEFERRED.set(0);
    holds(SCHEDULES, a_ring_of_writers);
    holds(SCHEDULES, a_stopped_world_is_exclusive);
    assert!(DEFERRED.get() > 0, "no client found a shard in use");
}

#[test]
fn a_command_on_several_shards_is_seen_whole() {
    holds(SCHEDULES, readers_and_a_writer_of_two_shards);
}

#[test]
fn no_command_runs_while_the_world_is_stopped() {
    holds(SCHEDULES, a_stopped_world_is_exclusive);
    holds(SCHEDULES, a_long_command_and_a_closer);
}

#[test]
fn a_command_that_waits_for_a_shard_does_not_close_the_gate() {
    take_exec_closings();
    holds(SCHEDULES, a_long_command_and_one_on_two_shards);
    assert_eq!(take_exec_closings(), 0, "the gate was closed");
}

#[test]
fn a_closer_does_not_wait_for_all_visits_of_a_command() {
    INTERRUPTED.set(0);
    holds(SCHEDULES, a_visitor_and_a_closer);
    assert!(INTERRUPTED.get() > 0, "no closer came between two visits");
}

#[test]
fn the_walk_for_expired_keys_does_not_wait_for_a_command() {
    holds(1, || {
        let world = World::new(1);
        let thread = world.spawn(|world, locks| {
            locks
                .one(0, |_| {
                    let tried = [0, 1].map(|shard| {
                        locks.try_one_for(shard, Duration::ZERO, |_| world.add(shard)).is_some()
                    });
                    assert_eq!(tried, [false, true]);
                })
                .expect("no script is busy");
        });
        thread.join().expect("it ends");
        assert_eq!([world.read(0), world.read(1)], [0, 1]);
    });
}

#[test]
fn waiting_for_a_shard_with_another_in_hand_deadlocks() {
    fails_with(Fault::WaitingTryLock, "deadlock", SCHEDULES_TO_FAIL, a_ring_of_writers);
}

#[test]
fn waiting_for_a_shard_while_holding_one_deadlocks() {
    fails("deadlock", SCHEDULES_TO_FAIL, waiting_while_holding);
}

#[test]
fn without_locks_updates_are_lost() {
    fails_with(Fault::OpenLocks, "lost", SCHEDULES_TO_FAIL, a_ring_of_writers);
}

#[test]
fn without_locks_half_of_a_command_is_seen() {
    let model = readers_and_a_writer_of_two_shards;
    fails_with(Fault::OpenLocks, "half of a command", SCHEDULES_TO_FAIL, model);
}

#[test]
fn a_gate_that_does_not_wait_is_found() {
    fails_with(Fault::BlindMark, "stopped", SCHEDULES_TO_FAIL, a_long_command_and_a_closer);
}

#[test]
fn without_notices_a_closer_sleeps_for_ever() {
    fails_with(Fault::NoNotice, "deadlock", SCHEDULES_TO_FAIL, a_stopped_world_is_exclusive);
}

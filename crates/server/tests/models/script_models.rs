//! Models of scripts that wait for shards while they hold others, and of scripts that do not end.
//!
//! A script here is a function that holds shards and takes further ones in the middle of its work.
//! The interpreter is left out: shuttle cannot switch threads in the middle of it.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use engine::{HeldShards, ScriptError};
use node::ShardLocks;
use node::host::GateAccess;
use node::state::busy_scripts::{BusyScript, Held};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use crate::shard_lock_models::World;
use crate::shard_locks::ThreadShards;
use crate::shim::let_time_pass;
use crate::{fails, holds, join};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 500;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 3000;
/// Shuttle's message for a schedule without an end.
const NO_END: &str = "exceeded max_steps";

/// Scripts, of which those that may wait for shards run one at a time.
struct Scripts {
    world: Arc<World>,
    exclusive: Mutex<()>,
    /// Planted: every script waits for shards, at the same time as others.
    all_wait: bool,
}

/// Runs that were started again as exclusive.
type Begun = Cell<u64>;

thread_local! {
    static AGAIN: Begun = const { Cell::new(0) };
}

impl Scripts {
    fn new(threads: usize, all_wait: bool) -> Arc<Self> {
        let_time_pass();
        Arc::new(Self { world: World::new(threads), exclusive: Mutex::new(()), all_wait })
    }

    fn spawn(
        self: &Arc<Self>,
        run: impl Fn(&Self, &ThreadShards<'_>) + Send + 'static,
    ) -> thread::JoinHandle<()> {
        let scripts = Arc::clone(self);
        self.world.spawn(move |_, locks| run(&scripts, locks))
    }

    /// A script that declares one shard and adds to the cells of two, the declared one first.
    fn run(&self, locks: &ThreadShards<'_>, [own, other]: [usize; 2], is_trusted: bool) {
        if is_trusted && self.take_if_free(locks, [own, other]) {
            return;
        }
        AGAIN.set(AGAIN.get() + u64::from(is_trusted));
        if self.all_wait {
            return self.wait_as_exclusive(locks, [own, other]);
        }
        locks.leave();
        let exclusive = self.exclusive.lock();
        locks.enter();
        self.wait_as_exclusive(locks, [own, other]);
        drop(exclusive);
    }

    /// It takes the other shard if that is free. Returns whether it did.
    fn take_if_free(&self, locks: &ThreadShards<'_>, [own, other]: [usize; 2]) -> bool {
        let run = |held: &mut dyn HeldShards| {
            let is_suspended = held.try_add(other);
            if is_suspended {
                self.add(&[own, other]);
            }
            is_suspended
        };
        let done = self.world.until_free(locks, || locks.many(&[own], run));
        done.expect("no script is busy")
    }

    /// It waits for the other shard.
    fn wait_as_exclusive(&self, locks: &ThreadShards<'_>, [own, other]: [usize; 2]) {
        let run = |held: &mut dyn HeldShards| {
            while !held.add(other, Duration::ZERO) {
                thread::yield_now();
            }
            self.add(&[own, other]);
        };
        let done = self.world.until_free(locks, || locks.many(&[own], run));
        done.expect("no script is busy");
    }

    fn add(&self, shards: &[usize]) {
        for shard in shards {
            self.world.add(*shard);
            thread::yield_now();
        }
    }
}

/// Two scripts that reach for each other's shards, and a command on both.
fn scripts_that_reach_for_each_others_shards(is_trusted: bool, all_wait: bool) {
    let scripts = Scripts::new(3, all_wait);
    let threads = [
        scripts.spawn(move |scripts, locks| scripts.run(locks, [0, 1], is_trusted)),
        scripts.spawn(move |scripts, locks| scripts.run(locks, [1, 0], is_trusted)),
        scripts.spawn(|scripts, locks| scripts.world.add_on_many(locks, &[0, 1])),
    ];
    join(threads);
    let counts = [0, 1].map(|shard| scripts.world.read(shard));
    assert_eq!(counts, [3, 3], "an update was lost");
}

#[test]
fn scripts_get_each_others_shards_one_after_another() {
    holds(SCHEDULES, || scripts_that_reach_for_each_others_shards(false, false));
    AGAIN.set(0);
    holds(SCHEDULES, || scripts_that_reach_for_each_others_shards(true, false));
    assert!(AGAIN.get() > 0, "one found a shard in use");
}

#[test]
fn scripts_that_wait_for_each_other_never_end() {
    fails(NO_END, SCHEDULES_TO_FAIL, || scripts_that_reach_for_each_others_shards(false, true));
}

/// The shards of a script that ends only when it is killed.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    /// One shard, by its lock.
    One,
    /// Two, one of which it has taken while it ran.
    Two,
    /// All, behind the closed gate.
    All,
}

const BUSY: ScriptError = ScriptError::BusyWithScript;

/// A script runs until it is killed. Some time after it began it is busy, unless that is planted as
/// broken.
fn run_until_killed(
    world: &World,
    locks: &ThreadShards<'_>,
    (holds, killed): (Holds, &AtomicBool),
    becomes_busy: bool,
) {
    let run = |held: &mut dyn HeldShards| {
        thread::yield_now();
        if becomes_busy {
            let holds = match holds {
                Holds::All => Held::All,
                Holds::One | Holds::Two => Held::Shards(vec![1]),
            };
            let script = BusyScript { thread: 0, is_function: false, waits: false, holds };
            world.busy.begin(script);
        }
        if holds == Holds::Two {
            while !held.add(2, Duration::ZERO) {
                thread::yield_now();
            }
            world.busy.add(0, 2);
        }
        while !killed.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        world.add(1);
        world.busy.end(0);
    };
    let done = match holds {
        Holds::All => locks.exclusive(run),
        Holds::One | Holds::Two => world.until_free(locks, || locks.many(&[1], run)),
    };
    done.expect("no other script is busy");
}

/// The shards of a command whose client ends the script when it is refused.
type Needs = fn(&ThreadShards<'_>) -> Result<(), ScriptError>;

/// A script is ended by a client whose command is refused, and a third client continues.
fn a_script_that_only_another_ends(holds: Holds, needs: Needs, becomes_busy: bool) {
    let_time_pass();
    let world = World::new(3);
    let killed = Arc::new(AtomicBool::new(false));
    let script = {
        let killed = Arc::clone(&killed);
        world.spawn(move |world, locks| {
            run_until_killed(world, locks, (holds, &killed), becomes_busy);
        })
    };
    let other = world.spawn(move |world, locks| {
        // Commands need shard 0 only for a moment, unless the script is exclusive.
        while world.until_free(locks, || locks.one(0, |_| world.add(0))).is_err() {
            assert!(holds == Holds::All, "a script stops a command that does not need its shards");
            thread::yield_now();
            locks.enter();
        }
    });
    let pass = world.gate.register().expect("there are as many passes as threads");
    let mut received = 0;
    while !killed.load(Ordering::Relaxed) {
        world.execute(&pass, |_, locks| match needs(locks) {
            Ok(()) | Err(ScriptError::ShardInUse) => {}
            Err(refusal) => {
                assert_eq!(refusal, BUSY);
                killed.store(true, Ordering::Relaxed);
            }
        });
        received += 1;
        assert!(!pass.is_inside(), "inside after its command");
        thread::yield_now();
    }
    script.join().expect("it ends");
    other.join().expect("it ends");
    world.execute(&pass, |world, locks| world.add_on_many(locks, &[0, 1]));
    assert_eq!([0, 1].map(|shard| world.read(shard)), [2, 2], "after {received} tries");
}

/// Commands on one of the script's shards, on that and others, and on all.
const ALL_NEEDS: [Needs; 3] = [
    |locks| locks.one(1, |_| ()),
    |locks| locks.many(&[0, 1, 2], |_| ()),
    |locks| locks.exclusive(|_| ()),
];

#[test]
fn a_command_that_needs_shards_of_a_busy_script_is_refused() {
    for needs in [0, 1, 2] {
        NEEDS.set(needs);
        for holds_what in [Holds::One, Holds::Two, Holds::All] {
            HOLDS.set(holds_what);
            holds(SCHEDULES, || {
                a_script_that_only_another_ends(HOLDS.get(), ALL_NEEDS[NEEDS.get()], true);
            });
        }
    }
}

#[test]
fn a_wait_for_a_script_not_known_to_be_busy_never_ends() {
    fails(NO_END, SCHEDULES_TO_FAIL, || {
        a_script_that_only_another_ends(Holds::One, ALL_NEEDS[1], false);
    });
}

#[test]
fn a_wait_for_an_exclusive_script_not_known_to_be_busy_never_ends() {
    fails(NO_END, SCHEDULES_TO_FAIL, || {
        a_script_that_only_another_ends(Holds::All, ALL_NEEDS[0], false);
    });
}

thread_local! {
    /// The case that this test is at.
    static NEEDS: Cell<usize> = const { Cell::new(0) };
    static HOLDS: Cell<Holds> = const { Cell::new(Holds::One) };
}

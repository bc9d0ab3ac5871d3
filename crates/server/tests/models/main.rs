//! Thousands of schedules of small cases of the shard locks and their queues, of clients that
//! change threads, of their waits for keys, of CLIENT PAUSE and CLIENT KILL, of users, of EXEC, of
//! WATCH and of CLIENT TRACKING.
//!
//! The sources are those of the product, included with a `shim` of shuttle's types; the gate and
//! the location of `sync`, which loom has explored, are included too. Each model must hold as it is
//! and must fail with each [`Fault`](shim::Fault) planted: a model that cannot fail proves nothing.
//!
//! Shuttle explores at random, so a model that holds is tested, not proven: half of the schedules
//! are uniform, half follow probabilistic concurrency testing, which finds each bug that needs `d`
//! ordered steps with a known chance (Burckhardt and others, ASPLOS 2010). The seeds are fixed, so
//! that a build fails always or never. Memory is sequentially consistent here.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../../sync/src/client_location.rs"]
#[allow(dead_code)]
mod client_location;
#[path = "../../src/threads/client_state.rs"]
#[allow(dead_code)]
mod client_state;
#[path = "../../../sync/src/gate.rs"]
#[allow(dead_code)]
mod gate;
#[path = "../../../sync/src/gate_slot.rs"]
#[allow(dead_code)]
mod gate_slot;
#[path = "../../src/threads/message.rs"]
#[allow(dead_code)]
mod message;
#[path = "../../src/keyspace/shard_guards.rs"]
#[allow(dead_code)]
mod shard_guards;
#[path = "../../src/keyspace/shard_locks.rs"]
#[allow(dead_code)]
mod shard_locks;
#[path = "../../src/keyspace/shard_queues.rs"]
#[allow(dead_code)]
mod shard_queues;
#[path = "../../src/keyspace/shards.rs"]
#[allow(dead_code)]
mod shards;
#[path = "../../src/threads/slots.rs"]
#[allow(dead_code)]
mod slots;
#[path = "../../src/keyspace/stop_waits.rs"]
#[allow(dead_code)]
mod stop_waits;
#[path = "../../src/threads/thread_count.rs"]
#[allow(dead_code)]
mod thread_count;
#[path = "../../src/keyspace/thread_waits.rs"]
#[allow(dead_code)]
mod thread_waits;

mod barrier_models;
mod blocked;
mod blocked_models;
mod exclusive_models;
mod exec_models;
mod move_models;
mod moves;
mod queue_models;
mod script_models;
mod shard_lock_models;
mod shim;
mod tracking_models;
mod user_models;
mod watch_models;

use shim::Fault;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// Ordered steps of the bugs that the second half of the schedules looks for.
const DEPTH: usize = 3;
const SEED: u64 = 0x5eed;
/// Steps after which a schedule that has not ended never will.
const STEPS_MAX: usize = 20_000;

/// Schedules of each kind between two seeds, of a model that fails.
const SCHEDULES_A_SEED: usize = 100;

/// The model holds in `schedules` schedules of each kind.
fn holds(schedules: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    holds_from(SEED, schedules, model);
}

fn holds_from(seed: u64, schedules: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    Runner::new(RandomScheduler::new_from_seed(seed, schedules), config.clone()).run(model);
    Runner::new(PctScheduler::new_from_seed(seed, DEPTH, schedules), config).run(model);
}

/// Some schedule of the model fails, with `failure` in its message. The kinds take turns: one finds
/// quickly what the other hardly ever does.
fn fails(failure: &str, schedules: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    model_harness::fails(failure, || {
        let seeds = schedules.div_ceil(SCHEDULES_A_SEED) as u64;
        (SEED..SEED + seeds).for_each(|seed| holds_from(seed, SCHEDULES_A_SEED, model));
    });
}

/// The same, with `fault` planted.
fn fails_with(
    fault: Fault,
    failure: &str,
    schedules: usize,
    model: impl Fn() + Send + Sync + Copy + 'static,
) {
    fault.plant();
    fails(failure, schedules, model);
}

/// Waits for the threads of a model. Returns their results.
fn join<T>(threads: impl IntoIterator<Item = shuttle::thread::JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
}

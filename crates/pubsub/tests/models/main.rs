//! Thousands of schedules of clients on three threads that subscribe, publish, unsubscribe, move
//! and close.
//!
//! The tested sources are the product's, included with a `shim` of shuttle's types. Each model must
//! hold as it is, and must fail with each planted [`Fault`](world::Fault): a model that cannot fail
//! proves nothing. Memory is sequentially consistent here; the models of `sync` show that a thread
//! sees a message before it sleeps, or is woken.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../src/message.rs"]
#[allow(dead_code)]
mod message;
#[path = "../../src/pattern_index.rs"]
#[allow(dead_code)]
mod pattern_index;
#[path = "../../src/pattern_search.rs"]
#[allow(dead_code)]
mod pattern_search;
#[path = "../../src/pending_messages.rs"]
#[allow(dead_code)]
mod pending_messages;
#[path = "../../src/registry.rs"]
#[allow(dead_code)]
mod registry;
#[path = "../../src/subscribers.rs"]
#[allow(dead_code)]
mod subscribers;
#[path = "../../src/threads.rs"]
#[allow(dead_code)]
mod threads;

mod shim;
mod world;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use world::{Fault, run};

/// The number of ordered steps in the bugs that the second half of the schedules looks for.
const DEPTH: usize = 3;
const SEED: u64 = 0x5eed;
/// The most steps of a schedule, beyond which it never ends.
const STEPS_MAX: usize = 50_000;
/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 3000;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 10_000;

fn explore(schedules: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    Runner::new(RandomScheduler::new_from_seed(SEED, schedules), config.clone()).run(model);
    Runner::new(PctScheduler::new_from_seed(SEED, DEPTH, schedules), config).run(model);
}

fn fails_with(fault: Fault, failure: &str) {
    model_harness::fails(failure, || explore(SCHEDULES_TO_FAIL, move || run(Some(fault))));
}

#[test]
fn clients_receive_what_they_were_counted_for() {
    explore(SCHEDULES, || run(None));
}

#[test]
fn a_subscription_that_begins_during_a_message_need_not_receive_it() {
    fails_with(Fault::ExpectsLater, "misses a message");
}

#[test]
fn messages_sent_without_the_lock_change_places() {
    fails_with(Fault::SendsUnlocked, "one channel, two orders");
}

#[test]
fn an_answer_before_what_was_counted_loses_it() {
    fails_with(Fault::AnswersAtOnce, "counted for");
}

#[test]
fn older_messages_reach_a_new_subscriber_without_moments() {
    fails_with(Fault::FromTheBeginning, "counted for");
}

#[test]
fn newer_messages_reach_one_that_leaves_without_moments() {
    fails_with(Fault::WithoutEnd, "counted for");
}

#[test]
fn a_confirmation_after_the_first_message_is_found() {
    fails_with(Fault::ConfirmsLate, "before the confirmation");
}

#[test]
fn a_client_that_moves_without_its_messages_loses_them() {
    fails_with(Fault::MovesInHaste, "counted for");
}

#[test]
fn a_thread_that_takes_a_client_before_its_subscriptions_reorders() {
    fails_with(Fault::TakesFirst, "counted for");
}

#[test]
fn a_client_that_moves_without_an_epoch_receives_messages_twice() {
    fails_with(Fault::MovesWithoutEpoch, "counted for");
}

#[test]
fn messages_taken_out_for_another_thread_without_its_lock_change_places() {
    fails_with(Fault::RelievesUnlocked, "the order of a publisher");
}

#[test]
fn a_subscription_that_begins_while_another_thread_takes_messages_in_loses_some() {
    fails_with(Fault::SubscribesUnlocked, "counted for");
}

//! Waits of commands that stop all other threads, in one thread. Beside their source the models
//! would run these tests too, and the models' locks need a scheduler.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use engine::ScriptError;
use node::ShardLocks;
use node::state::busy_scripts::BusyScripts;
use sync::gate::{Gate, Pass};

use super::shard_locks::{NoOtherClients, ThreadShards};
use super::shard_queues::Ticket;
use super::shards::Shards;
use super::shim::{CLOSE_US, now_us};
use super::stop_waits::{ATTEMPTS_MAX, PATIENT_ATTEMPTS_MAX, StopWaits, Stoppers, closed_until_us};
use super::thread_waits::{ThreadWaits, Waited};

/// Attempts while a wait is running. If each spun for as long as a first one may, they would take
/// longer than that.
const LOOKS: usize = 3000;
const LOOKS_SECONDS: f64 = 0.25;
const LOOKS_TIME_MAX: Duration = Duration::from_secs(2);

/// A request that is so slow that its client is held for as long as it may be.
const LONG_US: u32 = u32::MAX;

/// Seconds of a processor that this thread has used.
fn busy() -> f64 {
    let used = sys::process::thread_cpu_time();
    used.user + used.system
}

/// The pass of the asking thread, which is inside, and that of another thread.
fn passes() -> (Pass, Pass) {
    let gate = Gate::new(2);
    let [own, other] = [(); 2].map(|()| gate.register().expect("there are two"));
    own.enter();
    (own, other)
}

fn ticket(client: u64) -> Option<Ticket> {
    Some(Ticket { since_us: now_us(), client })
}

#[test]
fn others_that_are_outside_are_stopped_at_once_and_those_at_work_are_waited_for() {
    let ((own, other), waits, stoppers) = (passes(), StopWaits::default(), Stoppers::new());
    assert!(waits.may_stop_others(None, &own, &stoppers));
    other.enter();
    assert!(!waits.may_stop_others(None, &own, &stoppers));
    let waiting = ticket(1);
    assert!(!waits.may_stop_others(waiting, &own, &stoppers));
    other.leave();
    assert!(waits.may_stop_others(waiting, &own, &stoppers));
}

#[test]
fn attempts_in_vain_hold_the_clients_of_slow_requests() {
    let ((own, other), waits, stoppers) = (passes(), StopWaits::default(), Stoppers::new());
    let waiting = ticket(1);
    let (own_request, later) = (waiting.expect("it waits"), Ticket { since_us: 0, client: 1 });
    // Each attempt finds a command that has begun since.
    for attempt in 0..=ATTEMPTS_MAX {
        other.enter();
        assert!(!waits.may_stop_others(waiting, &own, &stoppers));
        assert_eq!(stoppers.holds(LONG_US, now_us), attempt == ATTEMPTS_MAX);
        // Another request of the client is held.
        assert!(waits.has(own_request) && !waits.has(later));
        other.leave();
        assert!(waits.may_stop_others(waiting, &own, &stoppers));
    }
    stoppers.end_wait();
    assert!(!stoppers.holds(LONG_US, now_us));
    other.enter();
    assert!(!waits.may_stop_others(ticket(2), &own, &stoppers));
    assert!(!stoppers.holds(LONG_US, now_us), "the next one has not tried yet");
    other.leave();
}

/// Commands that follow one another on another thread without a gap: each attempt finds one that
/// has begun since, and leaves it alone. In the end the gate stays closed for as long as it lasts.
#[test]
fn a_thread_at_work_is_never_stopped_for_long() {
    let (waits, shards) = (ThreadWaits::default(), Shards::new(1));
    let gate = Gate::new(2);
    let [own, other] = [(); 2].map(|()| gate.register().expect("there are two"));
    let busy = BusyScripts::default();
    let since_us = now_us();
    other.enter();
    let mut tries = 0;
    while tries < PATIENT_ATTEMPTS_MAX {
        let waited = Waited { ticket: Some(Ticket { since_us, client: 1 }), rounds: 0 };
        let locks = ThreadShards::enter(&shards, Some(&own), &busy, &NoOtherClients);
        let locks = locks.waiting(&waits, waited);
        let done = locks.may_stop_others().then(|| locks.exclusive(|_| ()));
        match done {
            // The commands of that moment end, and the next one begins.
            None => {
                other.leave();
                other.enter();
            }
            Some(done) => {
                assert_eq!(done, Err(ScriptError::ShardInUse));
                tries += 1;
            }
        }
        drop(locks);
        assert!(!other.is_awaited(), "the gate is closed");
    }
    other.leave();
    assert_eq!(waits.stops.attempts(1), PATIENT_ATTEMPTS_MAX);
    assert!(closed_until_us(PATIENT_ATTEMPTS_MAX) <= now_us() + CLOSE_US);
    assert_eq!(closed_until_us(PATIENT_ATTEMPTS_MAX + 1), u64::MAX);
    let locks = ThreadShards::enter(&shards, Some(&own), &busy, &NoOtherClients);
    assert_eq!(locks.exclusive(|_| ()), Ok(()));
}

#[test]
fn a_command_that_does_not_end_is_waited_for_without_spinning() {
    let ((own, other), waits, stoppers) = (passes(), StopWaits::default(), Stoppers::new());
    other.enter();
    let (waiting, start, began) = (ticket(1), busy(), Instant::now());
    for _ in 0..LOOKS {
        assert!(!waits.may_stop_others(waiting, &own, &stoppers));
    }
    let busy = busy() - start;
    assert!(busy < LOOKS_SECONDS, "{busy} s");
    // It does not sleep either; a busy machine takes its time.
    assert!(began.elapsed() < LOOKS_TIME_MAX, "{:?}", began.elapsed());
    other.leave();
    other.enter();
    assert!(
        waits.may_stop_others(waiting, &own, &stoppers),
        "the commands of that moment are over"
    );
    other.leave();
}

#[test]
fn threads_that_ask_for_the_same_do_not_count_as_working() {
    let gate = Gate::new(3);
    let [own, asking, working] = [(); 3].map(|()| gate.register().expect("there are three"));
    let stoppers = Stoppers::new();
    [&own, &asking, &working].into_iter().for_each(|pass| {
        pass.enter();
    });
    stoppers.asking.lock().push(own.number());
    let mut period = own.grace_period();
    assert!(!stoppers.all_left_ask(&mut period));
    stoppers.asking.lock().push(asking.number());
    assert!(!stoppers.all_left_ask(&mut period));
    working.leave();
    assert!(stoppers.all_left_ask(&mut period));
    // As many threads ask as are at work, but not the same ones.
    asking.leave();
    working.enter();
    assert!(!stoppers.all_left_ask(&mut own.grace_period()));
    [&own, &working].into_iter().for_each(Pass::leave);
}

//! Waits of commands that stop all other threads, in one thread. Beside their source the models
//! would run these tests too, and the models' locks need a scheduler.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use sync::gate::{Gate, Pass};

use super::shard_queues::Ticket;
use super::shim::now_us;
use super::stop_waits::{StopWaits, Stoppers};

/// Attempts of a client that finds other threads at work each time, until it may stop them: one
/// that begins the first wait, and one at the end of each of four.
const TRIES: usize = 5;
/// Attempts while a wait is running. If each spun for as long as a first one may, they would take
/// longer than that.
const LOOKS: usize = 3000;
const LOOKS_SECONDS: f64 = 0.25;
const LOOKS_TIME_MAX: Duration = Duration::from_secs(2);

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
fn slow_commands_that_follow_one_another_are_not_waited_for_without_end() {
    let ((own, other), waits, stoppers) = (passes(), StopWaits::default(), Stoppers::new());
    for client in 1..3 {
        let waiting = ticket(client);
        let tries = (1..=2 * TRIES).find(|_| {
            other.enter();
            let may_stop = waits.may_stop_others(waiting, &own, &stoppers);
            other.leave();
            may_stop
        });
        assert_eq!(tries, Some(TRIES));
    }
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
    let for_long = Ticket { since_us: now_us().saturating_sub(5_000_000), client: 1 };
    // Stopping the other threads would not be faster.
    assert!(!waits.may_stop_others(Some(for_long), &own, &stoppers));
    other.leave();
    other.enter();
    assert!(waits.may_stop_others(Some(for_long), &own, &stoppers));
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
    stoppers.0.lock().push(own.number());
    let mut period = own.grace_period();
    assert!(!stoppers.all_left_ask(&mut period));
    stoppers.0.lock().push(asking.number());
    assert!(!stoppers.all_left_ask(&mut period));
    working.leave();
    assert!(stoppers.all_left_ask(&mut period));
    // As many threads ask as are at work, but not the same ones.
    asking.leave();
    working.enter();
    assert!(!stoppers.all_left_ask(&mut own.grace_period()));
    [&own, &working].into_iter().for_each(Pass::leave);
}

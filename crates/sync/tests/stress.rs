//! Real threads on real primitives: the cases that the models prove, tried with many turns. Bounded
//! by counts, not by time; each test runs for a fraction of a second on two cores.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use sync::gate::{Gate, GracePeriod};
use sync::mailbox::Mailbox;

/// Longer than any test may take: a wake that does not come in this time never comes.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A wake that sticks, like an eventfd: a second one before the wait changes nothing.
fn sticky_wake(wakes: &Arc<AtomicUsize>) -> (impl Fn() + Send + Sync + 'static, Receiver<()>) {
    let (raise, raised) = sync_channel(1);
    let wakes = Arc::clone(wakes);
    let wake = move || {
        wakes.fetch_add(1, Ordering::Relaxed);
        // Full: the owner has a wake to come already.
        let _ = raise.try_send(());
    };
    (wake, raised)
}

#[test]
fn every_message_arrives_in_order_and_sleep_costs_one_wake() {
    const PRODUCERS: usize = 3;
    const MESSAGES_EACH: u64 = 50_000;
    let wakes = Arc::new(AtomicUsize::new(0));
    let (wake, raised) = sticky_wake(&wakes);
    let mailbox = Mailbox::new(wake);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let sender = mailbox.sender();
            scope.spawn(move || {
                for number in 0..MESSAGES_EACH {
                    sender.send((producer, number));
                    if number % 64 == 0 {
                        // Lets the owner run dry and fall asleep now and then.
                        thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0; PRODUCERS];
        let mut announced = 0;
        loop {
            for (producer, number) in iter::from_fn(|| mailbox.pop()).take(16) {
                assert_eq!(number, next[producer], "out of order");
                next[producer] += 1;
            }
            if next == [MESSAGES_EACH; PRODUCERS] {
                break;
            }
            announced += 1;
            if mailbox.prepare_sleep() {
                raised.recv_timeout(WAIT_MAX).expect("a lost wake-up");
            }
            mailbox.awake();
        }
        assert!(wakes.load(Ordering::Relaxed) <= announced, "more wakes than sleeps");
    });
    assert_eq!(mailbox.pop(), None);
}

#[test]
fn an_awake_owner_is_not_woken() {
    let wakes = Arc::new(AtomicUsize::new(0));
    let (wake, raised) = sticky_wake(&wakes);
    let mailbox = Mailbox::new(wake);
    let sender = mailbox.sender();
    sender.send(1);
    assert!(!mailbox.prepare_sleep(), "a message is there");
    assert_eq!([mailbox.pop(), mailbox.pop()], [Some(1), None]);
    assert!(mailbox.prepare_sleep());
    sender.send(2);
    sender.clone().send(3);
    assert_eq!(wakes.load(Ordering::Relaxed), 1, "one wake for one sleep");
    raised.try_recv().expect("the wake sticks");
    mailbox.awake();
    sender.send(4);
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    assert_eq!([mailbox.pop(), mailbox.pop()], [Some(2), Some(3)]);
    assert!(!mailbox.prepare_sleep(), "one is left");
    assert_eq!([mailbox.pop(), mailbox.pop()], [Some(4), None]);
}

#[test]
fn unread_messages_are_dropped_with_the_mailbox() {
    let message = Arc::new(());
    let mailbox = Mailbox::new(|| ());
    let sender = mailbox.sender();
    sender.send(Arc::clone(&message));
    drop(mailbox);
    assert_eq!(Arc::strong_count(&message), 1);
    sender.send(Arc::clone(&message));
    drop(sender);
    assert_eq!(Arc::strong_count(&message), 1);
}

/// Two numbers that a closer changes together, and that a thread inside must never see differ.
#[derive(Default)]
struct World {
    left: AtomicU64,
    right: AtomicU64,
}

impl World {
    fn change(&self) {
        let next = self.left.load(Ordering::Relaxed) + 1;
        self.left.store(next, Ordering::Relaxed);
        thread::yield_now();
        self.right.store(next, Ordering::Relaxed);
    }

    fn check(&self) {
        let (left, right) = (self.left.load(Ordering::Relaxed), self.right.load(Ordering::Relaxed));
        assert_eq!(left, right, "inside together with a closer");
    }
}

#[test]
fn closers_are_exclusive_while_threads_come_and_go() {
    const THREADS: usize = 4;
    const TURNS: usize = 8_000;
    const CLOSES_EACH: usize = TURNS / 40;
    let gate = Gate::new(THREADS);
    let world = World::default();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut pass = gate.register().expect("a slot for each thread");
                for turn in 1..=TURNS {
                    let inside = pass.inside();
                    world.check();
                    if turn % 40 == 0 {
                        pass.exclusively(|| world.change());
                        assert!(pass.is_inside());
                    }
                    world.check();
                    drop(inside);
                    if turn % 100 == 0 {
                        drop(pass);
                        pass = gate.register().expect("a slot is free again");
                    }
                }
            });
        }
        for _ in 0..CLOSES_EACH {
            let closed = gate.close(None);
            world.change();
            drop(closed);
        }
    });
    let changes = world.left.load(Ordering::Relaxed);
    assert_eq!(changes, ((THREADS + 1) * CLOSES_EACH) as u64, "a change was overwritten");
}

fn wait_for_end(period: &mut GracePeriod) {
    while !period.is_over() {
        thread::yield_now();
    }
}

#[test]
fn a_grace_period_waits_for_threads_inside_and_delays_no_other() {
    let gate = Gate::new(3);
    let (leave, left) = sync_channel::<()>(0);
    let (over, is_over) = sync_channel(1);
    thread::scope(|scope| {
        let staying = gate.register().expect("a slot");
        staying.enter();
        scope.spawn(move || {
            left.recv_timeout(WAIT_MAX).expect("the others came and went");
            staying.leave();
        });
        let mut period = gate.grace_period();
        scope.spawn(move || {
            wait_for_end(&mut period);
            over.send(()).expect("the test waits for it");
        });
        let (came, comes) = sync_channel(0);
        let coming = gate.register().expect("a slot");
        scope.spawn(move || {
            for _ in 0..10_000 {
                coming.enter();
                coming.leave();
            }
            came.send(()).expect("the test waits for it");
        });
        comes.recv_timeout(WAIT_MAX).expect("no thread is delayed");
        assert!(is_over.try_recv().is_err(), "a visit was not waited for");
        leave.send(()).expect("it waits");
        is_over.recv_timeout(WAIT_MAX).expect("the visit is over");
    });
}

#[test]
fn visits_that_a_grace_period_does_not_wait_for_see_what_was_written_before() {
    const THREADS: usize = 3;
    const PERIODS: u64 = 3_000;
    let gate = Gate::new(THREADS);
    let written = AtomicU64::new(1);
    // The values that each thread has read in its present visit.
    let read = [const { AtomicU64::new(0) }; THREADS];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for read in &read {
            let pass = gate.register().expect("a slot for each thread");
            let (written, done) = (&written, &done);
            scope.spawn(move || {
                for visit in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let inside = pass.inside();
                    for _ in 0..2 {
                        read.store(written.load(Ordering::Relaxed), Ordering::Relaxed);
                        if visit % 8 == 0 {
                            thread::yield_now();
                        }
                        read.store(0, Ordering::Relaxed);
                        pass.make_way();
                    }
                    drop(inside);
                    if visit % 64 == 0 {
                        pass.exclusively(|| ());
                    }
                }
            });
        }
        let mut stale = None;
        for period in 2..PERIODS {
            written.store(period, Ordering::Relaxed);
            wait_for_end(&mut gate.grace_period());
            let reads = read.iter().map(|read| read.load(Ordering::Relaxed));
            stale = stale.or(reads.into_iter().find(|read| ![0, period].contains(read)));
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(stale, None, "read before a grace period, and still in use after it");
    });
}

#[test]
fn a_row_of_closers_does_not_starve_entering_threads() {
    let gate = Gate::new(1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(gate.close(None));
            }
        });
        let pass = gate.register().expect("one slot");
        for _ in 0..2_000 {
            pass.enter();
            pass.leave();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn slots_are_limited_and_reused() {
    let gate = Gate::new(2);
    let first = gate.register().expect("the first slot");
    let second = gate.register().expect("the second slot");
    assert!(gate.register().is_none());
    second.enter();
    // A pass that is dropped while inside must not keep the gate from closing.
    drop(second);
    let closed = gate.close(Some(&first));
    let third = gate.register().expect("registering does not wait for a closer");
    drop(closed);
    third.enter();
    assert!(third.is_inside() && !first.is_inside());
}

#[test]
fn a_grace_period_can_do_without_some_visits() {
    let gate = Gate::new(3);
    let [first, second] = [2, 0].map(|number| gate.register_as(number).expect("it is free"));
    assert!(gate.register_as(2).is_none() && gate.register_as(3).is_none());
    first.enter();
    second.enter();
    let mut period = gate.grace_period();
    assert!(!period.is_over_but_for(|number| number == 2, true));
    assert!(!period.is_over_but_for(|number| number == 0, true));
    assert!(period.is_over_but_for(|_| true, false));
    second.leave();
    assert!(!period.is_over() && period.is_over_but_for(|number| number == 2, false));
    first.leave();
    assert!(period.is_over());
    let closed = gate.close(None);
    let mut period = gate.grace_period();
    assert!(!period.is_over_but_for(|_| true, false) && period.is_over_but_for(|_| false, true));
    drop(closed);
    assert!(period.is_over());
}

#[test]
#[should_panic(expected = "closed twice")]
fn closing_twice_is_refused_and_not_a_deadlock() {
    let gate = Gate::new(1);
    let pass = gate.register().expect("one slot");
    pass.exclusively(|| pass.exclusively(|| ()));
}

#[test]
#[should_panic(expected = "entered twice")]
fn entering_twice_is_refused_and_not_a_deadlock() {
    let gate = Gate::new(1);
    let pass = gate.register().expect("one slot");
    pass.enter();
    pass.enter();
}

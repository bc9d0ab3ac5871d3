//! The mailbox: no lost wake-up, at most one wake for a sleep, order of each producer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as PlainUsize, Ordering};

use loom::sync::{Condvar, Mutex};
use loom::thread::{Builder, JoinHandle};

use super::mailbox::{Mailbox, Sender};
use super::shim::{Fault, PRODUCER};
use super::{fails, fails_with, holds};

type Message = (usize, u64);

/// An eventfd: a wake sticks until the wait that takes it. Sound whatever fault is planted.
struct Eventfd {
    raised: Mutex<bool>,
    changed: Condvar,
    /// All wakes ever. A plain atomic, which loom does not see: a true count, whatever is stale.
    wakes: PlainUsize,
}

impl Eventfd {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            raised: Mutex::new(false),
            changed: Condvar::new(),
            wakes: PlainUsize::new(0),
        })
    }

    fn raise(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        *self.raised.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut raised = self.raised.lock().unwrap();
        while !*raised {
            raised = self.changed.wait(raised).unwrap();
        }
        *raised = false;
    }
}

/// How a producer wakes the owner.
#[derive(Clone, Copy, PartialEq)]
enum Wakes {
    /// With each message.
    Each,
    /// Once, after all of them.
    Last,
    /// Once, in front of the last message: too early.
    Early,
}

fn spawn_producer(
    sender: Sender<Message>,
    producer: usize,
    messages: u64,
    wakes: Wakes,
) -> JoinHandle<()> {
    let send = move || {
        for number in 0..messages {
            if wakes == Wakes::Each {
                sender.send((producer, number));
                continue;
            }
            if wakes == Wakes::Early && number + 1 == messages {
                sender.wake();
            }
            sender.push((producer, number));
        }
        if wakes == Wakes::Last {
            sender.wake();
        }
    };
    Builder::new().name(PRODUCER.to_owned()).spawn(send).unwrap()
}

/// The owner receives `MESSAGES` from each of `PRODUCERS`, and sleeps whenever it may. A lost
/// wake-up is an owner that sleeps for ever, which loom reports as a deadlock.
fn deliver<const PRODUCERS: usize, const MESSAGES: u64>() {
    deliver_by::<PRODUCERS, MESSAGES>(Wakes::Each);
}

fn deliver_by<const PRODUCERS: usize, const MESSAGES: u64>(wakes: Wakes) {
    let eventfd = Eventfd::new();
    let mailbox = Mailbox::new({
        let eventfd = Arc::clone(&eventfd);
        move || eventfd.raise()
    });
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|index| spawn_producer(mailbox.sender(), index, MESSAGES, wakes))
        .collect();

    let mut next = [0; PRODUCERS];
    let mut announced = 0;
    loop {
        for (producer, number) in std::iter::from_fn(|| mailbox.pop()).take(2) {
            assert_eq!(number, next[producer], "out of order");
            next[producer] += 1;
        }
        if next == [MESSAGES; PRODUCERS] {
            break;
        }
        announced += 1;
        if mailbox.prepare_sleep() {
            eventfd.wait();
        }
        mailbox.awake();
    }
    for producer in producers {
        producer.join().unwrap();
    }
    assert!(eventfd.wakes.load(Ordering::Relaxed) <= announced, "more wakes than sleeps");
}

#[test]
fn one_producer_is_heard_in_order() {
    holds(3, deliver::<1, 3>);
}

#[test]
fn two_producers_are_heard_with_one_wake_for_a_sleep() {
    holds(3, deliver::<2, 1>);
}

#[test]
fn two_producers_send_twice() {
    holds(2, deliver::<2, 2>);
}

#[test]
fn messages_are_heard_that_are_followed_by_one_wake() {
    holds(3, || deliver_by::<1, 2>(Wakes::Last));
    holds(2, || deliver_by::<2, 2>(Wakes::Last));
}

#[test]
fn a_wake_in_front_of_a_message_does_not_count() {
    fails("deadlock", 3, || deliver_by::<1, 2>(Wakes::Early));
}

#[test]
fn without_the_producers_fence_a_late_wake_is_lost() {
    let late = || deliver_by::<1, 2>(Wakes::Last);
    fails_with(Fault::NoProducerFence, "deadlock", 3, late);
}

#[test]
fn without_the_look_before_sleeping_a_wake_is_lost() {
    fails_with(Fault::BlindRecheck, "deadlock", 3, deliver::<1, 1>);
}

#[test]
fn without_the_producers_fence_a_wake_is_lost() {
    fails_with(Fault::NoProducerFence, "deadlock", 3, deliver::<1, 1>);
}

#[test]
fn without_the_owners_fence_a_wake_is_lost() {
    fails_with(Fault::NoOwnerFence, "deadlock", 3, deliver::<1, 1>);
}

#[test]
fn without_the_election_two_producers_wake() {
    fails_with(Fault::TornExchange, "more wakes than sleeps", 3, deliver::<2, 1>);
}

#[test]
fn a_queue_out_of_order_is_noticed() {
    fails_with(Fault::NewestFirst, "out of order", 2, deliver::<1, 2>);
}

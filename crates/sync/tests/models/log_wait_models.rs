//! Models of the waits for the log: a thread that sleeps is woken, and one that waits is notified.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

use crate::log_waits::{LogMark, LogSleep, SyncPolicy};
use crate::shim::{Fault, PRODUCER};
use crate::{fails, fails_with, holds};

fn producer<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    let builder = thread::Builder::new().name(PRODUCER.to_owned());
    builder.spawn(work).expect("there is memory")
}

struct Reader {
    sleep: LogSleep,
    end: AtomicU64,
    woken: AtomicBool,
}

impl Reader {
    fn new() -> Self {
        let (sleep, end, woken) = (LogSleep::default(), AtomicU64::new(0), AtomicBool::new(false));
        Self { sleep, end, woken }
    }
}

/// A reader that wants to sleep until the log ends at 2, next to a thread that appends twice.
fn the_reader_is_woken() {
    let shared = Arc::new(Reader::new());
    let appends = Arc::clone(&shared);
    let appends = producer(move || {
        for end in [1, 2] {
            appends.end.store(end, Ordering::Relaxed);
            if appends.sleep.look(end) {
                assert!(end == 2, "no thread is woken too early");
                appends.woken.store(true, Ordering::Relaxed);
            }
        }
    });
    let sleeps = shared.sleep.prepare_sleep(2, || shared.end.load(Ordering::Relaxed));
    appends.join().expect("it ends");
    assert!(!sleeps || shared.woken.load(Ordering::Relaxed), "a sleep ends");
}

#[test]
fn a_reader_sees_what_was_appended_or_is_woken() {
    holds(3, the_reader_is_woken);
}

#[test]
fn a_reader_without_a_fence_is_found() {
    fails_with(Fault::NoOwnerFence, "a sleep ends", 3, the_reader_is_woken);
}

#[test]
fn a_writer_without_a_fence_is_found() {
    fails_with(Fault::NoProducerFence, "a sleep ends", 3, the_reader_is_woken);
}

/// The same with a thread that waits for the reader.
fn the_reader_is_urged() {
    let shared = Arc::new(Reader::new());
    let waits = Arc::clone(&shared);
    let waits = producer(move || {
        if waits.sleep.urge() {
            waits.woken.store(true, Ordering::Relaxed);
        }
    });
    let has_seen = shared.sleep.take_urgent();
    let sleeps = shared.sleep.prepare_sleep(100, || 0);
    waits.join().expect("it ends");
    let woken = shared.woken.load(Ordering::Relaxed);
    assert!(!sleeps || woken || has_seen, "no thread waits for ever");
}

#[test]
fn a_reader_sees_that_somebody_waits_or_is_woken() {
    holds(3, the_reader_is_urged);
}

#[test]
fn a_reader_that_is_urged_without_a_fence_is_found() {
    fails_with(Fault::NoProducerFence, "no thread waits for ever", 3, the_reader_is_urged);
}

/// A thread waits for one position and then for another, while both are reached. Whenever it is
/// notified, it checks whether it still must wait.
fn a_waiting_thread_is_notified() {
    let shared = Arc::new((LogMark::new(1, 0), AtomicU64::new(0)));
    let other = Arc::clone(&shared);
    let waits = producer(move || {
        let (mark, notified) = &*other;
        let mut seen = 0;
        let mut waits = mark.wait(0, 1);
        for _ in 0..2 {
            let now = notified.load(Ordering::Acquire);
            if !waits || now > seen {
                seen = now;
                waits = mark.wait(0, 2);
            }
        }
        (waits, seen)
    });
    let (mark, notified) = &*shared;
    for position in [1, 2] {
        mark.advance(position, |_| {
            notified.fetch_add(1, Ordering::AcqRel);
        });
    }
    let (waits, seen) = waits.join().expect("it ends");
    assert!(!waits || notified.load(Ordering::Acquire) > seen, "a waiting thread is notified");
}

#[test]
fn a_thread_that_waits_is_notified() {
    holds(3, a_waiting_thread_is_notified);
}

#[test]
fn an_advance_without_a_fence_is_found() {
    fails_with(
        Fault::NoOwnerFence,
        "a waiting thread is notified",
        3,
        a_waiting_thread_is_notified,
    );
}

#[test]
fn a_wait_without_a_fence_is_found() {
    fails_with(
        Fault::NoProducerFence,
        "a waiting thread is notified",
        3,
        a_waiting_thread_is_notified,
    );
}

/// A thread sets `always` and appends a write, while the reader releases replies to everything that
/// is written. Nothing is synced.
fn a_policy_is_in_force(is_read_first: bool) {
    let shared = Arc::new((SyncPolicy::default(), LogMark::new(1, 0), AtomicU64::new(0)));
    shared.0.follow(true, false);
    let other = Arc::clone(&shared);
    let writes = producer(move || {
        let (policy, mark, end) = &*other;
        policy.configure(true, false);
        end.store(1, Ordering::Release);
        assert!(policy.replies_wait());
        mark.wait(0, 1)
    });
    let (policy, mark, end) = &*shared;
    let before = policy.replies_wait();
    let written = end.load(Ordering::Acquire);
    let waits = if is_read_first { before } else { policy.replies_wait() };
    mark.advance(if waits { 0 } else { written }, |_| ());
    assert!(writes.join().expect("it ends") && mark.reached() == 0, "a reply left before its sync");
}

#[test]
fn a_policy_is_in_force_for_later_writes() {
    holds(3, || a_policy_is_in_force(false));
}

#[test]
fn a_policy_that_is_read_before_the_position_is_found() {
    fails("a reply left before its sync", 3, || a_policy_is_in_force(true));
}

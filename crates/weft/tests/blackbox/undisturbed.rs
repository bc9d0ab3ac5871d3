//! What is to happen within a time, on a machine that may itself stand still for as long.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How late a thread is that sleeps for a millisecond, where a processor stood still or was kept
/// by others: near the times that tests bound.
const DISTURBED: Duration = Duration::from_millis(20);
/// A machine that is disturbed as often makes a test fail.
const ATTEMPTS: usize = 8;

/// Runs what a test expects to happen within a time, again if it fails while a processor stands
/// still. What fails on an undisturbed machine fails the test at once.
pub fn undisturbed(test: impl Fn()) {
    for attempt in 1.. {
        let (result, late) = while_watched(|| catch_unwind(AssertUnwindSafe(&test)));
        let Err(failure) = result else { return };
        if late < DISTURBED || attempt == ATTEMPTS {
            resume_unwind(failure);
        }
        eprintln!("attempt {attempt} failed while a processor stood still for {late:?}: again");
    }
}

/// What `test` returns, and how late a thread was on one of the processors meanwhile.
fn while_watched<R>(test: impl FnOnce() -> R) -> (R, Duration) {
    let own = sched_getaffinity(None).unwrap();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu));
        let watches: Vec<_> =
            cpus.map(|cpu| scope.spawn(move || longest_delay(cpu, is_over))).collect();
        let result = test();
        is_over.store(true, Ordering::Relaxed);
        let delays = watches.into_iter().map(|watch| watch.join().unwrap());
        (result, delays.max().unwrap_or_default())
    })
}

fn longest_delay(cpu: usize, is_over: &AtomicBool) -> Duration {
    let mut only = CpuSet::new();
    only.set(cpu);
    // Where that is not allowed, it watches whichever processor it is given.
    let _ = sched_setaffinity(None, &only);
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let start = Instant::now();
        thread::sleep(Duration::from_millis(1));
        longest = longest.max(start.elapsed().saturating_sub(Duration::from_millis(1)));
    }
    longest
}

#[test]
fn what_fails_on_each_attempt_fails() {
    assert!(catch_unwind(|| undisturbed(|| panic!("planted"))).is_err());
}

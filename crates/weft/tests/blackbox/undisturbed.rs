//! Tests with time limits on a machine that may stand still for as long.

use std::any::Any;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The prefix of failure messages that a slow machine may cause.
const NOT_IN_TIME: &str = "not in time";
/// How late a thread wakes from a sleep of a millisecond if its processor stood still or was busy:
/// close to the time limits of the tests.
const DISTURBED: Duration = Duration::from_millis(20);
/// A test fails after this many disturbed runs.
const ATTEMPTS: usize = 5;

/// Repeats a test whose message says that it was late, if a processor stood still meanwhile. All
/// other failures, and lateness on an undisturbed machine, count at once.
pub fn undisturbed(test: impl Fn()) {
    for attempt in 1.. {
        let (result, late) = while_watched(|| catch_unwind(AssertUnwindSafe(&test)));
        let Err(failure) = result else { return };
        if !is_excused(&*failure, late) || attempt == ATTEMPTS {
            resume_unwind(failure);
        }
        let name = thread::current().name().unwrap_or_default().to_owned();
        // Test runners hide the output of passing tests, but not this line.
        let _ = writeln!(io::stderr(), "{name}: again, a processor stood still for {late:?}");
    }
}

/// Whether the machine may be the reason, given how late a thread was.
fn is_excused(failure: &(dyn Any + Send), late: Duration) -> bool {
    let text = failure.downcast_ref::<String>();
    late >= DISTURBED && text.is_some_and(|text| text.starts_with(NOT_IN_TIME))
}

/// The result of `test`, and how late a thread was on one of the processors meanwhile.
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
    // Where affinity is not allowed, it watches any processor.
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
fn only_lateness_on_a_disturbed_machine_is_excused() {
    let late = format!("{NOT_IN_TIME}: planted");
    let calm = DISTURBED - Duration::from_millis(1);
    for (text, delay, excused) in
        [("planted", DISTURBED, false), (&*late, calm, false), (&*late, DISTURBED, true)]
    {
        assert_eq!(is_excused(&text.to_owned(), delay), excused, "{text}, {delay:?}");
    }
}

#[test]
fn wrong_results_are_not_repeated() {
    let attempts = AtomicUsize::new(0);
    let attempt = || {
        attempts.fetch_add(1, Ordering::Relaxed);
        panic!("planted: {}", attempts.load(Ordering::Relaxed));
    };
    assert!(catch_unwind(AssertUnwindSafe(|| undisturbed(attempt))).is_err());
    assert_eq!(attempts.into_inner(), 1);
}

//! Checks that print a line each, and panic if they fail.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, FromRedisValue};

/// How long [`eventually`] waits.
const EVENTUALLY_SECONDS_MAX: u64 = 10;

/// Checks that the answer is `want`.
#[track_caller]
pub fn equal<T: PartialEq + Debug>(name: &str, got: T, want: T) {
    assert!(got == want, "{name}: got {}, want {}", cut(&got), cut(&want));
    println!("ok {name}");
}

/// Checks a condition about `seen`.
#[track_caller]
pub fn holds(name: &str, condition: bool, seen: impl Debug) {
    assert!(condition, "{name} does not hold for {}", cut(&seen));
    println!("ok {name}");
}

/// Waits until the call returns true.
#[track_caller]
pub fn eventually(name: &str, mut call: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(EVENTUALLY_SECONDS_MAX);
    while !call() {
        assert!(Instant::now() < deadline, "{name}: not within {EVENTUALLY_SECONDS_MAX} seconds");
        thread::sleep(Duration::from_millis(5));
    }
    println!("ok {name}");
}

/// Sends the words of `line` as one command.
#[track_caller]
pub fn ask<T: FromRedisValue>(r: &mut Connection, line: &str) -> T {
    let mut cmd = Cmd::new();
    for word in line.split(' ') {
        cmd.arg(word);
    }
    cmd.query(r).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn cut(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take(500).collect()
}

//! One line for each check, and a panic at the first one that does not hold.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, FromRedisValue, RedisError};

/// How long the server may take for what it does in its own time.
const EVENTUALLY_SECONDS_MAX: u64 = 10;

/// The answer is `want`.
#[track_caller]
pub fn equal<T: PartialEq + Debug>(name: &str, got: T, want: T) {
    assert!(got == want, "{name}: got {}, want {}", cut(&got), cut(&want));
    println!("ok {name}");
}

/// The condition is true; `seen` says what was looked at.
#[track_caller]
pub fn holds(name: &str, condition: bool, seen: impl Debug) {
    assert!(condition, "{name} does not hold for {}", cut(&seen));
    println!("ok {name}");
}

/// The answer is within the range.
#[track_caller]
pub fn between(name: &str, got: i64, range: RangeInclusive<i64>) {
    holds(&format!("{name} in {range:?}"), range.contains(&got), got);
}

/// The call failed with exactly this code and text.
#[track_caller]
pub fn refused<T: Debug>(name: &str, text: &str, answer: Result<T, RedisError>) {
    let Err(error) = answer else { panic!("{name}: got {}, want {text}", cut(&answer)) };
    let code = error.code().unwrap_or("no code");
    equal(name, format!("{code} {}", error.detail().unwrap_or_default()).as_str(), text);
}

/// The call becomes true within some seconds.
#[track_caller]
pub fn eventually(name: &str, mut call: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(EVENTUALLY_SECONDS_MAX);
    while !call() {
        assert!(Instant::now() < deadline, "{name}: not within {EVENTUALLY_SECONDS_MAX} seconds");
        thread::sleep(Duration::from_millis(5));
    }
    println!("ok {name}");
}

/// Sends the words of `line` as one command, past the crate's methods for commands.
#[track_caller]
pub fn ask<T: FromRedisValue>(r: &mut Connection, line: &str) -> T {
    try_ask(r, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The same for a command that may fail.
pub fn try_ask<T: FromRedisValue>(r: &mut Connection, line: &str) -> Result<T, RedisError> {
    let mut cmd = Cmd::new();
    for word in line.split(' ') {
        cmd.arg(word);
    }
    cmd.query(r)
}

fn cut(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take(500).collect()
}

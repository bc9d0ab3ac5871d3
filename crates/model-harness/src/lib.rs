//! Runs a concurrency model that must fail, and checks why it failed.
//!
//! A model proves something only if it can fail, so each model also runs with a fault planted. The
//! failing run happens in a child process, because a model checker that finds a deadlock or a panic
//! unwinds through guards that other threads hold, and that may abort the process. The child is the
//! test binary itself, restricted to the test that called [`fails`].
//!
//! This crate knows neither loom nor shuttle. The caller passes a closure that explores its model.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::env;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

/// Set in the environment of the child: explore the model instead of starting another child.
const CHILD: &str = "MODEL_HARNESS_CHILD";

/// The tests of this process that have checked a model.
static CHECKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Some execution of the model fails, with `failure` in its message. `explore` runs the model and
/// panics when an execution fails.
///
/// Call it from the thread of a `#[test]`: the child finds the test by the name of that thread. A
/// test calls it once: its child fails at the first call.
///
/// # Panics
/// When no execution fails, when the failure has another message, when the child cannot start, or
/// when the test has called it before.
#[allow(clippy::panic)]
pub fn fails(failure: &str, explore: impl FnOnce()) {
    if let Err(reason) = check(failure, explore) {
        panic!("{reason}");
    }
}

/// Returns why the model did not fail as expected. In the child it only explores.
#[allow(clippy::expect_used)]
fn check(failure: &str, explore: impl FnOnce()) -> Result<(), String> {
    if env::var_os(CHILD).is_some() {
        explore();
        return Ok(());
    }
    let test = thread::current().name().expect("the test runner names the thread").to_owned();
    if !CHECKED.lock().expect("nobody panics with it").insert(test.clone()) {
        return Err("this test has checked a model before".to_owned());
    }
    let child = Command::new(env::current_exe().expect("a test is a file"))
        .args(["--exact", &test, "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("a test can run itself");
    let output = String::from_utf8_lossy(&child.stderr);
    match (child.status.success(), output.contains(failure)) {
        (true, _) => Err("no execution failed".to_owned()),
        (false, false) => Err(format!("failed for another reason: {output}")),
        (false, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error in the parent, or `None` in the child.
    fn reason(explore: impl FnOnce()) -> Option<String> {
        let outcome = check("lost update", explore);
        env::var_os(CHILD).is_none().then(|| outcome.err().unwrap_or_default())
    }

    #[test]
    fn a_panic_with_the_message_is_the_expected_failure() {
        let reason = reason(|| assert_eq!(1, 2, "lost update"));
        assert!(reason.is_none_or(|text| text.is_empty()));
    }

    #[test]
    fn a_model_that_holds_is_reported() {
        let reason = reason(|| {});
        assert!(reason.is_none_or(|text| text == "no execution failed"));
    }

    #[test]
    fn a_second_model_of_a_test_is_reported() {
        let fails = || assert_eq!(1, 2, "lost update");
        let (first, second) = (reason(fails), reason(fails));
        assert!(first.is_none_or(|text| text.is_empty()));
        assert!(second.is_none_or(|text| text == "this test has checked a model before"));
    }

    #[test]
    fn another_message_is_reported() {
        let reason = reason(|| assert_eq!(1, 2, "deadlock"));
        assert!(reason.is_none_or(|text| text.starts_with("failed for another reason")));
    }
}

//! Models of the completion: one attempt succeeds, also when another had it in hand and left it
//! open.

use std::sync::Arc;

use loom::thread;

use crate::completion::Completion;
use crate::shim::Fault;
use crate::{fails_with, holds};

/// One attempt has nothing to settle it with, two others have; the owner checks at the same time.
fn three_attempts() {
    let completion = Arc::new(Completion::new());
    let attempt = |outcome: Option<u32>| {
        let completion = Arc::clone(&completion);
        thread::spawn(move || completion.settle(|| outcome))
    };
    let attempts = [attempt(None), attempt(Some(1)), attempt(Some(2))];
    let early = completion.take();
    let won = attempts.map(|attempt| attempt.join().expect("it ends"));
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "one attempt succeeds");
    assert!(!won[0], "one attempt succeeds: not that without an outcome");
    let late = completion.take();
    let taken = early.or(late).expect("one attempt succeeds: its outcome is there");
    assert!(won[taken as usize], "one attempt succeeds: it is its outcome that is taken");
    assert!(early.is_none() || late.is_none(), "one attempt succeeds: it is taken once");
    assert!(!completion.is_open() && completion.take().is_none());
}

#[test]
fn one_attempt_succeeds() {
    holds(2, three_attempts);
}

#[test]
fn a_torn_lock_is_found() {
    fails_with(Fault::TornLock, "one attempt succeeds", 2, three_attempts);
}

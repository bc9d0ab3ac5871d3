//! Every interleaving, and every stale value the memory model permits, of small cases of the
//! mailbox, the gate, the location, the completion and the guard.
//!
//! The sources are those of the product, included beside a `shim` of loom's types. Each model is
//! run twice over: as it is, when it must hold, and with a [`Fault`](shim::Fault) planted in the
//! shim, when loom must find the failure: a model that cannot fail proves nothing.
//!
//! What is bounded: the number of preemptive switches in one execution. Most concurrency bugs need
//! one or two (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../src/completion.rs"]
#[allow(dead_code)]
mod completion;
#[path = "../../src/fd_guard.rs"]
#[allow(dead_code)]
mod fd_guard;
#[path = "../../src/gate.rs"]
#[allow(dead_code)]
mod gate;
#[path = "../../src/mailbox.rs"]
#[allow(dead_code)]
mod mailbox;

#[path = "../../src/client_location.rs"]
#[allow(dead_code)]
mod client_location;

mod client_location_models;
mod completion_models;
mod fd_guard_models;
mod gate_models;
mod mailbox_models;
mod shim;

use std::env;
use std::process::Command;
use std::thread;

use shim::Fault;

/// Set in the environment of a child: run the model, do not start another child.
const CHILD: &str = "SYNC_MODELS_CHILD";

/// The model holds in every execution with at most `preemptions_max` preemptive switches.
fn holds(preemptions_max: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(model);
}

/// Some execution of the model fails, with `failure` in its message.
///
/// The model runs in a child process, this very test alone: where loom finds a deadlock it unwinds
/// through guards that it can no longer release, and that aborts.
fn fails(failure: &str, preemptions_max: usize, model: impl Fn() + Send + Sync + 'static) {
    if env::var_os(CHILD).is_some() {
        return holds(preemptions_max, model);
    }
    let test = thread::current().name().expect("the harness names it after the test").to_owned();
    let child = Command::new(env::current_exe().expect("a test is a file"))
        .args(["--exact", &test, "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("a test can run itself");
    let output = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "no execution failed");
    assert!(output.contains(failure), "failed for another reason: {output}");
}

/// The same, with `fault` planted.
fn fails_with(
    fault: Fault,
    failure: &str,
    preemptions_max: usize,
    model: impl Fn() + Send + Sync + 'static,
) {
    fault.plant();
    fails(failure, preemptions_max, model);
}

//! Every interleaving, and every stale value the memory model permits, of small cases of the
//! mailbox, the gate, the location, the completion, the guard, the positions of the log
//! and the waits for it.
//!
//! The sources are those of the product, included with a `shim` of loom's types. Each model is run
//! twice: as it is, when it must hold, and with a [`Fault`](shim::Fault) planted in the shim, when
//! loom must find the failure: a model that cannot fail proves nothing.
//!
//! The number of preemptive switches in one execution is bounded. Most concurrency bugs need one or
//! two (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
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
#[path = "../../src/gate_slot.rs"]
#[allow(dead_code)]
mod gate_slot;
#[path = "../../src/mailbox.rs"]
#[allow(dead_code)]
mod mailbox;

#[path = "../../src/log_positions.rs"]
#[allow(dead_code)]
mod log_positions;

#[path = "../../src/log_waits.rs"]
#[allow(dead_code)]
mod log_waits;

#[path = "../../src/client_location.rs"]
#[allow(dead_code)]
mod client_location;

mod client_location_models;
mod completion_models;
mod fd_guard_models;
mod gate_models;
mod log_models;
mod log_wait_models;
mod mailbox_models;
mod shim;

use shim::Fault;

/// The model holds in every execution with at most `preemptions_max` preemptive switches.
fn holds(preemptions_max: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(model);
}

/// Some execution of the model fails, with `failure` in its message.
fn fails(failure: &str, preemptions_max: usize, model: impl Fn() + Send + Sync + 'static) {
    model_harness::fails(failure, || holds(preemptions_max, model));
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

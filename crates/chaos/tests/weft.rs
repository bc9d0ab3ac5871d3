//! Weft keeps its promises while clients are killed, paused and moved; planted faults are found.

#![allow(clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use chaos::{Endpoint, Fault, Plan, run};
use test_support::{Certificates, Launch, Ports, Server};

/// Events that must occur before a verdict counts.
const MET: &[&str] = &[
    "audits",
    "changes of io-threads",
    "changes of other parameters",
    "clients killed",
    "connections closed by the server",
    "elements moved by BLMOVE",
    "elements pushed",
    "elements taken",
    "increments",
    "invalidations",
    "looks",
    "messages published",
    "messages received",
    "pauses",
    "requests of subscribers",
    "scribbled batches",
    "slow commands",
    "subscriptions",
    "transfers by scripts",
    "transfers by transactions",
    "transfers of watched accounts",
    "values found in caches",
    "versions written",
    "waits that ended without an element",
];

/// How often a run may be repeated until each event has occurred.
const RUNS_MAX: u32 = 12;

/// How long the clients of one run act.
const RUN_SECONDS: u64 = 4;

fn plan(endpoint: Endpoint, seconds: u64) -> Plan {
    let length = Duration::from_secs(seconds);
    Plan { endpoint, is_weft: true, length, seed: 1, clients: 2, fault: None }
}

fn plain(server: &Server) -> Endpoint {
    Endpoint { address: format!("127.0.0.1:{}", server.port), tls: None }
}

/// Runs a plan until each event has occurred: on a busy machine that may take more than one run.
#[track_caller]
fn check(plan: &Plan) {
    let mut missing = MET.to_vec();
    for _ in 0..RUNS_MAX {
        let report = run(plan);
        assert!(report.failures.is_empty(), "{report}");
        missing.retain(|event| report.counts.get(event).is_none_or(|count| *count == 0));
        if missing.is_empty() {
            return;
        }
    }
    panic!("these events never occurred: {missing:?}");
}

#[test]
fn promises_hold_over_tcp() {
    let server = Server::start(&["--io-threads", "4"]);
    check(&plan(plain(&server), RUN_SECONDS));
}

#[test]
fn promises_hold_over_tls() {
    let files = Arc::new(Certificates::new());
    let launch = Launch::weft().ports(Ports::Tls).certified(&files, "no");
    let server = launch.options(&["--io-threads", "4"]).start();
    let address = format!("127.0.0.1:{}", server.tls_port);
    check(&plan(Endpoint { address, tls: Some(files) }, RUN_SECONDS));
}

#[test]
fn planted_faults_are_found() {
    let server = Server::start(&["--io-threads", "4"]);
    for (name, fault) in Fault::ALL {
        let report = run(&Plan { fault: Some(*fault), ..plan(plain(&server), 30) });
        assert!(!report.failures.is_empty(), "{name} was not found:\n{report}");
    }
}

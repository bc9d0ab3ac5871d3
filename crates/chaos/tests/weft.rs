//! Weft keeps what it promises while clients are killed, paused and moved; planted faults are
//! found.

#![allow(clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::time::Duration;

use chaos::{Endpoint, Fault, Plan, run};
use clients_test::{Certificates, Server};
use tools::client::tls::{TlsConnector, TlsOptions};

/// What a run has to have met before its verdict says anything.
const MET: &[&str] = &[
    "audits",
    "changes of io-threads",
    "changes of others",
    "clients killed",
    "connections closed by the server",
    "elements moved by BLMOVE",
    "elements pushed",
    "elements taken",
    "increments",
    "looks",
    "messages to caches",
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

/// So often a run that has not met everything is repeated.
const RUNS_MAX: u32 = 6;

fn plan(endpoint: Endpoint, seconds: u64) -> Plan {
    let length = Duration::from_secs(seconds);
    Plan { endpoint, is_weft: true, length, seed: 1, clients: 2, fault: None }
}

fn plain(server: &Server) -> Endpoint {
    Endpoint { address: format!("127.0.0.1:{}", server.port), tls: None }
}

/// Runs a plan until all that there is to be met has been met: on a busy machine that may take
/// more than one run.
#[track_caller]
fn check(plan: &Plan) {
    let mut missing = MET.to_vec();
    for _ in 0..RUNS_MAX {
        let report = run(plan);
        assert!(report.failures.is_empty(), "{report}");
        missing.retain(|what| report.counts.get(what).is_none_or(|count| *count == 0));
        if missing.is_empty() {
            return;
        }
    }
    panic!("nothing was seen of these: {missing:?}");
}

#[test]
fn all_is_well_over_tcp() {
    let server = Server::start(&["--io-threads", "4"]);
    check(&plan(plain(&server), 8));
}

#[test]
fn all_is_well_over_tls() {
    let files = Certificates::new();
    let [cert, key, authority] = ["server.pem", "server.key", "ca.pem"].map(|f| files.file(f));
    let options = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let server = Server::start_tls(&[&options[..], &["--io-threads", "4"]].concat());
    let options = TlsOptions { cacert: Some(PathBuf::from(authority)), ..TlsOptions::default() };
    let tls = TlsConnector::new(&options, "127.0.0.1").expect("the certificates are usable");
    let address = format!("127.0.0.1:{}", server.tls_port);
    check(&plan(Endpoint { address, tls: Some(tls) }, 8));
}

#[test]
fn planted_faults_are_found() {
    let server = Server::start(&["--io-threads", "4"]);
    for (name, fault) in Fault::ALL {
        let report = run(&Plan { fault: Some(*fault), ..plan(plain(&server), 30) });
        assert!(!report.failures.is_empty(), "{name} was not found:\n{report}");
    }
}

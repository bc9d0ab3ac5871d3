//! Weft loses nothing that it has acknowledged when it is killed; planted faults are found.

#![allow(clippy::expect_used, clippy::panic)]

use std::time::Duration;

use crash::{Fault, Plan, run};

/// Rounds, unless `CRASH_ROUNDS` in the environment says how many.
const ROUNDS: u32 = 200;

fn plan() -> Plan {
    let program = test_support::weft_program();
    let rounds = std::env::var("CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
    Plan {
        program: vec![program, "server".to_owned()],
        rounds: rounds.unwrap_or(ROUNDS),
        seed: 1,
        writers: 6,
        round_max: Duration::from_millis(100),
        fault: None,
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    let plan = plan();
    let report = run(&plan).expect("a server starts");
    assert!(report.failures.is_empty(), "{report}");
    assert_eq!(report.kills, plan.rounds);
    assert!(report.acknowledged > u64::from(plan.rounds), "{report}");
}

#[test]
fn planted_faults_are_found() {
    for (name, fault) in Fault::NAMES {
        let report = run(&Plan { fault: Some(*fault), ..plan() }).expect("a server starts");
        assert!(!report.failures.is_empty(), "{name}: {report}");
    }
}

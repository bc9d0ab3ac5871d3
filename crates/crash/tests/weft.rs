//! A killed Weft loses no acknowledged write; planted faults are found.

#![allow(clippy::expect_used, clippy::panic)]

use std::time::Duration;

use crash::{Fault, Plan, run};

/// How often the server is killed, unless the environment sets `CRASH_ROUNDS`. `cargo xtask crash`
/// does more.
const ROUNDS: u32 = 60;

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
fn no_acknowledged_write_is_lost() {
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

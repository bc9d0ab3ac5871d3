//! Weft is linearizable while its number of threads changes; planted faults are found.

#![allow(clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::path::Path;
use std::process::Output;

use lin::{BuildError, Checker, Verdict, test_program};
use test_support::Server;

/// How long a run tests the server.
const SECONDS: &str = "6";

/// How long a run tests the server with a fault. Most faults are found within a second.
const FAULT_SECONDS_MAX: &str = "30";

/// A machine that others use may need more runs than one until all has happened. Each begins with
/// another seed.
const RUNS_MAX: usize = 20;

/// Events that must occur before a verdict counts.
const MET: &[&str] = &[
    "histories",
    "changes of io-threads",
    "changes of io-threads-execute",
    "changes of script-parallel",
    "transactions",
    "transactions that a watched key aborted",
    "scripts",
    "operations in a pipeline",
    "operations of unknown outcome",
    "waits that ended without an element",
    "reads of a key that was not there, among expiring keys",
    "MSET",
    "SWAPDB",
    "FLUSHALL",
    "SMOVE",
    "BLMOVE",
    "RENAME",
    "COPY",
];

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the folder is within target")
}

/// The result of a build; `None` without Go, unless CI requires it.
fn available<T>(built: Result<T, BuildError>) -> Option<T> {
    match built {
        Ok(built) => Some(built),
        Err(BuildError::NoGo) if !std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            // Bypasses the test runner, which hides the output of a passing test.
            let line = format!("skipped the tests of linearizability: {}\n", BuildError::NoGo);
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
        Err(error) => panic!("linearizability cannot be tested: {error}"),
    }
}

fn verdict(checker: &Checker, server: &Server, args: &[&str]) -> (Verdict, String) {
    let address = format!("127.0.0.1:{}", server.port);
    let Output { status, stdout, stderr } =
        checker.command(&address).args(args).output().expect("the program runs");
    let said = [stdout, stderr].concat();
    (Verdict::of(status), String::from_utf8_lossy(&said).into_owned())
}

/// The number before a name in the output of the program, if it has a line for it.
fn find_count(said: &str, name: &str) -> Option<u64> {
    let lines = said.lines().filter_map(|line| line.trim_start().split_once(' '));
    lines.filter(|(_, found)| *found == name).find_map(|(number, _)| number.parse().ok())
}

/// The number before a name that has a line in each output.
fn count(said: &str, name: &str) -> u64 {
    find_count(said, name).unwrap_or_else(|| panic!("no line of {name:?} in\n{said}"))
}

#[test]
fn the_model_tells_right_from_wrong() {
    available(test_program(target()));
}

#[test]
fn weft_is_linearizable() {
    let Some(checker) = available(Checker::build(target())) else { return };
    let server = Server::start(&["--io-threads", "4"]);
    let (mut unmet, mut histories, mut undecided) = (MET.to_vec(), 0, 0);
    for run in 1..=RUNS_MAX {
        let arguments = ["-seconds", SECONDS, "-seed", &run.to_string()];
        let (verdict, said) = verdict(&checker, &server, &arguments);
        assert_eq!(verdict, Verdict::Linearizable, "{said}");
        unmet.retain(|name| find_count(&said, name).is_none_or(|number| number == 0));
        histories += count(&said, "histories");
        undecided += count(&said, "histories the checker could not decide in time");
        if unmet.is_empty() && undecided * 50 <= histories {
            return;
        }
    }
    panic!("never happened: {unmet:?}; {undecided} of {histories} histories are undecided");
}

#[test]
fn planted_faults_are_found() {
    let Some(checker) = available(Checker::build(target())) else { return };
    let server = Server::start(&["--io-threads", "4"]);
    let names = checker.names().expect("the program runs");
    let faults = names.lines().filter_map(|line| line.strip_prefix("fault ")?.split_once(':'));
    let mut found = 0;
    for (fault, _) in faults {
        let run = |run: usize| {
            let seed = run.to_string();
            let arguments = ["-seconds", FAULT_SECONDS_MAX, "-seed", &seed, "-fault", fault];
            verdict(&checker, &server, &arguments)
        };
        let found_in =
            (1..=RUNS_MAX).map(run).find(|(verdict, _)| *verdict != Verdict::Linearizable);
        let (verdict, said) = found_in.unwrap_or_else(|| panic!("{fault} was not found"));
        assert_eq!(verdict, Verdict::Violation, "{fault}: {said}");
        assert!(said.contains("not linearizable: "), "{fault}: {said}");
        found += 1;
    }
    assert!(found >= 10, "{names}");
}

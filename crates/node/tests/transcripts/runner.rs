//! Tests of the runner: it detects wrong expectations and gives the correct lines.

use crate::check::{Mismatch, perform};
use crate::fake::TestServer;
use crate::grammar::{Action, parse};
use crate::record::Record;

/// The unmet expectations of a transcript: the actual text, and the correct lines.
fn unmet(transcript: &str) -> Vec<(String, Vec<String>)> {
    let mut server = TestServer::new(4);
    let mut found = Vec::new();
    for step in parse(transcript) {
        let outcome = perform(&mut server, &step);
        for Mismatch { expected, got } in outcome.mismatches(&step) {
            found.push((got.to_owned(), expected.lines_of(got)));
        }
    }
    found
}

#[track_caller]
fn one_unmet(transcript: &str, got: &str, lines: &[&str]) {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(unmet(transcript), [(got.to_owned(), lines)], "{transcript}");
}

#[test]
fn expectations_that_are_met() {
    let transcript = r#"
# A client without a name and two with one.
> SET k v -> OK
! set:k => SET k v
a> GET k -> "v"
> GET k -> ~~ "?"
b> BLPOP l 0
b<
c> RPUSH l 1 -> 1
! rpush:l => RPUSH l 1
! lpop:l del:l => LPOP l
b< ["l", "1"]
b<
@deadlines
b> BLPOP l 1.5
@advance 1501
@deadlines b
b< nil-array
@close b
> CLIENT REPLY SKIP
> PING
> ECHO "a< b" -> "a< b"
"#;
    assert_eq!(unmet(transcript), []);
}

#[test]
fn expectations_that_are_not_met() {
    one_unmet("> GET k\nOK\n", "nil", &["nil"]);
    one_unmet("> GET k -> OK\n", "nil", &["> GET k -> nil"]);
    one_unmet("b> GET k -> ~~ O*\n", "nil", &["b> GET k -> nil"]);
    one_unmet("> GET k\n", "nil", &["> GET k -> nil"]);
    one_unmet("b> GET k\n", "nil", &["b> GET k -> nil"]);
    one_unmet("b> BLPOP k 0 -> nil-array\n", "", &["b> BLPOP k 0"]);
    one_unmet("b> GET k\nb< ~~ O*\n", "nil", &["b< nil"]);
    one_unmet("> BLPOP k 0\nOK\n", "", &[]);
    one_unmet("b> BLPOP k 0\nb< OK\n", "", &["b<"]);
    one_unmet("b> BLPOP k 0\nb<\n> RPUSH k 1\n1\nb<\n", "[\"k\", \"1\"]", &["b< [\"k\", \"1\"]"]);
    one_unmet("> SET k v\nOK\n! set:l => SET k v\n", "set:k => SET k v", &["! set:k => SET k v"]);
    one_unmet("> GET k\nnil\n! del:k => DEL k\n", "", &[]);
    one_unmet("@deadlines a\n", "", &["@deadlines"]);
}

#[test]
fn a_long_expectation_continues_in_lines_of_100_columns() {
    let (long, text) = ("y".repeat(50), format!("{}   {}", "x".repeat(94), "y".repeat(50)));
    let (quoted, request) = (format!("\"{text}\""), format!("b> ECHO \"{text}\""));
    let [first, rest] = [format!("b< \"{}", "x".repeat(94)), format!("     {long}\"")];
    one_unmet(&format!("{request}\n"), &quoted, &[&request, &first, &rest]);
    one_unmet(&format!("{request}\nb< OK\n"), &quoted, &[&first, &rest]);
    assert_eq!(unmet(&format!("{request}\n{first}\n{rest}\n")), []);
}

#[test]
fn a_request_names_its_client() {
    let steps = parse("> GET k\nOK\nname> GET k\nname< a> b\nb> GET k -> a> b\n");
    let clients: Vec<_> = steps
        .iter()
        .map(|step| match &step.action {
            Action::Send(client, _) => (*client, step.expected.text.as_str()),
            _ => panic!("a request"),
        })
        .collect();
    assert_eq!(clients, [("a", "OK"), ("name", "a> b"), ("b", "a> b")]);
}

#[test]
fn malformed_lines_are_refused() {
    for line in ["GET k", "> \"", "@client a", "@advance x", "b < x", "< x", "! x => y"] {
        let outcome = std::panic::catch_unwind(|| parse(line).len());
        assert!(outcome.is_err(), "{line}");
    }
}

#[test]
fn check_fails_where_an_expectation_is_wrong() {
    // A record makes no comparisons.
    if Record::is_wanted() {
        return;
    }
    let failing = || crate::check::check("> PING -> PONG\n> GET k -> OK\n");
    let failure = std::panic::catch_unwind(failing).expect_err("a wrong expectation");
    let text = failure.downcast_ref::<String>().expect("a text");
    assert_eq!(text, "line 2: > GET k -> OK\nwant: OK\n got: nil");
}

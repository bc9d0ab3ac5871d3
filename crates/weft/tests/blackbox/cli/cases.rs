//! The command lines of `cases.txt`, each with its output and exit code.
//!
//! ```text
//! # A comment.
//! $ -n 5 set key 'two words'      the arguments, quoted as for a shell
//! < a line of standard input
//! > a line of standard output     `>~` for a last one without a line end
//! ! a line of standard error      `!~` likewise
//! = 1                             the exit code, unless it is 0
//! % differs from redis-cli on purpose
//! ```
//!
//! PORT stands for the server's port. With CLI_BLESS in the environment, the file is rewritten with
//! the output of `weft cli`. The environment variable WEFT_PEERS names a folder with
//! `bin/redis-cli`, whose output must be the same.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cli, run};
use crate::Server;

/// A blank at the end of a line.
const BLANK: &str = "\\x20";

const SCRIPT: &str = "return {KEYS, ARGV}";

/// A command line and its expectation.
#[derive(Default)]
struct Case {
    /// The lines before its own.
    comments: String,
    args: String,
    input: Vec<String>,
    differs: Option<String>,
    /// The expectation as written in the file.
    expected: String,
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox/cli/cases.txt")
}

fn read_cases() -> Vec<Case> {
    let text = fs::read_to_string(path()).unwrap();
    let (mut cases, mut comments) = (Vec::<Case>::new(), String::new());
    for line in text.lines() {
        let (mark, rest) = line.split_at(line.len().min(1));
        if mark.is_empty() || mark == "#" {
            writeln!(comments, "{line}").unwrap();
            continue;
        }
        if mark == "$" {
            let comments = std::mem::take(&mut comments);
            cases.push(Case { comments, args: rest.trim().into(), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case begins with $");
        match mark {
            "<" => case.input.push(rest.strip_prefix(' ').unwrap_or(rest).into()),
            "%" => case.differs = Some(line.into()),
            ">" | "!" | "=" => writeln!(case.expected, "{line}").unwrap(),
            _ => panic!("no such mark: {line}"),
        }
    }
    cases
}

/// Bytes in the form of the file.
fn push_lines(mark: char, bytes: &[u8], port: &str, out: &mut String) {
    let text: String = String::from_utf8_lossy(bytes).replace(port, "PORT");
    for line in text.split_inclusive('\n') {
        let (end, line) = match line.strip_suffix('\n') {
            Some(line) => ("", line),
            None => ("~", line),
        };
        let escape = |c: char| match c {
            '\\' => "\\\\".to_owned(),
            c if c.is_control() => format!("\\x{:02x}", u32::from(c)),
            c => c.to_string(),
        };
        let mut line: String = line.chars().map(escape).collect();
        if line.ends_with(' ') {
            line.pop();
            line.push_str(BLANK);
        }
        let blank = if line.is_empty() { "" } else { " " };
        writeln!(out, "{mark}{end}{blank}{line}").unwrap();
    }
}

/// The output of a program for a case, in the form of the file.
fn outcome(case: &Case, server: &Server, mut command: Command) -> String {
    let port = server.port.to_string();
    let args = shlex::split(&case.args.replace("PORT", &port)).expect("quotes are closed");
    command.args(["-p", &port]).args(args);
    let line = |line: &String| format!("{}\n", line.replace(BLANK, " "));
    let input: String = case.input.iter().map(line).collect();
    let output = run(&mut command, input.as_bytes());
    let mut out = String::new();
    push_lines('>', &output.stdout, &port, &mut out);
    push_lines('!', &output.stderr, &port, &mut out);
    match output.status.code() {
        Some(0) => {}
        Some(code) => writeln!(out, "= {code}").unwrap(),
        None => panic!("ended by a signal: {}", case.args),
    }
    out
}

/// Whether the output is as expected; the lines of walks may have any order, as redis-cli lists
/// types so.
fn is_same(case: &Case, shown: &str) -> bool {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let is_walk = case.args.contains("keys");
    shown == case.expected || (is_walk && sorted(shown) == sorted(&case.expected))
}

fn start() -> Server {
    let server = Server::start(&["--io-threads", "1"]);
    fs::write(server.path("script.lua"), SCRIPT).unwrap();
    server
}

#[track_caller]
fn check(server: &Server, program: &str, command: impl Fn() -> Command) {
    let cases = read_cases();
    assert!(cases.len() > 100, "cases.txt holds the cases");
    let is_own = program == "weft cli";
    let mut failures = String::new();
    for case in cases.iter().filter(|case| is_own || case.differs.is_none()) {
        let shown = outcome(case, server, command());
        if !is_same(case, &shown) {
            let Case { args, expected, .. } = case;
            writeln!(failures, "{program} {args}\nexpected:\n{expected}shown:\n{shown}").unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn weft_cli_prints_the_output_of_the_cases() {
    let server = start();
    if std::env::var_os("CLI_BLESS").is_none() {
        return check(&server, "weft cli", || cli(server.folder()));
    }
    let mut text = String::new();
    for case in read_cases() {
        let shown = outcome(&case, &server, cli(server.folder()));
        let blank = if case.args.is_empty() { "" } else { " " };
        writeln!(text, "{}${blank}{}", case.comments, case.args).unwrap();
        for line in case.input {
            let blank = if line.is_empty() { "" } else { " " };
            writeln!(text, "<{blank}{line}").unwrap();
        }
        if let Some(line) = case.differs {
            writeln!(text, "{line}").unwrap();
        }
        text.push_str(&shown);
    }
    fs::write(path(), text).unwrap();
}

#[test]
fn redis_cli_prints_the_same() {
    let Some(folder) = std::env::var_os("WEFT_PEERS") else {
        eprintln!("WEFT_PEERS is not set: nothing is compared with redis-cli");
        return;
    };
    let program = Path::new(&folder).join("bin/redis-cli");
    if !program.exists() {
        eprintln!("there is no {}: nothing is compared with it", program.display());
        return;
    }
    let server = start();
    check(&server, "redis-cli", || {
        let mut command = Command::new(&program);
        let folder = server.folder();
        command.current_dir(folder).env("HOME", folder).env_remove("REDISCLI_AUTH");
        command
    });
}

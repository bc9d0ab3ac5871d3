//! The record that the transcripts leave; `record.rs` next to them defines its format.

use std::str::FromStr;

use base::quote::split_args;
use diff::Request;
use test_support::Value;

use xtask::Failure;

/// The runs on one server, in order.
#[derive(Debug)]
pub struct Case {
    /// The name of the test.
    pub test: String,
    server: String,
    /// Whether the server's configuration differs from the default from the start.
    pub is_prepared: bool,
    pub runs: Vec<RecordedRun>,
}

/// A transcript and what it did.
#[derive(Debug, Default)]
pub struct RecordedRun {
    /// The source file, below the root of the workspace.
    pub file: String,
    /// The line where the test gives the transcript to the runner, from 1.
    pub line: usize,
    /// The transcript's lines.
    pub text: Vec<String>,
    pub steps: Vec<RecordedStep>,
    pub unmet: Vec<Unmet>,
}

/// One step of a transcript.
#[derive(Debug)]
pub struct RecordedStep {
    /// From 0.
    pub line: usize,
    pub action: RecordedAction,
    /// The text that the client received from Weft.
    pub replies: Vec<Value>,
    /// The text or pattern that the transcript expects.
    pub expected: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum RecordedAction {
    Send(String, Request),
    Receive(String),
    /// The clock advances by milliseconds.
    Advance(u64),
    Close(String),
}

/// An expectation that Weft does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Its first line in the transcript, from 0.
    pub line: usize,
    /// How many lines it has.
    pub lines: usize,
    pub is_pattern: bool,
    /// The lines that Weft would meet.
    pub new: Vec<String>,
}

/// Reads a record, whose runs come in any order of servers.
///
/// # Errors
/// Names a line that is no record.
pub fn parse(text: &str) -> Result<Vec<Case>, Failure> {
    let mut cases: Vec<Case> = Vec::new();
    let mut current = 0;
    for line in text.lines() {
        let misread = || format!("this is no line of a record: {line}");
        let words = split_args(line.as_bytes()).ok_or_else(misread)?;
        let (kind, words) = words.split_first().ok_or_else(misread)?;
        if kind == b"case" {
            current = begin(&mut cases, words).ok_or_else(misread)?;
            continue;
        }
        let run = cases.get_mut(current).and_then(|case| case.runs.last_mut());
        run.and_then(|run| add(run, kind, words)).ok_or_else(misread)?;
    }
    cases.sort_by(|a, b| a.test.cmp(&b.test));
    Ok(cases)
}

/// Begins a run, and returns the index of its case.
fn begin(cases: &mut Vec<Case>, words: &[Vec<u8>]) -> Option<usize> {
    let (test, server, file) = (word(words, 0)?, word(words, 1)?, word(words, 2)?);
    let run = RecordedRun { file, line: number(words, 3)?, ..RecordedRun::default() };
    let found = cases.iter().position(|case| case.server == server);
    let at = found.unwrap_or_else(|| {
        let is_prepared = word(words, 4).is_some_and(|flag| flag == "1");
        cases.push(Case { test, server, is_prepared, runs: Vec::new() });
        cases.len() - 1
    });
    cases.get_mut(at)?.runs.push(run);
    Some(at)
}

fn add(run: &mut RecordedRun, kind: &[u8], words: &[Vec<u8>]) -> Option<()> {
    match kind {
        b"text" => run.text.push(word(words, 0)?),
        b"send" => {
            let request = words.get(2..)?.to_vec();
            run.steps.push(step(words, RecordedAction::Send(word(words, 1)?, request))?);
        }
        b"receive" => run.steps.push(step(words, RecordedAction::Receive(word(words, 1)?))?),
        b"advance" => run.steps.push(step(words, RecordedAction::Advance(number(words, 1)?))?),
        b"close" => run.steps.push(step(words, RecordedAction::Close(word(words, 1)?))?),
        b"reply" => {
            let step = run.steps.last_mut()?;
            step.expected = word(words, 0)?;
            let mut bytes = words.get(1)?.as_slice();
            // A push may come last; it is skipped.
            while let Ok(value) = Value::read(&mut bytes) {
                step.replies.push(value);
            }
            return bytes.is_empty().then_some(());
        }
        b"unmet" => run.unmet.push(Unmet {
            line: number(words, 0)?,
            lines: number(words, 1)?,
            is_pattern: words.get(2)?.starts_with(b"~~ "),
            new: (3..words.len()).map(|at| word(words, at)).collect::<Option<_>>()?,
        }),
        _ => return None,
    }
    Some(())
}

fn step(words: &[Vec<u8>], action: RecordedAction) -> Option<RecordedStep> {
    let line = number(words, 0)?;
    Some(RecordedStep { line, action, replies: Vec::new(), expected: String::new() })
}

fn word(words: &[Vec<u8>], at: usize) -> Option<String> {
    String::from_utf8(words.get(at)?.clone()).ok()
}

fn number<T: FromStr>(words: &[Vec<u8>], at: usize) -> Option<T> {
    word(words, at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_put_together_by_their_server() -> Result<(), Failure> {
        let text = r#"
            "case" "b::t" "7" "b.rs" "12" "0"
            "text" "> GET k"
            "send" "0" "a" "GET" "\x00"
            "reply" "~~ *" "$1\r\nv\r\n:1\r\n"
            "case" "a::t" "8" "a.rs" "1" "1"
            "advance" "3" "500"
            "case" "b::t" "7" "b.rs" "20" "0"
            "unmet" "1" "2" "~~ x" "y" "  z"
        "#;
        let cases = parse(text.trim())?;
        let tests: Vec<_> = cases.iter().map(|case| (&*case.test, case.is_prepared)).collect();
        assert_eq!(tests, [("a::t", true), ("b::t", false)]);
        let [first, second] = cases[1].runs.as_slice() else { return Err("two runs".into()) };
        assert_eq!((first.line, second.line), (12, 20));
        let request = vec![b"GET".to_vec(), vec![0]];
        assert_eq!(first.steps[0].action, RecordedAction::Send("a".to_owned(), request));
        assert_eq!(first.steps[0].replies.len(), 2);
        let new = vec!["y".to_owned(), "  z".to_owned()];
        assert_eq!(second.unmet, [Unmet { line: 1, lines: 2, is_pattern: true, new }]);
        assert!(parse("\"text\" \"before any case\"").is_err() && parse("\"").is_err());
        Ok(())
    }
}

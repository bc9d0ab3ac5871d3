//! Replays recorded transcripts on a reference and reports the differences.
//!
//! The rules of `diff`, which know unordered and random replies, compare replies with those of
//! Weft. Where the transcript has a pattern, the reply must match it. Effects exist only in Weft
//! and are not compared. Where the transcript advances its clock, the replay sleeps.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use base::glob;
use base::quote::push_quoted;
use diff::compare::{Compare, groups, same};
use diff::rules;
use diff::{Request, request};
use test_support::Value;

use super::accepted::AcceptedTable;
use super::record::{Case, RecordedAction, RecordedRun, RecordedStep};
use super::reference::Reference;
use xtask::Failure;

/// The table of differences, written for Redis 8.0.
const ACCEPTED: &str = "crates/xtask-product/src/transcripts/accepted.txt";
const ACCEPTED_VERSION: &str = "8.0.";

/// The longest sleep for a case.
const SLEEP_MS_MAX: u64 = 3_000;

/// Commands that are not sent: they would end the server or write its files.
const NOT_SENT: &[&str] = &["shutdown", "config|rewrite"];

/// The result of a replay.
#[derive(Default)]
struct ReplayReport {
    replayed: usize,
    requests: usize,
    /// Cases that were not replayed or not to their end, by the reason.
    skipped: BTreeMap<String, usize>,
    /// Accepted differences, by the reason.
    accepted: BTreeMap<String, usize>,
    differences: Vec<String>,
}

/// Replays the cases, and prints the differences without a reason. When all cases are replayed, an
/// unneeded row of the table counts as a difference.
///
/// # Errors
/// When there is a difference, or the server cannot be reached.
pub fn run(root: &Path, cases: &[Case], address: &str, all: bool) -> Result<(), Failure> {
    let failed = |e: io::Error| format!("{address} does not answer: {e}");
    let text = std::fs::read_to_string(root.join(ACCEPTED));
    let text = text.map_err(|e| format!("{ACCEPTED}: {e}"))?;
    let mut table = AcceptedTable::parse(&text)?;
    let mut reference = Reference::connect(address).map_err(failed)?;
    let version = reference.info("redis_version").map_err(failed)?.unwrap_or_default();
    let is_other = reference.info("valkey_version").map_err(failed)?.is_some();
    let mut report = ReplayReport::default();
    for case in cases {
        let replayed = replay(&mut reference, case, &mut table, &mut report);
        replayed.map_err(|e| format!("{}: {}", case.test, failed(e)))?;
    }
    reference.reset().map_err(failed)?;
    if all && !is_other && version.starts_with(ACCEPTED_VERSION) {
        report.differences.extend(table.unused());
    }
    report.print();
    match report.differences.len() {
        0 => Ok(()),
        more => Err(format!("{more} differences without a reason")),
    }
}

impl ReplayReport {
    fn print(&self) {
        for (reason, count) in &self.skipped {
            println!("not replayed {count} times: {reason}");
        }
        for (reason, count) in &self.accepted {
            println!("accepted {count} times: {reason}");
        }
        for difference in &self.differences {
            println!("\n{difference}");
        }
        println!("{} cases, {} requests replayed", self.replayed, self.requests);
    }

    fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_owned()).or_default() += 1;
    }
}

/// Replays the runs of a case.
///
/// # Errors
/// When the server cannot be brought back to its first state.
fn replay(
    reference: &mut Reference,
    case: &Case,
    table: &mut AcceptedTable<'_>,
    report: &mut ReplayReport,
) -> io::Result<()> {
    let steps = || case.runs.iter().flat_map(|run| run.steps.iter().map(move |step| (run, step)));
    let time = |(_, step): (&RecordedRun, &RecordedStep)| match step.action {
        RecordedAction::Advance(ms) => ms,
        _ => 0,
    };
    if let Some(reason) = table.skipped(&case.test) {
        report.skip(reason);
        return Ok(());
    }
    if case.is_prepared {
        report.skip("a configuration to start with");
        return Ok(());
    }
    if steps().map(time).sum::<u64>() > SLEEP_MS_MAX {
        report.skip("it takes too long without a clock to set");
        return Ok(());
    }
    reference.reset()?;
    report.replayed += 1;
    let mut is_lost = false;
    for (run, step) in steps() {
        let line = run.text.get(step.line).map_or("", String::as_str);
        let sent = match &step.action {
            RecordedAction::Send(..) => {
                let sent = line.split_once("> ").map_or(line, |(_, sent)| sent);
                sent.split(" -> ").next().unwrap_or(sent)
            }
            _ => line,
        };
        if let Some(reason) = table.omitted(&case.test, sent) {
            report.skip(reason);
            continue;
        }
        let Some(exchange) = perform(reference, step, report)? else { continue };
        let (request, outcome) = exchange;
        let got = match outcome {
            Ok(replies) if is_same(&request, step, &replies) => continue,
            Ok(replies) => {
                if is_unknown(&replies) && !is_unknown(&step.replies) {
                    report.skip("a command that this server does not know");
                    return Ok(());
                }
                if let Some(reason) = rule(&request, step, &replies) {
                    *report.accepted.entry(reason.to_owned()).or_default() += 1;
                    continue;
                }
                render(&replies)
            }
            Err(error) => {
                is_lost = true;
                format!("no reply: {error}")
            }
        };
        match table.accepted(&case.test, sent) {
            Some(reason) => *report.accepted.entry(reason.to_owned()).or_default() += 1,
            None => report.differences.push(describe(case, run, step, &got)),
        }
        if is_lost {
            break;
        }
    }
    Ok(())
}

/// A request, or nothing when the client only listened, and the replies.
type ReplayExchange = (Request, io::Result<Vec<Value>>);

/// Takes one step; returns `None` if it has nothing to compare.
fn perform(
    reference: &mut Reference,
    step: &RecordedStep,
    report: &mut ReplayReport,
) -> io::Result<Option<ReplayExchange>> {
    let replies = step.replies.len();
    Ok(match &step.action {
        RecordedAction::Send(_, request) if NOT_SENT.contains(&&*rules::name(request)) => {
            report.skip("a request that would end the server or write its files");
            None
        }
        RecordedAction::Send(client, request) => {
            report.requests += 1;
            Some((request.clone(), reference.send(client, request, replies)))
        }
        RecordedAction::Receive(client) => Some((request(&[]), reference.receive(client, replies))),
        RecordedAction::Advance(ms) => {
            // Timers of a server expire a little late.
            sleep(Duration::from_millis(ms + 2));
            None
        }
        RecordedAction::Close(client) => {
            reference.close(client)?;
            None
        }
    })
}

fn is_same(request: &Request, step: &RecordedStep, replies: &[Value]) -> bool {
    if let Some(pattern) = step.expected.strip_prefix("~~ ") {
        return glob::matches(pattern.as_bytes(), render(replies).as_bytes(), false);
    }
    if let ([weft], [other]) = (step.replies.as_slice(), replies) {
        return match compare(request) {
            Compare::Scan(width) => is_same_scan(weft, other, width),
            how => same(how, weft, other),
        };
    }
    step.replies == replies
}

/// The rule of `diff`, which sends data commands only.
fn compare(request: &Request) -> Compare {
    match &*rules::name(request) {
        "config|get" => Compare::Unordered(2),
        "command|list" | "acl|cat" => Compare::Unordered(1),
        _ => rules::compare(request),
    }
}

/// Cursors differ; the elements are the same when the iteration takes one step.
fn is_same_scan(weft: &Value, other: &Value, width: usize) -> bool {
    match (weft.elements(), other.elements()) {
        ([_, weft], [_, other]) => {
            groups(weft.elements(), width) == groups(other.elements(), width)
        }
        _ => weft == other,
    }
}

/// The reason of a rule for a difference.
fn rule(request: &Request, step: &RecordedStep, replies: &[Value]) -> Option<&'static str> {
    let [other] = replies else { return None };
    let [weft] = step.replies.as_slice() else { return None };
    rules::excluded(&rules::name(request)).or_else(|| rules::explained(request, weft, other))
}

fn is_unknown(replies: &[Value]) -> bool {
    let starts: [&[u8]; 2] = [b"ERR unknown command", b"ERR unknown subcommand"];
    let is_start = |text: &[u8]| starts.iter().any(|start| text.starts_with(start));
    matches!(replies, [reply] if reply.is_error() && reply.bytes().is_some_and(is_start))
}

fn describe(case: &Case, run: &RecordedRun, step: &RecordedStep, got: &str) -> String {
    let line = run.text.get(step.line).map_or("", String::as_str);
    let (file, at) = (&run.file, run.line);
    let (weft, number) = (render(&step.replies), step.line + 1);
    format!(
        "{file}:{at}: {}, line {number}\n{line}\n     weft: {weft}\nreference: {got}",
        case.test
    )
}

/// Replies in the form that transcripts have.
fn render(replies: &[Value]) -> String {
    replies.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(b'+' | b':', text) => String::from_utf8_lossy(text).into_owned(),
        Value::Text(b'(', text) => format!("({})", String::from_utf8_lossy(text)),
        Value::Text(b'$', text) => quoted(text),
        Value::Text(b'=', text) => format!("={}", quoted(text).trim_matches('"')),
        Value::Text(marker, text) => {
            format!("{}{}", char::from(*marker), String::from_utf8_lossy(text))
        }
        Value::Null(b'*') => "nil-array".to_owned(),
        Value::Null(_) => "nil".to_owned(),
        Value::Many(b'%', items) => {
            let pairs =
                items.chunks(2).map(|pair| pair.iter().map(text).collect::<Vec<_>>().join(": "));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Many(marker, items) => {
            let mark =
                if *marker == b'*' { String::new() } else { char::from(*marker).to_string() };
            let items: Vec<String> = items.iter().map(text).collect();
            format!("{mark}[{}]", items.join(", "))
        }
    }
}

fn quoted(text: &[u8]) -> String {
    let mut shown = Vec::new();
    push_quoted(&mut shown, text);
    String::from_utf8_lossy(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::transcripts::record::parse;

    /// A server with the one key `k`, which is "v", and its address. It ends with its clients.
    fn server() -> io::Result<String> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?.to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(BufReader::new(stream)));
            }
        });
        Ok(address)
    }

    fn serve(mut stream: BufReader<std::net::TcpStream>) {
        while let Ok(request) = Value::read(&mut stream) {
            let words: Vec<_> = request.elements().iter().filter_map(Value::bytes).collect();
            let reply: &[u8] = match words.as_slice() {
                [b"GET", b"k"] => b"$1\r\nv\r\n",
                [b"GET", _] => b"$-1\r\n",
                [b"SMEMBERS", _] => b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
                [b"BLPOP", ..] => b"",
                [b"NEW"] => b"-ERR unknown command 'NEW'\r\n",
                [b"CONFIG", b"GET", _] => b"*0\r\n",
                _ => b"+OK\r\n",
            };
            if stream.get_mut().write_all(reply).is_err() {
                return;
            }
        }
    }

    /// A record of one case with these steps: the request, the expectation, and Weft's reply.
    fn case(steps: &[(&str, &str, &str)]) -> Result<Vec<Case>, Failure> {
        let mut text = "case test 1 t.rs 5 0\n".to_owned();
        for (line, (request, expected, bytes)) in steps.iter().enumerate() {
            text += &format!("text \"> {request}\"\nsend {line} a {request}\n");
            text += &format!("reply \"{expected}\" \"{bytes}\"\n");
        }
        parse(&text)
    }

    fn replayed(steps: &[(&str, &str, &str)], table: &str) -> Result<ReplayReport, Failure> {
        let mut table = AcceptedTable::parse(table)?;
        let mut report = ReplayReport::default();
        let address = server().map_err(|e| e.to_string())?;
        let mut reference = Reference::connect(&address).map_err(|e| e.to_string())?;
        for case in case(steps)? {
            let outcome = replay(&mut reference, &case, &mut table, &mut report);
            outcome.map_err(|e| e.to_string())?;
        }
        report.differences.extend(table.unused());
        Ok(report)
    }

    #[test]
    fn what_is_the_same_is_not_reported() -> Result<(), Failure> {
        let steps = [
            ("SET k v", "OK", "+OK\\r\\n"),
            ("GET k", "~~ \\\"?\\\"", "$1\\r\\nw\\r\\n"),
            ("SMEMBERS s", "", "*2\\r\\n$1\\r\\nb\\r\\n$1\\r\\na\\r\\n"),
            ("BLPOP l 0", "", ""),
        ];
        let report = replayed(&steps, "")?;
        assert_eq!((report.replayed, report.requests), (1, 4));
        assert!(report.differences.is_empty(), "{:?}", report.differences);
        Ok(())
    }

    #[test]
    fn what_differs_is_reported_or_accepted() -> Result<(), Failure> {
        let steps =
            [("GET k", "", "$1\\r\\nw\\r\\n"), ("GET l", "~~ O*", "+OK\\r\\n"), ("GET m", "", "")];
        let report = replayed(&steps, "")?;
        let first = "t.rs:5: test, line 1\n> GET k\n     weft: \"w\"\nreference: \"v\"";
        assert_eq!(report.differences[0], first);
        assert_eq!(report.differences.len(), 3);
        let table = "Why.\n  accept test: GET [kl]\n  omit test: GET m\n  accept t: X\n";
        let report = replayed(&steps, table)?;
        assert_eq!(report.accepted.get("Why."), Some(&2));
        assert_eq!(report.differences, ["accepted.txt:4: no difference: t: X"]);
        Ok(())
    }

    #[test]
    fn a_command_that_is_unknown_ends_the_case() -> Result<(), Failure> {
        let steps = [("NEW", "", "+OK\\r\\n"), ("GET k", "", "$-1\\r\\n")];
        let report = replayed(&steps, "")?;
        assert!(report.differences.is_empty() && report.skipped.len() == 1);
        let report = replayed(&steps, "Why.\n  skip test\n")?;
        assert_eq!((report.replayed, report.skipped.get("Why.")), (0, Some(&1)));
        Ok(())
    }
}

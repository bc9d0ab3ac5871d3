//! Endless modes: their output, and how they end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use test_support::send_signal;

use super::{ask, cli};
use crate::{Client, Server, Value};

/// A client that runs until it is interrupted.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(server: &Server, args: &[&str]) -> Self {
        let mut command = cli(server.folder());
        command.args(["-p", &server.port.to_string()]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// The rest of the output after Ctrl-C, and the exit code.
    fn interrupt(mut self) -> (String, Option<i32>) {
        send_signal(self.child.id(), "INT");
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start() -> Server {
    Server::start(&["--io-threads", "1"])
}

/// Whether a text is numbers between these pieces.
#[track_caller]
fn has_form(text: &str, pieces: &[&str]) {
    let parts: Vec<&str> = text.split(|c: char| c.is_ascii_digit() || c == '.').collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    assert_eq!(parts, pieces, "{text:?}");
}

#[test]
fn latency_is_one_line_for_other_programs() {
    let server = start();
    let short = |form: &[&str]| ask(&server, &[&["--latency", "-i", "0.05"], form].concat(), "").0;
    has_form(&short(&[]), &[" ", " ", " ", "\n"]);
    has_form(&short(&["--csv"]), &[",", ",", ",", "\n"]);
    let json: serde_json::Value = serde_json::from_str(&short(&["--json"])).unwrap();
    assert!(json["count"].as_u64().unwrap() > 0, "{json}");
    assert!(json["min"].as_u64().unwrap() <= json["max"].as_u64().unwrap(), "{json}");
}

#[test]
fn latency_has_rounds() {
    let server = start();
    let mut running = Running::start(&server, &["--latency-history", "--no-raw", "-i", "0.05"]);
    for _ in 0..2 {
        let line = running.line();
        let last = line.rsplit("\x1b[2K").next().unwrap();
        let form = ["min: ", ", max: ", ", avg: ", " (", " samples) -- ", " seconds range\n"];
        has_form(last, &form);
    }
}

#[test]
fn latency_has_a_spectrum() {
    let server = start();
    let mut running = Running::start(&server, &["--latency-dist", "--mono", "-i", "0.05"]);
    let lines: Vec<String> = (0..10).map(|_| running.line()).collect();
    let cells = lines.iter().find(|line| line.starts_with("\x1b[38;5;0m")).unwrap();
    assert_eq!(cells.matches("\x1b[48;5;").count(), 31, "{cells:?}");
    let bright = cells.matches("\x1b[48;5;0m").count() < 31;
    assert!(bright, "some cell has samples: {cells:?}");
}

#[test]
fn stat_prints_lines() {
    let server = start();
    let mut client = server.client();
    client.ok("SET a 1");
    client.ok("SELECT 5");
    client.ok("SET b 1");
    let mut running = Running::start(&server, &["--stat", "-i", "0.01"]);
    assert!(running.line().starts_with("------- data ------"));
    assert!(running.line().starts_with("keys "));
    let fields =
        |line: String| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let (first, second) = (fields(running.line()), fields(running.line()));
    assert_eq!((first[0].as_str(), first[2].as_str(), first[3].as_str()), ("2", "2", "0"));
    assert_eq!((first[5].as_str(), second[5].as_str()), ("(+0)", "(+1)"));
    assert_eq!(first[6], "2", "connections: {first:?}");
}

#[test]
fn intrinsic_latency_prints_its_results_on_ctrl_c() {
    let server = start();
    let mut running = Running::start(&server, &["--intrinsic-latency", "600"]);
    assert!(running.line().starts_with("Max latency so far: "));
    let (rest, code) = running.interrupt();
    assert!(rest.contains(" total runs (avg latency: "), "{rest}");
    assert_eq!(code, Some(0));
    let (out, ..) = ask(&server, &["--intrinsic-latency", "0"], "");
    assert!(out.contains("longer than the average latency.\n"), "{out}");
}

#[test]
fn a_walk_prints_its_results_on_ctrl_c() {
    let server = start();
    let mut client = server.client();
    for number in 0..1000 {
        client.ok(&format!("SET k{number} 1"));
    }
    // One step of a hundred, and then a long pause in short steps.
    let slow = ["--scan", "--count", "1", "-i", "0.01"];
    let mut running = Running::start(&server, &slow);
    assert!(running.line().starts_with('k'));
    let (rest, code) = running.interrupt();
    assert!(rest.lines().count() < 999, "it did not stop");
    assert_eq!(code, Some(0));
    let slow = ["--bigkeys", "--count", "1", "-i", "0.05"];
    let mut running = Running::start(&server, &slow);
    while !running.line().contains("Biggest string found so far") {}
    let (rest, code) = running.interrupt();
    let line = rest.lines().find(|line| line.contains("Sampled ")).unwrap();
    assert!(line.starts_with('[') && line.ends_with(" keys in the keyspace!"), "{rest}");
    assert_eq!(code, Some(0));
}

#[test]
fn all_keys_are_listed_and_counted() {
    let server = start();
    let mut client = server.client();
    for number in 0..2500 {
        client.ok(&format!("SET k{number} 1"));
    }
    for (key, length) in [("list", 7), ("longer list", 9)] {
        for _ in 0..length {
            client.ask_args(&[b"RPUSH", key.as_bytes(), b"x"]);
        }
    }
    let (out, ..) = ask(&server, &["--scan"], "");
    let mut keys: Vec<&str> = out.lines().collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 2502);
    let (out, ..) = ask(&server, &["--bigkeys", "--count", "3000"], "");
    for line in [
        "Sampled 2502 keys in the keyspace!",
        "Biggest   list found \"longer list\" has 9 items",
        "2 lists with 16 items (00.08% of keys, avg size 8.00)",
        "2500 strings with 2500 bytes (99.92% of keys, avg size 1.00)",
    ] {
        assert!(out.lines().any(|shown| shown == line), "no {line:?} in {out}");
    }
    let (out, ..) = ask(&server, &["--memkeys"], "");
    assert!(out.contains("Sampled 2502 keys in the keyspace!\n"), "{out}");
}

#[test]
fn the_hottest_keys_come_first() {
    let server = Server::start(&["--io-threads", "1", "--maxmemory-policy", "allkeys-lfu"]);
    let mut client = server.client();
    for number in 0..40 {
        client.ok(&format!("SET cold{number} 1"));
    }
    client.ok("SET hot 1");
    for _ in 0..2000 {
        client.ask("GET hot");
    }
    let (out, ..) = ask(&server, &["--hotkeys"], "");
    let (_, summary) = out.split_once("-------- summary -------").unwrap();
    let lines: Vec<&str> = summary.lines().filter(|line| line.starts_with("hot key")).collect();
    assert_eq!(lines.len(), 16, "{summary}");
    assert!(lines[0].ends_with("keyname: \"hot\""), "{summary}");
}

#[test]
fn messages_and_requests_come_as_they_happen() {
    let server = start();
    let mut client = server.client();
    let mut running = Running::start(&server, &["--csv", "subscribe", "c"]);
    assert_eq!(running.line(), "\"subscribe\",\"c\",1\n");
    client.ask("PUBLISH c hello");
    assert_eq!(running.line(), "\"message\",\"c\",\"hello\"\n");
    let mut running = Running::start(&server, &["-3", "--no-raw", "psubscribe", "d*"]);
    assert_eq!(running.line(), "1) \"psubscribe\"\n");
    let mut running = Running::start(&server, &["monitor"]);
    assert_eq!(running.line(), "OK\n");
    client.ask("GET seen");
    assert!(running.line().ends_with("\"GET\" \"seen\"\n"));
}

#[test]
fn pushes_are_shown_where_asked() {
    let server = start();
    let tracked = "client tracking on\nget k\nset k 1\nping\n";
    // The notification of a client's own change follows the reply.
    let (hidden, ..) = ask(&server, &["-3"], tracked);
    assert_eq!(hidden, "OK\n\nOK\nPONG\n");
    let (shown, ..) = ask(&server, &["-3", "--no-raw", "--show-pushes", "yes"], tracked);
    assert_eq!(shown, "OK\n\"1\"\nOK\n-> invalidate: 'k'\nPONG\n");
    let (shown, ..) = ask(&server, &["--json", "--show-pushes", "y"], tracked);
    assert_eq!(shown, "\"OK\"\n\"1\"\n\"OK\"\n[\"invalidate\",[\"k\"]]\n\"PONG\"\n");
}

#[test]
fn a_transfer_waits_for_its_input() {
    let server = start();
    let mut command = cli(server.folder());
    command.args(["-p", &server.port.to_string(), "--pipe"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut client: Client = server.client();
    for number in 1..=3 {
        stdin.write_all(b"INCR n\r\n").unwrap();
        test_support::eventually("the request arrives", || {
            client.ask("GET n") == Value::bulk(number.to_string())
        });
    }
    drop(stdin);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(out.ends_with("errors: 0, replies: 3\n"), "{out}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_transfer_gives_up_on_silence() {
    let server = start();
    let begin = "BLPOP nothing 0\r\n";
    let (out, errors, code) = ask(&server, &["--pipe", "--pipe-timeout", "1"], begin);
    assert!(out.ends_with("errors: 1, replies: 0\n"), "{out}");
    assert_eq!((errors.as_str(), code), ("No replies for 1 seconds: exiting.\n", Some(1)));
}

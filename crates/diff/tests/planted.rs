//! Weft agrees with itself; a fault in one of two Wefts is found, repeated, and shown by a few
//! requests.
//!
//! A proxy plants the faults: it replaces a command or a rule in requests, or a part of a reply. So
//! the tests need no other server.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use diff::generate::{Mix, Version, data_commands};
use diff::run::Tally;
use diff::{Difference, Found, Pair, Peer, Plan, Request, Step, Summary};
use test_support::{Server, Value};

/// Requests of one test: enough to meet each planted fault many times.
const REQUESTS: u64 = 12_000;

/// How many kinds of differences one fault may cause.
const DIFFERENCES_MAX: usize = 3;

/// Both servers know all commands, so those later than Redis 8.0 are sent as well.
const NEWEST: Version = [99, 0, 0];

fn compare(reference: &str, subject: &str, only: &[&str]) -> Summary {
    compare_mix(reference, subject, only, Mix::REQUESTS)
}

fn compare_mix(reference: &str, subject: &str, only: &[&str], mix: Mix) -> Summary {
    let reference = Peer::connect("reference", reference).unwrap();
    let subject = Peer::connect("subject", subject).unwrap();
    let mut pair = Pair::new(subject, reference).unwrap();
    let mut wanted = data_commands();
    wanted.retain(|command| only.is_empty() || only.contains(&command.name));
    let (commands, unknown) = pair.known(wanted).unwrap();
    assert!(unknown.is_empty(), "{unknown:?}");
    let plan = Plan {
        commands,
        mix,
        version: NEWEST,
        requests: REQUESTS,
        seed: 1,
        round_requests: 500,
        look_requests: 100,
        differences_max: DIFFERENCES_MAX,
        // It ends by itself, later where the machine is slow.
        shrink_time: Duration::from_secs(3600),
    };
    diff::run(&mut pair, &plan, &mut |_, _| {}).unwrap()
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

/// The address of a proxy that replaces one word by another in requests.
fn with_fault(server: &Server, heard: &'static str, said: &'static str) -> String {
    assert_eq!(heard.len(), said.len(), "the lengths in the protocol stay right");
    proxy(server, [heard, said], [""; 2])
}

/// The address of a proxy that replaces the first of two texts by the second, in requests and in
/// replies. It serves until the test process ends.
fn proxy(server: &Server, asked: [&'static str; 2], replied: [&'static str; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let target = self::address(server);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(&target) else { return };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || forward(from, to, asked.map(str::as_bytes)));
            std::thread::spawn(move || forward(server, client, replied.map(str::as_bytes)));
        }
    });
    address
}

/// Forwards bytes with one text replaced by another. A text that a read splits passes unchanged.
fn forward(mut from: TcpStream, mut to: TcpStream, [heard, said]: [&[u8]; 2]) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer) {
        let (mut rest, mut bytes) = (&buffer[..count], Vec::new());
        while let Some((first, after)) = rest.split_first() {
            match rest.strip_prefix(heard).filter(|_| !heard.is_empty()) {
                Some(after) => {
                    bytes.extend_from_slice(said);
                    rest = after;
                }
                None => {
                    bytes.push(*first);
                    rest = after;
                }
            }
        }
        if count == 0 || to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn weft_agrees_with_itself() {
    let (one, two) = (Server::start(&[]), Server::start(&["--io-threads", "2"]));
    let summary = compare(&address(&one), &address(&two), &[]);
    assert!(summary.differences.is_empty(), "{:?}", summary.differences);
    assert!(summary.sent >= REQUESTS, "{}", summary.sent);
    let refused: u64 = summary.tallies.values().map(Tally::refused).sum();
    assert!(refused * 2 < summary.sent, "{refused} of {} were refused", summary.sent);
    let mut unsent = data_commands();
    unsent.retain(|command| !summary.tallies.contains_key(command.name));
    assert!(unsent.is_empty(), "every command has its turn: {unsent:?}");
}

#[test]
fn weft_agrees_with_itself_in_transactions_scripts_and_rules_of_users() {
    let (one, two) = (Server::start(&[]), Server::start(&["--io-threads", "2"]));
    let summary = compare_mix(&address(&one), &address(&two), &[], Mix::ALL);
    assert!(summary.differences.is_empty(), "{:?}", summary.differences);
    for name in ["exec", "eval", "evalsha", "fcall_ro", "acl|setuser", "acl|dryrun", "auth"] {
        let went_well = summary.tallies.get(name).is_some_and(|tally| tally.refused() < tally.sent);
        assert!(went_well, "{name}");
    }
}

#[test]
fn a_wrong_reply_is_found_and_shown_by_a_few_requests() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let faulty = with_fault(&two, "\r\nINCRBY\r\n", "\r\nDECRBY\r\n");
    let summary = compare(&address(&one), &faulty, &["incrby", "set", "append", "get", "del"]);
    let difference = summary.differences.first().expect("the fault is found");
    match &difference.found {
        Found::Reply(_, request, subject, reference) => {
            assert_ne!(subject, reference);
            assert_eq!(request[0], b"INCRBY");
        }
        other => panic!("{other:?}"),
    }
    // FLUSHALL, and the request with the fault.
    assert!((2..=4).contains(&difference.steps.len()), "{:?}", difference.steps);
}

#[test]
fn a_wrong_state_is_found_behind_right_replies() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    // Two elements are a legal number of arguments, so there is no error.
    let faulty = with_fault(&two, "*4\r\n$5\r\nRPUSH\r\n", "*4\r\n$5\r\nLPUSH\r\n");
    let summary = compare(&address(&one), &faulty, &["rpush", "del"]);
    // The error of a refused request names the command, so it differs, too.
    let is_state = |difference: &&Difference| matches!(difference.found, Found::State(_));
    let difference = summary.differences.iter().find(is_state).expect("the fault is found");
    match &difference.found {
        Found::State(unlike) => assert_eq!(unlike.request[0], b"LRANGE"),
        other => panic!("{other:?}"),
    }
    assert!((2..=4).contains(&difference.steps.len()), "{:?}", difference.steps);
}

#[test]
fn what_one_server_does_not_read_of_the_other_is_found() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    // The value restored under this name is not that of the key in the request.
    let faulty = with_fault(&two, "\r\nrestored:l1\r\n", "\r\nrestored:l2\r\n");
    let summary = compare(&address(&one), &faulty, &["rpush", "del"]);
    let difference = summary.differences.first().expect("the fault is found");
    assert!(matches!(difference.found, Found::State(_)), "{:?}", difference.found);
    assert!((2..=4).contains(&difference.steps.len()), "{:?}", difference.steps);
}

#[test]
fn an_exchange_of_nothing_is_no_fault() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let harmless = with_fault(&two, "\r\nRPUSH\r\n", "\r\nrpush\r\n");
    let summary = compare(&address(&one), &harmless, &["rpush", "del"]);
    assert!(summary.differences.is_empty(), "{:?}", summary.differences);
}

/// The first expected difference between a server and a proxy.
fn check_planted(
    one: &Server,
    faulty: &str,
    only: &[&str],
    mix: Mix,
    is_meant: impl Fn(&Request, &Value, &Value) -> bool,
) -> Vec<Step> {
    let summary = compare_mix(&address(one), faulty, only, mix);
    let meant = summary.differences.iter().find(|difference| match &difference.found {
        Found::Reply(_, request, subject, reference) => is_meant(request, subject, reference),
        _ => false,
    });
    let meant = meant.unwrap_or_else(|| panic!("the fault is found: {:?}", summary.differences));
    meant.steps.clone()
}

#[test]
fn a_transaction_that_leaves_out_a_reply_is_found() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let faulty = proxy(&two, [""; 2], ["*2\r\n+OK\r\n+OK\r\n", "*1\r\n+OK\r\n"]);
    let mix = Mix::of_kinds(&["transactions"]);
    let steps = check_planted(&one, &faulty, &["mset"], mix, |request, subject, reference| {
        request == &diff::request(&["EXEC"])
            && subject.elements().len() + 1 == reference.elements().len()
    });
    // FLUSHALL first; two requests stand between MULTI and EXEC.
    let words: Vec<&[u8]> = steps.iter().map(|step| step.request[0].as_slice()).collect();
    let ends = [words.first(), words.get(words.len() - 4), words.last()];
    assert_eq!(ends, [Some(&&b"FLUSHALL"[..]), Some(&&b"MULTI"[..]), Some(&&b"EXEC"[..])]);
    assert!(words.len() <= 6, "{steps:?}");
}

fn nulls(reply: &Value) -> usize {
    match reply {
        Value::Null(_) => 1,
        reply => reply.elements().iter().map(nulls).sum(),
    }
}

#[test]
fn a_script_that_sees_nulls_of_the_other_protocol_is_found() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let faulty = with_fault(&two, "redis.setresp(3)", "redis.setresp(2)");
    let mix = Mix { requests: 10, ..Mix::of_kinds(&["scripting"]) };
    // The null of protocol 3 is nil, which ends a list; that of protocol 2 is false.
    let steps =
        check_planted(&one, &faulty, &["mget", "set"], mix, |request, subject, reference| {
            request[1].starts_with(b"redis.setresp(3)") && nulls(subject) > nulls(reference)
        });
    assert!((2..=4).contains(&steps.len()), "{steps:?}");
}

#[test]
fn a_rule_that_lets_a_key_through_is_found() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    // The rules look right, since the proxy replaces them in replies as well.
    let faulty = proxy(&two, ["\r\n$3\r\n~s*\r\n", "\r\n$3\r\n~**\r\n"], ["~**", "~s*"]);
    let mix = Mix::of_kinds(&["acl"]);
    let is_denied = |reply: &Value| {
        let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
        text.starts_with("NOPERM") || text.contains("has no permissions to access")
    };
    let steps = check_planted(&one, &faulty, &["get", "append"], mix, |_, subject, reference| {
        is_denied(reference) && !is_denied(subject)
    });
    assert!(steps.len() <= 6, "{steps:?}");
}

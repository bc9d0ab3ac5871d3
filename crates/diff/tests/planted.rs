//! Weft against Weft agrees with itself, and against a Weft that has a fault the fault is found,
//! repeated, and shown by a few requests.
//!
//! The faults are planted by a proxy that exchanges one command for another of the same length on
//! the way to the server. So the tests need no other server than the one of this source.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use clients_test::Server;
use diff::generate::{Version, data_commands};
use diff::run::Tally;
use diff::{Difference, Found, Pair, Peer, Plan, Summary};

/// Requests of one test: enough to meet each planted fault many times over.
const REQUESTS: u64 = 8_000;

/// Both sides are of this source, so what came after Redis 8.0 is sent as well.
const NEWEST: Version = [99, 0, 0];

fn compare(reference: &str, subject: &str, only: &[&str]) -> Summary {
    let reference = Peer::connect("reference", reference).unwrap();
    let subject = Peer::connect("subject", subject).unwrap();
    let mut pair = Pair::new(subject, reference).unwrap();
    let mut wanted = data_commands();
    wanted.retain(|command| only.is_empty() || only.contains(&command.name));
    let (commands, unknown) = pair.known(wanted).unwrap();
    assert!(unknown.is_empty(), "{unknown:?}");
    let plan = Plan {
        commands,
        version: NEWEST,
        requests: REQUESTS,
        seed: 1,
        round_requests: 500,
        look_requests: 100,
        differences_max: 3,
        shrink_time: Duration::from_secs(20),
    };
    diff::run(&mut pair, &plan, &mut |_, _| {}).unwrap()
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

/// The address of a proxy that says one word for another to a server; it serves until the test
/// process ends.
fn with_fault(server: &Server, heard: &'static str, said: &'static str) -> String {
    assert_eq!(heard.len(), said.len(), "the lengths in the protocol stay right");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let target = self::address(server);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(&target) else { return };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || forward(from, to, heard.as_bytes(), said.as_bytes()));
            std::thread::spawn(move || forward(server, client, b"", b""));
        }
    });
    address
}

/// Passes bytes on, one word exchanged for another; a word that is cut by a read gets through.
fn forward(mut from: TcpStream, mut to: TcpStream, heard: &[u8], said: &[u8]) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer) {
        let bytes = &mut buffer[..count];
        let mut at = 0;
        while !heard.is_empty() && at + heard.len() <= bytes.len() {
            if bytes[at..].starts_with(heard) {
                bytes[at..at + said.len()].copy_from_slice(said);
            }
            at += 1;
        }
        if count == 0 || to.write_all(bytes).is_err() {
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
    // The servers are emptied and the fault is met.
    assert!((2..=4).contains(&difference.steps.len()), "{:?}", difference.steps);
}

#[test]
fn a_wrong_state_is_found_behind_right_replies() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    // Two elements are a right number of arguments, which no error speaks of.
    let faulty = with_fault(&two, "*4\r\n$5\r\nRPUSH\r\n", "*4\r\n$5\r\nLPUSH\r\n");
    let summary = compare(&address(&one), &faulty, &["rpush", "del"]);
    // A refused request is told from the other as well, by the name of the command in its error.
    let is_state = |difference: &&Difference| matches!(difference.found, Found::State(_));
    let difference = summary.differences.iter().find(is_state).expect("the fault is found");
    match &difference.found {
        Found::State(unlike) => assert_eq!(unlike.request[0], b"LRANGE"),
        other => panic!("{other:?}"),
    }
    assert!((2..=4).contains(&difference.steps.len()), "{:?}", difference.steps);
}

#[test]
fn an_exchange_of_nothing_is_no_fault() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let harmless = with_fault(&two, "\r\nRPUSH\r\n", "\r\nrpush\r\n");
    let summary = compare(&address(&one), &harmless, &["rpush", "del"]);
    assert!(summary.differences.is_empty(), "{:?}", summary.differences);
}

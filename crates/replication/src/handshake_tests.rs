//! Tests of the handshake against scripted primaries.

use proptest::prelude::*;

use super::*;
use crate::test_ids::id;

/// The requests that the replica sends, as words, and its outcome, when the primary answers with
/// these bytes.
fn run(options: HandshakeOptions, parts: &[&[u8]]) -> (String, Handshake, usize) {
    let mut handshake = Handshake::new(options, 0);
    let mut sent = Vec::new();
    let mut consumed = 0;
    for part in [&[&b""[..]], parts].concat() {
        consumed += handshake.handle_bytes(part, 0);
        sent.extend(handshake.poll_transmit().into_iter().flatten());
    }
    let text = String::from_utf8_lossy(&sent).into_owned();
    let words = text.split("\r\n").filter(|line| !line.starts_with('$'));
    let words: Vec<&str> = words.filter(|line| !line.is_empty()).collect();
    let requests = words.join(" ");
    (requests, handshake, consumed)
}

fn plain() -> HandshakeOptions {
    HandshakeOptions { listening_port: 6380, ..HandshakeOptions::default() }
}

fn resuming() -> HandshakeOptions {
    HandshakeOptions { resume: Some((id(0xaa), 1051)), ..plain() }
}

fn check(options: HandshakeOptions, answers: &str, wanted: &HandshakeOutcome) {
    let (_, handshake, _) = run(options, &[answers.as_bytes()]);
    assert_eq!(handshake.outcome(), Some(wanted), "{answers:?}");
}

fn events(handshake: &mut Handshake) -> Vec<String> {
    std::iter::from_fn(|| handshake.poll_event()).map(|event| event.to_string()).collect()
}

const REPLCONF: &str = "*3 REPLCONF listening-port 6380 *5 REPLCONF capa eof capa psync2";

#[test]
fn a_replica_without_options_sends_the_least() {
    let answers = b"+PONG\r\n+OK\r\n+OK\r\n";
    let (requests, handshake, _) = run(plain(), &[answers]);
    assert_eq!(requests, format!("*1 PING {REPLCONF} *3 PSYNC ? -1"));
    assert_eq!(handshake.outcome(), None);
}

#[test]
fn options_are_sent_in_one_piece_in_the_order_of_the_peers() {
    let credentials = PrimaryCredentials { user: Some(b"u".to_vec()), password: b"p".to_vec() };
    let options = HandshakeOptions {
        credentials: Some(credentials),
        announce_ip: Some(b"10.0.0.9".to_vec()),
        version: Some("9.0.0"),
        failover: true,
        ..resuming()
    };
    let mut handshake = Handshake::new(options.clone(), 0);
    assert_eq!(handshake.poll_transmit().as_deref(), Some(crate::wire::PING));
    handshake.handle_bytes(b"-NOAUTH Authentication required.\r\n", 0);
    let piece = String::from_utf8_lossy(&handshake.poll_transmit().unwrap()).into_owned();
    assert!(piece.contains("AUTH") && piece.ends_with("9.0.0\r\n"), "{piece}");
    assert_eq!(handshake.poll_transmit(), None);
    let (requests, ..) = run(options, &[b"+PONG\n+OK\n-ERR a\n-ERR b\n+OK\n-ERR c\n"]);
    let wanted = format!(
        "*1 PING *3 AUTH u p *3 REPLCONF listening-port 6380 *3 REPLCONF ip-address 10.0.0.9 *5 \
         REPLCONF capa eof capa psync2 *3 REPLCONF version 9.0.0 *4 PSYNC {} 1051 FAILOVER",
        id(0xaa)
    );
    assert_eq!(requests, wanted);
    let credentials = PrimaryCredentials { user: None, password: b"p".to_vec() };
    let options = HandshakeOptions { credentials: Some(credentials), ..plain() };
    assert!(!format!("{options:?}").contains("112"), "a password is in no log");
    assert!(run(options, &[b"+PONG\n"]).0.contains("*2 AUTH p"));
}

#[test]
fn the_answer_to_ping_may_ask_for_a_login() {
    for answer in ["+PONG", "+x", "-NOAUTH a", "-NOPERM a", "-ERR operation not permitted"] {
        let (_, handshake, _) = run(plain(), &[answer.as_bytes(), b"\r\n"]);
        assert_eq!(handshake.outcome(), None, "{answer}");
    }
    for answer in ["-ERR x", "-LOADING x", ":1", "HTTP/1.1 400 Bad Request", "$4"] {
        let failure = HandshakeFailure::Ping(answer.to_owned());
        check(plain(), &format!("{answer}\r\n"), &HandshakeOutcome::Retry(failure));
    }
}

#[test]
fn a_wrong_password_ends_the_attempt_and_unknown_options_do_not() {
    let credentials = PrimaryCredentials { user: None, password: b"p".to_vec() };
    let options = HandshakeOptions { credentials: Some(credentials), ..plain() };
    let failure = HandshakeFailure::Auth("-WRONGPASS no".to_owned());
    assert!(failure.needs_operator());
    check(options, "+PONG\r\n-WRONGPASS no\r\n", &HandshakeOutcome::Retry(failure));
    let (requests, mut handshake, _) = run(plain(), &[b"+PONG\r\n-ERR no\r\n-ERR no\r\n"]);
    assert!(requests.ends_with("PSYNC ? -1"), "{requests}");
    let found = events(&mut handshake);
    let line = "(Non critical) Master does not understand REPLCONF listening-port: -ERR no";
    assert_eq!(found[1], line);
    assert_eq!(found[3], "Partial resynchronization not possible (no cached master)");
}

#[test]
fn every_answer_to_psync_has_its_outcome() {
    let full = HandshakeOutcome::Full { id: id(0xbb), offset: 1000 };
    let sync = HandshakeOutcome::FullWithoutOffset;
    let continued = |id| HandshakeOutcome::Continue { id };
    let retry = HandshakeOutcome::Retry;
    let text = |line: &str| line.to_owned();
    let bad = |line: &str| retry(HandshakeFailure::BadAnswer(text(line)));
    let not_now = |line: &str| retry(HandshakeFailure::NotNow(text(line)));
    let not_permitted = |line: &str| retry(HandshakeFailure::NotPermitted(text(line)));
    let upper = id(0xbb).to_string().to_uppercase();
    let resync = |offset: &str| format!("+FULLRESYNC {} {offset}", id(0xbb));
    for (answer, wanted) in [
        (format!("+FULLRESYNC {upper} 1000"), full.clone()),
        (resync("-1"), bad(&resync("-1"))),
        (resync("1000 more"), full),
        (resync("1000x"), bad(&resync("1000x"))),
        (text("+FULLRESYNC x 1"), bad("+FULLRESYNC x 1")),
        (text("+FULLRESYNC"), bad("+FULLRESYNC")),
        (format!("+CONTINUE {}", id(0xaa)), continued(Some(id(0xaa)))),
        (format!("+CONTINUE {upper}"), continued(Some(id(0xbb)))),
        (text("+CONTINUE"), continued(None)),
        (text("-NOMASTERLINK a"), not_now("-NOMASTERLINK a")),
        (text("-LOADING a"), not_now("-LOADING a")),
        (text("-NOPERM a"), not_permitted("-NOPERM a")),
        (text("-NOAUTH"), not_permitted("-NOAUTH")),
        (text("-ERR unknown command 'PSYNC'"), sync.clone()),
        (text("+RDBCHANNELSYNC 7"), sync.clone()),
        (text("+CONTINUED"), sync),
    ] {
        for alive in ["", "\n", "\n\n\r\n"] {
            let answers = format!("{alive}+PONG\r\n+OK\r\n{alive}+OK\r\n{alive}{answer}\r\n");
            check(resuming(), &answers, &wanted);
        }
    }
    // A primary cannot continue what was not asked for.
    check(plain(), "+PONG\n+OK\n+OK\n+CONTINUE\n", &bad("+CONTINUE"));
}

#[test]
fn a_new_id_is_logged() {
    let line = format!("+PONG\n+OK\n+OK\n+CONTINUE {}\n", id(0xbb));
    let (_, mut handshake, _) = run(resuming(), &[line.as_bytes()]);
    let wanted = format!("Master replication ID changed to {}", id(0xbb));
    assert_eq!(events(&mut handshake).last(), Some(&wanted));
    let line = line.replace("bb", "aa");
    let (_, mut handshake, _) = run(resuming(), &[line.as_bytes()]);
    assert_eq!(handshake.outcome(), Some(&HandshakeOutcome::Continue { id: Some(id(0xaa)) }));
    assert!(!events(&mut handshake).iter().any(|event| event.contains("changed")));
}

#[test]
fn sync_is_sent_after_an_error_to_psync() {
    let (requests, ..) = run(plain(), &[b"+PONG\n+OK\n+OK\n-ERR unknown command\n"]);
    assert!(requests.ends_with("PSYNC ? -1 *1 SYNC"), "{requests}");
}

#[test]
fn a_refused_failover_does_not_fetch_all_data() {
    let options = HandshakeOptions { failover: true, ..resuming() };
    let error = "-ERR PSYNC FAILOVER can't be sent to a master.";
    let answers = format!("+PONG\n+OK\n+OK\n{error}\n");
    let (requests, handshake, _) = run(options, &[answers.as_bytes()]);
    assert!(requests.ends_with("1051 FAILOVER"), "{requests}");
    let failure = HandshakeFailure::FailoverRefused(error.to_owned());
    assert_eq!(handshake.outcome(), Some(&HandshakeOutcome::Retry(failure)));
}

#[test]
fn lines_and_waits_are_bounded() {
    let (_, handshake, _) = run(plain(), &[&[b'+'; LINE_BYTES_MAX + 1]]);
    assert!(matches!(handshake.outcome(), Some(HandshakeOutcome::Retry(failure))
        if failure.needs_operator()));
    let mut handshake = Handshake::new(plain(), 1_000);
    handshake.handle_timeout(61_000, 60_000);
    assert_eq!(handshake.outcome(), None);
    // A newline counts as a sign of life.
    handshake.handle_bytes(b"\n", 61_000);
    handshake.handle_timeout(121_000, 60_000);
    assert_eq!(handshake.outcome(), None);
    handshake.handle_timeout(121_001, 60_000);
    let timeout = HandshakeOutcome::Retry(HandshakeFailure::Timeout);
    assert_eq!(handshake.outcome(), Some(&timeout));
    // The first outcome stays.
    let (_, mut handshake, _) = run(resuming(), &[b"+PONG\n+OK\n+OK\n+CONTINUE\n"]);
    handshake.handle_timeout(u64::MAX, 60_000);
    assert_eq!(handshake.outcome(), Some(&HandshakeOutcome::Continue { id: None }));
}

/// All that a primary sends up to the decision, and bytes that follow it.
fn conversation() -> (Vec<u8>, usize) {
    let before = format!("+PONG\r\n\n+OK\r\n-ERR no\r\n\n\n+FULLRESYNC {} 1000\r\n", id(0xbb));
    let len = before.len();
    (before.into_bytes().into_iter().chain(*b"$5\r\nREDIS").collect(), len)
}

#[test]
fn every_split_of_the_answers_has_the_same_outcome() {
    let (bytes, len) = conversation();
    let whole = run(plain(), &[&bytes]);
    assert_eq!(whole.2, len, "the bytes of the file are left alone");
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        let split = run(plain(), &[first, second]);
        assert_eq!((&split.0, split.2), (&whole.0, len), "{at}");
        assert_eq!(split.1.outcome(), whole.1.outcome(), "{at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run(plain(), &single).2, len);
}

proptest! {
    #[test]
    fn no_answer_panics(parts in proptest::collection::vec(any::<Vec<u8>>(), 0..20)) {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        run(resuming(), &[&[&b"+PONG\n+OK\n+OK\n"[..]], &parts[..]].concat());
        run(plain(), &parts);
    }
}

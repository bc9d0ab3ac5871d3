//! Bytes on their way: in pieces, in masses, to the end.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::net::tls::stream::SEND_BYTES_MAX;

#[test]
fn bytes_that_come_one_at_a_time_are_understood() {
    let files = Files::new();
    for versions in [&BOTH[..1], &BOTH[1..]] {
        let mut pair = Pair::new(files.server(), files.client(versions, None));
        let mut got = Vec::new();
        pair.client.writer().write_all(b"PING\r\n").unwrap();
        for _ in 0..10 {
            let mut flight = Vec::new();
            while pair.client.wants_write() {
                pair.client.write_tls(&mut flight).unwrap();
            }
            for byte in flight {
                pair.wire.write_all(&[byte]).unwrap();
                match pair.server_reads() {
                    Ok(bytes) => got.extend(bytes),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            pair.client_receives().unwrap();
        }
        assert_eq!(got, b"PING\r\n");
        assert!(!pair.server.is_handshaking());
        for byte in b"+PONG\r\n" {
            pair.server.write_all(&[*byte]).unwrap();
        }
        pair.client_receives().unwrap();
        assert_eq!(pair.client_reads(), b"+PONG\r\n");
        assert_eq!(pair.server.kept_bytes(), 0);
    }
}

#[test]
fn a_handshake_in_many_records_is_understood() {
    let files = Files::new();
    let mut config = files.config();
    config.tls.auth_clients = ClientCerts::Yes;
    config.tls.ca_cert_file = files.path("ca.pem");
    for versions in [&BOTH[..1], &BOTH[1..]] {
        let mut client = ClientConfig::clone(&files.client(versions, Some(&files)));
        client.max_fragment_size = Some(32);
        let server = configure(&config).unwrap().unwrap();
        let mut pair = Pair::new(server, Arc::new(client));
        pair.shake_hands().unwrap();
        pair.client.writer().write_all(&noise(1000)).unwrap();
        pair.client_sends();
        assert_eq!(pair.server_reads().unwrap(), noise(1000));
        assert_eq!(pair.server.kept_bytes(), 0);
    }
}

#[test]
fn a_big_value_arrives_whatever_room_there_is() {
    let files = Files::new();
    let sent = noise(3_000_000);
    for room in [100, 4096, 20_000, 64 * 1024] {
        let mut pair = Pair::open(&files);
        pair.client.writer().write_all(&sent).unwrap();
        let (mut got, mut buffer) = (Vec::new(), vec![0; room]);
        while got.len() < sent.len() {
            pair.client_sends();
            match pair.server.read(&mut buffer) {
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert!(got == sent, "with room for {room}");
        assert!(!pair.server.has_received());
        assert_eq!(pair.server.kept_bytes(), 0);
    }
}

#[test]
fn a_big_reply_waits_for_the_socket_and_never_inside() {
    let files = Files::new();
    let sent = noise(3_000_000);
    for vectored in [false, true] {
        let mut pair = Pair::open(&files);
        let (mut at, mut got, mut blocked) = (0, Vec::new(), 0);
        while got.len() < sent.len() {
            let rest = &sent[at..];
            let (head, tail) = rest.split_at(rest.len().min(1000));
            let result = match vectored {
                true => pair.server.write_vectored(&[head, b"", tail].map(IoSlice::new)),
                false => pair.server.write(rest),
            };
            match result {
                Ok(count) => {
                    assert!(count <= SEND_BYTES_MAX);
                    at += count;
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    assert!(pair.server.is_buffered());
                    assert!(pair.server.kept_bytes() < 2 * SEND_BYTES_MAX);
                    blocked += 1;
                    pair.client_receives().unwrap();
                    got.extend(pair.client_reads());
                }
            }
            if at == sent.len() {
                pair.server.flush_buffered().unwrap();
                pair.client_receives().unwrap();
                got.extend(pair.client_reads());
            }
        }
        assert!(got == sent && blocked > 0, "{blocked}");
        assert_eq!(pair.server.kept_bytes(), 0);
    }
}

#[test]
fn pipelined_records_are_read_at_once() {
    let mut pair = Pair::open(&Files::new());
    for part in noise(1000).chunks(10) {
        pair.client.writer().write_all(part).unwrap();
        // A record each.
        pair.client_sends();
    }
    assert_eq!(pair.server_reads().unwrap(), noise(1000));
    let nothing = pair.server_reads().map_err(|error| error.kind());
    assert_eq!(nothing, Err(io::ErrorKind::WouldBlock));
}

#[test]
fn a_client_that_says_goodbye_is_heard_to_the_end() {
    let mut pair = Pair::open(&Files::new());
    pair.client.writer().write_all(b"QUIT\r\n").unwrap();
    pair.client.send_close_notify();
    pair.client_sends();
    assert_eq!(pair.server_reads().unwrap(), b"QUIT\r\n");
    // The socket is still open; the thread must look without an event.
    assert!(pair.server.has_received());
    assert_eq!(pair.server_reads().unwrap(), b"");
    pair.server.write_all(b"+OK\r\n").unwrap();
    pair.client_receives().unwrap();
    assert_eq!(pair.client_reads(), b"+OK\r\n");
}

#[test]
fn a_client_that_just_goes_has_closed() {
    let mut pair = Pair::open(&Files::new());
    pair.client.writer().write_all(b"PING\r\n").unwrap();
    pair.client_sends();
    pair.wire.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(pair.server_reads().unwrap(), b"PING\r\n");
    assert_eq!(pair.server_reads().unwrap(), b"");
    assert_eq!(pair.server.refusal(), None);
}

#[test]
fn the_server_says_goodbye() {
    let mut pair = Pair::open(&Files::new());
    pair.server.write_all(b"+OK\r\n").unwrap();
    pair.server.shut_down();
    assert_eq!(pair.client_receives(), Ok(false));
    let mut text = Vec::new();
    // Without the alert this would be an error, `UnexpectedEof`.
    pair.client.reader().read_to_end(&mut text).unwrap();
    assert_eq!(text, b"+OK\r\n");
}

#[test]
fn an_unfinished_handshake_is_distinguished_from_a_connection() {
    let files = Files::new();
    let mut pair = Pair::new(files.server(), files.client(BOTH, None));
    let mut hello = Vec::new();
    pair.client.write_tls(&mut hello).unwrap();
    pair.wire.write_all(&hello[..hello.len() / 2]).unwrap();
    let nothing = pair.server_reads().map_err(|error| error.kind());
    assert_eq!(nothing, Err(io::ErrorKind::WouldBlock));
    assert!(pair.server.is_handshaking() && !pair.server.is_buffered());
    assert_eq!(pair.server.refusal(), Some("the handshake was not finished"));
    let early = pair.server.write(b"early").map_err(|error| error.kind());
    assert_eq!(early, Err(io::ErrorKind::WouldBlock));
    pair.wire.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(pair.server_reads().is_err());
    assert_eq!(pair.server.refusal(), Some("the client closed the connection"));
    assert!(!pair.server.is_refused());
}

#[test]
fn what_is_not_tls_is_refused_with_an_alert() {
    let files = Files::new();
    let mut pair = Pair::new(files.server(), files.client(BOTH, None));
    pair.wire.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    assert!(pair.server_reads().is_err());
    assert!(pair.server.refusal().is_some_and(|text| text.contains("InvalidContentType")));
    assert!(pair.server.is_refused());
    pair.server.shut_down();
    let mut answer = Vec::new();
    pair.wire.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&21), "an alert");
    assert!(pair.server.has_received() && pair.server_reads().is_err(), "it stays broken");
}

#[test]
fn a_forged_record_breaks_the_connection_after_earlier_bytes() {
    let mut pair = Pair::open(&Files::new());
    pair.client.writer().write_all(b"PING\r\n").unwrap();
    pair.client_sends();
    pair.client.writer().write_all(b"FORGED\r\n").unwrap();
    let mut record = Vec::new();
    pair.client.write_tls(&mut record).unwrap();
    record[10] ^= 1;
    pair.wire.write_all(&record).unwrap();
    assert_eq!(pair.server_reads().unwrap(), b"PING\r\n");
    assert!(pair.server.has_received());
    assert!(pair.server_reads().is_err());
    assert_eq!(pair.server.refusal(), None);
    assert!(pair.client_receives().is_err(), "an alert says so");
}

#[test]
fn new_keys_are_taken_in_the_middle() {
    let mut pair = Pair::open(&Files::new());
    for round in 0..3 {
        pair.client.refresh_traffic_keys().unwrap();
        pair.client.writer().write_all(b"PING\r\n").unwrap();
        pair.client_sends();
        assert_eq!(pair.server_reads().unwrap(), b"PING\r\n", "{round}");
        pair.server.write_all(b"+PONG\r\n").unwrap();
        pair.client_receives().unwrap();
        assert_eq!(pair.client_reads(), b"+PONG\r\n", "{round}");
    }
}

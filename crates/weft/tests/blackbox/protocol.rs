//! Bytes on the wire: pipelines, split requests, protocol errors, ends of connections.

use std::io::Write;
use std::thread;

use test_support::{encode, eventually, request};

use crate::{Client, MODELS, Server, Value};

/// Sends while the client reads, as it must for more bytes than the sockets hold.
fn send_beside(client: &Client, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    let mut writer = client.writer();
    thread::spawn(move || writer.write_all(&bytes).unwrap())
}

#[test]
fn a_pipeline_of_20000_commands_is_answered_in_order() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        let mut bytes = Vec::new();
        for number in 0..5_000 {
            bytes.extend(request(&format!("SET key:{number} value:{number}")));
            bytes.extend(request("INCR count"));
            bytes.extend(format!("GET key:{number}\r\n").bytes());
            bytes.extend(request(&format!("MSET a:{number} {number} b:{number} {number}")));
        }
        let sender = send_beside(&client, bytes);
        for number in 0..5_000 {
            assert_eq!(client.read(), Value::simple("OK"), "{model:?} {number}");
            assert_eq!(client.read().int(), number + 1, "{model:?}");
            assert_eq!(client.read().text(), format!("value:{number}"), "{model:?}");
            assert_eq!(client.read(), Value::simple("OK"), "{model:?} {number}");
        }
        sender.join().unwrap();
        assert_eq!(client.ask("DBSIZE").int(), 15_001, "{model:?}");
    }
}

#[test]
fn only_unfinished_input_is_kept() {
    for model in MODELS {
        let server = Server::start(model);
        let (mut client, mut asker) = (server.client(), server.client());
        client.ok("CLIENT SETNAME sender");
        let mut kept = || {
            let list = asker.ask("CLIENT LIST").text();
            let line = list.lines().find(|line| line.contains("name=sender")).unwrap();
            let field = line.split(' ').find_map(|field| field.strip_prefix("qbuf=")).unwrap();
            field.parse::<usize>().unwrap()
        };
        eventually("nothing is kept of what was executed", || kept() == 0);
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nabc");
        // A declared length takes no memory.
        eventually("the beginning is kept", || (1..1000).contains(&kept()));
        client.send_raw(&[b'x'; 500_000]);
        eventually("half of it is kept", || (500_000..1_000_000).contains(&kept()));
        client.send_raw(&[b'x'; 499_997]);
        client.send_raw(b"\r\n");
        assert_eq!(client.read(), Value::simple("OK"), "{model:?}");
        eventually("all is executed", || kept() == 0);
    }
}

/// Requests of every kind, and their replies.
fn mixed_requests() -> (Vec<u8>, &'static [u8]) {
    let mut bytes = Vec::new();
    bytes.extend(encode(&[b"SET", b"k", b"a\r\nb\0c"]));
    bytes.extend(b"GET k\r\n");
    bytes.extend(b"*0\r\n\r\n*-1\r\n");
    bytes.extend(encode(&[b"SET", b"empty", b""]));
    bytes.extend(b"append k \"\\x41 b\"\n");
    bytes.extend(encode(&[b"MGET", b"k", b"empty", b"none"]));
    bytes.extend(encode(&[b"NOSUCH", b"x"]));
    bytes.extend(encode(&[b"client", b"getname"]));
    (
        bytes,
        b"+OK\r\n$6\r\na\r\nb\0c\r\n+OK\r\n:9\r\n*3\r\n$9\r\na\r\nb\0cA b\r\n$0\r\n\r\n$-1\r\n\
          -ERR unknown command 'NOSUCH', with args beginning with: 'x' \r\n$-1\r\n",
    )
}

#[test]
fn requests_may_be_cut_at_any_byte() {
    for model in MODELS {
        let server = Server::start(model);
        let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
        let (bytes, replies) = mixed_requests();
        for cut in 0..bytes.len() {
            let mut client = server.client();
            client.send_raw(&bytes[..cut]);
            // A reply to a new client of the same thread proves that the thread has read the first
            // part.
            for other in &mut others {
                assert_eq!(other.ask("PING").text(), "PONG");
            }
            client.send_raw(&bytes[cut..]);
            client.send_raw(&request("ECHO end"));
            let expected = replies;
            let mut got = Vec::new();
            while got.len() < expected.len() {
                got.extend(render(&client.read()));
            }
            assert_eq!(got, expected, "{model:?} cut at {cut}");
            assert_eq!(client.read().text(), "end");
        }
    }
}

#[test]
fn requests_may_come_byte_by_byte() {
    let server = Server::start(&["--io-threads", "1"]);
    let (bytes, replies) = mixed_requests();
    let mut client = server.client();
    for byte in &bytes {
        client.send_raw(&[*byte]);
    }
    let mut got = Vec::new();
    while got.len() < replies.len() {
        got.extend(render(&client.read()));
    }
    assert_eq!(got, replies);
}

fn render(value: &Value) -> Vec<u8> {
    match value {
        Value::Text(b'$', bytes) => {
            [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
        }
        Value::Text(marker, line) => [&[*marker], &line[..], b"\r\n"].concat(),
        Value::Null(marker) => [&[*marker], &b"-1\r\n"[..]].concat(),
        Value::Many(marker, items) => {
            let rendered: Vec<u8> = items.iter().flat_map(render).collect();
            let head = format!("{}{}\r\n", char::from(*marker), items.len());
            [head.as_bytes(), &rendered].concat()
        }
    }
}

#[test]
fn broken_protocol_is_answered_and_closed() {
    let long = |start: &str, byte: &str| format!("{start}{}", byte.repeat(70_000));
    let cases: Vec<(String, &str)> = vec![
        ("*abc\r\n".into(), "invalid multibulk length"),
        ("*2147483648\r\n".into(), "invalid multibulk length"),
        ("* 1\r\n$4\r\nPING\r\n".into(), "invalid multibulk length"),
        ("*01\r\n$4\r\nPING\r\n".into(), "invalid multibulk length"),
        ("*1\r\n$abc\r\n".into(), "invalid bulk length"),
        ("*1\r\n$-1\r\n".into(), "invalid bulk length"),
        ("*1\r\n$536870913\r\n".into(), "invalid bulk length"),
        ("*1\r\nPING\r\n".into(), "expected '$', got 'P'"),
        ("*1\r\n\r\n".into(), "expected '$', got ' '"),
        ("SET a \"b\r\n".into(), "unbalanced quotes in request"),
        ("SET a 'b'c\n".into(), "unbalanced quotes in request"),
        (long("*", "1"), "too big mbulk count string"),
        (long("*1\r\n$", "1"), "too big bulk count string"),
        (long("", "a"), "too big inline request"),
    ];
    for model in MODELS {
        let server = Server::start(model);
        for (bytes, error) in &cases {
            // After requests that this thread executes, that the main thread executes, and that
            // span shards.
            for before in ["", "PING\r\n", "CLIENT PAUSE 0\r\nMSET a 1 b 2\r\nPING\r\n"] {
                let mut client = server.client();
                client.send_raw(before.as_bytes());
                client.send_lossy(bytes.as_bytes());
                if bytes.len() < 1000 {
                    client.send_lossy(b"PING\r\n");
                }
                let text = String::from_utf8(client.read_to_end()).unwrap();
                let expected = format!("-ERR Protocol error: {error}\r\n");
                let case = &bytes[..bytes.len().min(30)];
                assert!(text.ends_with(&expected), "{model:?} {before:?} {case:?}: {text:?}");
                let replies = before.lines().count();
                assert_eq!(text.lines().count(), replies + 1, "{model:?} {before:?}: {text:?}");
            }
        }
        assert_eq!(server.client().ask("PING").text(), "PONG");
    }
}

#[test]
fn a_protocol_error_follows_the_replies_of_the_same_write() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        client.send_raw(b"SET k 1\r\nCONFIG GET port\r\nGET k\r\n*1\r\nx\r\nSET k 2\r\n");
        assert_eq!(client.read().text(), "OK", "{model:?}");
        assert_eq!(client.read().items()[1].text(), server.port.to_string(), "{model:?}");
        assert_eq!(client.read().text(), "1", "{model:?}");
        let error = client.read().text();
        assert_eq!(error, "ERR Protocol error: expected '$', got 'x'", "{model:?}");
        let stats = || server.client().ask("INFO errorstats").text();
        eventually("it is counted", || stats().contains("errorstat_ERR:count=1"));
        client.is_closed();
        assert_eq!(server.client().ask("GET k").text(), "1", "{model:?}");
    }
}

#[test]
fn lines_of_http_end_the_connection() {
    let server = Server::start(&[]);
    for line in ["POST / HTTP/1.1", "hOST: localhost"] {
        let mut client = server.client();
        client.send_raw(format!("{line}\r\nSET k v\r\n").as_bytes());
        client.is_closed();
    }
    assert_eq!(server.client().ask("EXISTS k").int(), 0);
    // The line before it, a request of its own, gets no reply either.
    let mut client = server.client();
    client.send_raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.is_closed();
}

/// The limits of a request depend on whether the one before it authenticates, so before
/// authentication a turn takes one request of a client; but lines without a request are none.
#[test]
fn blank_lines_before_authentication_take_no_turns() {
    let server = Server::start(&["--io-threads", "1", "--requirepass", "secret"]);
    let turns = |client: &mut Client| -> u64 {
        let info = client.ask("INFO everything").text();
        let line = info.lines().find_map(|line| line.strip_prefix("eventloop_cycles:"));
        line.unwrap().parse().unwrap()
    };
    let mut admin = server.client();
    admin.ok("AUTH secret");
    let before = turns(&mut admin);
    let mut client = server.client();
    let blank = [&b"\r\n".repeat(10_000)[..], &b"*0\r\n".repeat(10_000)[..]].concat();
    client.send_raw(&[&blank, &request("PING")[..]].concat());
    assert!(client.read().text().starts_with("NOAUTH"));
    client.send_raw(&[&blank, &request("AUTH secret")[..], &blank, &request("PING")].concat());
    assert_eq!(client.read(), Value::simple("OK"));
    assert_eq!(client.read(), Value::simple("PONG"));
    let turns = turns(&mut admin) - before;
    assert!(turns < 10_000, "{turns}");
}

#[test]
fn quit_ends_a_pipeline() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        client.send_raw(b"SET k 1\r\nQUIT\r\nSET k 2\r\nQUIT\r\n");
        assert_eq!(client.read_to_end(), b"+OK\r\n+OK\r\n", "{model:?}");
        assert_eq!(server.client().ask("GET k").text(), "1", "{model:?}");
    }
}

#[test]
fn replies_can_be_switched_off_in_pipelines() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        client.send_raw(
            b"CLIENT REPLY SKIP\r\nPING a\r\nPING b\r\nCLIENT REPLY OFF\r\nPING c\r\nINCR n\r\n\
              NOSUCH\r\nCONFIG GET port\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nGET n\r\n",
        );
        assert_eq!(client.read().text(), "b", "{model:?}");
        assert_eq!(client.read().text(), "OK", "{model:?}");
        assert_eq!(client.read().text(), "1", "{model:?}");
        assert_eq!(client.ask("PING").text(), "PONG", "{model:?}");
    }
}

#[test]
fn a_client_that_ends_sending_gets_all_replies() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        let value = vec![b'v'; 5_000_000];
        client.ask_args(&[b"SET", b"big", &value]);
        let mut bytes = Vec::new();
        for _ in 0..8 {
            bytes.extend(request("GET big"));
            bytes.extend(request("GETRANGE big 0 300000"));
        }
        client.send_raw(&bytes);
        client.end_sending();
        let got = client.read_to_end();
        let expected = 8 * (value.len() + "$5000000\r\n\r\n".len() + 300_001 + 11);
        assert_eq!(got.len(), expected, "{model:?}");
        test_support::eventually("it is gone", || {
            server.client().ask("CLIENT LIST").text().lines().count() == 1
        });
    }
}

#[test]
fn replies_of_resp3_reach_the_wire() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send_raw(b"HELLO 3\r\nGET none\r\nHELLO 2\r\nGET none\r\nRESET\r\nQUIT\r\n");
    let text = String::from_utf8(client.read_to_end()).unwrap();
    assert!(text.starts_with("%7\r\n$6\r\nserver\r\n"), "{text}");
    assert!(text.contains("\r\n_\r\n*14\r\n"), "{text}");
    assert!(text.ends_with("\r\n$-1\r\n+RESET\r\n+OK\r\n"), "{text}");
}

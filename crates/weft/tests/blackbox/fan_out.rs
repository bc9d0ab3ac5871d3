//! Memory of subscribers: names of any length, any number of subscriptions, and large messages for
//! thousands of subscribers that do not read, also over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use test_support::{Certificates, Launch, Ports, encode, eventually, request};
use tools::servers::pin::allow_open_files;

use crate::{Client, Server, Value};

const MB: u64 = 1 << 20;

fn rss(server: &Server) -> u64 {
    server.process().memory("VmRSS")
}

#[test]
fn a_channel_name_may_have_40_mb() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut subscribers = [server.client(), server.client()];
    let mut other = server.client();
    let name = vec![b'c'; 40 << 20];
    // The confirmation contains the name and exceeds the limit of output for a subscriber.
    let mut closed = server.client();
    closed.send_raw(&encode(&[b"SUBSCRIBE", &name]));
    closed.read_to_end();
    eventually("it is closed", || server.info("client_output_buffer_limit_disconnections") == "1");
    assert_eq!(other.ask("PUBSUB CHANNELS").items().len(), 0);
    other.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", b"pubsub 0 0 0"]);
    let before = rss(&server);
    for client in &mut subscribers {
        let confirmed = client.ask_args(&[b"SUBSCRIBE", &name]);
        assert!(confirmed.items()[1].bytes() == Some(&name[..]));
    }
    assert_eq!(other.ask_args(&[b"PUBLISH", &name, b"m"]).int(), 2);
    assert_eq!(other.ask_args(&[b"PUBLISH", &name[1..], b"m"]).int(), 0);
    for client in &mut subscribers {
        let message = client.read();
        assert!(message.items()[1].bytes() == Some(&name[..]));
        assert_eq!(message.items()[2].text(), "m");
    }
    // One copy of the name, and the requests and replies that contain it, but no copy for each
    // subscriber.
    let peak = server.process().memory("VmHWM") - before;
    assert!(peak < 260 * MB, "{} MB", peak / MB);
    for client in &mut subscribers {
        assert_eq!(client.ask_args(&[b"UNSUBSCRIBE", &name]).items()[2].int(), 0);
    }
    assert_eq!(other.ask("PUBSUB CHANNELS").items().len(), 0);
    eventually("the memory is free", || rss(&server) < before + 24 * MB);
}

#[test]
fn many_subscriptions_take_the_memory_that_client_list_shows() {
    const NAMES: usize = 200_000;
    let server = Server::start(&["--io-threads", "2"]);
    let (mut client, mut other) = (server.client(), server.client());
    other.ok("CLIENT NO-EVICT ON");
    let before = rss(&server);
    for first in (0..NAMES).step_by(10_000) {
        let names: Vec<String> = (first..first + 10_000).map(|nth| format!("c{nth}")).collect();
        let mut args = vec![&b"SUBSCRIBE"[..]];
        args.extend(names.iter().map(String::as_bytes));
        client.send_raw(&encode(&args));
        for nth in first..first + 10_000 {
            assert_eq!(client.read().items()[2].int(), nth as i64 + 1);
        }
    }
    assert_eq!(other.ask("PUBLISH c199999 m").int(), 1);
    assert_eq!(client.read().items()[2].text(), "m");
    let list = other.ask("CLIENT LIST TYPE pubsub").text();
    let shown = list.split(' ').find_map(|field| field.strip_prefix("tot-mem="));
    let shown: u64 = shown.unwrap().parse().unwrap();
    let grown = rss(&server) - before;
    assert!(grown < shown + 10 * MB, "{} MB, said to be {} MB", grown / MB, shown / MB);
    assert!(shown < 80 * MB, "{} MB", shown / MB);
    // So `maxmemory-clients` limits subscriptions, too.
    other.ok("CONFIG SET maxmemory-clients 10mb");
    client.is_closed();
    eventually("no subscription is left", || server.info("pubsub_channels") == "0");
    assert_eq!(other.ask("PUBLISH c1 m").int(), 0);
    assert_eq!(server.info("evicted_clients"), "1");
}

/// Each connection fills its kernel buffers, and all share the rest of a message.
#[test]
fn two_thousand_slow_subscribers_share_a_large_message() {
    const SLOW: usize = 2000;
    allow_open_files(2 * SLOW as u64).unwrap();
    let server = Server::start(&["--io-threads", "3", "--unixsocket", "weft.sock"]);
    let mut admin = server.client();
    let limit = b"pubsub 4mb 0 0";
    admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limit]);
    let path = server.path("weft.sock");
    let mut slow: Vec<Client> = (0..SLOW).map(|_| Client::unix(&path)).collect();
    slow.iter_mut().for_each(|client| client.send("SUBSCRIBE c"));
    slow.iter_mut().for_each(|client| drop(client.read()));
    let mut quick = server.client();
    quick.ask("SUBSCRIBE c");
    let before = rss(&server);
    let message = vec![b'x'; 1 << 20];
    for round in 0..3 {
        let receivers = admin.ask_args(&[b"PUBLISH", b"c", &message]).int();
        assert_eq!(receivers, SLOW as i64 + 1, "round {round}");
        assert_eq!(quick.read().items()[2].text().len(), message.len());
    }
    // A copy for each would be six gigabytes.
    let grown = rss(&server).saturating_sub(before);
    assert!(grown < 100 * MB, "{} MB", grown / MB);
    // The fifth message exceeds the limit of each.
    while admin.ask("PUBSUB NUMSUB c").items()[1].int() > 1 {
        admin.ask_args(&[b"PUBLISH", b"c", &message]);
        assert_eq!(quick.read().items()[2].text().len(), message.len());
    }
    assert_eq!(server.info("client_output_buffer_limit_disconnections"), SLOW.to_string());
    drop(slow);
    assert_eq!(admin.ask("PUBLISH c end").int(), 1);
    assert_eq!(quick.read().items()[2].text(), "end");
}

/// Output for a client that does not read is encrypted separately, and counts all the same.
#[test]
fn limits_of_output_hold_over_tls() {
    let files = Certificates::new();
    let launch = Launch::weft().ports(Ports::Both).certified(&files, "no");
    let server = launch.options(&["--io-threads", "3"]).start();
    let mut admin = server.client();
    let limits = b"normal 6mb 0 0 pubsub 4mb 0 0";
    admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limits]);
    let value = vec![b'x'; 1 << 20];
    admin.ask_args(&[b"SET", b"big", &value]);
    let before = rss(&server);
    let cases = [("GET big", "normal"), ("SUBSCRIBE c", "pubsub")];
    for (at, (command, class)) in cases.into_iter().enumerate() {
        let mut clients: Vec<_> = (0..8)
            .map(|_| {
                let mut socket = TcpStream::connect(("127.0.0.1", server.tls_port)).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                let mut session = files.client();
                while session.is_handshaking() {
                    session.complete_io(&mut socket).unwrap();
                }
                session.writer().write_all(&request(command)).unwrap();
                session.complete_io(&mut socket).unwrap();
                (session, socket)
            })
            .collect();
        let count = |admin: &mut Client| {
            let list = admin.ask(&format!("CLIENT LIST TYPE {class}")).text();
            list.lines().filter(|line| !line.contains("cmd=client|list")).count()
        };
        eventually("all have begun", || count(&mut admin) >= 8);
        for (session, socket) in &mut clients {
            // The server closes the connection during this write or before it.
            let more = request("GET big").repeat(if class == "normal" { 40 } else { 0 });
            session.writer().write_all(&more).unwrap();
            let _ = session.complete_io(socket);
        }
        let closed = ((at + 1) * 8).to_string();
        eventually("all are closed", || {
            if class == "pubsub" {
                admin.ask_args(&[b"PUBLISH", b"c", &value]);
            }
            server.info("client_output_buffer_limit_disconnections") == closed
        });
        // Eight times the limit, and bytes in transit.
        let peak = server.process().memory("VmHWM").saturating_sub(before);
        assert!(peak < 150 * MB, "{class}: {} MB", peak / MB);
        for (_, socket) in &mut clients {
            let mut rest = Vec::new();
            // By an end or by a reset.
            let _ = socket.read_to_end(&mut rest);
            assert!(rest.len() < 20 << 20, "{class}: {}", rest.len());
        }
        assert_eq!(admin.ask("PING"), Value::simple("PONG"));
    }
}

//! Large arguments and replies, and the limits on requests and unread replies of a client.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use test_support::{encode, eventually, request};

use crate::{Client, MODELS, Server};

const MB: u64 = 1 << 20;

/// A pattern without repetition within a page, so that a misplaced piece is noticed.
fn pattern(len: usize) -> Vec<u8> {
    (0..len / 4 + 1).flat_map(|word| (word as u32).to_le_bytes()).take(len).collect()
}

#[test]
fn a_value_of_40_mb_is_neither_copied_in_nor_out() {
    for model in [&MODELS[0], &MODELS[1], &MODELS[3]] {
        let server = Server::start(model);
        let mut client = server.client();
        let value = pattern(40 << 20);
        let before = server.process().memory("VmRSS");
        assert_eq!(client.ask_args(&[b"SET", b"big", &value]).text(), "OK");
        // Half of it again would be a copy of half of it.
        let set = server.process().memory("VmHWM") - before;
        assert!(set < 54 * MB, "{model:?}: SET of 40 MB took {} MB", set / MB);
        let got = client.ask("GET big");
        assert!(got.bytes() == Some(&value[..]), "{model:?}: the value has changed");
        drop(got);
        // Two replies of it at once, one to a client that does not read, take no more memory.
        let mut other = server.client();
        other.send("GET big");
        client.send("GET big");
        let got = client.read();
        assert!(got.bytes() == Some(&value[..]));
        let get = server.process().memory("VmHWM") - before;
        assert!(get < 54 * MB, "{model:?}: GET of 40 MB took {} MB", get / MB);
        // A later write does not change a reply in transit.
        assert_eq!(client.ask("SETRANGE big 0 XXXX").int(), value.len() as i64);
        let got = other.read();
        assert!(got.bytes() == Some(&value[..]), "{model:?}: a waiting reply has changed");
    }
}

#[test]
fn big_and_small_arguments_mix_in_one_pipeline() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        let mut bytes = Vec::new();
        let lens = [0, 1, 31, 1023, 32_766, 32_767, 32_768, 40_000, 65_535, 65_536, 200_000];
        let values: Vec<Vec<u8>> = lens.iter().map(|len| pattern(*len)).collect();
        for _ in 0..3 {
            for (number, value) in values.iter().enumerate() {
                let key = format!("k{number}");
                bytes.extend(encode(&[b"SET", key.as_bytes(), value]));
                bytes.extend(encode(&[b"MSET", b"x", value, b"y", b"1", b"z", value]));
                bytes.extend(format!("STRLEN {key}\r\nGET z\r\n").bytes());
            }
        }
        let mut writer = client.writer();
        let sender = thread::spawn(move || {
            // In pieces of an odd size, so that requests are split at all positions.
            bytes.chunks(9_973).for_each(|piece| writer.write_all(piece).unwrap());
        });
        for _ in 0..3 {
            for value in &values {
                assert_eq!(client.read().text(), "OK", "{model:?}");
                assert_eq!(client.read().text(), "OK", "{model:?}");
                assert_eq!(client.read().int(), value.len() as i64, "{model:?}");
                let got = client.read();
                assert!(got.bytes() == Some(&value[..]), "{model:?}: {} bytes differ", value.len());
            }
        }
        sender.join().unwrap();
    }
}

#[test]
fn before_authentication_little_may_be_sent() {
    for model in MODELS {
        let server = Server::start(&[model, &["--requirepass", "secret"][..]].concat());
        for (bytes, error) in [
            ("*11\r\n", "unauthenticated multibulk length"),
            ("*2\r\n$4\r\nPING\r\n$16385\r\n", "unauthenticated bulk length"),
        ] {
            let mut client = server.client();
            client.send_raw(bytes.as_bytes());
            let got = String::from_utf8(client.read_to_end()).unwrap();
            assert_eq!(got, format!("-ERR Protocol error: {error}\r\n"), "{model:?}");
        }
        let mut client = server.client();
        client.send_raw(&request("ECHO x").repeat(3));
        for _ in 0..3 {
            assert_eq!(client.read().text(), "NOAUTH Authentication required.", "{model:?}");
        }
        client.ok("AUTH secret");
        assert_eq!(client.ask("ECHO x").text(), "x");
    }
}

#[test]
fn before_authentication_replies_do_not_wait() {
    /// More than all sockets hold.
    const SENT_BYTES_MAX: usize = 64 << 20;
    let unknown = [[b'x'; 128], [b'y'; 128]];
    let requests = encode(&[&unknown[0], &unknown[1]]).repeat(1000);
    for model in MODELS {
        let server = Server::start(&[model, &["--requirepass", "secret"][..]].concat());
        let mut other = server.client();
        other.ok("AUTH secret");
        let before = server.process().memory("VmRSS");
        let client = server.client();
        let mut stream = client.writer();
        let mut sent = 0;
        while sent < SENT_BYTES_MAX && stream.write_all(&requests).is_ok() {
            sent += requests.len();
        }
        assert!(sent < SENT_BYTES_MAX, "{model:?}: {} MB went unanswered", sent / MB as usize);
        let held = server.process().memory("VmRSS").saturating_sub(before);
        assert!(held < 4 * MB, "{model:?}: {} MB for a client that does not read", held / MB);
        server.wait_for_log("exceeding the output buffer limit");
        eventually("it is gone", || other.ask("CLIENT LIST").text().lines().count() == 1);
        // A client that reads may send any number of requests.
        let mut client = server.client();
        let mut writer = client.writer();
        let asked = requests.clone();
        let sender = thread::spawn(move || writer.write_all(&asked).unwrap());
        for _ in 0..1000 {
            assert!(client.read().text().starts_with("ERR unknown command"), "{model:?}");
        }
        sender.join().unwrap();
        client.ok("AUTH secret");
    }
}

#[test]
fn auth_allows_later_requests_of_the_same_write() {
    for model in MODELS {
        let server = Server::start(&[model, &["--requirepass", "secret"][..]].concat());
        let mut client = server.client();
        let value = pattern(3_000_000);
        let mut bytes = request("AUTH secret");
        bytes.extend(encode(&[b"SET", b"big", &value]));
        for number in 0..20_000 {
            bytes.extend(request(&format!("SET k{number} {number}")));
            bytes.extend(request(&format!("GET k{number}")));
        }
        bytes.extend(request("GET big"));
        let mut writer = client.writer();
        let sender = thread::spawn(move || writer.write_all(&bytes).unwrap());
        assert_eq!(client.read().text(), "OK", "{model:?}");
        assert_eq!(client.read().text(), "OK", "{model:?}");
        for number in 0..20_000 {
            assert_eq!(client.read().text(), "OK", "{model:?}");
            assert_eq!(client.read().text(), number.to_string(), "{model:?}");
        }
        let got = client.read();
        assert!(got.bytes() == Some(&value[..]), "{model:?}");
        sender.join().unwrap();
    }
}

#[test]
fn unfinished_input_has_a_limit() {
    let server = Server::start(&["--io-threads", "2", "--client-query-buffer-limit", "1mb"]);
    let unfinished = [
        // One argument, many arguments, and an argument whose line has not ended.
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n".to_vec(),
        [b"*1000000\r\n".to_vec(), b"$10\r\n0123456789\r\n".repeat(100_000)].concat(),
    ];
    for start in unfinished {
        let mut client = server.client();
        client.send_lossy(&start);
        client.send_lossy(&vec![b'x'; 1_500_000]);
        client.is_closed();
    }
    server.wait_for_log("closed for exceeding the query buffer limit");
    assert_eq!(server.info("client_query_buffer_limit_disconnections"), "2");
    let mut client = server.client();
    let value = pattern(900_000);
    assert_eq!(client.ask_args(&[b"SET", b"k", &value]).text(), "OK");
}

#[test]
fn large_values_are_freed_in_the_background() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for key in ["a", "b"] {
        for from in (0..1000).step_by(100) {
            let members: Vec<String> = (from..from + 100).map(|n| format!("member{n}")).collect();
            client.ask(&format!("SADD {key} {}", members.join(" ")));
        }
    }
    assert_eq!(server.info("lazyfreed_objects"), "0");
    client.ask("UNLINK a");
    eventually("one is freed", || server.info("lazyfreed_objects") == "1");
    client.ok("FLUSHALL");
    eventually("the other is freed", || server.info("lazyfreed_objects") == "2");
    assert_eq!(server.info("lazyfree_pending_objects"), "0");
    client.ok("CONFIG RESETSTAT");
    assert_eq!(server.info("lazyfreed_objects"), "0");
}

#[test]
fn an_announced_length_takes_no_memory() {
    let server = Server::start(&["--io-threads", "2"]);
    let before = server.process().memory("VmHWM");
    let clients: Vec<Client> = (0..100)
        .map(|number| {
            let mut client = server.client();
            match number % 2 {
                0 => client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc"),
                _ => client.send_raw(b"*2147483647\r\n$3\r\nDEL\r\n"),
            }
            client
        })
        .collect();
    let mut client = server.client();
    for _ in 0..10 {
        client.ask("PING");
    }
    let list = client.ask("CLIENT LIST").text();
    assert_eq!(list.lines().count(), 101);
    let grown = server.process().memory("VmHWM") - before;
    assert!(grown < 16 * MB, "{} MB", grown / MB);
    drop(clients);
}

#[test]
fn the_longest_argument_can_be_set() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut client = server.client();
    client.ok("CONFIG SET proto-max-bulk-len 1mb");
    // Every thread has the new limit when a client of each has a reply.
    for _ in 0..4 {
        let mut client = server.client();
        client.ask("PING");
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n");
        assert_eq!(client.read_to_end(), b"-ERR Protocol error: invalid bulk length\r\n");
    }
    assert_eq!(client.ask_args(&[b"SET", b"k", &pattern(1 << 20)]).text(), "OK");
}

/// Requests large replies until the server closes the connection; returns the server's largest
/// memory.
fn never_read(server: &Server, mut client: Client) -> u64 {
    let before = server.process().memory("VmRSS");
    let bytes = request("GET big").repeat(1000);
    let mut most = 0;
    let mut closed = false;
    while !closed {
        closed = client.try_send(&bytes).is_err();
        most = most.max(server.process().memory("VmRSS").saturating_sub(before));
    }
    client.read_to_end();
    most
}

#[test]
fn a_client_that_never_reads_is_closed_at_the_hard_limit() {
    for model in MODELS {
        let limit = ["--client-output-buffer-limit", "normal 10mb 0 0"];
        let server = Server::start(&[model, &limit[..]].concat());
        let mut other = server.client();
        // Small enough to be copied into replies.
        other.ask_args(&[b"SET", b"big", &pattern(10_000)]);
        let held = never_read(&server, server.client());
        assert!(held < 40 * MB, "{model:?}: {} MB for a limit of 10", held / MB);
        server.wait_for_log("exceeding the output buffer limit");
        assert_eq!(server.info("client_output_buffer_limit_disconnections"), "1");
        assert_eq!(other.ask("PING").text(), "PONG");
        // The client that asked for the count above may be closed a moment later.
        eventually("only the other is left", || {
            other.ask("CLIENT LIST").text().lines().count() == 1
        });
    }
}

#[test]
fn the_soft_limit_gives_time() {
    let limit = ["--client-output-buffer-limit", "normal 0 1mb 1"];
    let server = Server::start(&[&["--io-threads", "2"], &limit[..]].concat());
    let mut other = server.client();
    other.ask_args(&[b"SET", b"big", &pattern(30_000_000)]);
    let mut client = server.client();
    assert_eq!(client.ask("PING").text(), "PONG");
    client.send("GET big");
    let start = Instant::now();
    eventually("it is closed", || other.ask("CLIENT LIST").text().lines().count() == 1);
    assert!(start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    drop(client);
    // A client that reads in time is not closed.
    let mut client = server.client();
    client.send("GET big");
    assert_eq!(client.read().bytes().map(<[u8]>::len), Some(30_000_000));
    assert_eq!(client.ask("PING").text(), "PONG");
}

/// As in Redis, the limit counts before anything is sent, and running commands are not ended.
#[test]
fn a_reply_beyond_the_hard_limit_is_not_sent() {
    for threads in ["1", "3"] {
        let limit = ["--client-output-buffer-limit", "normal 100kb 0 0"];
        let server = Server::start(&[&["--io-threads", threads], &limit[..]].concat());
        let mut other = server.client();
        let item = "x".repeat(1000);
        (0..60).for_each(|_| drop(other.ask(&format!("RPUSH list {item}"))));
        assert_eq!(other.ask("LRANGE list 0 -1").items().len(), 60);
        (0..90).for_each(|_| drop(other.ask(&format!("RPUSH list {item}"))));
        other.ask("HSET hash a b");
        // With the replies that come before it.
        let queued = "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
        for (commands, before) in [
            (&["LRANGE list 0 -1"][..], ""),
            (
                &["SET before 1", "MULTI", "SET k2 v2", "LRANGE list 0 -1", "SET k3 v3", "EXEC"],
                queued,
            ),
            // Together, these would take gigabytes.
            (&["HRANDFIELD hash -1000000000"], ""),
            (&["EVAL return{redis.call('LRANGE',KEYS[1],0,-1)} 1 list"], ""),
        ] {
            let mut client = server.client();
            let requests: Vec<u8> = commands.iter().flat_map(|words| request(words)).collect();
            client.send_raw(&requests);
            // These are sent on their own only where the thread stood still.
            let replies = client.read_to_end();
            assert!(before.as_bytes().starts_with(&replies), "{commands:?}: {replies:?}");
        }
        assert_eq!(other.ask("GET k3").text(), "v3");
        assert_eq!(server.info("client_output_buffer_limit_disconnections"), "4");
    }
}

/// A client may send all its requests before it reads a reply, beyond the size of the sockets.
#[test]
fn a_client_may_send_everything_before_it_reads() {
    const REQUESTS: usize = 800;
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        client.ask_args(&[b"SET", b"big", &pattern(1 << 20)]);
        // Twenty kilobytes each, whose replies have a megabyte.
        let absent = vec![b'a'; 20_000];
        let bytes = encode(&[b"MGET", b"big", &absent]).repeat(REQUESTS / 100);
        for _ in 0..100 {
            client.send_raw(&bytes);
        }
        for _ in 0..REQUESTS {
            assert_eq!(client.read().items().len(), 2, "{model:?}");
        }
    }
}

#[test]
fn subscribers_have_their_own_limits_on_all_threads() {
    let server = Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"]);
    let mut admin = server.client();
    let limits = b"normal 1mb 0 0 replica 1mb 0 0 pubsub 12mb 0 0";
    admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limits]);
    let subscribe = || {
        let mut client = server.client();
        client.send("SUBSCRIBE c");
        client.read();
        client
    };
    let mut subscribers: Vec<Client> = (0..6).map(|_| subscribe()).collect();
    let message = vec![b'x'; 1 << 20];
    // More than the limit of ordinary clients, and less than that of subscribers.
    (0..10).for_each(|_| assert_eq!(admin.ask_args(&[b"PUBLISH", b"c", &message]).int(), 6));
    for client in &mut subscribers {
        (0..10).for_each(|_| drop(client.read()));
    }
    // The rest of the limit, and the buffers of the kernel.
    while admin.ask("PUBSUB NUMSUB c").items()[1].int() > 0 {
        admin.ask_args(&[b"PUBLISH", b"c", &message]);
    }
    subscribers.iter_mut().for_each(|client| drop(client.read_to_end()));
    let soft = b"pubsub 0 1mb 1";
    admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", soft]);
    let mut subscribers: Vec<Client> = (0..6).map(|_| subscribe()).collect();
    let start = Instant::now();
    (0..12).for_each(|_| assert_eq!(admin.ask_args(&[b"PUBLISH", b"c", &message]).int(), 6));
    // No more messages arrive, and a subscriber that reads stays.
    let mut reader = subscribers.remove(0);
    (0..12).for_each(|_| drop(reader.read()));
    eventually("the others are closed", || admin.ask("PUBSUB NUMSUB c").items()[1].int() == 1);
    assert!(start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(admin.ask("PUBLISH c end").int(), 1);
    assert_eq!(reader.read().items()[2].text(), "end");
}

//! Messages on several threads: every subscriber receives the messages that publishers counted for
//! it, in one order, while clients come, go and change threads; and the cost of subscribers that do
//! not read.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{encode, eventually, request};

use crate::{Client, MODELS, Server, Value};

/// A client with subscriptions to channels or patterns.
fn subscriber(server: &Server, command: &str) -> Client {
    let mut client = server.client();
    client.send(command);
    for _ in 1..command.split(' ').count() {
        client.read();
    }
    client
}

/// The payload of the next message.
#[track_caller]
fn next(client: &mut Client) -> String {
    let message = client.read();
    message.items().last().unwrap().text()
}

/// Requests that run later than they arrive: after a pause, a script or a command of the main
/// thread.
#[test]
fn subscriptions_of_suspended_clients_begin_and_end() {
    for threads in ["1", "3"] {
        let server = Server::start(&["--io-threads", threads]);
        let (mut client, mut other) = (subscriber(&server, "SUBSCRIBE c"), server.client());
        for before in ["CLIENT PAUSE 30 ALL", "PING"] {
            other.ask(before);
            client.send("UNSUBSCRIBE c");
            assert_eq!(client.read().items()[2].int(), 0);
            assert_eq!(other.ask("PUBLISH c lost").int(), 0);
            client.send_raw(&["EVAL return{1} 0", "SUBSCRIBE c"].map(request).concat());
            client.read();
            assert_eq!(client.read().items()[2].int(), 1);
            assert_eq!(other.ask("PUBLISH c found").int(), 1);
            assert_eq!(next(&mut client), "found");
        }
    }
}

#[test]
fn all_subscribers_see_one_order() {
    const PUBLISHERS: usize = 3;
    const MESSAGES: usize = 400;
    for model in MODELS {
        let server = Server::start(model);
        let mut subscribers: Vec<Client> = (0..8)
            .map(|nth| match nth % 2 {
                0 => subscriber(&server, "SUBSCRIBE c"),
                _ => subscriber(&server, "PSUBSCRIBE c* d*"),
            })
            .collect();
        thread::scope(|scope| {
            for publisher in 0..PUBLISHERS {
                let mut client = server.client();
                scope.spawn(move || {
                    for batch in 0..MESSAGES / 20 {
                        let requests = (0..20).flat_map(|nth| {
                            request(&format!("PUBLISH c {publisher}:{}", batch * 20 + nth))
                        });
                        client.send_raw(&requests.collect::<Vec<u8>>());
                        (0..20).for_each(|_| assert_eq!(client.read().int(), 8, "{model:?}"));
                    }
                });
            }
        });
        let read = |client: &mut Client| -> Vec<String> {
            (0..PUBLISHERS * MESSAGES).map(|_| next(client)).collect()
        };
        let first = read(&mut subscribers[0]);
        let mut ends = [0; PUBLISHERS];
        for message in &first {
            let (publisher, number) = message.split_once(':').unwrap();
            let end = &mut ends[publisher.parse::<usize>().unwrap()];
            assert_eq!(number.parse::<usize>().unwrap(), *end, "{model:?}");
            *end += 1;
        }
        for client in &mut subscribers[1..] {
            assert!(read(client) == first, "{model:?}: another order");
        }
    }
}

#[test]
fn counted_messages_are_received() {
    let server = Server::start(&["--io-threads", "3"]);
    let (done, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    let received: u64 = thread::scope(|scope| {
        let publishers: Vec<_> = (0..2)
            .map(|_| {
                let mut client = server.client();
                let counted = &counted;
                scope.spawn(move || {
                    for _ in 0..300 {
                        client.send_raw(&request("PUBLISH c m").repeat(10));
                        for _ in 0..10 {
                            counted.fetch_add(client.read().int() as u64, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        let churners: Vec<_> = (0..6)
            .map(|_| {
                let (mut client, done) = (server.client(), &done);
                scope.spawn(move || {
                    let mut received = 0;
                    while !done.load(Ordering::Relaxed) {
                        for (command, kind) in [("SUBSCRIBE c", "s"), ("UNSUBSCRIBE c", "u")] {
                            client.send(command);
                            let mut value = client.read();
                            while value.items()[0].text() == "message" {
                                assert_eq!(kind, "u", "a message before the confirmation");
                                received += 1;
                                value = client.read();
                            }
                            assert!(value.items()[0].text().starts_with(kind), "{value:?}");
                        }
                        assert_eq!(client.ask("ECHO x").text(), "x", "nothing comes behind it");
                    }
                    received
                })
            })
            .collect();
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        done.store(true, Ordering::Relaxed);
        churners.into_iter().map(|churner| churner.join().unwrap()).sum()
    });
    assert!(received > 0);
    assert_eq!(received, counted.load(Ordering::Relaxed));
    assert_eq!(server.info("pubsub_channels"), "0");
    assert_eq!(server.info("pubsub_clients"), "0");
}

#[test]
fn subscribers_change_threads_without_losing_a_message() {
    let server = Server::start(&["--io-threads", "4"]);
    let done = AtomicBool::new(false);
    let mut subscribers: Vec<Client> =
        (0..12).map(|_| subscriber(&server, "SUBSCRIBE c d e")).collect();
    let sent = thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let (mut client, mut sent) = (server.client(), 0);
            while !done.load(Ordering::Relaxed) {
                let channel = ["c", "d", "e"][sent % 3];
                let answer = client.ask(&format!("PUBLISH {channel} {sent}"));
                assert_eq!(answer.int(), 12);
                sent += 1;
            }
            sent
        });
        let mut admin = server.client();
        for threads in ["2", "4", "1", "3", "1", "4", "2", "1"] {
            admin.ok(&format!("CONFIG SET io-threads {threads}"));
            let before = server.info("total_commands_processed");
            eventually("messages are published", || {
                server.info("total_commands_processed") > before
            });
            thread::sleep(Duration::from_millis(30));
        }
        done.store(true, Ordering::Relaxed);
        publisher.join().unwrap()
    });
    for client in &mut subscribers {
        for number in 0..sent {
            assert_eq!(next(client), number.to_string(), "of {sent}");
        }
        assert_eq!(client.ask("PING").items()[0].text(), "pong");
    }
    assert_eq!(server.info("pubsub_clients"), "12");
}

#[test]
fn readers_that_are_too_slow_are_closed_and_share_a_long_message() {
    const SLOW: usize = 100;
    const BYTES: usize = 1 << 20;
    let server = Server::start(&["--io-threads", "3"]);
    let mut admin = server.client();
    let limit = b"pubsub 8mb 2mb 60";
    admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limit]);
    let before = server.process().memory("VmRSS");
    let mut slow: Vec<Client> = (0..SLOW).map(|_| subscriber(&server, "SUBSCRIBE c")).collect();
    let mut quick = subscriber(&server, "SUBSCRIBE c");
    let message = vec![b'x'; BYTES];
    // The buffers of the kernel differ between connections.
    for round in 0..7 {
        let receivers = admin.ask_args(&[b"PUBLISH", b"c", &message]).int();
        assert_eq!(receivers, SLOW as i64 + 1, "round {round}");
        assert_eq!(next(&mut quick).len(), BYTES);
    }
    // A copy for each would be 700 MB.
    let grown = server.process().memory("VmRSS").saturating_sub(before);
    assert!(grown < 200 << 20, "{} MB", grown >> 20);
    while admin.ask("PUBSUB NUMSUB c").items()[1].int() > 1 {
        admin.ask_args(&[b"PUBLISH", b"c", &message]);
        assert_eq!(next(&mut quick).len(), BYTES);
    }
    assert_eq!(server.info("client_output_buffer_limit_disconnections"), SLOW.to_string());
    slow.iter_mut().for_each(|client| drop(client.read_to_end()));
    assert_eq!(admin.ask("PUBLISH c end").int(), 1);
    assert_eq!(next(&mut quick), "end");
}

/// One is closed while the messages of the same batch are written to the others.
#[test]
fn closing_a_slow_subscriber_loses_no_message_of_another() {
    const MESSAGES: usize = 1000;
    for threads in ["1", "3"] {
        let server = Server::start(&["--io-threads", threads]);
        let mut admin = server.client();
        let limit = b"pubsub 1mb 0 0";
        admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limit]);
        let subscribe = |nth: usize| subscriber(&server, &format!("SUBSCRIBE c{}", nth % 3));
        let mut quick: Vec<Client> = (0..12).map(subscribe).collect();
        for round in 1..=3 {
            let mut slow = subscriber(&server, "SUBSCRIBE big");
            let script = format!(
                "local text = string.rep('x', 12000)
                for nth = 1, {MESSAGES} do
                    redis.call('PUBLISH', 'c' .. nth % 3, nth)
                    redis.call('PUBLISH', 'big', text)
                end"
            );
            admin.ask_args(&[b"EVAL", script.as_bytes(), b"0"]);
            for (at, client) in quick.iter_mut().enumerate() {
                for number in (1..=MESSAGES).filter(|number| number % 3 == at % 3) {
                    let message = client.read();
                    assert_eq!(message.items()[1].text(), format!("c{}", at % 3), "{number}");
                    assert_eq!(message.items()[2].text(), number.to_string());
                }
                assert_eq!(client.ask("PING").items()[0].text(), "pong");
            }
            slow.read_to_end();
            eventually("the slow one is closed", || server.info("pubsub_clients") == "12");
            let closed = server.info("client_output_buffer_limit_disconnections");
            assert_eq!(closed, round.to_string());
        }
    }
}

/// Killed clients receive nothing after the reply to CLIENT KILL, on any thread.
#[test]
fn killed_subscribers_count_no_more() {
    for model in MODELS {
        let server = Server::start(model);
        let mut admin = server.client();
        for _ in 0..5 {
            let mut killed: Vec<Client> =
                (0..6).map(|_| subscriber(&server, "PSUBSCRIBE c* *")).collect();
            killed.extend((0..6).map(|_| subscriber(&server, "SUBSCRIBE c d")));
            let requests = ["CLIENT KILL TYPE pubsub", "PUBSUB NUMSUB c", "PUBSUB NUMPAT"];
            let publish = ["PUBLISH c x", "PUBLISH d x", "PUBSUB CHANNELS"];
            admin.send_raw(
                &[requests, publish].concat().into_iter().flat_map(request).collect::<Vec<u8>>(),
            );
            assert_eq!(admin.read().int(), 12, "{model:?}");
            assert_eq!(admin.read().items()[1].int(), 0, "{model:?}");
            (0..3).for_each(|_| assert_eq!(admin.read().int(), 0, "{model:?}"));
            assert_eq!(admin.read().items().len(), 0, "{model:?}");
            killed.iter_mut().for_each(|client| drop(client.read_to_end()));
        }
        let mut client = subscriber(&server, "SUBSCRIBE c");
        assert_eq!(admin.ask("PUBLISH c x").int(), 1);
        assert_eq!(next(&mut client), "x");
    }
}

/// A client's own messages keep their place among its requests without replies.
#[test]
fn a_clients_own_message_precedes_its_next_reply() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut client = server.client();
    client.ask("HELLO 3");
    client.send("SUBSCRIBE c");
    client.read();
    let requests = [
        "CLIENT REPLY SKIP",
        "PUBLISH c skipped",
        "PING",
        "EVAL return(redis.call('PUBLISH','c','script')) 0",
        "CLIENT REPLY OFF",
        "PUBLISH c off",
        "SUBSCRIBE d",
        "MULTI",
        "PUBLISH d transaction",
        "EXEC",
        "UNSUBSCRIBE d",
        "CLIENT REPLY ON",
    ];
    client.send_raw(&requests.map(request).concat());
    assert_eq!(next(&mut client), "skipped");
    assert_eq!(client.read().text(), "PONG");
    assert_eq!(client.read().int(), 1);
    assert_eq!(next(&mut client), "script");
    assert_eq!(next(&mut client), "off");
    assert_eq!(client.read().items()[0].text(), "subscribe");
    assert_eq!(next(&mut client), "transaction");
    assert_eq!(client.read().items()[0].text(), "unsubscribe");
    assert_eq!(client.read().text(), "OK");
    client.ok("CONFIG SET notify-keyspace-events KEA");
    client.send("PSUBSCRIBE __keyevent*");
    client.read();
    client.send_raw(&["SET k v", "INCR k", "DEL k", "PING"].map(request).concat());
    assert_eq!(client.read().text(), "OK");
    assert_eq!(next(&mut client), "k");
    assert!(client.read().text().starts_with("ERR"));
    assert_eq!(client.read().int(), 1);
    assert_eq!(next(&mut client), "k");
    assert_eq!(client.read().text(), "PONG");
}

/// Messages of a script or a transaction cannot be written before its end, and the receivers' limit
/// bounds them.
#[test]
fn a_script_that_publishes_much_costs_its_readers_not_the_memory() {
    let publish = "local text = string.rep('x', 1000000)
        for nth = 1, 400 do
            redis.call('PUBLISH', 'c', text)
            if nth % 100 == 0 then redis.call('PUBLISH', 'd', nth) end
        end";
    let notify = "local key = string.rep('x', 500000)
        for nth = 1, 400 do
            redis.call('SET', key, nth)
            redis.call('DEL', key)
            if nth % 100 == 0 then redis.call('PUBLISH', 'd', nth) end
        end";
    for script in [publish, notify] {
        let server = Server::start(&["--io-threads", "1", "--notify-keyspace-events", "KA"]);
        let mut admin = server.client();
        let limit = b"pubsub 8mb 0 0";
        admin.ask_args(&[b"CONFIG", b"SET", b"client-output-buffer-limit", limit]);
        let mut quiet = subscriber(&server, "SUBSCRIBE d");
        let mut readers: Vec<Client> =
            (0..3).map(|_| subscriber(&server, "PSUBSCRIBE c* __key*")).collect();
        let before = server.process().memory("VmHWM");
        admin.ask_args(&[b"EVAL", script.as_bytes(), b"0"]);
        let grown = server.process().memory("VmHWM").saturating_sub(before);
        assert!(grown < 100 << 20, "{} MB", grown >> 20);
        (1..=4).for_each(|nth| assert_eq!(next(&mut quiet), (100 * nth).to_string()));
        readers.iter_mut().for_each(|client| drop(client.read_to_end()));
        assert_eq!(server.info("client_output_buffer_limit_disconnections"), "3");
        assert_eq!(admin.ask("PUBLISH d x").int(), 1);
    }
}

/// Two clients of one thread, and two of another, of a server that sends events.
fn clients_of_two_threads() -> (Server, [Client; 4]) {
    let options = ["--io-threads", "3", "--io-threads-always-active", "yes"];
    let events = ["--notify-keyspace-events", "KEA", "--busy-reply-threshold", "100000"];
    let server = Server::start(&[options, events].concat());
    let mut on_threads = BTreeMap::<String, Vec<Client>>::new();
    eventually("two threads have two clients", || {
        let mut client = server.client();
        on_threads.entry(thread_of(&mut client)).or_default().push(client);
        on_threads.values().filter(|clients| clients.len() > 1).count() > 1
    });
    let pairs = on_threads.into_values().filter(|clients| clients.len() > 1);
    let clients: Vec<Client> = pairs.flat_map(|clients| clients.into_iter().take(2)).collect();
    (server, clients.try_into().unwrap_or_else(|_| unreachable!("there are two such threads")))
}

/// Starts a script that runs until it is killed.
fn start_endless_script(busy: &mut Client, other: &mut Client) {
    busy.send_raw(&encode(&[b"EVAL", b"while true do end", b"0"]));
    eventually("the script runs", || other.ask("CLIENT LIST").text().contains("cmd=eval"));
}

/// The script ends after all messages are published, and then they are delivered.
#[test]
fn publishers_do_not_wait_for_a_slow_command() {
    // More than may be on the way to a thread, and less than may wait for a client.
    const MESSAGES: usize = 250;
    let (_server, [mut busy, mut receiver, mut publisher, mut other]) = clients_of_two_threads();
    receiver.send("SUBSCRIBE c");
    receiver.read();
    start_endless_script(&mut busy, &mut other);
    let message = request(&format!("PUBLISH c {}", "x".repeat(100_000)));
    let mut writer = publisher.writer();
    thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&message.repeat(MESSAGES)).unwrap());
        (0..MESSAGES).for_each(|_| assert_eq!(publisher.read().int(), 1));
    });
    assert_eq!(other.ask("PUBLISH nobody x").int(), 0);
    other.ok("SET k v");
    other.ok("SCRIPT KILL");
    (0..MESSAGES).for_each(|_| assert_eq!(next(&mut receiver).len(), 100_000));
    assert_eq!(busy.read().text().split(' ').next(), Some("ERR"));
}

/// A subscriber whose thread executes one slow command for long is closed at its limit.
#[test]
fn writers_do_not_wait_for_the_subscribers_of_a_busy_thread() {
    let (_server, [mut busy, mut receiver, mut writer, mut other]) = clients_of_two_threads();
    receiver.send("PSUBSCRIBE __key*");
    receiver.read();
    start_endless_script(&mut busy, &mut other);
    let set = format!("SET {} v", "x".repeat(100_000));
    // The events take 80 MB.
    (0..400).for_each(|_| writer.ok(&set));
    other.ok("SCRIPT KILL");
    receiver.read_to_end();
    let stats = other.ask("INFO stats").text();
    assert!(stats.contains("client_output_buffer_limit_disconnections:1\r"), "{stats}");
    assert_eq!(other.ask("PUBLISH __keyspace@0__:k x").int(), 0);
    assert_eq!(busy.read().text().split(' ').next(), Some("ERR"));
}

/// The thread of a client.
fn thread_of(client: &mut Client) -> String {
    let info = client.ask("CLIENT INFO").text();
    info.split(' ').find_map(|field| field.strip_prefix("io-thread=")).unwrap().to_owned()
}

#[test]
fn blocked_and_busy_clients_receive_in_between() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut client = server.client();
    client.ask("HELLO 3");
    client.send("SUBSCRIBE c");
    client.read();
    let mut other = server.client();
    client.send("BLPOP l 0");
    eventually("it is blocked", || server.info("blocked_clients") == "1");
    assert_eq!(other.ask("PUBLISH c m").int(), 1);
    assert_eq!(next(&mut client), "m");
    assert_eq!(other.ask("RPUSH l x").int(), 1);
    assert_eq!(client.read().items()[1].text(), "x");
    // The main thread executes CONFIG, so the client leaves its thread for a while.
    let mut numbers = 0;
    for round in 0..50 {
        client.send("CONFIG GET maxclients");
        other.ask(&format!("PUBLISH c {round}"));
        for _ in 0..2 {
            let value = client.read();
            if value.items()[0].text() == "message" {
                assert_eq!(value.items()[2].text(), round.to_string());
                numbers += 1;
            } else {
                assert_eq!(value.items()[0].text(), "maxclients");
            }
        }
    }
    assert_eq!(numbers, 50);
    // Its own message follows the reply.
    client.send_raw(&[request("PUBLISH c own"), request("PING")].concat());
    assert_eq!(client.read(), Value::number(1));
    assert_eq!(next(&mut client), "own");
    assert_eq!(client.read().text(), "PONG");
}

#[test]
fn a_transaction_subscribes_on_the_main_thread() {
    for model in MODELS {
        let server = Server::start(model);
        let (mut client, mut other) = (server.client(), server.client());
        client.ok("MULTI");
        assert_eq!(client.ask("SUBSCRIBE c").text(), "QUEUED");
        client.send("EXEC");
        let reply = client.read();
        assert_eq!(reply.items()[0].items()[0].text(), "subscribe", "{model:?}");
        assert_eq!(other.ask("PUBLISH c x").int(), 1, "{model:?}");
        assert_eq!(next(&mut client), "x");
        client.send("RESET");
        assert_eq!(client.read().text(), "RESET");
        client.ok("MULTI");
        for command in ["CONFIG GET port", "SUBSCRIBE c", "PUBLISH c m"] {
            assert_eq!(client.ask(command).text(), "QUEUED");
        }
        client.send("EXEC");
        let reply = client.read();
        assert_eq!(reply.items()[2], Value::number(1), "{model:?}: {reply:?}");
        assert_eq!(next(&mut client), "m", "{model:?}");
        assert_eq!(other.ask("PUBLISH c y").int(), 1);
        assert_eq!(next(&mut client), "y", "{model:?}");
        let numbers: BTreeMap<&str, String> =
            ["pubsub_channels", "pubsub_clients"].map(|f| (f, server.info(f))).into();
        assert!(numbers.values().all(|count| count == "1"), "{model:?}: {numbers:?}");
        client.send("UNSUBSCRIBE");
        assert_eq!(client.read().items()[2], Value::number(0));
        assert_eq!(other.ask("PUBLISH c z").int(), 0, "{model:?}");
    }
}

#[test]
fn expired_keys_are_notified_by_the_thread_that_removes_them() {
    let server = Server::start(&["--io-threads", "3", "--notify-keyspace-events", "Exgh"]);
    let mut listener = subscriber(&server, "PSUBSCRIBE __keyevent@*__:*");
    let mut client = server.client();
    client.ok("SELECT 3");
    client.ok("SET k v PX 20");
    client.ask("HSET h a 1");
    client.ask("HPEXPIRE h 30 FIELDS 1 a");
    let mut events: Vec<String> = (0..6)
        .map(|_| {
            let event = listener.read();
            let channel = event.items()[2].text();
            let name = channel.strip_prefix("__keyevent@3__:").expect("in database 3").to_owned();
            name + " " + &event.items()[3].text()
        })
        .collect();
    let fields: Vec<String> = events.extract_if(.., |event| event.ends_with('h')).collect();
    assert_eq!(fields, ["hset h", "hexpire h", "hexpired h", "del h"]);
    assert_eq!(events, ["expire k", "expired k"]);
}

/// Some megabytes more than may wait: publishers are held back, and so are writers of keys with
/// notifications.
#[test]
fn no_message_is_lost_under_fast_publishers() {
    const MESSAGES: usize = 3000;
    const SUBSCRIBERS: usize = 60;
    let server = Server::start(&["--io-threads", "3", "--notify-keyspace-events", "K$"]);
    let mut subscribers: Vec<Client> =
        (0..SUBSCRIBERS).map(|_| subscriber(&server, "PSUBSCRIBE c *:kkk*")).collect();
    let (mut publisher, mut writer) = (server.client(), server.client());
    let (payload, key) = ("x".repeat(1000), "k".repeat(1000));
    thread::scope(|scope| {
        for half in subscribers.chunks_mut(SUBSCRIBERS / 2) {
            scope.spawn(|| {
                let mut numbers = vec![0; half.len()];
                for _ in 0..2 * MESSAGES {
                    for (client, number) in half.iter_mut().zip(&mut numbers) {
                        let message = client.read();
                        if message.items()[2].text() == "c" {
                            let text = message.items()[3].text();
                            let (head, _) = text.split_once(':').unwrap();
                            assert_eq!(head, number.to_string());
                            *number += 1;
                        }
                    }
                }
                assert!(numbers.iter().all(|number| *number == MESSAGES));
            });
        }
        scope.spawn(|| {
            for number in 0..MESSAGES {
                publisher.send(&format!("PUBLISH c {number}:{payload}"));
            }
            (0..MESSAGES).for_each(|_| assert_eq!(publisher.read().int(), SUBSCRIBERS as i64));
        });
        scope.spawn(|| {
            (0..MESSAGES).for_each(|_| writer.send(&format!("SET {key} v")));
            (0..MESSAGES).for_each(|_| assert_eq!(writer.read().text(), "OK"));
        });
    });
}

//! MONITOR on several threads: all monitors see every request in one order, and a monitor that does
//! not read is closed and slows no client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{eventually, request};

use crate::undisturbed::undisturbed;
use crate::{Client, MODELS, Server, Value};

/// A client with MONITOR.
fn watcher(server: &Server) -> Client {
    let mut client = server.client();
    client.ok("MONITOR");
    client
}

/// The next line: its time and the words of its request.
#[track_caller]
fn next(client: &mut Client) -> (f64, Vec<String>) {
    let line = client.read().text();
    let (time, rest) = line.split_once(" [").expect("a time");
    let (_, words) = rest.split_once("] ").expect("a source");
    let words = words.split(' ').map(|word| word.trim_matches('"').to_owned()).collect();
    (time.parse().expect("a number"), words)
}

/// As in Redis, the line of a client's own request follows its reply and precedes the next reply.
#[test]
fn own_requests_are_shown_between_their_replies() {
    for threads in ["1", "3"] {
        let server = Server::start(&["--io-threads", threads]);
        let mut client = server.client();
        let requests = [
            "MONITOR",
            "PING",
            "GET k",
            "MULTI",
            "ECHO a",
            "EXEC",
            "CLIENT REPLY SKIP",
            "ECHO b",
            "PING x",
            "CLIENT TRACKING ON",
            "PING y",
        ];
        client.send_raw(&requests.map(request).concat());
        let refused = "ERR Replica can't interact with the keyspace";
        let lines = [
            &["OK", "PONG", "PING", refused, "OK", "MULTI", "QUEUED", "[a]", "ECHO a", "EXEC"][..],
            &[
                "CLIENT REPLY SKIP",
                "ECHO b",
                "x",
                "PING x",
                "OK",
                "CLIENT TRACKING ON",
                "y",
                "PING y",
            ],
        ];
        for expected in lines.concat() {
            let shown = match client.read() {
                Value::Many(_, items) => format!("[{}]", items[0].text()),
                value => value.text(),
            };
            let text = match shown.split_once("] ") {
                Some((_, words)) => words.replace('"', ""),
                None => shown,
            };
            assert_eq!(text, expected, "{threads}");
        }
    }
}

#[test]
fn all_monitors_see_one_order_and_rising_times() {
    const WRITERS: usize = 4;
    const REQUESTS: usize = 300;
    for model in MODELS {
        let server = Server::start(model);
        let mut watchers: Vec<Client> = (0..3).map(|_| watcher(&server)).collect();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let mut client = server.client();
                scope.spawn(move || {
                    for batch in 0..REQUESTS / 10 {
                        let requests = (0..10).flat_map(|nth| {
                            let number = batch * 10 + nth;
                            match number % 3 {
                                0 => request(&format!("SET k{writer} {number}")),
                                1 => request(&format!("GETSET k{writer} {number}")),
                                _ => request(&format!("MSET k{writer} {number} other {number}")),
                            }
                        });
                        client.send_raw(&requests.collect::<Vec<u8>>());
                        (0..10).for_each(|_| drop(client.read()));
                    }
                });
            }
        });
        let read = |client: &mut Client| -> Vec<(f64, Vec<String>)> {
            (0..WRITERS * REQUESTS).map(|_| next(client)).collect()
        };
        let first = read(&mut watchers[0]);
        assert!(first.is_sorted_by(|one, other| one.0 <= other.0), "{model:?}: times");
        let mut ends = [0; WRITERS];
        for (_, words) in &first {
            let end = &mut ends[words[1][1..].parse::<usize>().unwrap()];
            assert_eq!(words[2].parse::<usize>().unwrap(), *end, "{model:?}: {words:?}");
            *end += 1;
        }
        assert_eq!(ends, [REQUESTS; WRITERS]);
        for client in &mut watchers[1..] {
            assert!(read(client) == first, "{model:?}: another order");
        }
    }
}

#[test]
fn requests_after_a_reply_come_after_it_in_monitors() {
    let server = Server::start(&["--io-threads", "4"]);
    let mut watcher = watcher(&server);
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for number in 0..300 {
        clients[number % 6].ok(&format!("SET k {number}"));
    }
    for number in 0..300 {
        assert_eq!(next(&mut watcher).1, ["SET", "k", &number.to_string()]);
    }
}

#[test]
fn watchers_change_threads_without_losing_a_line() {
    const REQUESTS: usize = 600;
    let server = Server::start(&["--io-threads", "4"]);
    let mut watchers: Vec<Client> = (0..4).map(|_| watcher(&server)).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut admin = server.client();
            for threads in (1..=4).cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                admin.ok(&format!("CONFIG SET io-threads {threads}"));
            }
        });
        let mut writer = server.client();
        for number in 0..REQUESTS {
            writer.ok(&format!("SET k {number}"));
        }
        done.store(true, Ordering::Relaxed);
    });
    for client in &mut watchers {
        for number in 0..REQUESTS {
            assert_eq!(next(client).1, ["SET", "k", &number.to_string()]);
        }
    }
    // No monitor gets lines now, and none of their memory is left.
    drop(watchers);
    eventually("all are gone", || server.client().ask("CLIENT LIST").text().lines().count() == 1);
    server.client().ok("SET k v");
}

/// Without a limit for each, they keep 256 MB together.
#[test]
fn monitors_that_do_not_read_share_a_limit() {
    const WATCHERS: usize = 16;
    let server = Server::start(&["--io-threads", "3"]);
    let watchers: Vec<Client> = (0..WATCHERS).map(|_| watcher(&server)).collect();
    let mut writer = server.client();
    let value = "x".repeat(1 << 20);
    // The buffers of the kernel fill first.
    for _ in 0..100 {
        writer.ok(&format!("SET k {value}"));
    }
    // The remaining monitors have larger shares.
    eventually("some are closed", || {
        let closed = server.info("client_output_buffer_limit_disconnections");
        closed.parse::<usize>().unwrap() >= WATCHERS / 2
    });
    drop(watchers);
}

/// The share of each monitor is smaller than the line.
#[test]
fn no_line_is_too_long_for_monitors_that_read() {
    const WATCHERS: usize = 40;
    let server = Server::start(&["--io-threads", "2"]);
    let mut watchers: Vec<Client> = (0..WATCHERS).map(|_| watcher(&server)).collect();
    let mut writer = server.client();
    let value = "x".repeat(4 << 20);
    writer.ok(&format!("SET k {value}"));
    writer.ok("SET k short");
    for watcher in &mut watchers {
        assert_eq!(next(watcher).1[2].len(), value.len());
        assert_eq!(next(watcher).1, ["SET", "k", "short"]);
    }
    assert_eq!(server.info("client_output_buffer_limit_disconnections"), "0");
}

#[test]
fn a_monitor_that_stops_reading_is_closed_and_slows_no_client() {
    undisturbed(|| {
        let limit = ["--client-output-buffer-limit", "normal 4mb 0 0"];
        let server = Server::start(&[&["--io-threads", "3"], &limit[..]].concat());
        let mut idle: Vec<Client> = (0..3).map(|_| watcher(&server)).collect();
        let mut quick = watcher(&server);
        let mut writer = server.client();
        let value = "x".repeat(10_000);
        let before = server.process().memory("VmRSS");
        let (start, mut longest, mut written) = (Instant::now(), Duration::ZERO, 0);
        while server.info("client_output_buffer_limit_disconnections") != "3" {
            assert!(start.elapsed() < test_support::WAIT_MAX, "those who do not read stay");
            for _ in 0..50 {
                let start = Instant::now();
                writer.ok(&format!("SET k {value}"));
                longest = longest.max(start.elapsed());
                written += 1;
            }
            for _ in 0..50 {
                while next(&mut quick).1[0] != "SET" {}
            }
        }
        assert!(written < 5000, "{written}");
        let grown = server.process().memory("VmRSS").saturating_sub(before);
        assert!(grown < 60 << 20, "{} MB for three times 4", grown >> 20);
        assert!(longest < Duration::from_secs(2), "not in time: a SET took {longest:?}");
        idle.iter_mut().for_each(|client| drop(client.read_to_end()));
        writer.ok("SET k end");
        while next(&mut quick).1 != ["SET", "k", "end"] {}
    });
}

#[test]
fn watchers_are_ended_by_reset_and_kill() {
    let server = Server::start(&["--io-threads", "3", "--unixsocket", "weft.sock"]);
    let (mut first, mut second) = (watcher(&server), watcher(&server));
    let mut other = Client::unix(&server.path("weft.sock"));
    other.ok("SET k v");
    let line = first.read().text();
    assert!(line.ends_with(" [0 unix:weft.sock] \"SET\" \"k\" \"v\""), "{line}");
    second.read();
    assert_eq!(first.ask("RESET").text(), "RESET");
    assert_eq!(first.ask("GET k").text(), "v");
    assert_eq!(next(&mut second).1, ["RESET"]);
    assert_eq!(next(&mut second).1, ["GET", "k"]);
    assert_eq!(other.ask("CLIENT KILL TYPE normal").int(), 2);
    second.is_closed();
    first.is_closed();
    assert_eq!(other.ask("GET k").text(), "v");
}

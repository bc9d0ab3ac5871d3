//! Notifications about keys that wait for clients: up to a bound they evict no keys, and they stop
//! counting when they are sent or dropped, however that happens.

use std::thread;

use test_support::eventually;

use crate::{Client, Server};

const MB: u64 = 1 << 20;
/// Four threads that have clients, whatever the load and the processors.
const FOUR_THREADS: &[&str] = &["--io-threads", "5", "--io-threads-always-active", "yes"];

fn memory(server: &Server, field: &str) -> u64 {
    server.info(field).parse().unwrap()
}

/// The memory of notifications that wait for clients.
fn waiting(server: &Server) -> u64 {
    memory(server, "mem_clients_notifications")
}

/// Writes keys with names of this many bytes.
fn write(server: &Server, (writer, keys): (usize, usize), name_bytes: usize) {
    let mut client = server.client();
    for key in 0..keys {
        let name = format!("{writer}:{key}:{}", "x".repeat(name_bytes));
        let reply = client.ask_args(&[b"SET", name.as_bytes(), &[b'x'; 200]]);
        assert_eq!(reply.text(), "OK");
    }
}

/// A RESP3 client with a small socket buffer.
fn listener(server: &Server, listens: &str) -> Client {
    let mut client = Client::unix(&server.path("weft.sock"));
    client.ask("HELLO 3");
    client.ask(listens);
    client
}

/// A client whose notifications are redirected to another, and that other client.
fn redirect(server: &Server) -> [Client; 2] {
    let mut target = listener(server, "PING");
    let id = target.ask("CLIENT ID").int();
    let mut redirecting = server.client();
    redirecting.ok(&format!("CLIENT TRACKING ON BCAST REDIRECT {id}"));
    [target, redirecting]
}

/// Notifications of evictions to clients that do not read wait in their output, and take more
/// memory than all keys. They evict no further keys.
#[test]
fn unread_notifications_evict_no_keys() {
    let limited = ["--maxmemory-policy", "allkeys-random", "--notify-keyspace-events", "Ee"];
    for listens in ["PSUBSCRIBE __key*__:*", "CLIENT TRACKING ON BCAST"] {
        let server =
            Server::start(&[FOUR_THREADS, &limited, &["--unixsocket", "weft.sock"]].concat());
        let mut admin = server.client();
        (0..4).for_each(|writer| write(&server, (writer, 2500), 400));
        let listeners: Vec<Client> = (0..4).map(|_| listener(&server, listens)).collect();
        let limit = memory(&server, "used_memory") + MB / 4;
        admin.ok(&format!("CONFIG SET maxmemory {limit}"));
        thread::scope(|scope| {
            for writer in 4..8 {
                let server = &server;
                scope.spawn(move || write(server, (writer, 2500), 400));
            }
        });
        assert!(memory(&server, "used_memory") > 2 * limit, "{listens}: little waits");
        let left = admin.ask("DBSIZE").int();
        assert!(left > 5000, "{listens}: {left} of 10000 are left");
        eventually("all but what waits is below the limit", || {
            admin.ask("PING");
            let counted = memory(&server, "used_memory") - waiting(&server);
            counted < limit + limit / 50
        });
        // They stop counting when they are dropped.
        drop(listeners);
        eventually("nothing waits", || waiting(&server) == 0);
        eventually("memory is below the limit", || {
            memory(&server, "used_memory") < limit + limit / 50
        });
    }
}

/// Clients share a notification that is too long to be copied. A client that does not read keeps it
/// after the others have read it; that evicts no keys either.
#[test]
fn one_client_that_does_not_read_costs_no_keys() {
    let limited = ["--maxmemory-policy", "allkeys-random", "--notify-keyspace-events", "KEA"];
    let one_thread = &["--io-threads", "1"][..];
    for (threads, listens) in [
        (one_thread, "CLIENT TRACKING ON BCAST"),
        (one_thread, "PSUBSCRIBE __key*__:*"),
        (FOUR_THREADS, "PSUBSCRIBE __key*__:*"),
    ] {
        let server = Server::start(&[threads, &limited, &["--unixsocket", "weft.sock"]].concat());
        let mut admin = server.client();
        let write = || {
            let mut client = server.client();
            let names = (0..100).map(|key| format!("{key}:{}", "x".repeat(20_000)));
            let set = |name: String| client.ask_args(&[b"SET", name.as_bytes(), b""]).text();
            names.map(set).filter(|reply| reply == "OK").count()
        };
        assert_eq!(write(), 100);
        let slow = listener(&server, listens);
        let readers: Vec<Client> = (0..7).map(|_| listener(&server, listens)).collect();
        let limit = memory(&server, "used_memory") + MB;
        admin.ok(&format!("CONFIG SET maxmemory {limit}"));
        let written = thread::scope(|scope| {
            for mut reader in readers {
                scope.spawn(move || while !format!("{:?}", reader.read()).contains("last") {});
            }
            let written = [(); 4].map(|()| write());
            // The notification arrives in any case.
            admin.ok("CONFIG SET maxmemory 0");
            admin.ok("SET last x");
            written
        });
        let waits = waiting(&server);
        admin.ok(&format!("CONFIG SET maxmemory {limit}"));
        admin.ask("SET last x");
        assert_eq!(written, [100; 4], "{listens}: writes are refused");
        assert_eq!(admin.ask("DBSIZE").int(), 101, "{listens}");
        assert!(waits > 6 * MB, "{listens}: only {waits} bytes wait");
        drop(slow);
        eventually("nothing waits", || waiting(&server) == 0);
        assert!(memory(&server, "used_memory") < limit, "{listens}");
    }
}

/// Clients that do not read exclude no more than the bound from counting.
#[test]
fn notifications_beyond_the_bound_count() {
    let server = Server::start(&["--unixsocket", "weft.sock", "--notify-keyspace-events", "KA"]);
    let mut admin = server.client();
    let unlimited: &[&[u8]] = &[b"CONFIG", b"SET", b"client-output-buffer-limit", b"pubsub 0 0 0"];
    assert_eq!(admin.ask_args(unlimited).text(), "OK");
    let limit = memory(&server, "used_memory") + 8 * MB;
    admin.ok(&format!("CONFIG SET maxmemory {limit}"));
    let _listener = listener(&server, "PSUBSCRIBE __key*__:*");
    let name = "x".repeat(10_000);
    let mut told = 0;
    while admin.ask_args(&[b"SET", name.as_bytes(), b""]).text() == "OK" {
        told += 10_000;
        assert!(told < 250 * MB, "all that waits is left out");
    }
    assert!(told > 60 * MB, "{told}");
    let used = memory(&server, "used_memory");
    assert!((limit + 120 * MB..limit + 150 * MB).contains(&used), "{used} beyond {limit}");
    assert!(memory(&server, "used_memory_peak") >= used);
}

/// Nothing waits, and nothing was subtracted twice. INFO shows no negative sum, but then a part of
/// the next notification would not count.
fn nothing_waits(server: &Server, what: &str) {
    eventually(what, || waiting(server) == 0);
    let listener = listener(server, "PSUBSCRIBE __keyspace@0__:last*");
    // It exceeds all sockets and lies in a block of known size.
    let name = [&b"last"[..], &[b'x'; MB as usize]].concat();
    assert_eq!(server.client().ask_args(&[b"SET", &name, b""]).text(), "OK");
    let block = MB + MB / 4;
    eventually(what, || {
        let waiting = waiting(server);
        (block..block + 500).contains(&waiting)
    });
    drop(listener);
    eventually(what, || waiting(server) == 0);
}

/// However the wait of a notification ends, it stops counting then.
#[test]
fn without_listeners_all_memory_counts() {
    let options = ["--notify-keyspace-events", "KEA", "--unixsocket", "weft.sock"];
    let server = Server::start(&[FOUR_THREADS, &options].concat());
    let mut admin = server.client();
    type End = fn(&Server, &mut Client, Vec<Client>);
    let close: End = |_, _, listeners| drop(listeners);
    let read: End = |server, admin, mut listeners| {
        admin.ok("SET last x");
        for listener in &mut listeners {
            while !format!("{:?}", listener.read()).contains("last") {}
        }
        eventually("all was sent", || waiting(server) == 0);
    };
    let kill: End = |_, admin, _| {
        for kind in ["normal", "pubsub"] {
            admin.ask(&format!("CLIENT KILL TYPE {kind} SKIPME yes"));
        }
    };
    let change_threads: End = |server, admin, listeners| {
        for threads in [1, 5, 2, 5] {
            admin.ok(&format!("CONFIG SET io-threads {threads}"));
            write(server, (9, 100), 400);
        }
        drop(listeners);
    };
    let end_tracking: End = |_, admin, mut listeners| {
        for (number, listener) in listeners.iter_mut().enumerate() {
            listener.send(if number % 2 == 0 { "CLIENT TRACKING OFF" } else { "RESET" });
        }
        admin.ok("SET last x");
        drop(listeners);
    };
    for (name, end) in [
        ("closed", close),
        ("read", read),
        ("killed", kill),
        ("moved", change_threads),
        ("tracking ended", end_tracking),
    ] {
        let listens = [
            "PSUBSCRIBE __key*__:*",
            "CLIENT TRACKING ON BCAST",
            "CLIENT TRACKING ON BCAST NOLOOP",
        ];
        let mut listeners: Vec<Client> =
            (0..8).map(|number| listener(&server, listens[number % 3])).collect();
        if name != "read" {
            listeners.extend(redirect(&server));
        }
        thread::scope(|scope| {
            for writer in 0..4 {
                let server = &server;
                scope.spawn(move || write(server, (writer, 500), 400));
            }
        });
        eventually("notifications wait", || waiting(&server) > MB);
        end(&server, &mut admin, listeners);
        nothing_waits(&server, name);
        assert_eq!(server.info("mem_not_counted_for_evict"), "0", "{name}");
    }
}

//! `maxmemory-clients`: what counts, which clients are closed first, and that the limit holds on
//! all threads.

use std::thread;

use test_support::{encode, eventually, request};

use crate::{Client, Server};

const MB: u64 = 1 << 20;

/// A field of the line of a client with this name.
fn field(admin: &mut Client, name: &str, field: &str) -> Option<u64> {
    let list = admin.ask("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains(&format!(" name={name} ")))?;
    let (_, rest) = line.split_once(&format!(" {field}="))?;
    rest.split(' ').next()?.parse().ok()
}

fn named(server: &Server, name: &str) -> Client {
    let mut client = server.client();
    client.ok(&format!("CLIENT SETNAME {name}"));
    client
}

/// A client with unread replies of about this many bytes, beyond the buffers of the kernel.
fn reader(server: &Server, name: &str, requests: usize) -> Client {
    let mut client = named(server, name);
    client.send_lossy(&request("GET big").repeat(requests));
    client
}

/// A client's name, the field of CLIENT LIST that shows its memory, and how the memory grows.
type Case<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Client));

#[test]
fn everything_that_a_client_makes_the_server_hold_counts() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut admin = server.client();
    admin.ok("CLIENT NO-EVICT ON");
    let big = vec![b'x'; 4 << 20];
    admin.ask_args(&[b"SET", b"big", &big[..1 << 20]]);
    let half_request = |client: &mut Client| {
        let request = encode(&[b"SET", b"k", &big]);
        client.send_raw(&request[..request.len() - 1000]);
    };
    let queues = |client: &mut Client| {
        client.ok("MULTI");
        assert_eq!(client.ask_args(&[b"SET", b"k", &big]).text(), "QUEUED");
    };
    let subscribes = |client: &mut Client| {
        for number in 0..4 {
            let channel = [&big[..1 << 20], &[number]].concat();
            client.ask_args(&[b"SUBSCRIBE", &channel]);
        }
    };
    let reads_nothing = |client: &mut Client| client.send_raw(&request("GET big").repeat(12));
    let has_long_name = |client: &mut Client| {
        client.ask_args(&[b"CLIENT", b"SETINFO", b"LIB-NAME", &big]);
    };
    let tracks = |client: &mut Client| {
        for number in 0..2 {
            let prefix = [&[number], &big[..1 << 20]].concat();
            client.ask_args(&[b"CLIENT", b"TRACKING", b"ON", b"BCAST", b"PREFIX", &prefix]);
        }
    };
    let watches = |client: &mut Client| {
        let names = [0, 1, 2].map(|number| [&big[..1 << 20], &[number]].concat());
        client.ask_args(&[b"WATCH", &names[0], &names[1], &names[2]]);
    };
    let queues_small_arguments = |client: &mut Client| {
        client.ok("MULTI");
        let request = [&[b"MSET".as_slice()], vec![b"k".as_slice(); 300_000].as_slice()].concat();
        assert_eq!(client.ask_args(&request).text(), "QUEUED");
    };
    let cases: [Case<'_>; 9] = [
        ("blocked", "argv-mem", &wait_for_many_keys),
        ("watches", "tot-mem", &watches),
        ("arguments", "tot-mem", &queues_small_arguments),
        ("tracks", "tot-mem", &tracks),
        ("half", "qbuf", &half_request),
        ("queue", "multi-mem", &queues),
        ("subscribed", "tot-mem", &subscribes),
        ("output", "omem", &reads_nothing),
        ("name", "tot-mem", &has_long_name),
    ];
    for (name, part, grow) in cases {
        let mut client = named(&server, name);
        let mut small = named(&server, "small");
        grow(&mut client);
        let mut bytes = 0;
        eventually("it counts", || {
            bytes = field(&mut admin, name, "tot-mem").unwrap_or(0);
            bytes >= 3 * MB && field(&mut admin, name, part).unwrap_or(0) >= 3 * MB
        });
        let all: u64 = server.info("mem_clients_normal").parse().unwrap();
        assert!((3 * MB..bytes + 2 * MB).contains(&all), "{name}: {all} for {bytes}");
        let before: u64 = server.info("evicted_clients").parse().unwrap();
        admin.ok("CONFIG SET maxmemory-clients 3mb");
        eventually("it is closed", || field(&mut admin, name, "tot-mem").is_none());
        assert_eq!(server.info("evicted_clients"), (before + 1).to_string(), "{name}");
        assert_eq!(small.ask("PING").text(), "PONG", "{name}");
        admin.ok("CONFIG SET maxmemory-clients 0");
    }
    server.wait_for_log("Evicting client: id=");
}

/// Blocks a client on 10,000 keys.
fn wait_for_many_keys(client: &mut Client) {
    let keys: Vec<_> = (0..10_000).map(|nth| format!("{nth:0100}")).collect();
    let mut request: Vec<_> = keys.iter().map(String::as_bytes).collect();
    request.insert(0, b"BLPOP");
    request.push(b"0");
    client.send_raw(&encode(&request));
}

#[test]
fn the_keys_of_a_blocked_client_count_until_it_is_served() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut admin = server.client();
    let mut client = named(&server, "waits");
    wait_for_many_keys(&mut client);
    eventually("it counts", || field(&mut admin, "waits", "argv-mem") > Some(3 * MB));
    let key = format!("{:0100}", 9_999);
    admin.ask(&format!("RPUSH {key} x"));
    assert_eq!(client.read().items()[1].text(), "x");
    eventually("it does not count", || field(&mut admin, "waits", "argv-mem") == Some(0));
}

#[test]
fn a_queue_in_which_several_wait_counts_once() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut admin = server.client();
    let mut clients = ["first", "second"].map(|name| {
        let mut client = named(&server, name);
        wait_for_many_keys(&mut client);
        eventually("it waits", || field(&mut admin, name, "argv-mem") > Some(MB));
        client
    });
    let counted = ["first", "second"].map(|name| field(&mut admin, name, "argv-mem").unwrap());
    assert!(counted[0] > 3 * MB && counted[1] < 2 * MB, "{counted:?}");
    admin.ask(&format!("RPUSH {:0100} x y", 9_999));
    clients.iter_mut().for_each(|client| assert_eq!(client.read().items().len(), 2));
}

#[test]
fn a_watched_name_counts_for_its_clients_in_turn() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut admin = server.client();
    let key = vec![b'k'; 4 << 20];
    let mut watch = |name| {
        let mut client = named(&server, name);
        client.ask_args(&[b"WATCH", &key]);
        client
    };
    let mut clients = ["first", "second", "third"].map(&mut watch);
    let mut counts = |name| field(&mut admin, name, "tot-mem") > Some(4 * MB);
    eventually("no buffer holds the name", || !counts("second") && !counts("third"));
    assert!(counts("first"));
    clients[0].ok("UNWATCH");
    eventually("another one has it", || !counts("first") && counts("second") != counts("third"));
    drop(clients);
}

#[test]
fn the_largest_go_first_on_all_threads_and_the_protected_stay() {
    let server = Server::start(&["--io-threads", "5", "--io-threads-always-active", "yes"]);
    let mut admin = named(&server, "admin");
    admin.ok("CLIENT NO-EVICT ON");
    admin.ask_args(&[b"SET", b"big", &vec![b'x'; 1 << 20]]);
    // The buffers of the kernel differ between connections by some megabytes.
    let sizes = [12, 40, 12, 40, 12, 40, 12, 40];
    let mut clients: Vec<Client> = (0..)
        .zip(sizes)
        .map(|(number, size)| reader(&server, &format!("c{number}"), size))
        .collect();
    let mut kept = named(&server, "kept");
    kept.ok("CLIENT NO-EVICT ON");
    kept.send_lossy(&request("GET big").repeat(40));
    let wants = |size: usize| (size as u64 - 8) * MB;
    let names = (0..).zip(sizes).map(|(number, size)| (format!("c{number}"), size));
    for (name, size) in names.chain([("kept".to_owned(), 40)]) {
        eventually("it has grown", || {
            field(&mut admin, &name, "tot-mem").unwrap_or(0) >= wants(size)
        });
    }
    // From now on their output only becomes less.
    let requests = sizes.iter().sum::<usize>() + 40;
    let executed = format!("calls={requests},");
    eventually("all requests are executed", || {
        admin.ask("INFO commandstats").text().contains(&format!("cmdstat_get:{executed}"))
    });
    // The limit has room for the smaller clients and the protected one, but for none of the larger
    // ones.
    let small = [0, 2, 4, 6].map(|number| format!("c{number}"));
    let stays = small.iter().map(String::as_str).chain(["admin", "kept"]);
    let stays = stays.map(|name| field(&mut admin, name, "tot-mem").unwrap_or(0));
    let limit = stays.sum::<u64>() + 2 * MB;
    admin.ok(&format!("CONFIG SET maxmemory-clients {limit}"));
    eventually("the larger ones are closed", || {
        let list = admin.ask("CLIENT LIST").text();
        let is_there = |number: usize| list.contains(&format!(" name=c{number} "));
        (0..8).all(|number| is_there(number) == (number % 2 == 0))
    });
    eventually("their memory counts no longer", || {
        server.info("mem_clients_normal").parse::<u64>().unwrap() <= limit + MB
    });
    assert_eq!(server.info("evicted_clients"), "4");
    // The protected client alone exceeds this.
    admin.ok("CONFIG SET maxmemory-clients 10mb");
    eventually("the others are closed", || {
        let list = admin.ask("CLIENT LIST").text();
        !list.contains(" name=c") && list.contains(" name=kept ")
    });
    server.wait_for_log("Over client maxmemory after evicting all evictable clients");
    drop(clients.drain(..));
    (0..40).for_each(|_| assert_eq!(kept.read().text().len(), 1 << 20));
    assert_eq!(kept.ask("PING").text(), "PONG");
}

#[test]
fn the_limit_holds_while_four_threads_are_flooded() {
    const LIMIT: u64 = 30 * MB;
    let server = Server::start(&[
        "--io-threads",
        "5",
        "--io-threads-always-active",
        "yes",
        "--maxmemory",
        "300mb",
        "--maxmemory-clients",
        "10%",
    ]);
    let mut admin = named(&server, "admin");
    admin.ok("CLIENT NO-EVICT ON");
    // Short enough to be copied for each client.
    admin.ask_args(&[b"SET", b"big", &vec![b'x'; 15_000]]);
    let before = server.process().memory("VmRSS");
    let mut most = 0;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..15 {
                    // Ends when the server has closed the connection.
                    let mut client = server.client();
                    client.send_lossy(&request("GET big").repeat(2000));
                    client.end_sending();
                    thread::sleep(std::time::Duration::from_millis(20));
                }
            });
        }
        for _ in 0..40 {
            most = most.max(server.process().memory("VmRSS").saturating_sub(before));
            assert_eq!(admin.ask("PING").text(), "PONG");
            thread::sleep(std::time::Duration::from_millis(10));
        }
    });
    assert!(most < LIMIT + 50 * MB, "{} MB", most / MB);
}

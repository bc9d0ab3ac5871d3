//! `maxmemory` of a whole process: memory stays below it whatever the threads write, eviction takes
//! bounded steps, and no transaction sees half of a step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::random::Random;
use test_support::eventually;

use crate::undisturbed::undisturbed;
use crate::{Client, Server, Value};

const MB: u64 = 1 << 20;
/// Four threads that have clients, whatever the load and the processors.
const FOUR_THREADS: &[&str] = &["--io-threads", "5", "--io-threads-always-active", "yes"];

fn used(server: &Server) -> u64 {
    server.info("used_memory").parse().unwrap()
}

fn set(client: &mut Client, key: &str, bytes: usize) -> Value {
    client.ask_args(&[b"SET", key.as_bytes(), &vec![b'x'; bytes]])
}

/// A size that is mostly small, and up to 1 MB.
fn mixed_size(random: &mut Random) -> usize {
    let bits = 4 + random.below(17);
    random.below(1 << bits) as usize
}

/// Fills a server with this many keys of 500 bytes.
fn fill(server: &Server, keys: usize) {
    let mut client = server.client();
    for first in (0..keys).step_by(1000) {
        let names: Vec<String> = (first..first + 1000).map(|key| format!("fill{key}")).collect();
        let mut args: Vec<&[u8]> = vec![b"MSET"];
        names.iter().for_each(|name| args.extend([name.as_bytes(), &[b'x'; 500]]));
        assert_eq!(client.ask_args(&args).text(), "OK");
    }
}

/// A thread's interpreter frees its memory when the thread ends.
#[test]
fn threads_that_come_and_go_after_scripts_leave_nothing() {
    let server = Server::start(FOUR_THREADS);
    let mut first = None;
    for _ in 0..5 {
        server.client().ask("CONFIG SET io-threads 5");
        let mut clients: Vec<Client> = (0..12).map(|_| server.client()).collect();
        let script = "EVAL return{1} 0";
        clients.iter_mut().for_each(|client| assert_eq!(client.ask(script).items().len(), 1));
        drop(clients);
        server.client().ask("CONFIG SET io-threads 1");
        eventually("one thread is left", || server.info("io_threads_active") == "0");
        first.get_or_insert_with(|| used(&server));
    }
    let (first, last) = (first.unwrap(), used(&server));
    assert!(last < first + 2 * MB, "{first} and then {last}");
}

#[test]
fn four_threads_that_write_values_up_to_1_mb_stay_below_the_limit() {
    let limit = 100 * MB;
    for policy in ["allkeys-lru", "allkeys-lfu", "volatile-ttl", "allkeys-random"] {
        let limited = ["--maxmemory", "100mb", "--maxmemory-policy", policy];
        let server = Server::start(&[FOUR_THREADS, &limited].concat());
        used(&server);
        thread::scope(|scope| {
            for number in 0..8u64 {
                let server = &server;
                scope.spawn(move || {
                    let (mut client, mut random) = (server.client(), Random::new(number));
                    let mut written = 0;
                    while written < 40 * MB {
                        let key = format!("{number}:{}", random.below(100_000));
                        let size = mixed_size(&mut random);
                        written += size as u64;
                        let value = vec![b'x'; size];
                        // A volatile policy never evicts keys without an expiry.
                        let args = [&b"SET"[..], key.as_bytes(), &value, b"EX", b"1000"];
                        assert_eq!(client.ask_args(&args).text(), "OK", "{policy}");
                    }
                });
            }
        });
        let peak: u64 = server.info("used_memory_peak").parse().unwrap();
        assert!(peak > limit * 9 / 10, "{policy}: only {peak} were used");
        assert!(peak <= limit + limit / 100, "{policy}: {peak} were used");
        let evicted: u64 = server.info("evicted_keys").parse().unwrap();
        assert!(evicted > 0, "{policy}");
        // `used_memory` is the allocator's figure, except for memory that threads keep for
        // themselves.
        let allocated: u64 = server.info("allocator_allocated").parse().unwrap();
        assert!(allocated.abs_diff(used(&server)) < 4 * MB, "{allocated}");
    }
}

#[test]
fn a_limit_far_below_used_memory_stops_no_client() {
    undisturbed(|| {
        let server = Server::start(FOUR_THREADS);
        fill(&server, 200_000);
        assert!(used(&server) > 100 * MB);
        let (done, mut longest) = (AtomicBool::new(false), Duration::ZERO);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut client = server.client();
                let mut longest = Duration::ZERO;
                while !done.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    client.ask("GET fill1");
                    longest = longest.max(start.elapsed());
                }
                longest
            });
            let mut client = server.client();
            client.ok("CONFIG SET maxmemory 20mb maxmemory-policy allkeys-lru");
            eventually("memory is below its limit", || {
                assert_eq!(set(&mut client, "new", 100).text(), "OK");
                used(&server) <= 20 * MB + MB / 5
            });
            done.store(true, Ordering::Relaxed);
            longest = other.join().unwrap();
        });
        // In one step it would take half a second here.
        assert!(longest < Duration::from_millis(200), "not in time: a GET took {longest:?}");
        let mut client = server.client();
        client.ok("CONFIG SET maxmemory-policy noeviction maxmemory 10mb");
        let reply = set(&mut client, "new", 100).text();
        assert_eq!(reply, "OOM command not allowed when used memory > 'maxmemory'.");
        server.wait_for_log("The limit of memory, 10485760 bytes, is below");
        client.ok("CONFIG SET maxmemory 0");
        assert_eq!(set(&mut client, "new", 100).text(), "OK");
    });
}

#[test]
fn big_collections_go_without_more_than_is_needed() {
    let server = Server::start(FOUR_THREADS);
    let mut client = server.client();
    // Each takes about 2 MB, which another thread frees.
    for number in 0..20 {
        let script = "for i = 1, 40000 do redis.call('SADD', KEYS[1], 'member:' .. i) end";
        client.ask_args(&[b"EVAL", script.as_bytes(), b"1", format!("set{number}").as_bytes()]);
    }
    let each = client.ask("MEMORY USAGE set1").int() as u64;
    let before = used(&server);
    let limit = before - 4 * each - each / 2;
    client.ok(&format!("CONFIG SET maxmemory-policy allkeys-random maxmemory {limit}"));
    eventually("memory is below its limit", || {
        client.ask("PING");
        used(&server) <= limit
    });
    let left = client.ask("DBSIZE").int();
    assert!((14..=15).contains(&left), "{left} of 20 are left");
}

#[test]
fn no_transaction_or_script_loses_a_key_on_its_way() {
    let limited = ["--maxmemory", "30mb", "--maxmemory-policy", "allkeys-random"];
    let server = Server::start(&[FOUR_THREADS, &limited].concat());
    thread::scope(|scope| {
        for number in 0..4u64 {
            let server = &server;
            scope.spawn(move || {
                let (mut client, mut random) = (server.client(), Random::new(number));
                for round in 0..1500 {
                    let (a, b) = (format!("a{number}:{round}"), format!("b{number}:{round}"));
                    let value = "x".repeat(random.below(20_000) as usize + 1);
                    if round % 2 == 0 {
                        client.ok("MULTI");
                        for words in [
                            format!("SET {a} {value}"),
                            format!("SET {b} {value}"),
                            format!("STRLEN {a}"),
                            format!("STRLEN {b}"),
                        ] {
                            assert_eq!(client.ask(&words).text(), "QUEUED");
                        }
                        let replies = client.ask("EXEC");
                        let lens: Vec<i64> = replies.items()[2..].iter().map(Value::int).collect();
                        assert_eq!(lens, [value.len() as i64; 2]);
                    } else {
                        let script = "redis.call('SET', KEYS[1], ARGV[1]) \
                                      redis.call('SET', KEYS[2], ARGV[1]) \
                                      return redis.call('STRLEN', KEYS[1]) \
                                          + redis.call('STRLEN', KEYS[2])";
                        let args = [
                            b"EVAL",
                            script.as_bytes(),
                            b"2",
                            a.as_bytes(),
                            b.as_bytes(),
                            value.as_bytes(),
                        ];
                        assert_eq!(client.ask_args(&args).int(), 2 * value.len() as i64);
                    }
                }
            });
        }
    });
    assert!(server.info("evicted_keys").parse::<u64>().unwrap() > 0);
}

#[test]
fn policies_change_under_load() {
    let server = Server::start(&[FOUR_THREADS, &["--maxmemory", "30mb"]].concat());
    let mut control = server.client();
    // The main thread keeps the memory for INFO, and it counts.
    used(&server);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..4u64 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let (mut client, mut random) = (server.client(), Random::new(number));
                while !done.load(Ordering::Relaxed) {
                    let key = format!("k{}", random.below(10_000));
                    let value = vec![b'x'; random.below(10_000) as usize];
                    let mut args = vec![&b"SET"[..], key.as_bytes(), &value];
                    if random.below(2) == 0 {
                        args.extend([&b"EX"[..], b"100"]);
                    }
                    let reply = client.ask_args(&args).text();
                    assert!(reply == "OK" || reply.starts_with("OOM "), "{reply}");
                    client.ask(&format!("GET k{}", random.below(10_000)));
                }
            });
        }
        for _ in 0..5 {
            for policy in [
                "volatile-lru",
                "allkeys-lfu",
                "volatile-random",
                "volatile-ttl",
                "noeviction",
                "volatile-lfu",
                "allkeys-random",
                "allkeys-lru",
            ] {
                control.ok(&format!("CONFIG SET maxmemory-policy {policy}"));
                thread::sleep(Duration::from_millis(50));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    eventually("memory is below its limit", || {
        control.ask("PING");
        used(&server) <= 30 * MB
    });
    let peak: u64 = server.info("used_memory_peak").parse().unwrap();
    assert!(peak <= 30 * MB + 30 * MB / 100, "{peak}");
}

/// An eviction notifies all clients that have read the key, which takes more memory than the key.
#[test]
fn notifications_of_evictions_evict_no_keys() {
    for threads in ["1", "3"] {
        let policy = ["--maxmemory-policy", "allkeys-lru", "--maxmemory-eviction-tenacity", "100"];
        let server = Server::start(&[&["--io-threads", threads], &policy[..]].concat());
        let mut admin = server.client();
        let mut readers: Vec<Client> = (0..10).map(|_| server.client()).collect();
        for reader in &mut readers {
            reader.ask("HELLO 3");
            reader.ok("CLIENT TRACKING ON");
        }
        for number in 0..300 {
            let key = format!("{number}{}", "x".repeat(1000));
            admin.ok(&format!("SET {key} x"));
            readers.iter_mut().for_each(|reader| drop(reader.ask(&format!("GET {key}"))));
        }
        let limit = used(&server) - 40_000;
        admin.ok(&format!("CONFIG SET maxmemory {limit}"));
        eventually("keys are evicted", || server.info("evicted_keys") != "0");
        let left = admin.ask("DBSIZE").int();
        assert!((200..300).contains(&left), "{left} of 300 with {threads} threads");
    }
}

/// Threads notify subscribers of evictions at the same time: notifications of another thread evict
/// no keys.
#[test]
fn notifications_to_subscribers_that_read_evict_no_keys() {
    let notify = ["--maxmemory-policy", "allkeys-random", "--notify-keyspace-events", "Ee"];
    let server = Server::start(&[FOUR_THREADS, &notify].concat());
    let mut admin = server.client();
    fill(&server, 20_000);
    let write = |number: usize| {
        let mut client = server.client();
        for key in 0..400 {
            let name = format!("{number}:{key}:{}", "x".repeat(400));
            assert_eq!(set(&mut client, &name, 200).text(), "OK");
        }
    };
    let write = &write;
    thread::scope(|scope| {
        for _ in 0..16 {
            let mut subscriber = server.client();
            subscriber.ask("PSUBSCRIBE __key*__:*");
            scope.spawn(move || while subscriber.try_read().is_ok() {});
        }
        admin.ok(&format!("CONFIG SET maxmemory {}", used(&server) + MB / 4));
        let writers: Vec<_> = (0..8).map(|number| scope.spawn(move || write(number))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        admin.ask("CLIENT KILL TYPE pubsub");
    });
    // 3200 keys arrived, for which about 5000 smaller ones are evicted.
    assert_ne!(server.info("evicted_keys"), "0");
    let left = admin.ask("DBSIZE").int();
    assert!((12_000..23_200).contains(&left), "{left} are left");
}

//! All threads have one time: a request after a reply, or after an earlier command on the same key,
//! never sees an earlier time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use test_support::{encode, request};

use crate::{Client, Server};

const CLIENTS: usize = 4;
const LEFT_MS: i64 = 60_000;

/// Returns the remaining time to live of a key, and sets it again.
const RENEW: &[u8] = b"local left = redis.call('PTTL', KEYS[1]) \
    redis.call('SET', KEYS[1], 'v', 'PX', 60000) return left";

/// Runs `work` with clients of different threads under load.
fn beside_load(work: impl FnOnce([Client; CLIENTS])) {
    let server = Server::start(&["--io-threads", "5", "--io-threads-always-active", "yes"]);
    let clients = std::array::from_fn(|_| {
        let mut client = server.client();
        client.ask("PING");
        client
    });
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut client = server.client();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    client.send_raw(&request("INCR n").repeat(200));
                    (0..200).for_each(|_| drop(client.read()));
                }
            });
        }
        work(clients);
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_request_after_a_reply_sees_no_earlier_time() {
    beside_load(|mut clients| {
        for round in 0..2000 {
            clients[round % CLIENTS].ok("SET key value PX 60000");
            let left_ms = clients[(round + 1) % CLIENTS].ask("PTTL key").int();
            assert!((1..=LEFT_MS).contains(&left_ms), "{left_ms} ms");
        }
    });
}

#[test]
fn scripts_on_one_key_see_no_earlier_time() {
    beside_load(|clients| {
        thread::scope(|scope| {
            for mut client in clients {
                scope.spawn(move || {
                    client.send_raw(&encode(&[b"EVAL", RENEW, b"1", b"key"]).repeat(500));
                    for _ in 0..500 {
                        let left_ms = client.read().int();
                        assert!((-2..=LEFT_MS).contains(&left_ms), "{left_ms} ms");
                    }
                });
            }
        });
    });
}

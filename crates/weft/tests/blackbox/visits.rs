//! Commands that visit one shard after another, while slow commands use the shards or databases are
//! swapped: they end, and their replies are right.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use test_support::{encode, eventually};

use crate::put_aside::{IN_STREAMS, Slow, TEN_MS, cursor_behind, know_script, streams};
use crate::{Server, Value};

/// A script of a hundred milliseconds.
const HUNDRED_MS: &[u8] = b"local till = os.clock() + 0.1 while os.clock() < till do end
    return redis.call('INCR', KEYS[1])";

/// Commands that visit all shards.
const VISIT: [&str; 4] =
    ["KEYS s*", "RANDOMKEY", "DEBUG DIGEST", "DEBUG DIGEST-VALUE s0 s1 s2 s3 s4 s5 s6 s7 s8"];

/// The largest number of scripts that begin while three such commands wait for one shard after
/// another: each waits at most once for each of the nine, for the running script and for those
/// queued before it.
const BESIDE_VISITS_MAX: usize = 200;

#[test]
fn visits_of_all_shards_continue_after_a_wait() {
    let threads = ["--io-threads", "6", "--io-threads-always-active", "yes"];
    let server = Server::start(&[&threads[..], &["--enable-debug-command", "yes"]].concat());
    know_script(&server, HUNDRED_MS);
    let (begun, ended) = (Arc::<AtomicUsize>::default(), Arc::new(AtomicBool::new(false)));
    let clients = [(); 4].map(|()| server.client());
    let streams = streams(clients, HUNDRED_MS, (&begun, &ended));
    let mut client = server.client();
    eventually("each key is there", || client.ask("DBSIZE").int() == 10);
    client.ask("DEL known");
    let in_streams: HashSet<String> = IN_STREAMS.iter().map(|&key| key.to_owned()).collect();
    for command in VISIT {
        let before = begun.load(Ordering::Relaxed);
        for _ in 0..3 {
            let reply = client.ask(command);
            match command {
                "RANDOMKEY" => assert!(in_streams.contains(&reply.text())),
                "KEYS s*" => {
                    let keys = reply.items().iter().map(Value::text);
                    assert_eq!(keys.collect::<HashSet<_>>(), in_streams);
                }
                "DEBUG DIGEST" => assert_eq!(reply.text().len(), 40),
                _ => assert_eq!(reply.items().len(), IN_STREAMS.len()),
            }
        }
        let others = begun.load(Ordering::Relaxed) - before;
        assert!(others <= BESIDE_VISITS_MAX, "{command} waited for {others} scripts");
    }
    ended.store(true, Ordering::Relaxed);
    streams.into_iter().for_each(|stream| stream.join().unwrap());
}

#[test]
fn a_refused_command_leaves_nothing_to_the_next() {
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    let mut client = server.client();
    // Its shard is one of the last.
    let mut keys = (0..).map(|number| format!("held{number}"));
    let held = keys.find(|key| cursor_behind(&mut client, key) >> 32 > 800).unwrap();
    (0..100).for_each(|number| client.ok(&format!("SET found{number} 1")));
    let (mut slow, [mut waiting, mut admin]) = Slow::start(&server, &held);
    waiting.send("KEYS found*");
    slow.stops_only(&mut waiting);
    // It replies after the running script.
    admin.send("ACL SETUSER default -keys");
    eventually("it is denied", || {
        slow.neighbour.ask("ACL LIST").items()[0].text().contains("-keys")
    });
    slow.end();
    assert!(waiting.read().text().starts_with("NOPERM"));
    assert_eq!(admin.read().text(), "OK");
    admin.ok("ACL SETUSER default +keys");
    assert_eq!(waiting.ask("KEYS none*"), Value::array(Vec::new()));
}

/// Keys of each database.
const KEYS: usize = 60;

#[test]
fn keys_lists_one_database_during_swaps() {
    let server = Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"]);
    know_script(&server, TEN_MS);
    let mut client = server.client();
    for (db, name) in ["a", "b"].into_iter().enumerate() {
        client.ok(&format!("SELECT {db}"));
        (0..KEYS).for_each(|number| client.ok(&format!("SET {name}_{number} 1")));
    }
    let (begun, ended) = (Arc::<AtomicUsize>::default(), Arc::new(AtomicBool::new(false)));
    let clients = [(); 3].map(|()| server.client());
    let streams = streams(clients, TEN_MS, (&begun, &ended));
    let swaps = thread::spawn({
        let (mut client, ended) = (server.client(), Arc::clone(&ended));
        move || {
            while !ended.load(Ordering::Relaxed) {
                client.ok("SWAPDB 0 1");
            }
        }
    });
    eventually("scripts run", || begun.load(Ordering::Relaxed) > 20);
    for _ in 0..40 {
        client.send_raw(&encode(&[b"KEYS", b"?_*"]));
        let reply = client.read();
        let keys = reply.items().iter().map(Value::text).collect::<HashSet<_>>();
        let of_a = keys.iter().filter(|key| key.starts_with('a')).count();
        assert!(of_a == 0 || of_a == KEYS, "{of_a} of one, {} of the other", keys.len() - of_a);
        assert_eq!((keys.len(), reply.items().len()), (KEYS, KEYS));
    }
    ended.store(true, Ordering::Relaxed);
    streams.into_iter().for_each(|stream| stream.join().unwrap());
    swaps.join().unwrap();
}

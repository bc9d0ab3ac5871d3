//! Threads that wait for each other: docs/design/waits.md lists the places. Commands that need a
//! moment at which no command runs, next to one that does not end; and evictions while a snapshot
//! still needs the evicted values.

use test_support::{encode, eventually};

use crate::put_aside::Slow;
use crate::{Client, Server, Value};

/// Three threads, two of which have clients. No script is ever busy.
const TWO_THREADS: &[&str] =
    &["--io-threads", "3", "--io-threads-always-active", "yes", "--busy-reply-threshold", "0"];

/// Requests that take the cut of a snapshot.
const CUTS: [&str; 4] = ["BGSAVE", "BGREWRITEAOF", "WEFT BACKUP copy.rdb", "SAVE"];

/// Whether nothing is saved or rewritten.
fn is_saved(server: &Server) -> bool {
    let fields = ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"];
    fields.iter().all(|field| server.info(field) == "0")
        && server.info("weft_backup_in_progress") == "0"
}

#[test]
fn a_cut_beside_a_slow_command_stops_no_client() {
    for words in CUTS {
        let server = Server::start(&[TWO_THREADS, &["--save", ""]].concat());
        let (mut slow, [mut asking]) = Slow::start(&server, "key");
        let own_line = format!("CLIENT LIST ID {}", asking.ask("CLIENT ID").int());
        let name = words.split(' ').next().unwrap().to_lowercase();
        asking.send(words);
        if words == "SAVE" {
            let begins = || slow.neighbour.ask(&own_line).text().contains(&format!("cmd={name}"));
            eventually("it begins", begins);
        } else {
            assert!(!asking.read().is_error(), "{words}");
        }
        for count in 1..=500 {
            assert_eq!(slow.neighbour.ask("INCR counter").int(), count, "{words}");
        }
        slow.end();
        if words == "SAVE" {
            assert_eq!(asking.read().text(), "OK");
        }
        eventually("it is saved", || is_saved(&server));
        assert_eq!(server.info("rdb_last_bgsave_status"), "ok", "{words}");
        assert_eq!(server.info("aof_last_bgrewrite_status"), "ok", "{words}");
    }
}

/// A write that follows the reply of BGSAVE may be in the file, but one before it must.
#[test]
fn a_cut_that_had_to_wait_has_all_earlier_writes() {
    let server = Server::start(&[TWO_THREADS, &["--save", ""]].concat());
    let (mut slow, [mut asking]) = Slow::start(&server, "key");
    slow.neighbour.ok("SET before 1");
    assert_eq!(asking.ask("BGSAVE").text(), "Background saving started");
    assert_eq!(server.info("rdb_bgsave_in_progress"), "1");
    let refused = asking.ask("BGSAVE").text();
    assert_eq!(refused, "ERR Background save already in progress");
    slow.end();
    eventually("it is saved", || is_saved(&server));
    let server = server.kill_and_start(&["--save", ""]);
    assert_eq!(server.client().ask("GET before").text(), "1");
}

#[test]
fn a_pause_of_no_time_stops_no_client() {
    let server = Server::start(TWO_THREADS);
    let (mut slow, [mut asking]) = Slow::start(&server, "key");
    asking.ok("CLIENT PAUSE 0");
    for count in 1..=100 {
        assert_eq!(slow.neighbour.ask("INCR counter").int(), count);
    }
    slow.end();
}

const KB: usize = 1 << 10;

/// Elements of a large collection of about 200 KB.
const ELEMENTS: usize = 200;

fn fill_collection(client: &mut Client, kind: &str, key: &str) {
    let mut args: Vec<Vec<u8>> = Vec::new();
    let texts = (0..ELEMENTS).map(|number| format!("{number:01000}").into_bytes());
    match kind {
        "stream" => {
            for text in texts {
                let add: [&[u8]; 5] = [b"XADD", key.as_bytes(), b"*", b"field", &text];
                client.ask_args(&add);
            }
            return;
        }
        "hash" => texts.for_each(|text| args.extend([text, b"value".to_vec()])),
        "zset" => texts.for_each(|text| args.extend([b"1".to_vec(), text])),
        _ => args.extend(texts),
    }
    let command = match kind {
        "hash" => "HSET",
        "zset" => "ZADD",
        "set" => "SADD",
        _ => "RPUSH",
    };
    let mut request: Vec<&[u8]> = vec![command.as_bytes(), key.as_bytes()];
    request.extend(args.iter().map(Vec::as_slice));
    client.send_raw(&encode(&request));
    assert_eq!(client.read().int() as usize, ELEMENTS, "{kind}");
}

fn set(client: &mut Client, key: &str, bytes: usize) -> Value {
    client.ask_args(&[b"SET", key.as_bytes(), &vec![b'x'; bytes]])
}

fn number(server: &Server, field: &str) -> u64 {
    server.info(field).parse().unwrap()
}

/// A server whose snapshots stop after a few keys, until [`go_on`].
fn start_stopping() -> Server {
    let options = ["--save", "", "--rdb-key-save-delay", "100000000"];
    Server::start(&[&options[..], &["--maxmemory-policy", "allkeys-random"]].concat())
}

/// Waits until the snapshot stops: its thread has taken the memory that it works with.
fn wait_for_stop(server: &Server) {
    eventually("it stops", || number(server, "current_save_keys_processed") > 0);
}

/// Fills database 0, whose keys the snapshot writes first in each shard, and selects database 1: a
/// snapshot that stops has written no key of that.
fn leave_first_database(client: &mut Client) {
    // Many more than shards, so that the first shard has some.
    let keys: Vec<String> = (0..30_000).map(|key| format!("key{key}")).collect();
    let pairs = keys.iter().flat_map(|key| [key.as_bytes(), b"value"]);
    let request: Vec<&[u8]> = std::iter::once(&b"MSET"[..]).chain(pairs).collect();
    assert_eq!(client.ask_args(&request).text(), "OK");
    client.ok("SELECT 1");
}

/// No more memory than now may be used.
fn limit_memory(server: &Server, client: &mut Client) {
    let limit = number(server, "used_memory") + 64 * KB as u64;
    client.ok(&format!("CONFIG SET maxmemory {limit}"));
}

fn go_on(server: &Server, client: &mut Client) {
    client.ok("CONFIG SET rdb-key-save-delay 0");
    eventually("it is saved", || is_saved(server));
    eventually("nothing is kept", || server.info("mem_not_counted_for_evict") == "0");
}

/// A snapshot keeps evicted collections, which are no reason for writes to wait.
#[test]
fn an_eviction_during_a_snapshot_stops_no_write() {
    for kind in ["hash", "set", "zset", "list", "stream"] {
        for words in ["BGSAVE", "BGREWRITEAOF", "WEFT BACKUP copy.rdb"] {
            let server = start_stopping();
            let mut client = server.client();
            (0..10).for_each(|key| fill_collection(&mut client, kind, &format!("large{key}")));
            assert!(!client.ask(words).is_error());
            eventually("it begins", || !is_saved(&server));
            limit_memory(&server, &mut client);
            for key in 0..100 {
                let reply = set(&mut client, &format!("small{key}"), 20 * KB);
                assert_eq!(reply, Value::simple("OK"), "{kind} {words} {key}");
            }
            assert!(number(&server, "evicted_keys") >= 10, "{kind} {words}");
            go_on(&server, &mut client);
            for key in 0..100 {
                let reply = set(&mut client, &format!("next{key}"), 20 * KB);
                assert_eq!(reply, Value::simple("OK"), "{kind} {words} {key}");
            }
        }
    }
}

/// The memory that a snapshot keeps is no reason to evict more keys.
#[test]
fn an_eviction_during_a_snapshot_makes_room() {
    let cases = [("small", 1000, 500), ("long", 200, 30 * KB)];
    for (name, keys, bytes) in cases {
        let server = start_stopping();
        let mut client = server.client();
        (0..keys).for_each(|key| drop(set(&mut client, &format!("key{key}"), bytes)));
        client.ask("BGSAVE");
        wait_for_stop(&server);
        limit_memory(&server, &mut client);
        let added = 64 * KB / bytes + keys / 4;
        for key in 0..added {
            assert_eq!(
                set(&mut client, &format!("new{key}"), bytes),
                Value::simple("OK"),
                "{name} {key}"
            );
        }
        let evicted = number(&server, "evicted_keys") as usize;
        assert!((1..=keys / 2).contains(&evicted), "{name}: {evicted} of {keys} keys");
        go_on(&server, &mut client);
    }
}

/// A database that was emptied can be filled again while a snapshot keeps its values.
#[test]
fn a_flush_during_a_snapshot_makes_room() {
    let server = start_stopping();
    let mut client = server.client();
    (0..5).for_each(|key| fill_collection(&mut client, "hash", &format!("large{key}")));
    (0..500).for_each(|key| drop(set(&mut client, &format!("key{key}"), KB)));
    client.ask("WEFT BACKUP copy.rdb");
    wait_for_stop(&server);
    client.ok("CONFIG SET maxmemory-policy noeviction");
    limit_memory(&server, &mut client);
    client.ok("FLUSHDB");
    for key in 0..500 {
        assert_eq!(set(&mut client, &format!("new{key}"), KB), Value::simple("OK"), "{key}");
    }
    go_on(&server, &mut client);
}

/// The memory of a string of 100 KB: the allocator's block for it.
const BLOCK_BYTES: usize = 112 * 1024;

/// The limit of memory holds for values that a command leaves in the keyspace, whatever a snapshot
/// saves of them.
#[test]
fn only_values_that_leave_the_keyspace_do_not_count() {
    let server = start_stopping();
    let mut client = server.client();
    leave_first_database(&mut client);
    assert_eq!(set(&mut client, "text", KB * KB), Value::simple("OK"));
    (0..20).for_each(|key| assert_eq!(client.ask(&format!("COPY text copy{key}")).int(), 1));
    for key in 0..10 {
        assert_eq!(set(&mut client, &format!("long{key}"), 100 * KB), Value::simple("OK"));
    }
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    wait_for_stop(&server);
    let kept = || number(&server, "mem_not_counted_for_evict") as usize;
    for key in 0..10 {
        assert_eq!(client.ask(&format!("EXPIRE copy{key} 10000")).int(), 1);
        client.ok(&format!("RENAME copy{} new{key}", key + 10));
    }
    for key in 0..5 {
        assert_eq!(client.ask(&format!("EXPIRE long{key} 10000")).int(), 1);
    }
    client.ok("RENAME long3 other");
    assert_eq!(client.ask("MOVE long4 2").int(), 1);
    assert!(kept() < 50 * KB, "{}", kept());
    // Nine values leave it, and are excluded until the snapshot has written them. Some had been
    // given an expiry or another name before.
    (5..10).for_each(|key| drop(set(&mut client, &format!("long{key}"), 10)));
    assert_eq!(client.ask("DEL long0 long1 other").int(), 3);
    set(&mut client, "long2", 10);
    let all = 9 * BLOCK_BYTES;
    eventually("all are kept", || (all..all + 100 * KB).contains(&kept()));
    client.ok("CONFIG SET rdb-key-save-delay 50000");
    eventually("their memory counts at once", || kept() == 0);
    assert_eq!(server.info("rdb_bgsave_in_progress"), "1", "while others are written");
    go_on(&server, &mut client);
}

/// A long string that several keys, saved keys or replies share counts until the last key and the
/// last reply are gone.
#[test]
fn shared_values_that_leave_the_keyspace_do_not_count() {
    let server = start_stopping();
    let mut client = server.client();
    leave_first_database(&mut client);
    for key in 0..10 {
        assert_eq!(set(&mut client, &format!("long{key}"), 100 * KB), Value::simple("OK"));
        assert_eq!(client.ask(&format!("COPY long{key} copy{key}")).int(), 1);
        assert_eq!(set(&mut client, &format!("read{key}"), 100 * KB), Value::simple("OK"));
    }
    client.ok("SELECT 2");
    for key in 0..10 {
        assert_eq!(set(&mut client, &format!("flushed{key}"), 100 * KB), Value::simple("OK"));
    }
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    wait_for_stop(&server);
    let kept = || number(&server, "mem_not_counted_for_evict") as usize;
    let is_kept = |values: usize| {
        let all = values * BLOCK_BYTES;
        (all..all + 100 * KB).contains(&kept())
    };
    for key in 0..10 {
        assert_eq!(client.ask(&format!("EXPIRE flushed{key} 10000")).int(), 1);
    }
    client.ok("FLUSHDB");
    eventually("they are kept", || is_kept(10));
    client.ok("SELECT 1");
    for key in 0..5 {
        assert_eq!(client.ask(&format!("EXPIRE long{key} 10000")).int(), 1);
        assert_eq!(client.ask(&format!("MOVE copy{key} 3")).int(), 1);
    }
    (0..10).for_each(|key| assert_eq!(client.ask(&format!("DEL long{key}")).int(), 1));
    assert!(is_kept(10), "their copies are there: {}", kept());
    (5..10).for_each(|key| assert_eq!(client.ask(&format!("DEL copy{key}")).int(), 1));
    eventually("copies are kept", || is_kept(15));
    client.ok("SELECT 3");
    (0..5).for_each(|key| assert_eq!(client.ask(&format!("DEL copy{key}")).int(), 1));
    eventually("moved copies are kept", || is_kept(20));
    client.ok("SELECT 1");
    for key in 0..5 {
        assert_eq!(client.ask(&format!("GETDEL read{key}")).text().len(), 100 * KB);
        client.ok("MULTI");
        assert_eq!(client.ask(&format!("GET read{}", key + 5)).text(), "QUEUED");
        assert_eq!(client.ask(&format!("DEL read{}", key + 5)).text(), "QUEUED");
        assert_eq!(client.ask("EXEC").items().len(), 2);
    }
    eventually("replies are gone", || is_kept(30));
    go_on(&server, &mut client);
}

/// The main thread waits in SAVE for the end of a script, and sees a signal nevertheless.
#[test]
fn a_signal_ends_a_server_whose_save_waits_for_a_slow_command() {
    let server = Server::start(&[TWO_THREADS, &["--save", ""]].concat());
    let (mut slow, [mut asking]) = Slow::start(&server, "key");
    let own_line = format!("CLIENT LIST ID {}", asking.ask("CLIENT ID").int());
    asking.send("SAVE");
    eventually("it begins", || slow.neighbour.ask(&own_line).text().contains("cmd=save"));
    server.signal("TERM");
    assert!(asking.read().is_error(), "it gives up");
}

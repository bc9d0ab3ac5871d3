//! WAITAOF: a client waits until its own writes are on the disk, and only for these.

use std::time::{Duration, Instant};

use test_support::{encode, eventually};

use crate::{Client, Server, Value};

const ON: &[&str] = &["--save", "", "--appendonly", "yes", "--io-threads", "1"];

fn wait(client: &mut Client, words: &str) -> (i64, i64) {
    pair(&client.ask(&format!("WAITAOF {words}")))
}

fn pair(reply: &Value) -> (i64, i64) {
    let items = reply.items();
    assert_eq!(items.len(), 2, "{reply:?}");
    (items[0].int(), items[1].int())
}

fn synced(client: &mut Client) -> i64 {
    wait(client, "0 0 0").0
}

#[test]
fn waitaof_waits_for_the_next_sync_and_stops_no_client() {
    let server = Server::start(ON);
    let (mut client, mut other) = (server.client(), server.client());
    // After a sync, the next one is up to a second away.
    client.ok("SET k v");
    assert_eq!(wait(&mut client, "1 0 0"), (1, 0));
    client.send_raw(
        &[encode(&[b"SET", b"k", b"w"]), encode(&[b"WAITAOF", b"1", b"0", b"0"])].concat(),
    );
    assert_eq!(client.read().text(), "OK");
    eventually("it waits", || server.info("blocked_clients") == "1");
    assert_eq!(other.ask("GET k").text(), "w");
    assert_eq!(pair(&client.read()), (1, 0));
    assert_eq!(server.info("blocked_clients"), "0");
    let began = Instant::now();
    assert_eq!(wait(&mut client, "1 1 50"), (1, 0), "there is no replica");
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[test]
fn waitaof_does_not_wait_for_writes_of_other_clients() {
    let server = Server::start(ON);
    let (mut client, mut other) = (server.client(), server.client());
    client.ok("SET k v");
    assert_eq!(wait(&mut client, "1 0 0"), (1, 0));
    client.ok("CONFIG SET appendfsync no");
    // Writes in transit are still synced.
    eventually("no sync follows", || {
        other.ok("SET k w");
        wait(&mut other, "1 0 1500") == (0, 0)
    });
    assert_eq!(wait(&mut client, "1 0 0"), (1, 0));
    assert_eq!(client.ask("GET k").text(), "w", "to have seen it is not to have written it");
    assert_eq!((synced(&mut client), synced(&mut other)), (1, 0));
    client.ok("SET k v");
    assert_eq!(synced(&mut client), 0);
    // A new base contains it.
    other.send_raw(&encode(&[b"WAITAOF", b"1", b"0", b"0"]));
    client.ask("BGREWRITEAOF");
    assert_eq!(pair(&other.read()), (1, 0));
    assert_eq!(wait(&mut client, "1 0 0"), (1, 0));
}

#[test]
fn waitaof_waits_for_a_pop_that_another_client_has_served() {
    for threads in ["1", "3"] {
        let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "no"];
        let server = Server::start(&[&options[..], &["--io-threads", threads]].concat());
        let (mut popper, mut reader, mut pusher) =
            (server.client(), server.client(), server.client());
        eventually("it has begun", || (synced(&mut popper), synced(&mut reader)) == (1, 1));
        popper.send("BLPOP list 0");
        reader.send("XREAD BLOCK 0 STREAMS stream $");
        eventually("they wait", || server.info("blocked_clients") == "2");
        pusher.ask("RPUSH list x");
        pusher.ask("XADD stream * f v");
        assert_eq!(popper.read().items().len(), 2);
        assert_eq!(reader.read().items().len(), 1);
        assert_eq!(synced(&mut popper), 0, "nothing is synced");
        assert_eq!(synced(&mut reader), 1, "to have seen it is not to have written it");
    }
}

#[test]
fn waitaof_ends_with_the_file_and_waits_for_the_first_base() {
    let server = Server::start(&[ON, &["--appendfsync", "no"]].concat());
    let (mut client, mut other) = (server.client(), server.client());
    client.ok("SET k v");
    client.send_raw(&encode(&[b"WAITAOF", b"1", b"0", b"0"]));
    eventually("it waits", || server.info("blocked_clients") == "1");
    other.ok("CONFIG SET appendonly no");
    let error = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert_eq!(client.read().text(), error);
    assert_eq!(client.ask("WAITAOF 1 0 0").text(), error);
    assert_eq!(synced(&mut client), 0);
    client.ok("CONFIG SET rdb-key-save-delay 300000");
    client.ok("CONFIG SET appendonly yes");
    assert_eq!(wait(&mut client, "1 0 10"), (0, 0), "the base is being written");
    assert_eq!(wait(&mut client, "1 0 0"), (1, 0));
    assert_eq!(synced(&mut client), 1, "the base has what was written before");
}

#[test]
fn under_always_it_has_been_waited_for() {
    let server = Server::start(&[ON, &["--appendfsync", "always"]].concat());
    let mut client = server.client();
    for n in 0..20 {
        let set = encode(&[b"SET", b"k", n.to_string().as_bytes()]);
        client.send_raw(&[set, encode(&[b"WAITAOF", b"1", b"0", b"0"])].concat());
        assert_eq!(client.read().text(), "OK");
        assert_eq!(pair(&client.read()), (1, 0));
    }
}

//! Clients that wait for pending entries of a stream to become old enough, on several threads.

use std::thread;
use std::time::Duration;

use test_support::{eventually, request};

use crate::{Client, MODELS, Server, Value};

/// Longer than any client waits for a reply.
const NEVER_MS: u64 = 100_000;

fn blocked(server: &Server, count: usize) {
    eventually("they wait", || server.info("blocked_clients") == count.to_string());
}

/// Makes the entries `1-1` to `1-count` of stream `s` pending with consumer `dead` of group `g`.
fn deliver(client: &mut Client, count: usize) {
    for entry in 1..=count {
        client.ask(&format!("XADD s 1-{entry} n {entry}"));
    }
    client.ok("XGROUP CREATE s g 0");
    assert_eq!(client.ask("XREADGROUP GROUP g dead STREAMS s >").items().len(), 1);
}

fn wait_for(client: &mut Client, idle_ms: u64) {
    client.send(&format!("XREADGROUP GROUP g me BLOCK 0 CLAIM {idle_ms} COUNT 1 STREAMS s >"));
}

/// The entry that a client got, and how long it had been pending.
fn entry(reply: &Value) -> (String, u64) {
    let stream = &reply.items()[0];
    let entry = &stream.items()[1].items()[0];
    (entry.items()[0].text(), entry.items()[2].int() as u64)
}

#[test]
fn entries_become_old_enough() {
    const IDLE_MS: u64 = 300;
    for model in MODELS {
        let server = Server::start(model);
        let mut control = server.client();
        deliver(&mut control, 4);
        let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            wait_for(client, IDLE_MS);
            blocked(&server, number + 1);
        }
        // Clients in order of arrival, the oldest entry first.
        for (number, client) in (1..).zip(&mut clients) {
            let (id, idle_ms) = entry(&client.read());
            assert_eq!(id, format!("1-{number}"), "{model:?}");
            assert!(idle_ms >= IDLE_MS, "too early: {idle_ms}");
        }
        blocked(&server, 0);
    }
}

#[test]
fn an_entry_is_made_older_by_another_client() {
    for model in MODELS {
        let server = Server::start(model);
        let mut control = server.client();
        deliver(&mut control, 1);
        let mut client = server.client();
        wait_for(&mut client, NEVER_MS);
        blocked(&server, 1);
        let almost_ms = NEVER_MS - 30;
        control.ask(&format!("XCLAIM s g other 0 1-1 IDLE {almost_ms} JUSTID"));
        assert_eq!(entry(&client.read()).0, "1-1", "{model:?}");
    }
}

#[test]
fn the_wait_moves_with_its_client() {
    let server = Server::start(&["--io-threads", "4"]);
    let mut control = server.client();
    deliver(&mut control, 3);
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        wait_for(client, NEVER_MS);
    }
    blocked(&server, 3);
    for (entry_number, threads) in [(1, 2), (2, 1), (3, 3)] {
        control.ok(&format!("CONFIG SET io-threads {threads}"));
        let almost_ms = NEVER_MS - 30;
        control.ask(&format!("XCLAIM s g other 0 1-{entry_number} IDLE {almost_ms} JUSTID"));
        blocked(&server, 3 - entry_number);
    }
    for client in &mut clients {
        client.read();
    }
}

#[test]
fn a_pause_of_writes_postpones_it() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut control = server.client();
    deliver(&mut control, 1);
    let mut client = server.client();
    wait_for(&mut client, NEVER_MS);
    blocked(&server, 1);
    // Both in one pipeline: the pause begins long before the entry is old enough.
    let mut both = request(&format!("XCLAIM s g other 0 1-1 IDLE {} JUSTID", NEVER_MS - 500));
    both.extend(request(&format!("CLIENT PAUSE {NEVER_MS} WRITE")));
    control.send_raw(&both);
    control.read();
    assert_eq!(control.read().text(), "OK");
    assert!(client.is_silent_for(Duration::from_millis(700)));
    assert_eq!(server.info("blocked_clients"), "1");
    control.ok("CLIENT UNPAUSE");
    assert!(entry(&client.read()).1 >= NEVER_MS + 100);
}

#[test]
fn waits_for_pending_entries_cost_nothing() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut control = server.client();
    deliver(&mut control, 1);
    // The entry stays pending, and there is nothing to read.
    assert_eq!(control.ask("XDEL s 1-1").int(), 1);
    let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for client in &mut clients {
        wait_for(client, 1);
    }
    blocked(&server, clients.len());
    let before = server.process().busy();
    thread::sleep(Duration::from_secs(1));
    let busy = Duration::from_nanos(server.process().busy() - before);
    assert!(busy < Duration::from_millis(50), "waiting keeps the server busy: {busy:?}");
}

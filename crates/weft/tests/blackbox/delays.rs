//! A slow or waiting command does not delay clients on other threads.

use std::collections::BTreeSet;
use std::time::Duration;

use test_support::eventually;

use crate::{Client, Server};

/// Options of a server with five threads that have clients.
const FIVE_CARRY: &[&str] = &["--io-threads", "6", "--io-threads-always-active", "yes"];

/// Clients that connect one after another to a server without clients: each gets its own thread
/// while there are free ones.
fn clients<const COUNT: usize>(server: &Server) -> [Client; COUNT] {
    std::array::from_fn(|_| {
        let mut client = server.client();
        client.ask("PING");
        client
    })
}

/// Sends one command that takes at least some tenths of a second. Returns when it holds its shard
/// and the other client waits for it.
fn begin_slow(client: &mut Client, waiting: &mut Client) {
    client.ok("CONFIG SET hll-sparse-max-bytes 0");
    client.ask("PFADD slow element");
    let keys = if cfg!(debug_assertions) { 200_000 } else { 800_000 };
    client.send(&("PFCOUNT".to_owned() + &" slow".repeat(keys)));
    eventually("it runs", || {
        waiting.send("EXISTS slow");
        waiting.is_silent_for(Duration::from_millis(20)) || waiting.read().int() != 1
    });
}

/// Sends requests while a slow command of another client runs. Returns the number of replies.
fn replies_beside(slow: &mut Client, other: &mut Client) -> u32 {
    let mut replies = 0;
    while slow.is_silent_for(Duration::from_micros(100)) {
        assert_eq!(other.ask("PING").text(), "PONG");
        replies += 1;
    }
    replies
}

#[test]
fn a_kill_during_a_slow_command_delays_no_other_client() {
    let server = Server::start(FIVE_CARRY);
    let [mut slow, mut waiting, mut killer, mut other, mut victim] = clients(&server);
    let id = victim.ask("CLIENT ID").int();
    begin_slow(&mut slow, &mut waiting);
    killer.send(&format!("CLIENT KILL ID {id}"));
    eventually("it is marked", || !other.ask("CLIENT LIST").text().contains(&format!("id={id} ")));
    let replies = replies_beside(&mut slow, &mut other);
    assert!(replies > 10, "{replies}");
    assert_eq!(killer.read().int(), 1);
    victim.is_closed();
}

#[test]
fn a_pause_during_a_slow_command_delays_no_other_client() {
    let server = Server::start(FIVE_CARRY);
    let [mut slow, mut waiting, mut control, mut other, mut writer] = clients(&server);
    begin_slow(&mut slow, &mut waiting);
    control.send("CLIENT PAUSE 100000 WRITE");
    eventually("it has begun", || {
        writer.send("SET k v");
        writer.is_silent_for(Duration::from_millis(20)) || writer.read().text() != "OK"
    });
    let replies = replies_beside(&mut slow, &mut other);
    assert!(replies > 10, "{replies}");
    assert_eq!(control.read().text(), "OK");
    control.ok("CLIENT UNPAUSE");
    assert_eq!(writer.read().text(), "OK");
}

#[test]
fn statistics_during_a_slow_command_come_at_once() {
    let server = Server::start(FIVE_CARRY);
    let [mut slow, mut waiting, mut other] = clients(&server);
    begin_slow(&mut slow, &mut waiting);
    for report in ["INFO", "INFO all", "MEMORY STATS", "MEMORY DOCTOR"] {
        other.ask(report);
    }
    let replies = replies_beside(&mut slow, &mut other);
    assert!(replies > 10, "{replies}");
    assert_eq!(slow.read().int(), 1);
}

#[test]
fn a_pipeline_of_slow_commands_yields_to_other_clients() {
    const SLOW: usize = 40;
    for model in
        [&["--io-threads", "1"][..], &["--io-threads", "3", "--io-threads-execute", "none"]]
    {
        let server = Server::start(model);
        let [mut slow, mut other] = clients(&server);
        let mut admin = server.client();
        for key in ["a", "b"] {
            slow.ok(&format!("SET {key} {}", key.repeat(10_000)));
        }
        slow.ok("SET n 0");
        // Both pipelines have arrived before one begins, so they alternate on any machine.
        admin.ok("CLIENT PAUSE 600000 WRITE");
        slow.send_raw(format!("{}\r\n*x\r\n", "INCR n\r\nLCS a b LEN\r\n".repeat(SLOW)).as_bytes());
        other.send_raw("INCR m\r\nGET n\r\nLCS a b LEN\r\n".repeat(SLOW).as_bytes());
        eventually("both wait", || server.info("blocked_clients") == "2");
        admin.ok("CLIENT UNPAUSE");
        let mut seen = BTreeSet::new();
        for done in 1..=SLOW {
            assert_eq!(slow.read().int(), done as i64);
            assert_eq!(slow.read().int(), 0);
            assert_eq!(other.read().int(), done as i64);
            seen.insert(other.read().text().to_owned());
            assert_eq!(other.read().int(), 0);
        }
        assert!(seen.len() >= SLOW / 8, "{model:?}: {seen:?}");
        assert_eq!(slow.read().text(), "ERR Protocol error: invalid multibulk length");
        slow.is_closed();
    }
}

#[test]
fn a_pipeline_of_long_replies_that_makes_way_arrives_whole() {
    const ELEMENTS: usize = 30_000;
    const LONG: usize = 20;
    for model in
        [&["--io-threads", "1"][..], &["--io-threads", "3", "--io-threads-execute", "none"]]
    {
        let server = Server::start(model);
        let [mut reader, mut other] = clients(&server);
        reader.ask(&("RPUSH l".to_owned() + &" element-of-a-list".repeat(ELEMENTS)));
        reader.send_raw("INCR n\r\nLRANGE l 0 -1\r\n".repeat(LONG).as_bytes());
        // The socket is full before the first reply is read.
        eventually("some wait", || {
            let list = other.ask("CLIENT LIST").text();
            list.lines().any(|line| line.contains("cmd=lrange") && !line.contains(" omem=0 "))
        });
        for done in 1..=LONG {
            assert_eq!(reader.read().int(), done as i64, "{model:?}");
            assert_eq!(reader.read().items().len(), ELEMENTS, "{model:?}");
        }
        assert_eq!(reader.ask("PING").text(), "PONG");
    }
}

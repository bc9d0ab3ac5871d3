//! `used_memory` compared with the allocator's figure, after each kind of work with files.

use std::time::Duration;

use test_support::eventually;

use crate::{Client, Server};

/// The largest difference: memory that threads keep for themselves, and memory in transit.
const MARGIN: i64 = 2 << 20;
const VALUE_BYTES: usize = 1000;
/// About 20 MB with names: more than the ring of a log.
const KEYS: usize = 20_000;

/// Counted bytes minus allocated bytes. The log must free its buffers as well.
fn difference(server: &Server) -> i64 {
    let text = server.client().ask("INFO memory").text();
    let field = |name: &str| -> i64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().parse().unwrap()
    };
    field("used_memory") - field("allocator_allocated") + field("mem_not_counted_for_evict")
}

fn check(server: &Server, before: i64, what: &str) {
    let mut last = 0;
    let tries = (0..100).any(|_| {
        last = difference(server) - before;
        std::thread::sleep(Duration::from_millis(if last.abs() < MARGIN { 0 } else { 50 }));
        last.abs() < MARGIN
    });
    assert!(tries, "after {what}, {last} bytes too many are counted");
}

fn is_over(server: &Server, field: &str) {
    eventually("it is written", || server.info(field) == "0");
}

#[test]
fn memory_is_counted_once_during_work_with_files() {
    let options = ["--enable-debug-command", "yes", "--save", "", "--io-threads", "3"];
    let with_log = [&options[..], &["--appendonly", "yes"]].concat();
    let server = Server::start(&with_log);
    let before = difference(&server);
    let mut client = server.client();
    let keys: Vec<String> = (0..KEYS).map(|key| format!("key:{key}")).collect();
    let value = vec![b'v'; VALUE_BYTES];
    let mut set: Vec<&[u8]> = vec![b"MSET"];
    keys.iter().for_each(|key| set.extend([key.as_bytes(), &value]));
    for _ in 0..3 {
        assert_eq!(client.ask_args(&set).text(), "OK");
    }
    check(&server, before, "MSET");
    client.ok("MULTI");
    assert_eq!(client.ask_args(&set).text(), "QUEUED");
    assert_eq!(client.ask("EXEC").items().len(), 1);
    check(&server, before, "EXEC");
    let script = format!(
        "for i = 1, {KEYS} do redis.call('SET', 'key:' .. i, string.rep('v', {VALUE_BYTES})) end"
    );
    client.ask_args(&[b"EVAL", script.as_bytes(), b"0"]);
    check(&server, before, "a script");
    let large = vec![b'v'; KEYS * VALUE_BYTES];
    for _ in 0..3 {
        assert_eq!(client.ask_args(&[b"SET", b"large", &large]).text(), "OK");
        client.ask("APPEND large x");
    }
    client.ask("DEL large");
    check(&server, before, "SET and APPEND");
    client.ask("BGREWRITEAOF");
    is_over(&server, "aof_rewrite_in_progress");
    check(&server, before, "BGREWRITEAOF");
    client.ask("BGSAVE");
    is_over(&server, "rdb_bgsave_in_progress");
    check(&server, before, "BGSAVE");
    for _ in 0..2 {
        client.ok("DEBUG RELOAD");
        check(&server, before, "DEBUG RELOAD");
    }
    client.ok("DEBUG LOADAOF");
    check(&server, before, "DEBUG LOADAOF");
    for enabled in ["no", "yes"] {
        client.ok(&format!("CONFIG SET appendonly {enabled}"));
        is_over(&server, "aof_rewrite_scheduled");
        is_over(&server, "aof_rewrite_in_progress");
        assert_eq!(client.ask_args(&set).text(), "OK");
        check(&server, before, "CONFIG SET appendonly");
    }
    eventually("it is saved", || client.ask("SAVE").text() == "OK");
    let server = server.kill_and_start(&with_log);
    check(&server, before, "a restart from commands");
    server.client().ask("BGREWRITEAOF");
    is_over(&server, "aof_rewrite_in_progress");
    let server = server.kill_and_start(&with_log);
    check(&server, before, "a restart from a base");
    std::fs::remove_dir_all(server.path("appendonlydir")).unwrap();
    let server = server.kill_and_start(&with_log);
    check(&server, before, "a restart from an RDB file with a log");
    let server = server.kill_and_start(&options);
    check(&server, before, "a restart from an RDB file");
    assert!(server.client().ask("DBSIZE").int() >= KEYS as i64);
}

/// How much `used_memory` may vary without work: buffers of clients and of threads.
const BUFFERS: i64 = 64 << 10;
const ROUNDS: usize = 120;

/// Repeats work `ROUNDS` times, and checks that memory in use does not grow.
fn check_rounds(what: &str, options: &[&str], mut round: impl FnMut(&Server)) {
    let server = Server::start(options);
    let mut client = server.client();
    // Memory that is allocated once is allocated now.
    (0..ROUNDS / 4).for_each(|_| round(&server));
    let before = used(&mut client);
    (0..ROUNDS).for_each(|_| round(&server));
    let mut more = 0;
    let is_back = (0..100).any(|_| {
        more = used(&mut client) - before;
        std::thread::sleep(Duration::from_millis(if more < BUFFERS { 0 } else { 50 }));
        more < BUFFERS
    });
    assert!(is_back, "{what}: {more} bytes more are in use");
}

fn used(client: &mut Client) -> i64 {
    let text = client.ask("INFO memory").text();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.unwrap().parse().unwrap()
}

#[test]
fn stopped_threads_free_their_memory() {
    let options = ["--enable-debug-command", "yes", "--save", "", "--io-threads", "1"];
    check_rounds("SAVE", &options, |server| {
        eventually("it is saved", || server.client().ask("SAVE").text() == "OK");
    });
    check_rounds("DEBUG RELOAD", &options, |server| server.client().ok("DEBUG RELOAD"));
    check_rounds("CONFIG SET io-threads", &options, |server| {
        let mut client = server.client();
        for threads in ["3", "1"] {
            client.ok(&format!("CONFIG SET io-threads {threads}"));
            let mut listed = || client.ask("INFO threads").text().matches("io_thread_").count();
            eventually("threads begin or end", || listed().to_string() == threads);
        }
    });
    let with_log = [&options[..], &["--appendonly", "yes"]].concat();
    check_rounds("BGREWRITEAOF", &with_log, |server| {
        server.client().ask("BGREWRITEAOF");
        is_over(server, "aof_rewrite_scheduled");
        is_over(server, "aof_rewrite_in_progress");
    });
}

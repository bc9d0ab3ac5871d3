//! The log is kept as long as the append-only file lacks a part of it, also when the file is turned
//! off, and when a start cannot write the commands of the log.

use std::os::unix::fs::FileExt;
use std::process::Command;

use test_support::{Launch, encode, eventually};

use crate::left_logs::{
    END, FILES, LOG, ON, RING_BYTES, USED, check, kill_after, open, restarted, set_bytes, start,
    start_limited, start_without, words,
};
use crate::{Server, Value};

#[test]
fn a_rewrite_that_is_given_up_with_its_file_loses_nothing() {
    let server = start(tempfile::tempdir().unwrap());
    let mut client = server.client();
    (0..50).for_each(|n| client.ok(&format!("SET {n} 1")));
    client.ok("CONFIG SET rdb-key-save-delay 1000000");
    let rewrites = server.log().matches("rewriting started").count();
    client.ask("BGREWRITEAOF");
    eventually("it begins", || server.log().matches("rewriting started").count() > rewrites);
    // The following commands are not yet written when the file is turned off.
    client.ok("DEBUG AOF-FLUSH-SLEEP 300000");
    (0..20).for_each(|n| client.ok(&format!("SET late:{n} 1")));
    client.ok("CONFIG SET appendonly no");
    let server = kill_and_start(server);
    let mut client = server.client();
    assert_eq!(client.ask("EXISTS 0 49").int(), 2);
    (0..20).for_each(|n| assert_eq!(client.ask(&format!("EXISTS late:{n}")).int(), 1, "{n}"));
}

fn kill_and_start(mut server: Server) -> Server {
    server.signal("KILL");
    server.wait();
    start(server.into_folder())
}

/// A server that can write its manifest but no further commands, and whose log has an unwritten
/// command.
fn full() -> Server {
    let server = start(tempfile::tempdir().unwrap());
    let mut client = server.client();
    client.ok("SET before 1");
    assert_eq!(client.ask(&format!("SET filler {}", "x".repeat(8000))).text(), "OK");
    let written = |server: &Server| server.info("aof_current_size").parse::<u64>().unwrap() > 8000;
    eventually("it is written", || written(&server));
    let id = server.process().0.to_string();
    let limited = Command::new("prlimit").args(["--pid", &id, "--fsize=4000"]).status();
    assert!(limited.unwrap().success());
    client.ok("SET unwritten 1");
    server
}

#[test]
fn unwritten_commands_stay_in_the_log_when_the_file_is_turned_off() {
    for signal in ["TERM", "KILL"] {
        let mut server = full();
        server.client().ok("CONFIG SET appendonly no");
        server.wait_for_log("Ending the append-only file: what it lacks is left in the log");
        server.client().ok("SET not:logged 1");
        server.signal(signal);
        server.wait();
        let keys = [("before", true), ("unwritten", true), ("not:logged", false)];
        check(server.into_folder(), &keys, USED);
    }
}

#[test]
fn the_intact_part_of_a_damaged_log_survives_a_full_disk() {
    let folder = kill_after(start(tempfile::tempdir().unwrap()), &["SET a 1", "SET b 1"]);
    let log = open(&folder.path().join(LOG));
    let end = words(&log, END, 1)[0] >> 9;
    let ring = log.metadata().unwrap().len() - RING_BYTES;
    log.write_all_at(b"x", ring + (end - set_bytes("b", "1")) % RING_BYTES).unwrap();
    let mut server = start_limited(folder, ON, 1);
    assert_eq!(server.client().ask("EXISTS a b").int(), 1);
    server.wait_for_log("Commands that change keys are refused until a new one is whole");
    assert!(!server.log().contains("but kept as"), "{}", server.log());
    server.signal("KILL");
    server.wait();
    let keys = [("a", true), ("b", false)];
    let server = check(server.into_folder(), &keys, "damaged and not used, but kept as");
    let aside = ["appendonly.aof.log.damaged", "appendonly.aof.log.previous.damaged"];
    assert!(aside.iter().any(|name| server.folder().join(FILES).join(name).is_file()));
}

#[test]
fn the_directory_stays_while_keys_are_loaded() {
    const LOADING: &str = "LOADING Redis is loading the dataset in memory";
    let mut server = start(tempfile::tempdir().unwrap());
    let mut client = server.client();
    (0..1000).for_each(|n| client.ok(&format!("SET {n} 1")));
    server.signal("TERM");
    server.wait();
    let other = tempfile::tempdir().unwrap();
    let slow = [ON, &["--enable-protected-configs", "yes", "--key-load-delay", "2000"]].concat();
    let folder = server.into_folder();
    let server =
        Launch::weft().in_folder(folder).options(&slow).until("Server initialized").start();
    let mut client = server.client();
    let words = format!("CONFIG SET dir {}", other.path().display());
    let refused = client.ask(&words).text();
    assert_eq!(server.info("loading"), "1");
    assert_eq!(refused, LOADING);
    client.ok("CONFIG SET key-load-delay 0");
    eventually("it is loaded", || server.info("loading") == "0");
    assert!(server.path(LOG).is_file());
    client.ok(&words);
}

/// A server whose append-only file gets its first base, which takes minutes.
fn without_base() -> Server {
    let server = start_without(tempfile::tempdir().unwrap());
    server.client().ok("CONFIG SET appendonly yes");
    server.wait_for_log("Background append only file rewriting started");
    server
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_first_base() {
    for first in ["TERM", "INT"] {
        let mut server = without_base();
        server.signal(first);
        server.wait_for_log("User requested shutdown");
        server.signal("INT");
        assert_eq!(server.wait().code(), Some(1));
        let log = server.log();
        assert!(log.contains("Received SIGINT again, exiting at once"), "{log}");
        assert!(!log.contains("rewrite finished successfully"), "{log}");
    }
}

#[test]
fn a_script_that_is_ended_by_force_leaves_no_base_to_wait_for() {
    let mut server = start_without(tempfile::tempdir().unwrap());
    let (mut client, mut script) = (server.client(), server.client());
    // The base starts after it.
    client.ask("BGSAVE");
    client.ok("CONFIG SET appendonly yes busy-reply-threshold 1");
    script.send_raw(&encode(&[b"EVAL", b"redis.call('SET', 'k', 1) while true do end", b"0"]));
    eventually("it is busy", || client.ask("EXISTS k").is_error());
    client.send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
}

#[test]
fn a_base_without_an_append_only_file_removes_old_logs() {
    for switches in [true, false] {
        let folder = kill_after(start(tempfile::tempdir().unwrap()), &["SET unwritten 1"]);
        let server = start_without(folder);
        let mut client = server.client();
        if switches {
            client.ok("CONFIG SET appendonly yes");
            client.ok("CONFIG SET appendonly no");
        }
        let left = if switches { format!("{LOG}.previous") } else { LOG.to_owned() };
        assert!(server.path(&left).is_file());
        // It is needed until there is another base.
        client.ask("BGREWRITEAOF");
        server.wait_for_log("Background append only file rewriting started");
        assert!(server.path(&left).is_file());
        client.ok("CONFIG SET rdb-key-save-delay 0");
        eventually("it is removed", || !server.path(&left).exists());
        let server = check(restarted(server), &[("unwritten", false), ("1", true)], "");
        assert!(!server.log().contains("process that was killed"), "{}", server.log());
    }
}

#[test]
fn a_shutdown_that_is_forced_does_not_wait_on_for_the_first_base() {
    let mut server = without_base();
    let (mut first, mut second) = (server.client(), server.client());
    first.send("SHUTDOWN");
    server.wait_for_log("User requested shutdown");
    server.signal("TERM");
    server.wait_for_log("Received SIGTERM");
    assert_eq!(second.ask("SHUTDOWN ABORT").text(), "OK");
    assert_eq!(second.ask("GET nothing"), Value::NULL);
    assert!(first.read().text().starts_with("ERR Errors trying to SHUTDOWN"));
    server.signal("TERM");
    first.send("GET nothing");
    second.send("SHUTDOWN FORCE");
    assert!(server.wait().success());
    let log = server.log();
    assert!(log.contains("Writing initial AOF. Exit anyway."), "{log}");
    assert!(!log.contains("rewrite finished successfully"), "{log}");
}

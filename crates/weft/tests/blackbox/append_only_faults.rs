//! Append-only files under faults: a full disk, a directory that is not writable, the tail of a
//! crash, damage. Reads are served, writes are refused while the fault lasts, and no acknowledged
//! write is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use test_support::{encode, eventually, in_shell, weft};

use crate::undisturbed::undisturbed;
use crate::{Client, Server, Value};

const ON: &[&str] = &["--save", "", "--appendonly", "yes"];
const MISCONF: &str = "MISCONF Errors writing to the AOF file: File too large";
/// The longest time until the server recovers.
const RECOVERY_MAX: Duration = Duration::from_secs(1);

/// Limits the files of a server to 256 KB, as on a full disk. So the log lies in ordinary memory,
/// which the tests that kill do not use.
fn with_small_files(command: &mut Command) -> &mut Command {
    in_shell(command, "trap '' XFSZ; ulimit -S -f 512; exec \"$0\" \"$@\"");
    command
}

fn end_limit(server: &Server) {
    let id = server.process().0.to_string();
    let raised = Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status();
    assert!(raised.unwrap().success());
}

fn is_refused(client: &mut Client) -> bool {
    let reply = client.ask("SET k other").text();
    assert!(reply == "OK" || reply.starts_with(MISCONF), "{reply}");
    reply != "OK"
}

#[test]
fn writes_are_refused_while_the_disk_is_full_and_go_on_within_a_second() {
    undisturbed(|| {
        for policy in ["everysec", "no"] {
            let options = [ON, &["--appendfsync", policy]].concat();
            let server = Server::start_by(&options, with_small_files);
            let mut client = server.client();
            client.ok("SET k v");
            let large = vec![b'x'; 300 << 10];
            assert_eq!(client.ask_args(&[b"SET", b"large", &large]).text(), "OK");
            eventually("threads follow", || is_refused(&mut client));
            assert_eq!(server.info("aof_last_write_status"), "err");
            for words in ["PING", "DEL k", "EVAL return(redis.call('set','k','v')) 0", "FLUSHALL"] {
                let reply = client.ask(words).text();
                assert!(reply.contains(MISCONF), "{words}: {reply}");
            }
            client.ok("MULTI");
            assert!(client.ask("SET k v").text().starts_with(MISCONF));
            assert!(client.ask("EXEC").text().starts_with("EXECABORT"));
            assert_eq!(client.ask("STRLEN large").int(), 300 << 10);
            end_limit(&server);
            let ended = Instant::now();
            eventually("it recovers", || client.ask("SET k after").text() == "OK");
            assert!(ended.elapsed() < 4 * RECOVERY_MAX, "not in time: {:?}", ended.elapsed());
            eventually("the client is notified", || server.info("aof_last_write_status") == "ok");
            server.wait_for_log("AOF write error looks solved");
            let server = server.restart(ON);
            let mut client = server.client();
            assert_eq!(client.ask("GET k").text(), "after");
            assert_eq!(client.ask("STRLEN large").int(), 300 << 10);
        }
    });
}

#[test]
fn repeated_failures_of_a_base_are_logged_once() {
    let server = Server::start_by(&["--save", "", "--rdbcompression", "no"], with_small_files);
    let mut client = server.client();
    let large = vec![b'x'; 300 << 10];
    assert_eq!(client.ask_args(&[b"SET", b"large", &large]).text(), "OK");
    client.ok("CONFIG SET appendonly yes");
    eventually("it is tried again", || server.info("aof_rewrites").parse::<u64>().unwrap() > 4);
    for line in ["rewriting started", "rewrite terminated with error"] {
        assert_eq!(server.log().matches(line).count(), 1, "{line}");
    }
    end_limit(&server);
    server.wait_for_log("Background AOF rewrite finished successfully");
}

#[test]
fn under_always_nothing_is_acknowledged_that_is_not_on_the_disk() {
    let options = [ON, &["--appendfsync", "always"]].concat();
    let server = Server::start_by(&options, with_small_files);
    let mut client = server.client();
    client.ok("SET k v");
    let large = vec![b'x'; 300 << 10];
    let mut writer = server.client();
    writer.send_raw(&encode(&[b"SET", b"large", &large]));
    eventually("writing fails", || server.info("aof_last_write_status") == "err");
    eventually("reads are served", || client.ask("GET k").text() == "v");
    assert!(is_refused(&mut client));
    end_limit(&server);
    assert_eq!(writer.read().text(), "OK", "it is acknowledged when it is on the disk");
    eventually("it recovers", || !is_refused(&mut client));
    let server = server.restart(ON);
    assert_eq!(server.client().ask("STRLEN large").int(), 300 << 10);
}

#[test]
fn reads_that_meet_expired_keys_are_answered_while_the_disk_is_full() {
    for threads in ["1", "3"] {
        let options =
            ["--appendfsync", "always", "--enable-debug-command", "yes", "--io-threads", threads];
        let server = Server::start_by(&[ON, &options[..]].concat(), with_small_files);
        let mut client = server.client();
        client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
        (0..5).for_each(|key| client.ok(&format!("SET key:{key} v PX 1")));
        let large = vec![b'x'; 300 << 10];
        let mut writer = server.client();
        writer.send_raw(&encode(&[b"SET", b"large", &large]));
        eventually("writing fails", || server.info("aof_last_write_status") == "err");
        let scanned =
            Value::array(vec![Value::bulk("0"), Value::array(vec![Value::bulk("large")])]);
        for (words, reply) in [
            ("EXISTS key:0", Value::number(0)),
            ("TTL key:1", Value::number(-2)),
            ("GET key:2", Value::NULL),
            ("XREAD BLOCK 5 STREAMS key:3 0", Value::NULL_ARRAY),
            ("DBSIZE", Value::number(2)),
            ("SCAN 0 COUNT 10000", scanned.clone()),
        ] {
            assert_eq!(server.client().ask(words), reply, "{words}");
        }
        assert!(is_refused(&mut client));
        end_limit(&server);
        assert_eq!(writer.read().text(), "OK");
        eventually("it recovers", || !is_refused(&mut client));
    }
}

#[test]
fn tails_of_crashes_are_dropped_and_damage_is_refused() {
    let server = Server::start(&[ON, &["--appendfsync", "always"]].concat());
    let mut client = server.client();
    (0..20).for_each(|n| client.ok(&format!("SET key:{n} value")));
    let server = server.restart(ON);
    let file = server.path("appendonlydir/appendonly.aof.1.incr.aof");
    let whole = fs::read(&file).unwrap();
    for tail in [&b"\0\0\0\0"[..], &[0; 5000], b"*3\r\n$3\r\nSE", b"garbage"] {
        let mut spoilt = whole.clone();
        spoilt.extend(tail);
        let folder = folder_with(&server, &spoilt);
        let directory = folder.path().display().to_string();
        let other = Server::start(&[ON, &["--dir", &directory]].concat());
        assert_eq!(other.client().ask("DBSIZE").int(), 20, "{tail:?}");
        other.wait_for_log("loaded anyway because aof-load-truncated is enabled");
        other.wait_for_log(&format!("{} bytes are dropped", tail.len()));
        drop(other);
        let refused = refusal(&folder_with(&server, &spoilt), &["--aof-load-truncated", "no"]);
        assert!(
            refused.contains("Unexpected end of file reading the append only file"),
            "{refused}"
        );
    }
    let mut spoilt = whole.clone();
    let value = whole.windows(5).position(|bytes| bytes == b"value").unwrap();
    spoilt[value] ^= 1;
    let refused = refusal(&folder_with(&server, &spoilt), &[]);
    assert!(refused.contains("Bad file format reading the append only file"), "{refused}");
    assert!(refused.contains("weft check aof --fix"), "{refused}");
}

/// A folder with the files of a server, but with another last file.
fn folder_with(server: &Server, last: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("appendonlydir");
    fs::create_dir(&directory).unwrap();
    for name in ["appendonly.aof.manifest", "appendonly.aof.1.base.rdb"] {
        fs::copy(server.path(&format!("appendonlydir/{name}")), directory.join(name)).unwrap();
    }
    fs::write(directory.join("appendonly.aof.1.incr.aof"), last).unwrap();
    folder
}

/// The output of a server that does not start.
fn refusal(folder: &tempfile::TempDir, options: &[&str]) -> String {
    let mut command = weft();
    command.args(["server", "--port", "0", "--dir", &folder.path().display().to_string()]);
    let output = command.args(ON).args(options).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_directory_that_cannot_be_written_is_said_at_once() {
    let server = Server::start(&["--save", ""]);
    fs::write(server.path("appendonlydir"), "a file").unwrap();
    let mut client = server.client();
    client.ok("SET k v");
    let reply = client.ask("CONFIG SET appendonly yes").text();
    assert!(reply.contains("Unable to turn on AOF. Check server logs."), "{reply}");
    assert_eq!(client.ask("CONFIG GET appendonly").items()[1].text(), "no");
    client.ok("SET k other");
    fs::remove_file(server.path("appendonlydir")).unwrap();
    client.ok("CONFIG SET appendonly yes");
    server.wait_for_log("Background AOF rewrite finished successfully");
    let mode = fs::metadata(server.path("appendonlydir")).unwrap().permissions().mode();
    assert_ne!(mode & 0o700, 0);
}

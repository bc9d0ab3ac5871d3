//! RDB files under faults: a full disk, a taken name, a damaged file, a server that ends. The
//! existing file stays whole, reads are served, and writes are refused until a save succeeds.

use std::fs;
use std::process::Command;

use tempfile::TempDir;
use test_support::{Launch, READY, eventually, in_shell, output_of_server, printed};

use crate::{Client, Server};

const MISCONF: &str = "MISCONF Redis is configured to save RDB snapshots";

/// Limits the files of a server to 256 KB, as on a full disk.
fn with_small_files(command: &mut Command) -> &mut Command {
    in_shell(command, "trap '' XFSZ; ulimit -S -f 512; exec \"$0\" \"$@\"");
    command
}

fn files(server: &Server) -> Vec<String> {
    let files = fs::read_dir(server.folder()).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn is_refused(client: &mut Client, words: &str) {
    let reply = client.ask(words).text();
    assert!(reply.contains(MISCONF), "{words}: {reply}");
}

/// A server with a full disk, and the file of its last successful save.
fn begin_full(options: &[&str]) -> (Server, Client, Vec<u8>) {
    let options = [&["--save", "3600 1000000", "--rdbcompression", "no"], options].concat();
    let server = Server::start_by(&options, with_small_files);
    let mut client = server.client();
    client.ok("SET k v");
    client.ok("SAVE");
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    let large = vec![b'x'; 1 << 20];
    assert_eq!(client.ask_args(&[b"SET", b"large", &large]).text(), "OK");
    (server, client, whole)
}

#[test]
fn writes_are_refused_while_the_disk_is_full_and_go_on_when_it_is_not() {
    let (server, mut client, whole) = begin_full(&[]);
    assert_eq!(client.ask("SAVE").text(), "ERR");
    assert_eq!(server.info("rdb_last_bgsave_status"), "ok", "it was in nobody's background");
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    server.wait_for_log("Background saving error");
    eventually("its end is shown", || server.info("rdb_last_bgsave_status") == "err");
    assert_eq!(
        (files(&server), fs::read(server.path("dump.rdb")).unwrap()),
        (vec!["dump.rdb".to_owned()], whole)
    );
    let log = server.log();
    assert!(log.contains("cannot write to temp-") && log.contains("File too large"), "{log}");
    eventually("threads follow", || client.ask("SET k other").text().starts_with(MISCONF));
    for words in ["PING", "DEL k", "EVAL return(redis.call('set','k','v')) 0", "FLUSHALL"] {
        is_refused(&mut client, words);
    }
    client.ok("MULTI");
    is_refused(&mut client, "SET k v");
    assert!(client.ask("EXEC").text().starts_with("EXECABORT"));
    assert_eq!(client.ask("GET k").text(), "v");
    // An operator may allow writes all the same.
    client.ok("CONFIG SET stop-writes-on-bgsave-error no");
    eventually("threads follow", || client.ask("SET k other").text() == "OK");
    client.ok("CONFIG SET stop-writes-on-bgsave-error yes");
    eventually("threads follow", || client.ask("SET k v").text().starts_with(MISCONF));
    let id = server.process().0.to_string();
    let raised = Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status();
    assert!(raised.unwrap().success());
    // The next try follows in some seconds, unless it is asked for.
    assert_eq!(server.log().matches("Background saving started").count(), 1, "{}", server.log());
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    eventually("it recovers", || client.ask("SET k v").text() == "OK");
    assert_eq!(server.info("rdb_last_bgsave_status"), "ok");
    let server = server.restart(&["--save", ""]);
    assert_eq!(server.client().ask("STRLEN large").int(), 1 << 20);
}

#[test]
fn flushall_that_cannot_save_reports_only_in_the_log() {
    let server = Server::start(&["--save", "3600 1000000"]);
    let mut client = server.client();
    client.ok("SET k v");
    fs::create_dir(server.path("dump.rdb")).unwrap();
    for (at, words) in ["FLUSHALL", "EVAL return(redis.call('flushall')) 0"].iter().enumerate() {
        client.ok(words);
        let failures = || server.log().matches("Saving to dump.rdb failed").count();
        eventually("it fails", || failures() == at + 1);
        assert_eq!(server.info("rdb_last_bgsave_status"), "ok", "it was in nobody's background");
        let changes = server.info("rdb_changes_since_last_save");
        assert_eq!(changes, (2 * (at + 1)).to_string(), "{words}");
        client.ok("SET k v");
    }
    assert!(!server.log().contains("Background saving"), "{}", server.log());
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    server.wait_for_log("Background saving error");
    client.ok("CONFIG SET stop-writes-on-bgsave-error no");
    client.ok("FLUSHALL");
    assert_eq!(server.info("rdb_last_bgsave_status"), "err");
    fs::remove_dir(server.path("dump.rdb")).unwrap();
    client.ok("FLUSHALL");
    assert_eq!(server.info("rdb_last_bgsave_status"), "ok");
}

#[test]
fn a_server_that_cannot_save_does_not_end() {
    let (mut server, mut client, whole) = begin_full(&[]);
    server.signal("TERM");
    server.wait_for_log("Error trying to save the DB, can't exit.");
    eventually("it goes on", || client.ask("GET k").text() == "v");
    client.ok("SET k more");
    server.client().send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
    assert_eq!(
        (files(&server), fs::read(server.path("dump.rdb")).unwrap()),
        (vec!["dump.rdb".to_owned()], whole)
    );
    let (mut server, mut client, _) = begin_full(&["--shutdown-on-sigterm", "force"]);
    client.ok("SET k more");
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(server.log().contains("the shutdown is forced"));
}

#[test]
fn a_name_that_is_taken_keeps_a_file_from_its_place() {
    let server = Server::start(&["--save", "3600 1000000", "--enable-protected-configs", "yes"]);
    let mut client = server.client();
    client.ok("SET k v");
    fs::create_dir(server.path("taken")).unwrap();
    fs::write(server.path("taken/file"), "").unwrap();
    client.ok("CONFIG SET dbfilename taken");
    client.ask("BGSAVE");
    server.wait_for_log("Background saving error");
    assert!(server.log().contains("cannot rename temp-"), "{}", server.log());
    assert_eq!(files(&server), ["taken"]);
    eventually("threads follow", || client.ask("SET k v").text().starts_with(MISCONF));
    fs::remove_dir_all(server.path("taken")).unwrap();
    eventually("it recovers", || client.ask("SET k v").text() == "OK");
    assert!(server.path("taken").is_file());
}

/// Starts a server and waits until it begins to load: the port opens a moment later.
fn start_loading(folder: TempDir, options: &[&str]) -> Server {
    Launch::weft().in_folder(folder).options(options).until("Data lies in").start()
}

/// The first client of a server that begins to load.
fn first_client(server: &Server) -> Client {
    loop {
        if let Ok(client) = Client::try_tcp(server.address()) {
            return client;
        }
    }
}

#[test]
fn clients_hear_that_keys_are_being_loaded() {
    let server = Server::start(&["--save", "3600 1", "--io-threads", "3"]);
    let script = b"for i = 1, 2000 do redis.call('set', 'key:' .. i, i) end";
    server.client().ask_args(&[b"EVAL", script, b"0"]);
    server.client().ok("SAVE");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(server.path("dump.rdb"), folder.path().join("dump.rdb")).unwrap();
    let options = ["--key-load-delay", "1000", "--io-threads", "3"];
    let server = start_loading(folder, &options);
    let mut client = first_client(&server);
    const LOADING: &str = "LOADING Redis is loading the dataset in memory";
    for words in ["GET key:1", "SET k v", "PING", "EVAL return(1) 0", "DBSIZE", "SAVE"] {
        assert_eq!(client.ask(words).text(), LOADING, "{words}");
    }
    client.ok("MULTI");
    assert_eq!(client.ask("GET key:1").text(), LOADING);
    assert!(client.ask("EXEC").text().starts_with("EXECABORT"));
    assert_eq!(server.info("loading"), "1");
    let total: u64 = server.info("loading_total_bytes").parse().unwrap();
    assert_eq!(total, fs::metadata(server.path("dump.rdb")).unwrap().len());
    server.wait_for_log(READY);
    assert_eq!((client.ask("GET key:1").text(), client.ask("DBSIZE").int()), ("1".into(), 2000));
    assert_eq!(server.info("loading"), "0");
}

#[test]
fn a_server_that_is_loading_ends_without_touching_its_file() {
    let server = Server::start(&["--save", "3600 1"]);
    let script = b"for i = 1, 3000 do redis.call('set', 'key:' .. i, i) end";
    server.client().ask_args(&[b"EVAL", script, b"0"]);
    server.client().ok("SAVE");
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    fs::write(folder.path().join("dump.rdb"), &whole).unwrap();
    let options = ["--save", "3600 1", "--key-load-delay", "10000"];
    let mut server = start_loading(folder, &options);
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(fs::read(server.path("dump.rdb")).unwrap(), whole);
}

#[test]
fn an_append_only_file_that_begins_while_keys_are_loaded_has_them_all() {
    let server = Server::start(&["--save", "3600 1"]);
    let script = b"for i = 1, 3000 do redis.call('set', 'key:' .. i, i) end";
    server.client().ask_args(&[b"EVAL", script, b"0"]);
    server.client().ok("SAVE");
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    for ends in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("dump.rdb"), &whole).unwrap();
        let options = ["--save", "", "--key-load-delay", "2000"];
        let mut server = start_loading(folder, &options);
        first_client(&server).ok("CONFIG SET appendonly yes");
        assert_eq!(server.info("loading"), "1");
        if ends {
            server.signal("TERM");
            assert!(server.wait().success());
            assert_eq!(fs::read(server.path("dump.rdb")).unwrap(), whole);
            assert!(!server.path("appendonlydir/appendonly.aof.manifest").exists());
            continue;
        }
        eventually("they are loaded", || server.info("loading") == "0");
        eventually("the base is whole", || server.info("aof_rewrite_in_progress") == "0");
        let server = server.restart(&["--save", "", "--appendonly", "yes"]);
        assert_eq!(server.client().ask("DBSIZE").int(), 3000);
    }
}

#[test]
fn a_damaged_file_is_refused_and_kept() {
    let server = Server::start(&["--save", "3600 1"]);
    let mut client = server.client();
    let script = b"for i = 1, 100 do redis.call('set', 'key:' .. i, string.rep(i, 20)) end";
    client.ask_args(&[b"EVAL", script, b"0"]);
    client.ok("SAVE");
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.rdb");
    for at in [3, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let output = output_of_server(folder.path(), &["--port", "0"]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(1), "byte {at}: {text}");
        assert!(text.contains("Can't load dump.rdb: about byte "), "byte {at}: {text}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
        if at == whole.len() - 1 {
            assert!(text.contains("CRC error"), "{text}");
        }
    }
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let output = output_of_server(folder.path(), &["--port", "0"]);
    assert!(printed(&output).contains("the data ends too early"));
}

#[test]
fn one_snapshot_is_written_at_a_time() {
    let mut server = Server::start(&["--save", "", "--rdb-key-save-delay", "1000000"]);
    let mut client = server.client();
    (0..100).for_each(|at| client.ok(&format!("SET key:{at} v")));
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    eventually("it goes on", || server.info("current_save_keys_processed") != "0");
    assert_eq!(server.info("current_save_keys_total"), "100");
    assert_eq!(server.info("rdb_bgsave_in_progress"), "1");
    let refused = "ERR Background save already in progress";
    for words in ["SAVE", "BGSAVE", "BGSAVE SCHEDULE"] {
        assert_eq!(client.ask(words).text(), refused, "{words}");
    }
    assert!(client.ask("WEFT BACKUP b.rdb").text().starts_with("ERR Another snapshot"));
    // The snapshot has the keys of its start.
    client.ok("FLUSHDB");
    client.ok("CONFIG SET rdb-key-save-delay 0");
    eventually("it is saved", || server.info("rdb_bgsave_in_progress") == "0");
    assert_eq!(server.info("rdb_saves"), "1");
    let copy = tempfile::tempdir().unwrap();
    fs::copy(server.path("dump.rdb"), copy.path().join("dump.rdb")).unwrap();
    let loaded = Server::start_in(copy, &["--save", ""]);
    assert_eq!(loaded.client().ask("DBSIZE").int(), 100);
    // A running backup delays BGSAVE, but not the end of the server.
    client.ok("CONFIG SET rdb-key-save-delay 1000000");
    (0..100).for_each(|at| client.ok(&format!("SET key:{at} v")));
    assert_eq!(client.ask("WEFT BACKUP b.rdb").text(), "Backup started");
    let taken = client.ask("BGSAVE").text();
    assert!(taken.starts_with("ERR Another child process is active"), "{taken}");
    assert_eq!(client.ask("BGSAVE SCHEDULE").text(), "Background saving scheduled");
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(files(&server), ["dump.rdb"]);
}

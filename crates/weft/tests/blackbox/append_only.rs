//! Append-only files: acknowledged writes are there after a restart, however the server ended.

use std::fs;
use std::time::Duration;

use test_support::{Launch, encode, eventually, weft};

use crate::{Client, Server};

/// A waiting client gets no reply within this time.
const WHILE: Duration = Duration::from_millis(20);
const ON: &[&str] = &["--save", "", "--appendonly", "yes"];

/// Writes values of every type, with expiries, a transaction, a script and a function.
fn write_all(client: &mut Client) {
    for words in [
        "SET text value",
        "SETEX expiring 1000 value",
        "INCRBY number 42",
        "RPUSH list a b 3",
        "SADD set a b",
        "SADD numbers 1 2 3",
        "ZADD scores 1.5 a -inf b",
        "HSET hash f v g 7",
        "HEXPIRE hash 1000 FIELDS 1 f",
        "XADD stream 1-1 f v g w",
        "XADD stream 2-1 f x",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >",
        "XDEL stream 2-1",
        "SPOP set",
        "SELECT 5",
        "SET other 5",
        "SELECT 0",
        "MULTI",
        "INCR in",
        "SELECT 7",
        "INCR in",
        "SELECT 0",
        "EXEC",
    ] {
        let reply = client.ask(words);
        assert!(!reply.is_error(), "{words}: {reply}");
    }
    let source = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert_eq!(client.ask_args(&[b"FUNCTION", b"LOAD", source]).text(), "lib");
    client.ask_args(&[b"EVAL", b"redis.call('SET', 'a', '1') redis.call('SET', 'b', '2')", b"0"]);
    let large = vec![b'x'; 1 << 20];
    assert_eq!(client.ask_args(&[b"SET", b"large", &large]).text(), "OK");
    let members: Vec<Vec<u8>> = (0..1000).map(|n| format!("member:{n}").into_bytes()).collect();
    let mut args: Vec<&[u8]> = vec![b"SADD", b"many"];
    args.extend(members.iter().map(Vec::as_slice));
    assert_eq!(client.ask_args(&args).int(), 1000);
}

fn digest(server: &Server) -> String {
    let mut client = server.client();
    let functions = format!("{:?}", client.ask("FUNCTION LIST"));
    assert!(client.ask("TTL expiring").int() > 900);
    client.ask("DEBUG DIGEST").text() + &functions
}

fn start(options: &[&str]) -> Server {
    Server::start(&[ON, &["--enable-debug-command", "yes"], options].concat())
}

fn again<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [ON, &["--enable-debug-command", "yes"], options].concat()
}

#[test]
fn everything_is_there_after_a_kill_and_after_a_restart() {
    for policy in ["everysec", "always", "no"] {
        let options = ["--appendfsync", policy, "--io-threads", "3"];
        let server = start(&options);
        write_all(&mut server.client());
        let before = digest(&server);
        let server = server.kill_and_start(&again(&options));
        assert_eq!(digest(&server), before, "{policy}, killed");
        server.client().ok("SET more 1");
        let before = digest(&server);
        let server = server.restart(&again(&options));
        assert_eq!(digest(&server), before, "{policy}, restarted");
        assert!(!server.path("appendonlydir/appendonly.aof.log").metadata().unwrap().is_dir());
    }
}

#[test]
fn a_rewrite_keeps_everything_in_both_forms() {
    for preamble in ["yes", "no"] {
        let options = ["--aof-use-rdb-preamble", preamble];
        let server = start(&options);
        let mut client = server.client();
        write_all(&mut client);
        let before = digest(&server);
        let started = "Background append only file rewriting started";
        assert_eq!(client.ask("BGREWRITEAOF").text(), started);
        eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
        assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
        assert_eq!(
            (server.info("aof_rewrites"), server.info("aof_enabled")),
            ("1".into(), "1".into())
        );
        let base = ["base.rdb", "base.aof"][usize::from(preamble == "no")];
        assert!(server.path(&format!("appendonlydir/appendonly.aof.2.{base}")).is_file());
        assert!(!server.path("appendonlydir/appendonly.aof.1.base.rdb").exists(), "history goes");
        let server = server.kill_and_start(&again(&options));
        assert_eq!(digest(&server), before, "{preamble}");
        server.client().ok("DEBUG LOADAOF");
        assert_eq!(digest(&server), before, "{preamble}, loaded again");
    }
}

#[test]
fn superfluous_files_go_when_that_is_allowed() {
    let server = start(&["--aof-disable-auto-gc", "yes"]);
    let mut client = server.client();
    client.ask("BGREWRITEAOF");
    eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
    let base = server.path("appendonlydir/appendonly.aof.1.base.rdb");
    assert!(base.is_file());
    client.ok("CONFIG SET aof-disable-auto-gc no");
    eventually("the old base is removed", || !base.exists());
}

#[test]
fn scripts_of_an_old_redis_are_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = "for i = 1, 3 do redis.call('incr', KEYS[1]) end";
    let text =
        format!("*4\r\n$4\r\nEVAL\r\n${}\r\n{script}\r\n$1\r\n1\r\n$1\r\nx\r\n", script.len());
    fs::write(folder.path().join("appendonly.aof"), text).unwrap();
    let server = Server::start_in(folder, &again(&[]));
    let mut client = server.client();
    assert_eq!(client.ask("GET x").text(), "3");
    client.ok("DEBUG LOADAOF");
    assert_eq!(client.ask("GET x").text(), "3");
}

#[test]
fn writes_of_scripts_for_replicas_are_not_in_the_file() {
    let server = start(&[]);
    let script =
        b"for key, targets in pairs({none = redis.REPL_NONE, replicas = redis.REPL_REPLICA,
        file = redis.REPL_AOF, all = redis.REPL_ALL}) do
        redis.set_repl(targets) redis.call('SET', key, '1') end";
    server.client().ask_args(&[b"EVAL", script, b"0"]);
    let kept = |server: &Server| {
        ["none", "replicas", "file", "all"].map(|key| server.client().ask(&format!("GET {key}")))
    };
    let there = || crate::Value::bulk(b"1");
    let server = server.kill_and_start(&again(&[]));
    assert_eq!(kept(&server), [crate::Value::NULL, crate::Value::NULL, there(), there()]);
}

#[test]
fn the_first_base_is_in_progress_from_the_answer_on() {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    (0..10).for_each(|n| client.ok(&format!("SET key:{n} v")));
    client.ok("CONFIG SET rdb-key-save-delay 20000");
    client.ok("CONFIG SET appendonly yes");
    let info = client.ask("INFO persistence").text();
    assert!(info.contains("aof_rewrite_in_progress:1\r\naof_rewrite_scheduled:0"), "{info}");
    client.ok("CONFIG SET rdb-key-save-delay 0");
    eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
    assert!(server.path("appendonlydir/appendonly.aof.manifest").is_file());
}

#[test]
fn the_file_is_turned_on_and_off_while_the_server_runs() {
    let server = Server::start(&["--save", "", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    write_all(&mut client);
    assert_eq!(server.info("aof_enabled"), "0");
    client.ok("CONFIG SET appendonly yes");
    assert_eq!(server.info("aof_enabled"), "1");
    client.ok("SET later 1");
    server.wait_for_log("Background AOF rewrite finished successfully");
    client.ok("SET after 1");
    let before = digest(&server);
    let server = server.kill_and_start(&again(&[]));
    assert_eq!(digest(&server), before);
    let mut client = server.client();
    client.ok("CONFIG SET appendonly no");
    client.ok("SET not-logged 1");
    client.ok("CONFIG SET appendonly yes");
    client.ok("SET again 1");
    server.wait_for_log("Background AOF rewrite finished successfully");
    let before = digest(&server);
    let server = server.restart(&again(&[]));
    assert_eq!(digest(&server), before);
}

/// The first base may begin before all threads log their writes, but must not miss any write.
#[test]
fn writes_during_the_first_base_are_in_the_file() {
    for threads in ["1", "1", "1", "1", "4", "4"] {
        let options = ["--save", "", "--io-threads", threads, "--io-threads-always-active", "yes"];
        let server = Server::start(&options);
        let mut client = server.client();
        let mut requests = test_support::request("CONFIG SET appendonly yes");
        (0..50).for_each(|n| requests.extend(test_support::request(&format!("SET key:{n} 1"))));
        client.send_raw(&requests);
        (0..51).for_each(|_| assert_eq!(client.read().text(), "OK"));
        eventually("the base is whole", || server.info("aof_rewrite_in_progress") == "0");
        let server = server.kill_and_start(&again(&[]));
        assert_eq!(server.client().ask("DBSIZE").int(), 50, "{threads} threads");
    }
}

const ENDLESS: &[u8] = b"while true do end";
/// A script of two seconds.
const LONG: &[u8] = b"local till = os.clock() + 2 while os.clock() < till do end return 1";

/// The thread executes the requests that it read before it must release the client.
#[test]
fn writes_of_a_stopping_thread_are_in_the_file() {
    let threads = ["--io-threads", "3", "--io-threads-always-active", "yes"];
    let options = [&["--save", "", "--busy-reply-threshold", "600000"][..], &threads].concat();
    let server = Server::start(&options);
    let (mut of_last, mut of_others) = (Vec::new(), Vec::new());
    while of_last.len() < 12 || of_others.is_empty() {
        let mut client = server.client();
        let is_of_last = client.ask("CLIENT INFO").text().contains(" io-thread=2 ");
        if is_of_last { &mut of_last } else { &mut of_others }.push(client);
    }
    let control = &mut of_others[0];
    let has_begun = |control: &mut Client, number: usize| {
        let line = format!("number_of_cached_scripts:{number}\r");
        eventually("the script begins", || control.ask("INFO memory").text().contains(&line));
    };
    let [first, second, writers @ ..] = &mut of_last[..] else { panic!("there are twelve") };
    first.send_raw(&encode(&[b"EVAL", ENDLESS, b"0"]));
    has_begun(control, 1);
    // The thread reads all of it at once, after the first script has ended.
    second.send_raw(&encode(&[b"EVAL", LONG, b"0"]));
    for (number, writer) in writers.iter_mut().enumerate() {
        writer.send(&format!("SET key:{number} v"));
    }
    // Other threads know of it a millisecond after its start, which is long on a loaded machine.
    eventually("it is killed", || control.ask("SCRIPT KILL").text() == "OK");
    assert!(first.read().text().starts_with("ERR Script killed"));
    has_begun(control, 2);
    control.ok("CONFIG SET io-threads 2");
    control.ok("CONFIG SET appendonly yes");
    assert!(writers.iter_mut().any(|it| it.is_silent_for(WHILE)), "all were executed before");
    assert_eq!(second.read().int(), 1);
    writers.iter_mut().for_each(|writer| assert_eq!(writer.read().text(), "OK"));
    eventually("the base is whole", || server.info("aof_rewrite_in_progress") == "0");
    let server = server.kill_and_start(&again(&[]));
    assert_eq!(server.client().ask("DBSIZE").int(), 10);
}

#[test]
fn the_file_is_turned_on_during_a_requested_rewrite() {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    for _ in 0..20 {
        let requests = ["BGREWRITEAOF", "CONFIG SET appendonly yes", "CONFIG SET appendonly no"];
        client.send_raw(&requests.map(test_support::request).concat());
        client.read();
        assert_eq!([client.read().text(), client.read().text()], ["OK", "OK"]);
    }
}

#[test]
fn a_rewrite_is_refused_while_another_process_has_the_file() {
    let owner = start(&[]);
    owner.client().ok("SET k v");
    let directory = owner.folder().display().to_string();
    let other = Server::start(&["--save", "", "--dir", &directory]);
    let mut client = other.client();
    let refused = "ERR Can't execute an AOF background rewriting. Please check the server logs for \
                   more information.";
    assert_eq!(client.ask("BGREWRITEAOF").text(), refused);
    assert!(other.log().contains("is in use by another process"), "{}", other.log());
    owner.client().ok("CONFIG SET appendonly no");
    let started = "Background append only file rewriting started";
    assert_eq!(client.ask("BGREWRITEAOF").text(), started);
    other.wait_for_log("Background AOF rewrite finished successfully");
}

#[test]
fn a_file_without_its_first_base_is_not_loaded_again() {
    let server = start(&[]);
    let mut client = server.client();
    client.ok("SET k old");
    client.ok("CONFIG SET appendonly no");
    client.ok("SET k new");
    client.ok("CONFIG SET rdb-key-save-delay 100000");
    client.ok("CONFIG SET appendonly yes");
    let refused = "ERR Error trying to load the AOF files, check server logs";
    assert_eq!(client.ask("DEBUG LOADAOF").text(), refused);
    assert_eq!(client.ask("GET k").text(), "new");
    client.ok("CONFIG SET rdb-key-save-delay 0");
    server.wait_for_log("Background AOF rewrite finished successfully");
    eventually("it may be loaded", || client.ask("DEBUG LOADAOF").text() == "OK");
    assert_eq!(client.ask("GET k").text(), "new");
}

#[test]
fn a_reload_logs_the_ends_of_keys_that_have_expired() {
    let server = start(&[]);
    let mut client = server.client();
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    client.ok("SET k v PX 1");
    client.ask("HSET h f v g v");
    client.ask("HPEXPIRE h 1 FIELDS 1 f");
    std::thread::sleep(Duration::from_millis(5));
    client.ok("DEBUG RELOAD");
    assert_eq!(client.ask("RPUSH k x").int(), 1);
    assert_eq!(client.ask("HINCRBY h f 5").int(), 5);
    let server = server.kill_and_start(&again(&[]));
    let mut client = server.client();
    assert_eq!(client.ask("LLEN k").int(), 1);
    assert_eq!(client.ask("HGET h f").text(), "5");
}

#[test]
fn an_idle_log_does_not_wake_its_thread() {
    for options in [&["--appendfsync", "no"][..], &[]] {
        let server = start(options);
        server.client().ok("SET k v");
        let switches = || {
            let tasks = fs::read_dir(format!("/proc/{}/task", server.process().0)).unwrap();
            let files = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")));
            let text = files.flatten().find(|text| text.starts_with("Name:\tweft-log")).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        };
        eventually("it rests", || {
            let before = switches();
            std::thread::sleep(Duration::from_millis(500));
            switches() - before < 5
        });
    }
}

#[test]
fn a_rewrite_without_a_file_does_not_delay_shutdown() {
    let mut server = Server::start(&["--save", ""]);
    let mut client = server.client();
    (0..2000).for_each(|n| client.ok(&format!("SET key:{n} v")));
    client.ok("CONFIG SET rdb-key-save-delay 20000");
    client.ask("BGREWRITEAOF");
    eventually("it is in progress", || server.info("aof_rewrite_in_progress") == "1");
    server.signal("TERM");
    // Long before the 200 seconds that the base takes.
    assert!(server.wait().success());
}

#[test]
fn the_file_may_be_turned_off_and_on_while_it_is_loaded() {
    let mut server = start(&[]);
    let mut client = server.client();
    (0..1000).for_each(|n| client.ok(&format!("SET key:{n} v")));
    client.ask("BGREWRITEAOF");
    server.wait_for_log("Background AOF rewrite finished successfully");
    // The server still removes the files that the base has replaced.
    server.signal("TERM");
    assert!(server.wait().success());
    for (last, enabled) in [("yes", "1"), ("no", "0")] {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("appendonlydir");
        std::fs::create_dir(&files).unwrap();
        for file in std::fs::read_dir(server.path("appendonlydir")).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), files.join(file.file_name())).unwrap();
        }
        let slow = again(&["--key-load-delay", "2000"]);
        let server =
            Launch::weft().in_folder(folder).options(&slow).until("Server initialized").start();
        let mut client = server.client();
        client.ok("CONFIG SET appendonly no");
        if last == "yes" {
            client.ok("CONFIG SET appendonly yes");
        }
        assert_eq!(server.info("loading"), "1");
        eventually("it is loaded", || server.info("loading") == "0");
        assert_eq!(server.info("aof_enabled"), enabled);
        assert_eq!(client.ask("DBSIZE").int(), 1000);
        assert_eq!(server.path("appendonlydir/appendonly.aof.log").exists(), last == "yes");
    }
}

#[test]
fn a_file_that_grows_is_rewritten_by_itself() {
    let options = ["--auto-aof-rewrite-min-size", "20kb", "--auto-aof-rewrite-percentage", "50"];
    let server = start(&options);
    let mut client = server.client();
    let value = "x".repeat(1000);
    eventually("it is rewritten", || {
        client.ok(&format!("SET k {value}"));
        server.info("aof_rewrites") != "0"
    });
    eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
fn a_single_file_of_an_old_redis_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let text = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
    fs::write(folder.path().join("appendonly.aof"), text).unwrap();
    let directory = folder.path().display().to_string();
    let server = start(&["--dir", &directory]);
    assert_eq!(server.client().ask("GET k").text(), "v");
    assert!(folder.path().join("appendonlydir/appendonly.aof").is_file());
    assert!(!folder.path().join("appendonly.aof").exists());
}

#[test]
fn an_rdb_file_is_not_forgotten_when_the_append_only_file_begins() {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    client.ok("SET k v");
    client.ok("SAVE");
    let server = server.restart(ON);
    assert_eq!(server.client().ask("GET k").text(), "v");
    let server = server.kill_and_start(ON);
    assert_eq!(server.client().ask("GET k").text(), "v");
}

#[test]
fn times_are_written_between_commands() {
    let server = start(&["--aof-timestamp-enabled", "yes", "--appendfsync", "always"]);
    server.client().ok("SET k v");
    let path = server.path("appendonlydir/appendonly.aof.1.incr.aof");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("#TS:"), "{text}");
    let server = server.kill_and_start(&again(&[]));
    assert_eq!(server.client().ask("GET k").text(), "v");
}

#[test]
fn a_base_of_commands_keeps_pending_entries_that_were_deleted() {
    // The second stream is written in steps.
    for entries in [5, 3000] {
        let options = ["--aof-use-rdb-preamble", "no"];
        let server = start(&options);
        let mut client = server.client();
        let script =
            "for i = 1, tonumber(ARGV[1]) do redis.call('XADD', 's', i .. '-1', 'f', i) end";
        let count = entries.to_string();
        client.ask_args(&[b"EVAL", script.as_bytes(), b"0", count.as_bytes()]);
        client.ok("XGROUP CREATE s g 0");
        client.ask(&format!("XREADGROUP GROUP g c COUNT {count} STREAMS s >"));
        client.ask(&format!("XDEL s 1-1 3-1 {count}-1"));
        client.ask("XADD empty 7-1 f v");
        client.ok("XGROUP CREATE empty g 0");
        client.ask("XREADGROUP GROUP g c STREAMS empty >");
        client.ask("XDEL empty 7-1");
        let look = |client: &mut Client| {
            let mut seen = Vec::new();
            for key in ["s", "empty"] {
                let pending = client.ask(&format!("XPENDING {key} g - + {count}"));
                // All but the idle time.
                let of = |entry: &test_support::Value| {
                    [0, 1, 3].map(|at| format!("{:?}", entry.items()[at]))
                };
                seen.extend(pending.items().iter().flat_map(of));
                for words in ["XINFO GROUPS", "XRANGE", "XINFO STREAM"] {
                    let ends = if words == "XRANGE" { " - +" } else { "" };
                    let reply = client.ask(&format!("{words} {key}{ends}"));
                    // Not the number of nodes.
                    let reply = reply.items().iter().filter(|value| value.integer().is_none());
                    seen.extend(reply.map(|value| format!("{value:?}")));
                }
            }
            seen
        };
        let before = look(&mut client);
        client.ask("BGREWRITEAOF");
        eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
        let server = server.kill_and_start(&again(&options));
        assert_eq!(look(&mut server.client()), before);
    }
}

#[test]
fn writes_after_a_time_are_cut_off() {
    let options = ["--aof-timestamp-enabled", "yes", "--aof-use-rdb-preamble", "no"];
    let mut server = start(&options);
    let mut client = server.client();
    let now = |client: &mut Client| client.ask("TIME").items()[0].text().parse::<i64>().unwrap();
    let begun = now(&mut client);
    client.ok("SET x 1");
    // A batch has the time of its write.
    client.ask("WAITAOF 1 0 0");
    let kept_to = now(&mut client);
    eventually("time goes on", || now(&mut client) > kept_to);
    client.ok("SET x 2");
    let manifest = server.path("appendonlydir/appendonly.aof.manifest").display().to_string();
    let cut = |at: i64| {
        let args = ["check", "aof", "--truncate-to-timestamp", &at.to_string(), &manifest];
        let output = weft().args(args).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_done, text) = cut(kept_to);
    assert!(!is_done && text.contains("A server uses these files"), "{text}");
    server.signal("TERM");
    assert!(server.wait().success());
    let folder = server.into_folder();
    let (is_done, text) = cut(kept_to + 1000);
    assert!(is_done && text.contains("Truncate nothing"), "{text}");
    let (is_done, text) = cut(begun - 10);
    assert!(!is_done && text.contains("has nothing before timestamp"), "{text}");
    let (is_done, text) = cut(kept_to);
    assert!(is_done && text.contains("Successfully truncated AOF"), "{text}");
    let server = Server::start_in(folder, &again(&options));
    assert_eq!(server.client().ask("GET x").text(), "1");
    // A base has its time as well.
    server.client().ask("BGREWRITEAOF");
    eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
    let base = fs::read_to_string(server.path("appendonlydir/appendonly.aof.2.base.aof")).unwrap();
    assert!(base.contains("#TS:"), "{base}");
}

#[test]
fn a_file_before_empty_ones_may_be_cut_to_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(format!("appendonly.aof.{name}"));
    let times = ["#TS:10\r\n*1\r\n$4\r\nPING\r\n", "#TS:20\r\n*1\r\n$4\r\nPING\r\n"];
    fs::write(path("1.incr.aof"), times.concat()).unwrap();
    let lines = [1, 2].map(|seq| format!("file appendonly.aof.{seq}.incr.aof seq {seq} type i\n"));
    fs::write(path("manifest"), lines.concat()).unwrap();
    let cut = || {
        let args = ["check", "aof", "--truncate-to-timestamp", "10"];
        let output = weft().args(args).arg(path("manifest")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    fs::write(path("2.incr.aof"), times[1]).unwrap();
    assert!(cut().contains("to offset 22 because it is not the last file"), "{}", cut());
    fs::write(path("2.incr.aof"), "").unwrap();
    assert!(cut().contains("Successfully truncated"));
    assert_eq!(fs::read_to_string(path("1.incr.aof")).unwrap(), times[0]);
}

#[test]
fn files_are_looked_through() {
    let mut server = start(&["--appendfsync", "always"]);
    let mut client = server.client();
    (0..10).for_each(|n| client.ok(&format!("SET key:{n} value")));
    let manifest = server.path("appendonlydir/appendonly.aof.manifest");
    let file = server.path("appendonlydir/appendonly.aof.1.incr.aof");
    let check = |args: &[&str]| {
        let output = weft().arg("check").args(args).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let path = manifest.display().to_string();
    let (is_whole, text) = check(&["aof", &path]);
    assert!(is_whole && text.contains("All AOF files and manifest are valid"), "{text}");
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(b"*3\r\n$3\r\nSET\r\n$1");
    fs::write(&file, &bytes).unwrap();
    let (is_whole, text) = check(&["aof", &path]);
    assert!(!is_whole && text.contains("--fix"), "{text}");
    let (is_whole, text) = check(&["aof", "--fix", "--yes", &path]);
    assert!(!is_whole && text.contains("A server uses these files"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
    server.signal("KILL");
    server.wait();
    let (is_whole, text) = check(&["aof", "--fix", "--yes", &path]);
    assert!(is_whole && text.contains("Successfully fixed"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), &bytes[..bytes.len() - 15]);
    let kept = server.path("appendonlydir/appendonly.aof.1.incr.aof.original");
    assert_eq!(fs::read(kept).unwrap(), bytes);
    let base = server.path("appendonlydir/appendonly.aof.1.base.rdb").display().to_string();
    let (is_whole, text) = check(&["rdb", &base]);
    assert!(is_whole && text.contains("RDB version 11"), "{text}");
    let (is_whole, _) = check(&["rdb", "--fix", "--yes", &path]);
    assert!(!is_whole);
    // Unrelated files are not touched.
    let foreign = server.path("foreign").display().to_string();
    fs::write(&foreign, "something else").unwrap();
    for args in [["aof", "--fix", "--yes", &foreign], ["rdb", "--fix", "--yes", &foreign]] {
        assert!(!check(&args).0);
        assert_eq!(fs::read(&foreign).unwrap(), b"something else");
    }
}

#[test]
fn a_new_append_only_file_is_complete_after_shutdown() {
    let server = Server::start(&[ON, &["--appendfsync", "always"]].concat());
    let mut client = server.client();
    client.ok("SET old 1");
    client.ok("CONFIG SET appendonly no");
    client.ok("SET between 1");
    // A save that runs first delays the base.
    client.ok("CONFIG SET rdb-key-save-delay 20000");
    client.ask("BGSAVE");
    client.ok("CONFIG SET appendonly yes");
    client.ok("SET new 1");
    let server = server.restart(ON);
    assert_eq!(server.client().ask("EXISTS old between new").int(), 3);
}

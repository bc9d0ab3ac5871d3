//! RDB files of a whole server: data are there after a restart, a file has one moment of the
//! keyspace whatever is written meanwhile, and backups do not touch the file that is loaded.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use test_support::{eventually, weft};

use crate::{Client, Server};

const DEBUG: [&str; 2] = ["--enable-debug-command", "yes"];

/// Values of all types, small and large, in several databases.
fn fill(client: &mut Client) {
    let script = b"
        redis.call('select', 0)
        redis.call('set', 'text', 'value') redis.call('set', 'number', '-123456789')
        redis.call('set', 'long', string.rep('abc', 10000))
        redis.call('set', 'ttl', 'x', 'ex', 5000)
        redis.call('set', 'gone', 'x', 'px', 1)
        redis.call('rpush', 'list', 1, 2, 'a') redis.call('sadd', 'ints', 1, 2, 3)
        redis.call('sadd', 'set', 'a', 'b') redis.call('zadd', 'zset', 1.5, 'a', -2, 'b')
        redis.call('hset', 'hash', 'f', 'v') redis.call('hset', 'expiring', 'f', 'v', 'g', 'w')
        redis.call('hpexpire', 'expiring', 5000000, 'fields', 1, 'f')
        redis.call('xadd', 'stream', '1-1', 'f', 'v')
        redis.call('xgroup', 'create', 'stream', 'g', 0)
        for i = 1, 3000 do
            redis.call('rpush', 'many', 'element ' .. i .. string.rep('x', 40))
            redis.call('sadd', 'members', 'm' .. i) redis.call('zadd', 'scores', i / 3, 'm' .. i)
            redis.call('hset', 'fields', 'f' .. i, i) redis.call('xadd', 'entries', i, 'f', i)
        end
        redis.call('hpexpire', 'fields', 5000000, 'fields', 2, 'f1', 'f2999')
        redis.call('xgroup', 'create', 'entries', 'group', 0)
        redis.call('xgroup', 'create', 'entries', 'empty', '$')
        redis.call('xreadgroup', 'group', 'group', 'one', 'count', 10, 'streams', 'entries', '>')
        redis.call('xreadgroup', 'group', 'group', 'two', 'count', 900, 'streams', 'entries', '>')
        redis.call('select', 9)
        for i = 1, 500 do redis.call('set', 'key:' .. i, i) end
        return 'done'";
    assert_eq!(client.ask_args(&[b"EVAL", script, b"0"]).text(), "done");
    let library = b"#!lua name=lib\nredis.register_function('f', function() return 42 end)";
    assert_eq!(client.ask_args(&[b"FUNCTION", b"LOAD", library]).text(), "lib");
}

fn digest(client: &mut Client) -> String {
    client.ask("DEBUG DIGEST").text()
}

/// The groups of streams, which digests omit, without times since an event.
fn groups(client: &mut Client) -> String {
    let mut text = String::new();
    for words in ["XINFO GROUPS entries", "XPENDING entries group"] {
        text += &format!("{:?}", client.ask(words));
    }
    for pending in client.ask("XPENDING entries group - + 999").items() {
        let [id, consumer, _, count] = pending.items() else { panic!("{pending:?}") };
        text += &format!("{id:?} {consumer:?} {count:?} ");
    }
    text
}

#[test]
fn data_outlive_the_server() {
    let mut server = Server::start(&[&DEBUG[..], &["--save", "3600 1"]].concat());
    let mut client = server.client();
    fill(&mut client);
    eventually("the key expires", || client.ask("EXISTS gone").int() == 0);
    let all = [&[][..], &["--io-threads", "1"], &["--rdbchecksum", "no", "--databases", "10"]];
    for (round, options) in (1..).zip(all) {
        let (before, known) = (digest(&mut client), groups(&mut client));
        server = server.restart(&[&DEBUG[..], options, &["--save", "3600 1"]].concat());
        client = server.client();
        assert_eq!((digest(&mut client), groups(&mut client)), (before, known), "{options:?}");
        assert_eq!((client.ask("DBSIZE").int(), client.ask("FCALL f 0").int()), (16, 42));
        assert_eq!(server.info("rdb_last_load_keys_loaded"), "516");
        // Pending entries can be acknowledged, and fields expire.
        assert_eq!(client.ask(&format!("XACK entries group {round}-0")).int(), 1);
        assert!(client.ask("HPTTL fields FIELDS 1 f2999").items()[0].int() > 0);
    }
    let log = server.log();
    assert!(log.contains("Data lies in ") && log.contains("Done loading RDB, keys loaded: 516"));
    // No other file is left in the folder.
    let files = fs::read_dir(server.folder()).unwrap().count();
    assert_eq!(files, 1);
}

#[test]
fn a_server_that_saves_nothing_by_itself_leaves_no_file() {
    let mut server = Server::start(&["--save", ""]);
    server.client().ok("SET k v");
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(fs::read_dir(server.folder()).unwrap().count(), 0);
    let mut server = Server::start(&["--save", ""]);
    server.client().ok("SET k v");
    server.client().send("SHUTDOWN SAVE");
    assert!(server.wait().success());
    assert!(server.path("dump.rdb").exists());
}

#[test]
fn keys_that_expired_while_the_server_was_down_are_left_out() {
    let server = Server::start(&[&DEBUG[..], &["--save", "3600 1"]].concat());
    let mut client = server.client();
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    client.ok("SET stays v EX 1000");
    client.ok("SET goes v PX 1");
    let server = server.restart(&["--save", ""]);
    assert_eq!(server.client().ask("DBSIZE").int(), 1);
    let loaded = ["rdb_last_load_keys_loaded", "rdb_last_load_keys_expired"];
    assert_eq!(loaded.map(|field| server.info(field)), ["1", "1"]);
}

#[test]
fn a_point_of_save_saves() {
    let server = Server::start(&["--save", "1 3"]);
    let mut client = server.client();
    client.ok("MSET a 1 b 2");
    let changes = || server.info("rdb_changes_since_last_save");
    eventually("the thread's turn is over, and its changes counted", || changes() == "2");
    client.ok("SET c 3");
    server.wait_for_log("3 changes in 1 seconds. Saving...");
    server.wait_for_log("Background saving terminated with success");
    assert_eq!(changes(), "0");
    assert_eq!(
        (server.info("rdb_saves"), server.info("rdb_last_bgsave_status")),
        ("1".into(), "ok".into())
    );
    assert!(server.path("dump.rdb").exists());
}

/// Writers of pairs that are always equal, and of a sorted set whose scores have a constant sum.
fn write_pairs(server: &Server, over: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<u64>> {
    let writers = (0..3).map(|writer: u64| {
        let (mut client, over) = (server.client(), Arc::clone(over));
        thread::spawn(move || {
            let mut written = 0;
            while !over.load(Ordering::Relaxed) {
                let (at, member) = (written % 700, written * 7 % 3000);
                let transaction = format!(
                    "INCR left:{writer}:{at}|INCR right:{writer}:{at}|ZINCRBY sums 1 a{member}|\
                     ZINCRBY sums -1 b{member}|HINCRBY pairs l{member} 1|HINCRBY pairs r{member} 1"
                );
                client.ok("MULTI");
                transaction.split('|').for_each(|words| client.send(words));
                client.send("EXEC");
                (0..7).for_each(|_| drop(client.read()));
                client.ok(&format!("SET last:{writer} {written}"));
                written += 1;
                // Keys are also created, removed and renamed.
                let (name, other) =
                    (format!("moving:{writer}:{at}"), format!("moved:{writer}:{at}"));
                client.ok(&format!("SET {name} {written}"));
                client.ok(&format!("RENAME {name} {other}"));
                if written % 3 == 0 {
                    client.ask(&format!("DEL {other}"));
                }
            }
            written
        })
    });
    writers.collect()
}

/// The properties of a server that was loaded from such a file.
fn check_pairs(server: &Server, at_least: &[u64]) {
    let mut client = server.client();
    let script = b"
        for writer = 0, 2 do for at = 0, 699 do
            local left = redis.call('get', 'left:' .. writer .. ':' .. at)
            if left ~= redis.call('get', 'right:' .. writer .. ':' .. at) then return 'pair' end
        end end
        local sum = 0
        local scores = redis.call('zrange', 'sums', 0, -1, 'withscores')
        for i = 2, #scores, 2 do sum = sum + scores[i] end
        if sum ~= 0 then return 'sum ' .. sum end
        for member = 0, 2999 do
            local values = redis.call('hmget', 'pairs', 'l' .. member, 'r' .. member)
            if values[1] ~= values[2] then return 'field' end
        end
        return redis.call('zcard', 'sums') .. ' ' .. redis.call('hlen', 'pairs')";
    assert_eq!(client.ask_args(&[b"EVAL", script, b"0"]).text(), "6000 6000");
    for (writer, least) in at_least.iter().enumerate() {
        let last: u64 = client.ask(&format!("GET last:{writer}")).text().parse().unwrap();
        assert!(last >= *least, "{last} of writer {writer} is older than {least}");
    }
}

#[test]
fn a_file_has_one_moment_of_a_keyspace_that_changes() {
    let server = Server::start(&["--save", "", "--io-threads", "3"]);
    let mut client = server.client();
    let script = b"for i = 0, 2999 do
        redis.call('zadd', 'sums', i, 'a' .. i) redis.call('zadd', 'sums', -i, 'b' .. i)
        redis.call('hset', 'pairs', 'l' .. i, i) redis.call('hset', 'pairs', 'r' .. i, i) end";
    client.ask_args(&[b"EVAL", script, b"0"]);
    let over = Arc::new(AtomicBool::new(false));
    let writers = write_pairs(&server, &over);
    for round in 0..3 {
        eventually("something is written", || client.ask("EXISTS last:0 last:1 last:2").int() == 3);
        let least: Vec<u64> = (0..3)
            .map(|writer| client.ask(&format!("GET last:{writer}")).text().parse().unwrap())
            .collect();
        // Slow enough for every writer to run between the steps.
        client.ok("CONFIG SET rdb-key-save-delay -3");
        client.ask("BGSAVE");
        eventually("it is saved", || server.info("rdb_bgsave_in_progress") == "0");
        let saved = (server.info("rdb_saves"), server.info("rdb_last_bgsave_status"));
        assert_eq!(saved, ((round + 1).to_string(), "ok".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        fs::copy(server.path("dump.rdb"), folder.path().join("dump.rdb")).unwrap();
        let loaded = Server::start_in(folder, &["--save", ""]);
        check_pairs(&loaded, &least);
    }
    over.store(true, Ordering::Relaxed);
    assert!(writers.into_iter().all(|writer| writer.join().unwrap() > 0));
}

#[test]
fn a_backup_does_not_touch_the_loaded_file() {
    let server = Server::start(&["--save", "3600 1"]);
    let mut client = server.client();
    client.ok("SET k v");
    assert_eq!(client.ask("WEFT BACKUP copy.rdb").text(), "Backup started");
    server.wait_for_log("Backup saved to copy.rdb");
    eventually("it is over", || server.info("weft_backup_in_progress") == "0");
    assert_eq!((server.info("weft_backups"), server.info("rdb_saves")), ("1".into(), "0".into()));
    assert_eq!(server.info("rdb_changes_since_last_save"), "1");
    assert!(!server.path("dump.rdb").exists());
    let refused = "ERR The backup cannot begin: ";
    assert_eq!(
        client.ask("WEFT BACKUP copy.rdb").text(),
        format!("{refused}File exists. REPLACE replaces an RDB file.")
    );
    let elsewhere = client.ask("WEFT BACKUP ../copy.rdb").text();
    assert!(elsewhere.starts_with(&format!("{refused}a path outside")), "{elsewhere}");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(server.path("copy.rdb"), folder.path().join("dump.rdb")).unwrap();
    let loaded = Server::start_in(folder, &[]);
    assert_eq!(loaded.client().ask("GET k").text(), "v");
}

#[test]
fn a_backup_replaces_only_another_one_and_its_end_is_waited_for() {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    let backup = |words: &[&str]| {
        let port = server.address().port().to_string();
        let mut cli = weft();
        cli.current_dir(server.folder()).args(["cli", "-p", &port, "-e", "WEFT", "BACKUP"]);
        let output = cli.args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The same command each day.
    for value in ["1", "2"] {
        client.ok(&format!("SET k {value}"));
        let ended = backup(&["daily.rdb", "REPLACE", "WAIT"]);
        assert_eq!(ended, (Some(0), "Backup saved".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        fs::copy(server.path("daily.rdb"), folder.path().join("dump.rdb")).unwrap();
        assert_eq!(Server::start_in(folder, &[]).client().ask("GET k").text(), value);
    }
    assert_eq!(backup(&["daily.rdb", "WAIT"]).0, Some(1), "it is there");
    fs::write(server.path("users.acl"), "user default on").unwrap();
    std::os::unix::fs::symlink("users.acl", server.path("link")).unwrap();
    for path in ["users.acl", "link"] {
        let refused = "ERR The backup cannot begin: what is there is no RDB file";
        assert_eq!(client.ask(&format!("WEFT BACKUP {path} REPLACE")).text(), refused);
    }
    // It begins, and cannot get its name.
    client.ok("CONFIG SET rdb-key-save-delay 200000");
    client.send("WEFT BACKUP new.rdb WAIT");
    eventually("it is waited for", || server.info("blocked_clients") == "1");
    fs::create_dir_all(server.path("new.rdb/file")).unwrap();
    let failed = client.read().text();
    assert!(failed.starts_with("ERR The backup failed: cannot rename"), "{failed}");
    assert_eq!(server.info("blocked_clients"), "0");
}

#[test]
fn a_backup_replaces_no_kept_file_and_none_of_the_append_only_file() {
    let options = ["--appendonly", "yes", "--enable-protected-configs", "yes"];
    let server = Server::start(&options);
    let mut client = server.client();
    client.ok("SAVE");
    fs::create_dir(server.path("appendonlydir.original")).unwrap();
    for name in [
        "dump.rdb.original",
        "dump.rdb.original-12",
        "appendonlydir.original/any.rdb",
        "appendonlydir/appendonly.aof.1.base.rdb",
    ] {
        if !server.path(name).exists() {
            fs::copy(server.path("dump.rdb"), server.path(name)).unwrap();
        }
        let reply = client.ask(&format!("WEFT BACKUP {name} REPLACE WAIT")).text();
        let is_named = reply.contains("was kept") || reply.contains("part of the append-only file");
        assert!(reply.starts_with("ERR The backup cannot begin") && is_named, "{name}: {reply}");
    }
    assert_eq!(client.ask("WEFT BACKUP dump.rdb REPLACE WAIT").text(), "Backup saved");
}

#[test]
fn a_reload_changes_nothing() {
    let server = Server::start(&[&DEBUG[..], &["--io-threads", "3"]].concat());
    let mut client = server.client();
    fill(&mut client);
    eventually("the key expires", || client.ask("EXISTS gone").int() == 0);
    let before = (digest(&mut client), groups(&mut client));
    client.ok("DEBUG RELOAD");
    assert_eq!((digest(&mut client), groups(&mut client)), before);
    assert_eq!((client.ask("DBSIZE").int(), client.ask("FCALL f 0").int()), (16, 42));
    client.ok("SET text other");
    client.ok("SET new v");
    let there = client.ask("DEBUG RELOAD NOSAVE NOFLUSH").text();
    assert_eq!(there, "ERR Error trying to load the RDB dump, check server logs");
    client.ok("DEBUG RELOAD NOSAVE NOFLUSH MERGE");
    assert_eq!(
        (client.ask("GET text").text(), client.ask("GET new").text()),
        ("value".into(), "v".into())
    );
    client.ok("DEBUG RELOAD NOSAVE");
    assert_eq!((digest(&mut client), client.ask("DBSIZE").int()), (before.0, 16));
    // Other clients wait, and lose nothing.
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let (mut client, over) = (server.client(), Arc::clone(&over));
            thread::spawn(move || {
                let mut sum = 0;
                while !over.load(Ordering::Relaxed) {
                    sum += 1;
                    assert_eq!(client.ask(&format!("INCR counter:{writer}")).int(), sum);
                }
                sum
            })
        })
        .collect();
    (0..5).for_each(|_| client.ok("DEBUG RELOAD"));
    over.store(true, Ordering::Relaxed);
    for (writer, sum) in writers.into_iter().enumerate() {
        let sum = sum.join().unwrap();
        assert_eq!(client.ask(&format!("GET counter:{writer}")).text(), sum.to_string());
    }
}

#[test]
fn flushall_leaves_no_keys_in_the_file_where_save_is_configured() {
    let server = Server::start(&["--save", "3600 1"]);
    let mut client = server.client();
    let fill = |client: &mut Client| {
        client.ok("SET key:1 value");
        client.ok("SAVE");
    };
    let has_keys = || fs::read(server.path("dump.rdb")).unwrap().windows(4).any(|at| at == b"key:");
    for words in ["FLUSHALL", "FLUSHALL ASYNC"] {
        fill(&mut client);
        assert!(has_keys());
        client.ok(words);
        assert!(!has_keys(), "{words}");
        assert_eq!(server.info("rdb_changes_since_last_save"), "0");
    }
    for words in ["EVAL return(redis.call('flushall')) 0", "FLUSHALL"] {
        fill(&mut client);
        client.ok("MULTI");
        assert_eq!(client.ask(words).text(), "QUEUED");
        assert_eq!(client.ask("SET later value").text(), "QUEUED");
        assert_eq!(client.ask("EXEC").items()[0].text(), "OK");
        assert!(!has_keys(), "{words}: it is saved before EXEC is answered");
        assert_eq!(server.info("rdb_changes_since_last_save"), "0");
    }
    fill(&mut client);
    client.ok("FLUSHDB");
    client.ok("SET key:1 value");
    client.ok("CONFIG SET rdb-key-save-delay 1000000");
    assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
    client.ok("CONFIG SET rdb-key-save-delay 0");
    client.ok("FLUSHALL");
    assert!(!has_keys(), "what is being saved has them");
    fill(&mut client);
    assert_eq!(client.ask_args(&[b"CONFIG", b"SET", b"save", b""]).text(), "OK");
    client.ok("FLUSHALL");
    assert!(has_keys());
}

#[test]
fn flushall_gives_up_a_background_save() {
    let server = Server::start(&["--save", "", "--rdb-key-save-delay", "100000000"]);
    let mut client = server.client();
    let begin = |client: &mut Client| {
        (0..10).for_each(|at| client.ok(&format!("SET key:{at} value")));
        assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
        assert_eq!(server.info("rdb_bgsave_in_progress"), "1");
    };
    let changes = || server.info("rdb_changes_since_last_save").parse::<u64>().unwrap();
    for words in ["FLUSHALL", "EVAL return(redis.call('flushall')) 0", "MULTI"] {
        begin(&mut client);
        let before = changes();
        client.ok(words);
        if words == "MULTI" {
            assert_eq!(client.ask("FLUSHALL").text(), "QUEUED");
            assert_eq!(client.ask("EXEC").items()[0].text(), "OK");
        }
        eventually("it ends", || server.info("rdb_bgsave_in_progress") == "0");
        assert!(changes() > before, "{words}: nothing was saved");
        assert_eq!(server.info("rdb_last_bgsave_status"), "ok");
        assert_ne!(server.info("rdb_last_bgsave_time_sec"), "-1");
        assert!(!server.path("dump.rdb").exists(), "{words}");
    }
    assert_eq!(server.info("rdb_saves"), "3", "all that have begun");
    // Other commands that remove keys leave it, and FLUSHALL leaves a backup.
    begin(&mut client);
    client.ok("FLUSHDB");
    assert_eq!(server.info("rdb_bgsave_in_progress"), "1");
    client.ok("CONFIG SET rdb-key-save-delay 0");
    eventually("it is saved", || server.path("dump.rdb").exists());
    eventually("it is over", || server.info("rdb_bgsave_in_progress") == "0");
    client.ok("CONFIG SET rdb-key-save-delay 100000000");
    (0..10).for_each(|at| client.ok(&format!("SET key:{at} value")));
    assert_eq!(client.ask("WEFT BACKUP backup.rdb").text(), "Backup started");
    client.ok("FLUSHALL");
    client.ok("CONFIG SET rdb-key-save-delay 0");
    eventually("it is there", || server.path("backup.rdb").exists());
}

#[test]
fn flushall_during_a_backup_leaves_no_keys_in_the_file() {
    let server = Server::start(&["--save", "3600 1", "--io-threads", "2"]);
    let mut client = server.client();
    let library = b"#!lua name=lib\nredis.register_function('f', function() return 42 end)";
    assert_eq!(client.ask_args(&[b"FUNCTION", b"LOAD", library]).text(), "lib");
    let with_later = "EVAL return{redis.call('flushall'),redis.call('set','later','1')} 0";
    for (words, changes) in [("FLUSHALL", "0"), (with_later, "1")] {
        (0..10).for_each(|at| client.ok(&format!("SET key:{at} value")));
        client.ok("SAVE");
        client.ok("CONFIG SET rdb-key-save-delay 100000000");
        assert_eq!(client.ask("WEFT BACKUP backup.rdb").text(), "Backup started");
        client.ask(words);
        assert_eq!(server.info("weft_backup_in_progress"), "1");
        assert_eq!(server.info("rdb_changes_since_last_save"), changes, "{words}");
        let copy = tempfile::tempdir().unwrap();
        fs::copy(server.path("dump.rdb"), copy.path().join("dump.rdb")).unwrap();
        let loaded = Server::start_in(copy, &["--save", ""]);
        assert_eq!(loaded.client().ask("DBSIZE").int(), 0, "{words}");
        assert_eq!(loaded.client().ask("FCALL f 0").int(), 42);
        client.ok("CONFIG SET rdb-key-save-delay 0");
        eventually("it is there", || server.path("backup.rdb").exists());
        eventually("it is over", || server.info("weft_backup_in_progress") == "0");
        fs::remove_file(server.path("backup.rdb")).unwrap();
    }
}

#[test]
fn flushall_of_no_keys_during_a_backup_leaves_none_in_the_file() {
    let server = Server::start(&["--save", "3600 1", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.ok("SET key:1 value");
    client.ok("FLUSHDB");
    (0..10).for_each(|at| client.ok(&format!("SET key:{at} value")));
    client.ok("SAVE");
    let size = fs::metadata(server.path("dump.rdb")).unwrap().len();
    client.ok("CONFIG SET rdb-key-save-delay 100000000");
    assert_eq!(client.ask("WEFT BACKUP backup.rdb").text(), "Backup started");
    (0..10).for_each(|at| assert_eq!(client.ask(&format!("PEXPIRE key:{at} 1")).int(), 1));
    eventually("they expire", || client.ask("DBSIZE").int() == 0);
    client.ok("FLUSHALL");
    assert_eq!(server.info("weft_backup_in_progress"), "1");
    assert!(fs::metadata(server.path("dump.rdb")).unwrap().len() < size);
}

#[test]
fn flushall_in_a_script_saves_before_it_is_answered() {
    let server = Server::start(&["--save", "3600 1", "--io-threads", "4"]);
    let library = b"#!lua name=lib\nredis.register_function('f', function() \
        return redis.call('flushall') end)";
    let has_keys = || fs::read(server.path("dump.rdb")).unwrap().windows(4).any(|at| at == b"key:");
    let mut clients: Vec<_> = (0..6).map(|_| server.client()).collect();
    assert_eq!(clients[0].ask_args(&[b"FUNCTION", b"LOAD", library]).text(), "lib");
    for (at, client) in clients.iter_mut().enumerate() {
        client.ok("SET key:1 value");
        client.ok("SAVE");
        assert!(has_keys());
        client.ok(["FCALL f 0", "EVAL return(redis.call('flushall')) 0"][at % 2]);
        assert!(!has_keys());
        assert_eq!(server.info("rdb_changes_since_last_save"), "0");
    }
    // A script that fails after FLUSHALL has removed the keys as well.
    clients[0].ok("SET key:1 value");
    clients[0].ok("SAVE");
    let failed = clients[0].ask("EVAL redis.call('flushall')error('x') 0").text();
    assert!(failed.contains("user_script:1: x") && !has_keys(), "{failed}");
    // Only SAVE and BGSAVE count.
    assert_eq!(server.info("rdb_saves"), "7");
    clients[0].ok("CONFIG RESETSTAT");
    assert_eq!(server.info("rdb_saves"), "0");
    // All at once, during other saves.
    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            thread::spawn(move || {
                for _ in 0..5 {
                    client.ok("SET key:1 value");
                    client.ok("EVAL return(redis.call('flushall')) 0");
                    client.ask("BGSAVE");
                    client.ok("FLUSHALL");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    eventually("it is over", || server.info("rdb_bgsave_in_progress") == "0");
    assert!(!has_keys());
    assert_eq!(server.info("rdb_changes_since_last_save"), "0");
}

#[test]
fn removing_nothing_is_no_change() {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    let changes = || server.info("rdb_changes_since_last_save");
    for words in ["FLUSHALL", "FLUSHDB", "EVAL return(redis.call('flushall')) 0"] {
        client.ok(words);
        assert_eq!(changes(), "0", "{words}");
    }
    client.ok("MSET a 1 b 2");
    client.ok("FLUSHDB");
    assert_eq!(changes(), "4");
}

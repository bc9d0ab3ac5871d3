//! RDB files and append-only files of Redis and Valkey, loaded by a whole server, and files of Weft
//! loaded by them: compared key by key, for values of every type and encoding.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use test_support::{Launch, PeerServer, eventually};

use crate::{Client, Server};

const DEBUG: [&str; 2] = ["--enable-debug-command", "yes"];

fn programs() -> Vec<PathBuf> {
    PeerServer::ALL.into_iter().filter_map(PeerServer::program).collect()
}

/// Starts the server of a peer, or Weft without a program, on the file of another server.
fn start(program: Option<&Path>, file: Option<&Path>) -> Server {
    let folder = tempfile::tempdir().unwrap();
    if let Some(file) = file {
        fs::copy(file, folder.path().join("dump.rdb")).unwrap();
    }
    start_in(program, folder, &DEBUG)
}

fn start_in(program: Option<&Path>, folder: TempDir, options: &[&str]) -> Server {
    let launch = match program {
        Some(program) => Launch::program([program.to_str().unwrap()]),
        None => Launch::weft(),
    };
    launch.in_folder(folder).options(options).start()
}

/// Creates values of each type, from one element up, packed and not, in two databases.
pub fn fill(client: &mut Client) {
    let script = b"
        local function text(i)
            if i % 4 == 0 then return tostring(i * 7919 - 5000) end
            if i % 4 == 1 then return string.rep('x', i % 90) .. i end
            if i % 4 == 2 then return 'element:' .. i end
            return string.char(i % 256, (i * 31) % 256, 0, 255) .. i
        end
        for _, db in ipairs({0, 11}) do
            redis.call('select', db)
            for _, size in ipairs({1, 3, 60, 200, 2500}) do
                local n = ':' .. size
                for i = 1, size do
                    redis.call('rpush', 'list' .. n, text(i))
                    redis.call('sadd', 'ints' .. n, i * i * i * i - 77)
                    redis.call('sadd', 'set' .. n, text(i))
                    redis.call('zadd', 'zset' .. n, (i % 7) / 3 - 1, text(i))
                    redis.call('hset', 'hash' .. n, text(i), text(i + 1))
                    redis.call('hset', 'ttl' .. n, 'f' .. i, text(i))
                    redis.call('xadd', 'stream' .. n, i .. '-' .. i % 3, 'f', text(i), 'g', i)
                    if i % 5 == 0 then redis.call('xadd', 'stream' .. n, i .. '-7', 'other', i) end
                end
                redis.call('hpexpireat', 'ttl' .. n, 4000000000000, 'fields', 1, 'f1')
                redis.call('xgroup', 'create', 'stream' .. n, 'g', 0)
                redis.call('xgroup', 'create', 'stream' .. n, 'idle', '$')
                redis.call('xgroup', 'createconsumer', 'stream' .. n, 'g', 'nobody')
                for name, count in pairs({a = 2, b = 99}) do
                    redis.call('xreadgroup', 'group', 'g', name, 'count', count, 'streams',
                        'stream' .. n, '>')
                end
                redis.call('xdel', 'stream' .. n, '2-2')
                redis.call('set', 'text' .. n, string.rep('abc', size) .. size)
                redis.call('set', 'number' .. n, size * 1000003 - 9)
                redis.call('setex', 'expires' .. n, 100000, 'v')
                redis.call('pfadd', 'hll' .. n, 'a', size)
            end
            redis.call('rpush', 'wide', string.rep('y', 100000), 'z')
            redis.call('zadd', 'ends', '-inf', 'a', 'inf', 'b', 1e300, 'c', -0.0, 'd')
        end
        return 'done'";
    assert_eq!(client.ask_args(&[b"EVAL", script, b"0"]).text(), "done");
    let library = b"#!lua name=lib\nredis.register_function('f', function() return 42 end)";
    assert_eq!(client.ask_args(&[b"FUNCTION", b"LOAD", library]).text(), "lib");
}

/// The replies of a server about each key.
fn contents(client: &mut Client) -> Vec<String> {
    let mut all = Vec::new();
    for db in [0, 11] {
        client.ok(&format!("SELECT {db}"));
        let keys = client.ask("KEYS *");
        let mut keys: Vec<String> = keys.items().iter().map(|key| key.text()).collect();
        keys.sort();
        for key in keys {
            let mut text = format!("{db} {key}");
            for words in ["TYPE", "EXPIRETIME"] {
                text += &format!(" {:?}", client.ask(&format!("{words} {key}")));
            }
            if !key.starts_with("ttl") {
                text += &client.ask(&format!("DEBUG DIGEST-VALUE {key}")).items()[0].text();
            }
            if key.starts_with("stream") {
                for words in ["XINFO GROUPS", "XPENDING"] {
                    let group = if words == "XPENDING" { " g" } else { "" };
                    text += &format!(" {:?}", client.ask(&format!("{words} {key}{group}")));
                }
            }
            if key.starts_with("ttl") {
                // Digests of such hashes differ between the peers.
                let ask = format!("HPEXPIRETIME {key} FIELDS 2 f1 f2");
                text += &format!(" {:?}", client.ask(&ask));
                let all = client.ask(&format!("HGETALL {key}"));
                let pairs = all.items().chunks(2);
                let mut pairs: Vec<String> = pairs.map(|pair| format!("{pair:?}")).collect();
                pairs.sort();
                text += &pairs.concat();
            }
            all.push(text);
        }
    }
    all.push(format!("{:?}", client.ask("FCALL f 0")));
    all
}

#[test]
fn files_of_peers_are_loaded_and_ours_there() {
    for program in programs() {
        let peer = start(Some(&program), None);
        let mut client = peer.client();
        fill(&mut client);
        let expected = contents(&mut client);
        client.ok("SAVE");
        let loaded = start(None, Some(&peer.path("dump.rdb")));
        let mut client = loaded.client();
        similar(&program, &contents(&mut client), &expected);
        forget_unknown(&program, &mut client);
        client.ok("SAVE");
        let expected = contents(&mut client);
        let back = start(Some(&program), Some(&loaded.path("dump.rdb")));
        similar(&program, &contents(&mut back.client()), &expected);
        let own = start(None, None);
        fill(&mut own.client());
        forget_unknown(&program, &mut own.client());
        own.client().ok("SAVE");
        let mut ours = contents(&mut own.client());
        let there = start(Some(&program), Some(&own.path("dump.rdb")));
        let mut theirs = contents(&mut there.client());
        // The time of day at which keys expire differs.
        for line in ours.iter_mut().chain(&mut theirs) {
            if line.contains("expires") {
                line.clear();
            }
        }
        similar(&program, &ours, &theirs);
    }
}

/// Valkey cannot read Redis's format of hashes with fields that expire.
fn forget_unknown(program: &Path, client: &mut Client) {
    if program.ends_with("valkey-server") {
        for db in [0, 11] {
            client.ok(&format!("SELECT {db}"));
            client.ask("DEL ttl:1 ttl:3 ttl:60 ttl:200 ttl:2500");
        }
    }
}

#[track_caller]
fn similar(program: &Path, left: &[String], right: &[String]) {
    assert_eq!(left.len(), right.len(), "{}", program.display());
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left, right, "{}", program.display());
    }
}

/// Changes values of each type by commands, in transactions and outside.
fn change(client: &mut Client, round: i64) {
    for words in [
        "SELECT 11".to_owned(),
        format!("APPEND text:1 {round}"),
        "INCRBYFLOAT float 0.25".to_owned(),
        format!("SET later v PXAT {}", 4_000_000_000_000 + round),
        "EXPIRE list:3 100000".to_owned(),
        "PERSIST expires:60".to_owned(),
        "SPOP set:60 3".to_owned(),
        "ZINCRBY zset:60 0.5 element:2".to_owned(),
        "HINCRBY hash:3 counter 3".to_owned(),
        "MULTI".to_owned(),
        format!("LPUSH list:60 {round}"),
        "SELECT 0".to_owned(),
        "RPOPLPUSH list:60 list:1".to_owned(),
        format!("XADD stream:3 * round {round}"),
        "XREADGROUP GROUP g a COUNT 1 STREAMS stream:3 >".to_owned(),
        "HPEXPIREAT ttl:3 4000000001000 FIELDS 1 f2".to_owned(),
        "EXEC".to_owned(),
        format!("PFADD hll:60 {round}"),
        "SETBIT bits 70 1".to_owned(),
        "GEOADD places 13.3 38.1 Palermo".to_owned(),
        "RENAME number:3 renamed".to_owned(),
        "SET number:3 5".to_owned(),
        "COPY renamed copied REPLACE".to_owned(),
        "MOVE copied 11".to_owned(),
        "DEL copied".to_owned(),
        "SET gone v PX 1".to_owned(),
    ] {
        let reply = format!("{:?}", client.ask(&words));
        assert!(!reply.starts_with('-'), "{words}: {reply}");
    }
    let library = format!(
        "#!lua name=lib\nredis.register_function('f', function() return {} end)",
        43 + round
    );
    let load: [&[u8]; 4] = [b"FUNCTION", b"LOAD", b"REPLACE", library.as_bytes()];
    assert_eq!(client.ask_args(&load).text(), "lib");
    client.ok("SELECT 0");
    eventually("a key expires", || client.ask("EXISTS gone").int() == 0);
}

/// Acknowledges the deleted entry of each stream of these sizes: peers lose it when they load their
/// own base of commands, and that of a large stream in a base of Weft.
fn acknowledge_deleted(client: &mut Client, sizes: &[usize]) {
    for db in [0, 11] {
        client.ok(&format!("SELECT {db}"));
        for size in sizes {
            client.ask(&format!("XACK stream:{size} g 2-2"));
        }
    }
}

fn rewrite(server: &Server) {
    server.client().ask("BGREWRITEAOF");
    eventually("it is rewritten", || {
        server.info("aof_rewrite_in_progress") == "0" && server.info("aof_rewrite_scheduled") == "0"
    });
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
}

/// Kills a server, and starts another one on its files.
fn hand_over(mut server: Server, to: Option<&Path>, options: &[&str]) -> Server {
    server.signal("KILL");
    server.wait();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("appendonlydir")).unwrap();
    for file in fs::read_dir(server.path("appendonlydir")).unwrap() {
        let (path, name) = file.map(|file| (file.path(), file.file_name())).unwrap();
        fs::copy(path, folder.path().join("appendonlydir").join(name)).unwrap();
    }
    start_in(to, folder, options)
}

#[test]
fn append_only_files_of_peers_are_loaded_and_ours_there() {
    for program in programs() {
        for (preamble, stamps) in [("yes", "no"), ("no", "yes")] {
            let options = ["--appendonly", "yes", "--appendfsync", "always"];
            let forms = ["--aof-use-rdb-preamble", preamble, "--aof-timestamp-enabled", stamps];
            let options = [&DEBUG[..], &options, &forms].concat();
            let new = |program| start_in(program, tempfile::tempdir().unwrap(), &options);
            // A peer's files in Weft: the base of a rewrite, and the commands after it.
            let mut server = new(Some(&program));
            fill(&mut server.client());
            acknowledge_deleted(&mut server.client(), &[3, 60, 200, 2500]);
            rewrite(&server);
            change(&mut server.client(), 1);
            let mut wanted = contents(&mut server.client());
            for (to, round) in [(None, 2), (Some(program.as_path()), 3), (None, 4)] {
                server = hand_over(server, to, &options);
                similar(&program, &contents(&mut server.client()), &wanted);
                change(&mut server.client(), round);
                wanted = contents(&mut server.client());
            }
            // Weft's files in the peer.
            let mut server = new(None);
            fill(&mut server.client());
            acknowledge_deleted(&mut server.client(), &[2500]);
            change(&mut server.client(), 1);
            if preamble == "yes" {
                forget_unknown(&program, &mut server.client());
            }
            rewrite(&server);
            let is_known = server.client().ask("EXISTS ttl:3").int() == 1;
            if is_known {
                change(&mut server.client(), 2);
            }
            let mut wanted = contents(&mut server.client());
            for (to, round) in [(Some(program.as_path()), 3), (None, 4)] {
                server = hand_over(server, to, &options);
                similar(&program, &contents(&mut server.client()), &wanted);
                if is_known {
                    change(&mut server.client(), round);
                }
                wanted = contents(&mut server.client());
            }
        }
    }
}

/// The values that RESTORE wrote after the base are read by the peer too.
#[test]
fn restored_values_in_the_log_are_loaded_by_peers() {
    let on = ["--appendonly", "yes", "--appendfsync", "always"];
    for program in programs() {
        let source = start(None, None);
        fill(&mut source.client());
        let server = start_in(None, tempfile::tempdir().unwrap(), &[&DEBUG[..], &on].concat());
        let (mut from, mut to) = (source.client(), server.client());
        for key in from.ask("KEYS *").items() {
            let key = key.text();
            let payload = from.ask_args(&[b"DUMP", key.as_bytes()]);
            let ttl = if key.starts_with("expires") { "100000000" } else { "0" };
            let args = [b"RESTORE", key.as_bytes(), ttl.as_bytes(), payload.bytes().unwrap()];
            assert_eq!(to.ask_args(&args).text(), "OK", "{key}");
        }
        let payload = from.ask("FUNCTION DUMP");
        assert_eq!(to.ask_args(&[b"FUNCTION", b"RESTORE", payload.bytes().unwrap()]).text(), "OK");
        let wanted = contents(&mut to);
        let there = hand_over(server, Some(&program), &[&DEBUG[..], &on].concat());
        similar(&program, &contents(&mut there.client()), &wanted);
    }
}

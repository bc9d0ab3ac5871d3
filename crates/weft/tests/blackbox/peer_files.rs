//! RDB files of Redis and Valkey, loaded by a whole server, and those of Weft loaded there:
//! compared key by key, for values of every type and encoding.
//!
//! The environment variable WEFT_PEERS names a folder with `bin/redis-server` and
//! `bin/valkey-server`. Without it, or for a program that is not there, nothing is tested.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::READY;
use crate::{Client, Server};

const DEBUG: [&str; 2] = ["--enable-debug-command", "yes"];

fn programs() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("WEFT_PEERS") else {
        eprintln!("WEFT_PEERS is not set: no file of another server is loaded");
        return Vec::new();
    };
    let programs = ["redis-server", "valkey-server"];
    let paths = programs.map(|name| Path::new(&folder).join("bin").join(name));
    paths.into_iter().filter(|path| path.exists()).collect()
}

/// Starts a server of a peer, or of Weft without one, on the file of another one.
fn start(program: Option<&Path>, file: Option<&Path>) -> Server {
    let folder = tempfile::tempdir().unwrap();
    if let Some(file) = file {
        fs::copy(file, folder.path().join("dump.rdb")).unwrap();
    }
    Server::start_in(folder, &DEBUG, READY, |command| {
        if let Some(program) = program {
            let args: Vec<_> = command.get_args().skip(1).map(ToOwned::to_owned).collect();
            let folder = command.get_current_dir().unwrap().to_owned();
            *command = Command::new(program);
            command.args(args).current_dir(folder);
            if program.ends_with("valkey-server") {
                command.args(["--rdb-version-check", "relaxed"]);
            }
        }
        command
    })
}

/// Makes values of each type, of sizes from one element up, packed and not, in two databases.
fn fill(client: &mut Client) {
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

/// What a server tells of each key.
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
        // The time of day when keys expire is another.
        for line in ours.iter_mut().chain(&mut theirs) {
            if line.contains("expires") {
                line.clear();
            }
        }
        similar(&program, &ours, &theirs);
    }
}

/// Valkey does not read how Redis writes hashes whose fields expire.
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

//! Libraries of functions in files: an accepted library is there after a restart, however busy the
//! machine is, and a server that loads libraries can be ended.

use std::fs;

use tempfile::TempDir;
use test_support::{Launch, READY, encode, eventually};

use crate::{Client, Server};

const ON: &[&str] = &["--appendonly", "yes", "--enable-debug-command", "yes"];
const ENDLESS: &str = "#!lua name=endless\nwhile true do end";

/// Starts a server on an append-only file with these libraries and a key after them.
fn start_on(libraries: &[&str], words: &str) -> Server {
    let folder = TempDir::new().unwrap();
    let commands = libraries.iter().map(|text| encode(&[b"FUNCTION", b"LOAD", text.as_bytes()]));
    let mut file: Vec<u8> = commands.flatten().collect();
    file.extend(encode(&[b"SET", b"key", b"value"]));
    fs::write(folder.path().join("appendonly.aof"), file).unwrap();
    Launch::weft().in_folder(folder).options(ON).until(words).start()
}

/// A library whose code takes longer than FUNCTION LOAD may. A less busy machine could have
/// accepted it.
fn slow_library() -> String {
    let server = Server::start(&[]);
    let mut client = server.client();
    let library = |rounds: u64| {
        format!(
            "#!lua name=slow\nlocal n = 0 for i = 1, {rounds} do n = n + i end
            redis.register_function('slow', function() return n end)"
        )
    };
    let mut tries = (20..40).map(|power| library(1 << power));
    let is_refused = |text: &String| {
        let reply = client.ask_args(&[b"FUNCTION", b"LOAD", b"REPLACE", text.as_bytes()]).text();
        reply.contains("FUNCTION LOAD timeout")
    };
    tries.find(is_refused).unwrap()
}

fn libraries(server: &Server) -> usize {
    server.client().ask("FUNCTION LIST").items().len()
}

#[track_caller]
fn has_loaded(server: &Server, how: &str) {
    assert_eq!(libraries(server), 1, "{how}");
    assert_eq!(server.client().ask("GET key").text(), "value", "{how}");
}

#[test]
fn a_library_may_take_longer_from_a_file_than_when_it_was_accepted() {
    let server = start_on(&[&slow_library()], READY);
    has_loaded(&server, "from commands");
    let mut client = server.client();
    client.ask("BGREWRITEAOF");
    eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
    client.ok("SAVE");
    client.ok("DEBUG RELOAD");
    has_loaded(&server, "reloaded");
    client.ok("DEBUG LOADAOF");
    has_loaded(&server, "the append-only file loaded again");
    let server = server.kill_and_start(ON);
    has_loaded(&server, "from the base");
    let server = server.restart(&["--appendonly", "no"]);
    has_loaded(&server, "from the RDB file");
}

#[test]
fn libraries_that_one_interpreter_cannot_hold_are_loaded() {
    let [first, second, third] = ["a", "b", "c"].map(|name| {
        format!(
            "#!lua name={name}\nlocal text = 'x' while #text < 100000000 do text = text .. text end
            redis.register_function('{name}', function() return #text end)"
        )
    });
    let options = [ON, &["--io-threads", "2"]].concat();
    let server = start_on(&[&first, &second, &third], READY);
    assert_eq!((libraries(&server), server.client().ask("FCALL a 0").int()), (3, 1 << 27));
    server.client().ask("BGREWRITEAOF");
    eventually("it ends", || server.info("aof_rewrite_in_progress") == "0");
    let server = server.kill_and_start(&options);
    assert_eq!((libraries(&server), server.client().ask("FCALL c 0").int()), (3, 1 << 27));
}

#[test]
fn a_file_replaces_existing_libraries_only_with_merge() {
    let server = Server::start(&["--enable-debug-command", "yes"]);
    let mut client = server.client();
    let text = b"#!lua name=l\nredis.register_function('f', function() return 1 end)";
    client.ask_args(&[b"FUNCTION", b"LOAD", text]);
    let refused = client.ask("DEBUG RELOAD NOFLUSH").text();
    assert!(refused.starts_with("ERR Error trying to load the RDB dump"), "{refused}");
    client.ok("DEBUG RELOAD NOFLUSH MERGE");
    assert_eq!(client.ask("FCALL f 0").int(), 1);
}

#[test]
fn the_reload_of_an_endless_library_is_killed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("dump.rdb");
    let options = ["--enable-debug-command", "yes", "--io-threads", "3"];
    let server = Server::start_in(folder, &options);
    let (mut client, mut other) = (server.client(), server.client());
    // A file with a library and without a checksum.
    let length = [u8::try_from(ENDLESS.len()).unwrap()];
    let parts = [b"REDIS0011\xf5", &length[..], ENDLESS.as_bytes(), b"\xff", &[0; 8]];
    fs::write(file, parts.concat()).unwrap();
    client.send("DEBUG RELOAD NOSAVE");
    eventually("it is killed", || other.ask("FUNCTION KILL").text() == "OK");
    assert!(client.read().text().starts_with("ERR Error trying to load"));
    assert_eq!(other.ask("INCR n").int(), 1);
    assert_eq!(libraries(&server), 0);
}

#[test]
fn a_server_that_loads_an_endless_library_ends() {
    let start = || {
        let server = start_on(&[ENDLESS], "Data lies in");
        eventually("clients are served", || Client::try_tcp(server.address()).is_ok());
        eventually("it is loaded", || server.info("loading_total_bytes") != "0");
        server
    };
    let mut server = start();
    assert!(server.client().ask("GET key").text().starts_with("LOADING "));
    server.client().send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
    let mut server = start();
    server.signal("TERM");
    assert!(server.wait().success());
}

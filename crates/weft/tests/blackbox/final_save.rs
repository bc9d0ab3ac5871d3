//! The last save of a server during other writes of files.

use std::fs;

use test_support::{eventually, request};

use crate::Server;

/// With these options, a save of three keys takes a while.
const SLOW: [&str; 4] = ["--save", "3600 1000000", "--rdb-key-save-delay", "50000"];

/// A server with three keys, and a rewrite that starts when a save ends.
fn start(appends: &str) -> Server {
    let server = Server::start(&[&SLOW[..], &["--appendonly", appends]].concat());
    let mut client = server.client();
    (0..3).for_each(|n| client.ok(&format!("SET key:{n} 1")));
    server
}

#[test]
fn a_rewrite_that_is_due_does_not_begin_before_the_last_save() {
    for round in 0..8 {
        let mut server = start(["yes", "no"][round % 2]);
        let mut client = server.client();
        let requests = ["BGSAVE", "BGREWRITEAOF", "SHUTDOWN"].map(request);
        client.send_raw(&requests.concat());
        assert_eq!(client.read().text(), "Background saving started");
        assert_eq!(client.read().text(), "Background append only file rewriting scheduled");
        client.is_closed();
        assert!(server.wait().success(), "{}", server.log());
    }
}

#[test]
fn a_rewrite_that_is_due_begins_when_the_last_save_has_failed() {
    let server = start("yes");
    let mut client = server.client();
    client.ask("BGSAVE");
    let temporary = server.path(&format!("temp-{}.rdb", server.process().0));
    eventually("it saves", || temporary.exists());
    // No file can be created in such a folder.
    fs::remove_file(&temporary).unwrap();
    fs::create_dir(&temporary).unwrap();
    client.send_raw(&["BGREWRITEAOF", "SHUTDOWN"].map(request).concat());
    assert_eq!(client.read().text(), "Background append only file rewriting scheduled");
    assert_eq!(client.read().text(), "ERR Errors trying to SHUTDOWN. Check logs.");
    eventually("it is rewritten", || server.info("aof_rewrites") == "1");
}

#[test]
fn a_rewrite_does_not_delay_shutdown() {
    let options = ["--appendonly", "yes", "--save", "3600 1"];
    let server = Server::start(&options);
    let mut client = server.client();
    (0..100).for_each(|n| client.ok(&format!("SET key:{n} v")));
    client.ok("CONFIG SET rdb-key-save-delay 20000");
    client.ask("BGREWRITEAOF");
    assert_eq!(server.info("aof_rewrite_in_progress"), "1");
    let server = server.restart(&options);
    assert_eq!(server.client().ask("DBSIZE").int(), 100);
    assert!(fs::metadata(server.path("dump.rdb")).is_ok());
}

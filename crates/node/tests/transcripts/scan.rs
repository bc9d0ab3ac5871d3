//! KEYS, SCAN and RANDOMKEY.

use std::collections::BTreeMap;

use crate::check::check;
use crate::fake::TestServer;

#[test]
fn keys_by_pattern() {
    check(
        r#"
> KEYS -> -ERR wrong number of arguments for 'keys' command
> KEYS * -> []
> KEYS a -> []
> SET abc 1 -> OK
> KEYS * -> ["abc"]
> KEYS a?c -> ["abc"]
> KEYS a[xb]c -> ["abc"]
> KEYS abc -> ["abc"]
> KEYS ABC -> []
> KEYS a\bc -> ["abc"]
> KEYS abd -> []
> SET "" empty -> OK
> KEYS "" -> [""]
> KEYS ** -> ["abc"]
> KEYS ? -> []
> KEYS * -> ~~ \["*", "*"]
> DEL abc -> 1
> KEYS * -> [""]
> SCAN 0 MATCH * -> ["0", [""]]
> SCAN 0 MATCH ** -> ["0", []]
> SCAN 0 MATCH "" -> ["0", [""]]
> PEXPIRE "" 5 -> 1
@advance 6
# KEYS neither shows nor removes an expired key.
> KEYS * -> []
> KEYS "" -> []
> SCAN 0 MATCH x -> ["0", []]
> DBSIZE -> 1
# SCAN removes it, unless the pattern is another, whatever the type.
> SCAN 0 TYPE list -> ["0", []]
> DBSIZE -> 0
"#,
    );
}

#[test]
fn scan_options() {
    check(
        r#"
> SCAN -> -ERR wrong number of arguments for 'scan' command
> SCAN x -> -ERR invalid cursor
> SCAN x foo -> -ERR invalid cursor
> SCAN -1 -> -ERR invalid cursor
> SCAN 1x -> -ERR invalid cursor
> SCAN "" -> -ERR invalid cursor
> SCAN 18446744073709551616 -> -ERR invalid cursor
> SCAN 18446744073709551615 -> ["0", []]
> SCAN 4398046511104 -> ["0", []]
> SET a 1 -> OK
> SCAN 00 -> ["0", ["a"]]
> SCAN +0 -> ["0", ["a"]]
> SCAN " 0" -> ["0", ["a"]]
> SCAN 0 COUNT -> -ERR syntax error
> SCAN 0 COUNT 0 -> -ERR syntax error
> SCAN 0 COUNT -1 -> -ERR syntax error
> SCAN 0 COUNT x -> -ERR value is not an integer or out of range
> SCAN 0 COUNT 5 COUNT x -> -ERR value is not an integer or out of range
> SCAN 0 COUNT 99999999999999999999 -> -ERR value is not an integer or out of range
> SCAN 0 MATCH -> -ERR syntax error
> SCAN 0 foo bar -> -ERR syntax error
> SCAN 0 count 9223372036854775807 -> ["0", ["a"]]
> SCAN 0 MATCH a COUNT 5 TYPE string -> ["0", ["a"]]
> SCAN 0 TYPE STRING -> ["0", ["a"]]
> SCAN 0 TYPE hash -> ["0", []]
> SCAN 0 TYPE nosuchtype -> ["0", []]
> SCAN 0 MATCH b MATCH a -> ["0", ["a"]]
> SCAN 0 MATCH b -> ["0", []]
"#,
    );
}

/// The cursor and the keys of a reply to SCAN.
fn scanned(reply: &[u8]) -> (String, Vec<String>) {
    let text = String::from_utf8(reply.to_vec()).unwrap();
    let mut lines = text.split("\r\n").skip(2).step_by(2).map(str::to_owned);
    let cursor = lines.next().unwrap();
    // The array's header follows the cursor, then alternating lengths and keys.
    let keys = text.split("\r\n").skip(5).step_by(2).map(str::to_owned);
    (cursor, keys.filter(|key| !key.is_empty()).collect())
}

fn command(server: &mut TestServer, text: &str) -> Vec<u8> {
    let args: Vec<Vec<u8>> = text.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
    server.request("a", &args).0
}

#[test]
fn a_scan_returns_each_lasting_key_once() {
    for shards in [1, 4, 1024] {
        for (stay, count) in [(0, 10), (5, 10), (500, 1), (500, 7), (3000, 100), (300, 100_000)] {
            let mut server = TestServer::new(shards);
            for i in 0..stay {
                command(&mut server, &format!("SET stay{i} v"));
            }
            let mut seen = BTreeMap::<String, usize>::new();
            let (mut cursor, mut calls) = ("0".to_owned(), 0);
            loop {
                let reply = command(&mut server, &format!("SCAN {cursor} COUNT {count}"));
                let (next, keys) = scanned(&reply);
                assert!(keys.len() <= count + 200, "{} keys for {count}", keys.len());
                keys.into_iter().for_each(|key| *seen.entry(key).or_default() += 1);
                calls += 1;
                cursor = next;
                if cursor == "0" {
                    break;
                }
                // The tables grow for a while, then shrink.
                for i in 0..20 {
                    let verb = if calls % 40 < 20 { "SET churn" } else { "DEL churn" };
                    let value = if calls % 40 < 20 { " v" } else { "" };
                    command(&mut server, &format!("{verb}{}{value}", calls % 20 * 20 + i));
                }
            }
            for i in 0..stay {
                assert_eq!(seen.get(&format!("stay{i}")), Some(&1), "stay{i} of {stay}/{count}");
            }
        }
    }
}

#[test]
fn a_small_keyspace_takes_one_scan() {
    for shards in [1, 4, 1024] {
        let mut server = TestServer::new(shards);
        for i in 0..9 {
            command(&mut server, &format!("SET k{i} v"));
        }
        let (cursor, keys) = scanned(&command(&mut server, "SCAN 0"));
        assert_eq!((cursor.as_str(), keys.len()), ("0", 9));
    }
}

#[test]
fn random_keys() {
    check(
        r#"
> RANDOMKEY -> nil
> SET a 1 -> OK
> RANDOMKEY -> "a"
> RANDOMKEY x -> -ERR wrong number of arguments for 'randomkey' command
> PEXPIRE a 5 -> 1
@advance 6
> RANDOMKEY -> nil
! expired:a => DEL a
> DBSIZE -> 0
"#,
    );
    check(
        r#"
> SET a 1 PX 5 -> OK
> CLIENT PAUSE 1000 WRITE -> OK
@advance 6
> RANDOMKEY -> "a"
> EXISTS a -> 0
> CLIENT UNPAUSE -> OK
> RANDOMKEY -> nil
! expired:a => DEL a
"#,
    );
    for (shards, keys) in [(1, 20), (4, 20), (1024, 20), (1024, 3000)] {
        let mut server = TestServer::new(shards);
        for i in 0..keys {
            command(&mut server, &format!("SET k{i:04} v"));
            command(&mut server, &format!("SET gone{i:04} v"));
            command(&mut server, &format!("PEXPIRE gone{i:04} 5"));
        }
        server.advance(6);
        let mut drawn = BTreeMap::<Vec<u8>, usize>::new();
        for _ in 0..4000 {
            *drawn.entry(command(&mut server, "RANDOMKEY")).or_default() += 1;
        }
        assert!(drawn.keys().all(|key| key.starts_with(b"$5\r\nk")), "an expired key was drawn");
        let wanted = if keys == 20 { 20 } else { 1500 };
        assert!(drawn.len() >= wanted, "{} different keys of {keys}", drawn.len());
    }
}

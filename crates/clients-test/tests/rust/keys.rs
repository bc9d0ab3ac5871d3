//! The key commands: life, expiry, names, databases, iteration, inspection.

use std::collections::BTreeSet;

use redis::{Commands, Connection, CopyOptions, ScanOptions, Value};

use crate::check::{ask, between, equal, eventually, holds, refused, try_ask};
use crate::unix_seconds;

/// All databases are empty before and after.
pub fn run(r: &mut Connection) {
    life(r);
    expiry(r);
    expiry_conditions(r);
    names(r);
    databases(r);
    iteration(r);
    inspection(r);
    ask::<()>(r, "FLUSHALL");
}

fn life(r: &mut Connection) {
    ask::<()>(r, "MSET a 1 b 2 c 3");
    equal("EXISTS counts each mention", r.exists(&["a", "b", "none", "a"]).unwrap(), 3);
    equal("TOUCH", ask(r, "TOUCH a none"), 1);
    equal("TYPE", ask::<String>(r, "TYPE a").as_str(), "string");
    equal("TYPE of nothing", ask::<String>(r, "TYPE none").as_str(), "none");
    equal("DEL", r.del(&["a", "none"]).unwrap(), 1);
    equal("UNLINK", r.unlink(&["b", "c", "none"]).unwrap(), 2);
    equal("DBSIZE after that", ask(r, "DBSIZE"), 0);
    equal("RANDOMKEY of nothing", ask::<Option<String>>(r, "RANDOMKEY"), None);
    ask::<()>(r, "SET only 1");
    equal("RANDOMKEY", ask::<String>(r, "RANDOMKEY").as_str(), "only");
    ask::<()>(r, "DEL only");
}

fn expiry(r: &mut Connection) {
    let now = unix_seconds() as i64;
    ask::<()>(r, "SET k v");
    equal("TTL without expiry", (r.ttl("k").unwrap(), r.pttl("k").unwrap()), (-1, -1));
    equal("TTL of nothing", (r.ttl("none").unwrap(), r.pttl("none").unwrap()), (-2, -2));
    equal("EXPIRETIME without expiry", r.expire_time("k").unwrap(), -1);
    equal("PEXPIRETIME of nothing", r.pexpire_time("none").unwrap(), -2);
    equal("EXPIRE of nothing", r.expire("none", 10).unwrap(), false);
    equal("EXPIRE", r.expire("k", 100).unwrap(), true);
    between("TTL after EXPIRE", r.ttl("k").unwrap(), 90..=100);
    equal("PEXPIRE", r.pexpire("k", 30_000).unwrap(), true);
    between("PTTL after PEXPIRE", r.pttl("k").unwrap(), 25_000..=30_000);
    equal("EXPIREAT", r.expire_at("k", now + 70).unwrap(), true);
    equal("EXPIRETIME", r.expire_time("k").unwrap(), now + 70);
    equal("PEXPIREAT", r.pexpire_at("k", now * 1000 + 80_003).unwrap(), true);
    equal("PEXPIRETIME", r.pexpire_time("k").unwrap(), now * 1000 + 80_003);
    equal("PERSIST", r.persist("k").unwrap(), true);
    equal("PERSIST again", r.persist("k").unwrap(), false);
    equal("TTL after PERSIST", r.ttl("k").unwrap(), -1);
    equal("EXPIRE in the past", r.expire("k", -1).unwrap(), true);
    equal("EXISTS after it", r.exists("k").unwrap(), false);
    ask::<()>(r, "SET soon v");
    ask::<()>(r, "PEXPIRE soon 1");
    eventually("a key with PEXPIRE 1 is gone", || !r.exists::<_, bool>("soon").unwrap());
}

fn expiry_conditions(r: &mut Connection) {
    ask::<()>(r, "SET k v");
    for (name, line, set) in [
        ("EXPIRE XX without expiry", "EXPIRE k 100 XX", false),
        ("EXPIRE GT without expiry", "EXPIRE k 100 GT", false),
        ("EXPIRE NX without expiry", "EXPIRE k 100 NX", true),
        ("EXPIRE NX with expiry", "EXPIRE k 200 NX", false),
        ("EXPIRE GT of less", "EXPIRE k 50 GT", false),
        ("EXPIRE GT of more", "EXPIRE k 200 GT", true),
        ("EXPIRE LT of more", "EXPIRE k 300 LT", false),
        ("EXPIRE LT of less", "EXPIRE k 60 LT", true),
        ("EXPIRE XX with expiry", "EXPIRE k 70 XX", true),
    ] {
        equal(name, ask(r, line), set);
    }
    between("TTL after all", r.ttl("k").unwrap(), 60..=70);
    ask::<()>(r, "PERSIST k");
    equal("EXPIRE LT without expiry", ask(r, "EXPIRE k 10 LT"), true);
    ask::<()>(r, "DEL k");
}

fn names(r: &mut Connection) {
    let (plain, replace) = (CopyOptions::default(), CopyOptions::default().replace(true));
    ask::<()>(r, "SET a 1 EX 100");
    equal("RENAME", r.rename::<_, _, String>("a", "b").unwrap().as_str(), "OK");
    between("TTL of a renamed key", r.ttl("b").unwrap(), 90..=100);
    refused("RENAME of nothing", "ERR no such key", r.rename::<_, _, Value>("none", "x"));
    ask::<()>(r, "SET c 3");
    equal("RENAMENX onto a key", r.rename_nx("b", "c").unwrap(), false);
    equal("RENAMENX", r.rename_nx("b", "d").unwrap(), true);
    equal("COPY", r.copy("d", "e", plain).unwrap(), true);
    equal("what COPY left", r.get("e").unwrap(), 1);
    between("TTL of a copy", r.ttl("e").unwrap(), 90..=100);
    equal("COPY onto a key", r.copy("c", "e", plain).unwrap(), false);
    equal("COPY REPLACE", r.copy("c", "e", replace).unwrap(), true);
    equal("what COPY REPLACE left", r.get("e").unwrap(), 3);
    equal("COPY of nothing", r.copy("none", "x", plain).unwrap(), false);
    equal("COPY DB", r.copy("c", "c", plain.db(1)).unwrap(), true);
    let same = "ERR source and destination objects are the same";
    refused("COPY onto itself", same, r.copy::<_, _, _, Value>("c", "c", plain));
    ask::<()>(r, "FLUSHALL");
}

fn databases(r: &mut Connection) {
    ask::<()>(r, "SET k zero");
    equal("MOVE", ask(r, "MOVE k 3"), true);
    equal("EXISTS after MOVE", ask(r, "EXISTS k"), false);
    equal("MOVE of nothing", ask(r, "MOVE k 3"), false);
    equal("SELECT", ask::<String>(r, "SELECT 3").as_str(), "OK");
    equal("GET in database 3", ask::<String>(r, "GET k").as_str(), "zero");
    ask::<()>(r, "SELECT 0");
    ask::<()>(r, "SET k other");
    equal("MOVE onto a key", ask(r, "MOVE k 3"), false);
    equal("SWAPDB", ask::<String>(r, "SWAPDB 0 3").as_str(), "OK");
    equal("GET after SWAPDB", ask::<String>(r, "GET k").as_str(), "zero");
    equal("FLUSHDB", ask::<String>(r, "FLUSHDB").as_str(), "OK");
    equal("DBSIZE after FLUSHDB", ask(r, "DBSIZE"), 0);
    ask::<()>(r, "SELECT 3");
    equal("FLUSHDB left database 3", ask::<String>(r, "GET k").as_str(), "other");
    equal("FLUSHDB ASYNC", ask::<String>(r, "FLUSHDB ASYNC").as_str(), "OK");
    ask::<()>(r, "SET k again");
    ask::<()>(r, "SELECT 0");
    equal("FLUSHALL SYNC", ask::<String>(r, "FLUSHALL SYNC").as_str(), "OK");
    ask::<()>(r, "SELECT 3");
    equal("FLUSHALL emptied database 3", ask(r, "DBSIZE"), 0);
    ask::<()>(r, "SELECT 0");
    let index = "ERR DB index is out of range";
    refused("SELECT of no database", index, try_ask::<Value>(r, "SELECT 99"));
}

fn iteration(r: &mut Connection) {
    let mut all: BTreeSet<String> = (0..1000).map(|i| format!("user:{i}")).collect();
    all.insert("other".to_owned());
    let pairs: Vec<(&String, &str)> = all.iter().map(|key| (key, "x")).collect();
    r.mset::<_, _, ()>(&pairs).unwrap();
    let keys = |r: &mut Connection, pattern: &str| r.keys::<_, BTreeSet<String>>(pattern).unwrap();
    equal("KEYS", keys(r, "user:99?").len(), 10);
    equal("KEYS of a class", keys(r, "user:[1-2]"), set(&["user:1", "user:2"]));
    equal("KEYS of nothing", keys(r, "none*"), set(&[]));
    let (cursor, page): (String, Vec<String>) = ask(r, "SCAN 0 COUNT 10");
    holds("SCAN COUNT gives a part", cursor != "0" && (1..200).contains(&page.len()), &page);
    let options = ScanOptions::default;
    equal("SCAN sees every key", scan(r, options().with_count(100)), all.clone());
    equal("SCAN MATCH", scan(r, options().with_pattern("oth*")), set(&["other"]));
    equal("SCAN TYPE string", scan(r, options().with_type("string").with_count(500)), all);
    equal("SCAN TYPE list", scan(r, options().with_type("list").with_count(500)), set(&[]));
    equal("DBSIZE", ask(r, "DBSIZE"), 1001);
    ask::<()>(r, "FLUSHDB");
}

/// What a whole iteration finds.
fn scan(r: &mut Connection, options: ScanOptions) -> BTreeSet<String> {
    r.scan_options(options).unwrap().map(Result::unwrap).collect()
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| key.to_string()).collect()
}

fn inspection(r: &mut Connection) {
    r.mset::<_, _, ()>(&[("int", "12345"), ("embstr", "short"), ("raw", &"x".repeat(100))])
        .unwrap();
    for key in ["int", "embstr", "raw"] {
        let encoding: String = r.object_encoding(key).unwrap();
        equal("OBJECT ENCODING", encoding.as_str(), key);
    }
    let encoding: Option<String> = r.object_encoding("none").unwrap();
    equal("OBJECT ENCODING of nothing", encoding, None);
    equal("OBJECT REFCOUNT", r.object_refcount("raw").unwrap(), 1);
    between("OBJECT IDLETIME", r.object_idletime("raw").unwrap(), 0..=5);
    between("MEMORY USAGE", ask(r, "MEMORY USAGE raw"), 100..=400);
    equal("MEMORY USAGE of nothing", ask::<Option<i64>>(r, "MEMORY USAGE none"), None);
    ask::<()>(r, "FLUSHDB");
}

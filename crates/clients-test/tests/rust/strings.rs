//! The string commands, through the crate's methods where it has them.

use std::collections::HashMap;

use redis::{Commands, Connection, ExistenceCheck, Expiry, SetExpiry, SetOptions, Value};

use crate::check::{ask, between, equal, eventually, refused};
use crate::unix_seconds;

type Text = Option<String>;

/// The database is empty before and after.
pub fn run(r: &mut Connection) {
    set_and_get(r);
    set_expiring(r);
    getex(r);
    many(r);
    counters(r);
    ranges(r);
    lcs(r);
    ask::<()>(r, "FLUSHDB");
}

fn set_and_get(r: &mut Connection) {
    let text = |text: &str| Some(text.to_owned());
    let nx = || SetOptions::default().conditional_set(ExistenceCheck::NX);
    let xx = || SetOptions::default().conditional_set(ExistenceCheck::XX);
    let get = || SetOptions::default().get(true);
    equal("GET of nothing", r.get::<_, Text>("none").unwrap(), None);
    equal("SET", r.set::<_, _, Text>("k", "v").unwrap(), text("OK"));
    equal("GET", r.get("k").unwrap(), text("v"));
    equal("SET NX on a key", r.set_options::<_, _, Text>("k", "w", nx()).unwrap(), None);
    equal("SET NX on nothing", r.set_options("n", "1", nx()).unwrap(), text("OK"));
    equal("SET XX on nothing", r.set_options::<_, _, Text>("none", "1", xx()).unwrap(), None);
    equal("SET XX on a key", r.set_options("k", "x", xx()).unwrap(), text("OK"));
    equal("SET GET", r.set_options("k", "y", get()).unwrap(), text("x"));
    equal("SET GET on nothing", r.set_options::<_, _, Text>("fresh", "1", get()).unwrap(), None);
    equal("SET NX GET", r.set_options("k", "z", nx().get(true)).unwrap(), text("y"));
    equal("what SET NX GET left", r.get("k").unwrap(), text("y"));
    equal("GETSET", r.getset("k", "g").unwrap(), text("y"));
    equal("GETDEL", r.get_del("k").unwrap(), text("g"));
    equal("GETDEL of nothing", r.get_del::<_, Text>("k").unwrap(), None);
    equal("SETNX", r.set_nx("s", "1").unwrap(), true);
    equal("SETNX on a key", r.set_nx("s", "2").unwrap(), false);
    equal("SET of an empty value", r.set("e", "").unwrap(), text("OK"));
    equal("GET of an empty value", r.get("e").unwrap(), text(""));
}

fn set_expiring(r: &mut Connection) {
    let now = unix_seconds();
    let set = |r: &mut Connection, expiry| {
        let options = SetOptions::default().with_expiration(expiry);
        r.set_options::<_, _, String>("k", "v", options).unwrap()
    };
    equal("SET EX", set(r, SetExpiry::EX(100)).as_str(), "OK");
    between("TTL after EX", r.ttl("k").unwrap(), 90..=100);
    equal("SET PX", set(r, SetExpiry::PX(50_000)).as_str(), "OK");
    between("PTTL after PX", r.pttl("k").unwrap(), 45_000..=50_000);
    equal("SET EXAT", set(r, SetExpiry::EXAT(now + 200)).as_str(), "OK");
    equal("EXPIRETIME after EXAT", r.expire_time("k").unwrap(), now + 200);
    equal("SET PXAT", set(r, SetExpiry::PXAT(now * 1000 + 300_001)).as_str(), "OK");
    equal("PEXPIRETIME after PXAT", r.pexpire_time("k").unwrap(), now * 1000 + 300_001);
    equal("SET KEEPTTL", set(r, SetExpiry::KEEPTTL).as_str(), "OK");
    equal("PEXPIRETIME after KEEPTTL", r.pexpire_time("k").unwrap(), now * 1000 + 300_001);
    r.set::<_, _, ()>("k", "w").unwrap();
    equal("SET drops the expiry", r.ttl("k").unwrap(), -1);
    equal("SETEX", r.set_ex::<_, _, String>("k", "v", 100).unwrap().as_str(), "OK");
    between("TTL after SETEX", r.ttl("k").unwrap(), 90..=100);
    equal("PSETEX", r.pset_ex::<_, _, String>("k", "v", 90_000).unwrap().as_str(), "OK");
    between("PTTL after PSETEX", r.pttl("k").unwrap(), 85_000..=90_000);
    r.pset_ex::<_, _, ()>("gone", "v", 1).unwrap();
    eventually("a key with PX 1 is gone", || r.get::<_, Text>("gone").unwrap().is_none());
    equal("SET EXAT in the past", set(r, SetExpiry::EXAT(1)).as_str(), "OK");
    equal("GET after EXAT in the past", r.get::<_, Text>("k").unwrap(), None);
}

fn getex(r: &mut Connection) {
    let now = unix_seconds();
    let get = |r: &mut Connection, expiry| r.get_ex::<_, String>("k", expiry).unwrap();
    r.set::<_, _, ()>("k", "v").unwrap();
    equal("GETEX", ask::<String>(r, "GETEX k").as_str(), "v");
    equal("TTL after GETEX", r.ttl("k").unwrap(), -1);
    equal("GETEX EX", get(r, Expiry::EX(100)).as_str(), "v");
    between("TTL after GETEX EX", r.ttl("k").unwrap(), 90..=100);
    equal("GETEX PX", get(r, Expiry::PX(70_000)).as_str(), "v");
    between("PTTL after GETEX PX", r.pttl("k").unwrap(), 65_000..=70_000);
    get(r, Expiry::EXAT(now + 50));
    equal("GETEX EXAT", r.expire_time("k").unwrap(), now + 50);
    get(r, Expiry::PXAT(now * 1000 + 60_007));
    equal("GETEX PXAT", r.pexpire_time("k").unwrap(), now * 1000 + 60_007);
    equal("GETEX PERSIST", get(r, Expiry::PERSIST).as_str(), "v");
    equal("TTL after GETEX PERSIST", r.ttl("k").unwrap(), -1);
    equal("GETEX of nothing", r.get_ex::<_, Text>("none", Expiry::EX(5)).unwrap(), None);
}

fn many(r: &mut Connection) {
    let texts = |texts: [Option<&str>; 2]| texts.map(|text| text.map(str::to_owned)).to_vec();
    equal("MSET", r.mset::<_, _, bool>(&[("m1", "1"), ("m2", "2")]).unwrap(), true);
    equal("MGET", r.mget(&["m1", "none"]).unwrap(), texts([Some("1"), None]));
    equal("MSETNX with a taken key", r.mset_nx(&[("m2", "x"), ("m3", "x")]).unwrap(), false);
    equal("what MSETNX left", r.mget(&["m2", "m3"]).unwrap(), texts([Some("2"), None]));
    equal("MSETNX", r.mset_nx(&[("m3", "3"), ("m4", "4")]).unwrap(), true);
    let pairs: Vec<(String, u32)> = (0..1000).map(|i| (format!("many:{i}"), i)).collect();
    let keys: Vec<&String> = pairs.iter().map(|(key, _)| key).collect();
    equal("MSET of 1000", r.mset::<_, _, bool>(&pairs).unwrap(), true);
    equal("MGET of 1000", r.mget::<_, Vec<u32>>(keys).unwrap(), (0..1000).collect());
}

fn counters(r: &mut Connection) {
    equal("INCR", ask(r, "INCR c"), 1);
    equal("INCRBY", r.incr("c", 41).unwrap(), 42);
    equal("DECR", ask(r, "DECR c"), 41);
    equal("DECRBY", r.decr("c", 50).unwrap(), -9);
    equal("INCRBY to the largest", r.incr("big", i64::MAX).unwrap(), i64::MAX);
    let overflow = "ERR increment or decrement would overflow";
    refused("INCR past the largest", overflow, r.incr::<_, _, i64>("big", 1));
    equal("INCRBYFLOAT", r.incr("f", 10.5).unwrap(), 10.5);
    equal("INCRBYFLOAT of 0.1", r.incr::<_, _, String>("f", 0.1).unwrap().as_str(), "10.6");
    ask::<()>(r, "SET f 3.0e3");
    equal("INCRBYFLOAT on an exponent", ask::<String>(r, "INCRBYFLOAT f 200").as_str(), "3200");
}

fn ranges(r: &mut Connection) {
    equal("APPEND to nothing", r.append("a", "Hello").unwrap(), 5);
    equal("APPEND", r.append("a", " World").unwrap(), 11);
    equal("STRLEN", r.strlen("a").unwrap(), 11);
    equal("STRLEN of nothing", r.strlen("none").unwrap(), 0);
    let range = |r: &mut Connection, from, to| r.getrange::<_, String>("a", from, to).unwrap();
    equal("GETRANGE", range(r, 0, 4).as_str(), "Hello");
    equal("GETRANGE from the end", range(r, -5, -1).as_str(), "World");
    equal("GETRANGE past the end", range(r, 6, 100).as_str(), "World");
    equal("GETRANGE of an empty range", range(r, 5, 3).as_str(), "");
    equal("SETRANGE", r.setrange("a", 6, "Redis").unwrap(), 11);
    equal("what SETRANGE left", range(r, 0, -1).as_str(), "Hello Redis");
    equal("SETRANGE past the end", r.setrange("p", 3, "x").unwrap(), 4);
    equal("the zeros before it", r.get::<_, Vec<u8>>("p").unwrap(), b"\0\0\0x".to_vec());
}

fn lcs(r: &mut Connection) {
    ask::<()>(r, "MSET l1 ohmytext l2 mynewtext");
    equal("LCS", ask::<String>(r, "LCS l1 l2").as_str(), "mytext");
    equal("LCS LEN", ask(r, "LCS l1 l2 LEN"), 6);
    type Ranges = Vec<Vec<Vec<i64>>>;
    let (long, short) = (vec![vec![4, 7], vec![5, 8]], vec![vec![2, 3], vec![0, 1]]);
    // A map in RESP3 and a flat list in RESP2; the crate makes the same of both.
    let mut found: HashMap<String, Value> = ask(r, "LCS l1 l2 IDX");
    let mut matches = || redis::from_redis_value::<Ranges>(found.remove("matches").unwrap());
    equal("LCS IDX", matches().unwrap(), vec![long.clone(), short]);
    equal("LCS IDX has the length", found.get("len"), Some(&Value::Int(6)));
    let mut found: HashMap<String, Value> = ask(r, "LCS l1 l2 IDX MINMATCHLEN 4");
    let mut matches = || redis::from_redis_value::<Ranges>(found.remove("matches").unwrap());
    equal("LCS IDX MINMATCHLEN", matches().unwrap(), vec![long]);
    let mut found: HashMap<String, Value> = ask(r, "LCS l1 l2 IDX MINMATCHLEN 4 WITHMATCHLEN");
    let matches: Vec<(Vec<i64>, Vec<i64>, i64)> =
        redis::from_redis_value(found.remove("matches").unwrap()).unwrap();
    equal("LCS IDX WITHMATCHLEN", matches, vec![(vec![4, 7], vec![5, 8], 4)]);
}

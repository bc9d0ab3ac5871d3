//! The table of workloads: one row per command, in the words of the command line.
//!
//! A row holds command templates in a small notation that `template` compiles to request bytes:
//!
//! - `{key}` is a random key of the range, `{value}` a value of `--data-size` bytes, `{10..99}` a
//!   random integer between two bounds of equal width; each may have literal text around it, so
//!   `list:{key}` keeps the keys of one type apart from those of another;
//! - `10*({key} {value})` repeats a group of arguments, drawing anew each time.
//!
//! A row with both a read and a write draws between them by `--ratio`; a row with one of them does
//! only that. A new type adds its rows here and nothing anywhere else. Invariant, tested below:
//! names are unique and every template compiles.

/// One workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// The reading command, if it reads.
    pub read: Option<&'static str>,
    /// The writing command, if it writes.
    pub write: Option<&'static str>,
    /// The command that, sent once for every key of the range, makes the data the row expects.
    pub fill: Option<&'static str>,
}

const fn read(name: &'static str, read: &'static str, fill: Option<&'static str>) -> Row {
    Row { name, read: Some(read), write: None, fill }
}

const fn write(name: &'static str, write: &'static str, fill: Option<&'static str>) -> Row {
    Row { name, read: None, write: Some(write), fill }
}

const SET: Option<&str> = Some("SET {key} {value}");
const EXPIRING: Option<&str> = Some("SET {key} {value} EX {10000..99999}");
const COUNT: Option<&str> = Some("SET count:{key} {100000..999999}");
const LIST: Option<&str> = Some("RPUSH list:{key} {value}");
const ITEMS: Option<&str> = Some("RPUSH items:{key} 100*(item:{10..99})");

/// Every workload, in the order in which `--all` runs them.
pub const TABLE: &[Row] = &[
    // Connection.
    read("ping", "PING", None),
    read("echo", "ECHO {value}", None),
    // Strings.
    read("get", "GET {key}", SET),
    write("set", "SET {key} {value}", SET),
    Row { name: "mixed", read: Some("GET {key}"), write: Some("SET {key} {value}"), fill: SET },
    write("set_ex", "SET {key} {value} EX {1000..9999}", SET),
    write("set_get", "SET {key} {value} GET", SET),
    write("setnx", "SETNX {key} {value}", SET),
    write("setex", "SETEX {key} {1000..9999} {value}", SET),
    write("psetex", "PSETEX {key} {1000000..9999999} {value}", SET),
    write("getset", "GETSET {key} {value}", SET),
    write("getex", "GETEX {key} EX {1000..9999}", SET),
    write("getdel", "GETDEL {key}", SET),
    read("strlen", "STRLEN {key}", SET),
    read("getrange", "GETRANGE {key} 8 23", SET),
    read("substr", "SUBSTR {key} 8 23", SET),
    write("setrange", "SETRANGE {key} {10..99} sixteen-bytes-xx", SET),
    write("append", "APPEND append:{key} x", Some("SET append:{key} {value}")),
    write("incr", "INCR count:{key}", COUNT),
    write("incrby", "INCRBY count:{key} {10..99}", COUNT),
    write("decr", "DECR count:{key}", COUNT),
    write("decrby", "DECRBY count:{key} {10..99}", COUNT),
    write("incrbyfloat", "INCRBYFLOAT float:{key} 0.{10..99}", Some("SET float:{key} 1.5")),
    read("mget10", "MGET 10*({key})", SET),
    write("mset10", "MSET 10*({key} {value})", SET),
    // Its keys exist, so it looks them up and sets none.
    write("msetnx10", "MSETNX 10*({key} {value})", SET),
    // All values are equal, which is as long as the way to the answer can be.
    read("lcs", "LCS {key} {key}", SET),
    // Lists. Those of one value grow with the run; those of a hundred short elements last for it.
    write("lpush", "LPUSH list:{key} {value}", LIST),
    write("rpush", "RPUSH list:{key} {value}", LIST),
    write("lpushx", "LPUSHX list:{key} {value}", LIST),
    write("rpushx", "RPUSHX list:{key} {value}", LIST),
    write("lpop", "LPOP items:{key}", ITEMS),
    write("rpop", "RPOP items:{key}", ITEMS),
    write("lpop10", "LPOP items:{key} 10", ITEMS),
    write("lmpop", "LMPOP 1 items:{key} LEFT", ITEMS),
    read("llen", "LLEN items:{key}", ITEMS),
    read("lindex", "LINDEX items:{key} 50", ITEMS),
    read("lrange_10", "LRANGE items:{key} 0 9", ITEMS),
    read("lrange_100", "LRANGE items:{key} 0 99", ITEMS),
    read("lpos", "LPOS items:{key} item:{10..99}", ITEMS),
    write("lset", "LSET items:{key} 50 item:{10..99}", ITEMS),
    write("linsert", "LINSERT items:{key} BEFORE item:{10..99} new", ITEMS),
    write("lrem", "LREM items:{key} 1 item:{10..99}", ITEMS),
    write("ltrim", "LTRIM items:{key} 0 -2", ITEMS),
    write("lmove", "LMOVE items:{key} items:{key} LEFT RIGHT", ITEMS),
    write("rpoplpush", "RPOPLPUSH items:{key} items:{key}", ITEMS),
    // Keys of any type.
    read("exists", "EXISTS {key}", SET),
    read("type", "TYPE {key}", SET),
    read("ttl", "TTL {key}", EXPIRING),
    read("pttl", "PTTL {key}", EXPIRING),
    read("expiretime", "EXPIRETIME {key}", EXPIRING),
    read("pexpiretime", "PEXPIRETIME {key}", EXPIRING),
    write("expire", "EXPIRE {key} {10000..99999}", SET),
    write("pexpire", "PEXPIRE {key} {10000000..99999999}", SET),
    write("expireat", "EXPIREAT {key} {3000000000..9999999999}", SET),
    write("pexpireat", "PEXPIREAT {key} {3000000000000..9999999999999}", SET),
    write("persist", "PERSIST {key}", EXPIRING),
    read("touch", "TOUCH {key}", SET),
    read("object_encoding", "OBJECT ENCODING {key}", SET),
    read("object_idletime", "OBJECT IDLETIME {key}", SET),
    read("object_refcount", "OBJECT REFCOUNT {key}", SET),
    read("memory_usage", "MEMORY USAGE {key}", SET),
    write("copy", "COPY {key} copy:{key} REPLACE", SET),
    // Of the whole keyspace.
    read("dbsize", "DBSIZE", SET),
    read("randomkey", "RANDOMKEY", SET),
    read("scan", "SCAN 0 COUNT 10", SET),
    // Empties the range as it goes, so its later deletions find nothing.
    write("del", "DEL {key}", SET),
    write("unlink", "UNLINK {key}", SET),
    // Insertion and deletion side by side: about half the range exists at any time.
    Row { name: "set_del", read: Some("DEL {key}"), write: Some("SET {key} {value}"), fill: SET },
];

/// The row of this name.
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::bench::template::{Shape, Template};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_findable() {
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert!(TABLE.iter().all(|row| find(row.name) == Some(row)));
        assert_eq!(find("no such row"), None);
    }

    #[test]
    fn every_row_does_something_and_every_template_compiles() {
        let shape = Shape { keys: 1000, key_bytes: 16, value_bytes: 32 };
        for row in TABLE {
            assert!(row.read.is_some() || row.write.is_some(), "{} is empty", row.name);
            for text in [row.read, row.write, row.fill].into_iter().flatten() {
                Template::compile(text, &shape).unwrap();
            }
        }
    }

    #[test]
    fn rows_read_the_keys_that_their_fill_writes() {
        let key = |text: &str| {
            let words = text.split([' ', '(', ')']);
            words.into_iter().find(|word| word.contains("{key}")).map(str::to_owned)
        };
        for row in TABLE {
            let Some(fill) = row.fill else { continue };
            for named in [row.read, row.write].into_iter().flatten().filter_map(key) {
                assert_eq!(Some(named), key(fill), "{}", row.name);
            }
        }
    }
}

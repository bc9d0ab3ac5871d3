//! Values of all types: names, encodings, copies, sizes, and errors of commands on the wrong type.

use crate::check::check;

/// A key of each type in each of its forms.
const EVERY_TYPE: &str = r#"
> SET string text -> OK
> SET int 12 -> OK
> RPUSH list a b -> 2
> SADD ints 1 2 -> 2
> SADD set a b -> 2
> HSET hash f v -> 1
> HSET ending f v -> 1
> HEXPIRE ending 100 FIELDS 1 f -> [1]
> ZADD zset 1 a -> 1
> XADD stream 1-1 f v -> "1-1"
> CONFIG SET list-max-listpack-size 2 set-max-listpack-entries 2 -> OK
> CONFIG SET hash-max-listpack-entries 2 zset-max-listpack-entries 2 -> OK
> RPUSH biglist a b c d e -> 5
> SADD bigset a b c -> 3
> HSET bighash f1 v f2 v f3 v -> 3
> HSET bigending f1 v f2 v f3 v -> 3
> HEXPIRE bigending 100 FIELDS 1 f1 -> [1]
> ZADD bigzset 1 a 2 b 3 c -> 3
"#;

#[test]
fn names_of_types() {
    check(&format!(
        "{EVERY_TYPE}{}",
        r#"> TYPE string
string
> TYPE int -> string
> TYPE list -> list
> TYPE biglist -> list
> TYPE ints -> set
> TYPE set -> set
> TYPE bigset -> set
> TYPE hash -> hash
> TYPE ending -> hash
> TYPE bighash -> hash
> TYPE zset -> zset
> TYPE bigzset -> zset
> TYPE stream -> stream
"#,
    ));
}

#[test]
fn names_of_encodings() {
    check(&format!(
        "{EVERY_TYPE}{}",
        r#"> OBJECT ENCODING string
"embstr"
> OBJECT ENCODING int -> "int"
> OBJECT ENCODING list -> "listpack"
> OBJECT ENCODING biglist -> "quicklist"
> OBJECT ENCODING ints -> "intset"
> OBJECT ENCODING set -> "listpack"
> OBJECT ENCODING bigset -> "hashtable"
> OBJECT ENCODING hash -> "listpack"
> OBJECT ENCODING ending -> "listpackex"
> OBJECT ENCODING bighash -> "hashtable"
> OBJECT ENCODING bigending -> "hashtable"
> OBJECT ENCODING zset -> "listpack"
> OBJECT ENCODING bigzset -> "skiplist"
> OBJECT ENCODING stream -> "stream"
> OBJECT REFCOUNT biglist -> 1
> OBJECT REFCOUNT ints -> 1
> OBJECT IDLETIME bigzset -> 0
> OBJECT IDLETIME stream -> 0
> OBJECT FREQ stream -> ~~ -ERR An LFU maxmemory policy is not selected, *
"#,
    ));
}

#[test]
fn a_scan_by_type() {
    check(&format!(
        "{EVERY_TYPE}{}",
        r#"> SCAN 0 TYPE stream COUNT 100
["0", ["stream"]]
> SCAN 0 TYPE STREAM COUNT 100 -> ["0", ["stream"]]
> SCAN 0 TYPE module COUNT 100 -> ["0", []]
> SCAN 0 TYPE string COUNT 100 MATCH s* -> ["0", ["string"]]
> SCAN 0 TYPE zset COUNT 100 MATCH big* -> ["0", ["bigzset"]]
> SCAN 0 TYPE string COUNT 100 -> ~~ \["0", \["*", "*"]]
> SCAN 0 TYPE list COUNT 100 -> ~~ \["0", \["*", "*"]]
> SCAN 0 TYPE set COUNT 100 -> ~~ \["0", \["*", "*", "*"]]
> SCAN 0 TYPE hash COUNT 100 -> ~~ \["0", \["*", "*", "*", "*"]]
> SCAN 0 TYPE zset COUNT 100 -> ~~ \["0", \["*", "*"]]
> DBSIZE -> 14
"#,
    ));
}

#[test]
fn each_value_has_a_size() {
    check(&format!(
        "{EVERY_TYPE}{}",
        r#"> MEMORY USAGE string
~~ [1-9]*
> MEMORY USAGE int -> ~~ [1-9]*
> MEMORY USAGE list -> ~~ [1-9]*
> MEMORY USAGE biglist -> ~~ [1-9]*
> MEMORY USAGE ints -> ~~ [1-9]*
> MEMORY USAGE set -> ~~ [1-9]*
> MEMORY USAGE bigset -> ~~ [1-9]*
> MEMORY USAGE hash -> ~~ [1-9]*
> MEMORY USAGE ending -> ~~ [1-9]*
> MEMORY USAGE bighash -> ~~ [1-9]*
> MEMORY USAGE bigending -> ~~ [1-9]*
> MEMORY USAGE zset -> ~~ [1-9]*
> MEMORY USAGE bigzset -> ~~ [1-9]*
> MEMORY USAGE stream -> ~~ [1-9]*
> MEMORY USAGE bigset SAMPLES 0 -> ~~ [1-9]*
"#,
    ));
}

#[test]
fn copies_of_lists() {
    check(
        r#"
> CONFIG SET list-max-listpack-size 2 set-max-listpack-entries 2 -> OK
> CONFIG SET hash-max-listpack-entries 2 zset-max-listpack-entries 2 -> OK
> CONFIG SET set-max-intset-entries 2 -> OK
> RPUSH list a b -> 2
> COPY list copy -> 1
> RPUSH copy c d e -> 5
> LRANGE list 0 -1 -> ["a", "b"]
> LRANGE copy 0 -1 -> ["a", "b", "c", "d", "e"]
> COPY copy copy2 -> 1
> LPOP copy -> "a"
> LRANGE copy2 0 -1 -> ["a", "b", "c", "d", "e"]
> OBJECT ENCODING copy2 -> "quicklist"
> DEL copy copy2 -> 2
"#,
    );
}

#[test]
fn copies_of_sets() {
    check(
        r#"
> CONFIG SET list-max-listpack-size 2 set-max-listpack-entries 2 -> OK
> CONFIG SET hash-max-listpack-entries 2 zset-max-listpack-entries 2 -> OK
> CONFIG SET set-max-intset-entries 2 -> OK
> SADD ints 1 2 -> 2
> COPY ints copy -> 1
> SADD copy 3 -> 1
> SMEMBERS ints -> ["1", "2"]
> OBJECT ENCODING copy -> "hashtable"
> COPY copy copy2 -> 1
> SREM copy 1 2 -> 2
> SCARD copy2 -> 3
> SISMEMBER copy2 1 -> 1
> OBJECT ENCODING copy2 -> "hashtable"
> SMEMBERS copy -> ["3"]
> DEL copy copy2 -> 2
"#,
    );
}

#[test]
fn copies_of_hashes() {
    check(
        r#"
> CONFIG SET list-max-listpack-size 2 set-max-listpack-entries 2 -> OK
> CONFIG SET hash-max-listpack-entries 2 zset-max-listpack-entries 2 -> OK
> CONFIG SET set-max-intset-entries 2 -> OK
> HSET hash f v -> 1
> COPY hash copy -> 1
> HSET copy f w g x h y -> 2
> HGET hash f -> "v"
> HLEN hash -> 1
> OBJECT ENCODING copy -> "hashtable"
> COPY copy copy2 -> 1
> HDEL copy f g -> 2
> HGET copy2 g -> "x"
> HLEN copy2 -> 3
> HEXPIRE copy2 100 FIELDS 1 f -> [1]
> COPY copy2 copy3 -> 1
> HTTL copy3 FIELDS 2 f g -> [100, -1]
> HPERSIST copy2 FIELDS 1 f -> [1]
> HTTL copy3 FIELDS 1 f -> [100]
> DEL copy copy2 copy3 -> 3
"#,
    );
}

#[test]
fn copies_of_sorted_sets() {
    check(
        r#"
> CONFIG SET list-max-listpack-size 2 set-max-listpack-entries 2 -> OK
> CONFIG SET hash-max-listpack-entries 2 zset-max-listpack-entries 2 -> OK
> CONFIG SET set-max-intset-entries 2 -> OK
> ZADD zset 1 a -> 1
> COPY zset copy -> 1
> ZADD copy 2 a 3 b 4 c -> 2
> ZSCORE zset a -> "1"
> OBJECT ENCODING copy -> "skiplist"
> COPY copy copy2 -> 1
> ZREM copy a -> 1
> ZRANGE copy2 0 -1 WITHSCORES -> ["a", "2", "b", "3", "c", "4"]
> ZRANK copy2 c -> 2
> OBJECT ENCODING copy2 -> "skiplist"
> DEL copy copy2 -> 2
"#,
    );
}

#[test]
fn copies_of_streams() {
    check(
        r#"
> XADD stream 1-1 f v -> "1-1"
> XGROUP CREATE stream g 0 -> OK
> COPY stream copy -> 1
> XADD copy 2-1 f w -> "2-1"
> XLEN stream -> 1
> XRANGE copy - + -> [["1-1", ["f", "v"]], ["2-1", ["f", "w"]]]
> XREADGROUP GROUP g c COUNT 1 STREAMS copy > -> [["copy", [["1-1", ["f", "v"]]]]]
> XPENDING stream g -> [0, nil, nil, nil-array]
> XPENDING copy g -> [1, "1-1", "1-1", [["c", "1"]]]
> DEL copy -> 1
"#,
    );
}

#[test]
fn collections_are_renamed_and_moved() {
    check(
        r#"
> HSET hash f v -> 1
> ZADD zset 1 a -> 1
> SET string text -> OK
> EXPIRE hash 100 -> 1
> COPY hash string -> 0
> COPY hash string REPLACE -> 1
> TYPE string -> hash
> TTL string -> 100
> COPY hash hash -> -ERR source and destination objects are the same
> COPY hash hash DB 1 -> 1
> COPY hash hash DB 1 -> 0
> SELECT 1 -> OK
> HGETALL hash -> ["f", "v"]
> TTL hash -> 100
> DEL hash -> 1
> SELECT 0 -> OK
> RENAME zset z -> OK
> ZRANGE z 0 -1 -> ["a"]
> MOVE z 1 -> 1
> EXISTS z -> 0
> SELECT 1 -> OK
> ZRANGE z 0 -1 -> ["a"]
> DEL z -> 1
"#,
    );
}

#[test]
fn commands_refuse_other_types() {
    check(
        r#"
> SET string text -> OK
> RPUSH list a -> 1
> SADD set a -> 1
> HSET hash f v -> 1
> ZADD zset 1 a -> 1
> XADD stream 1-1 f v -> "1-1"
> SADD list a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SADD hash a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SADD zset a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SADD stream a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER set zset -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SUNIONSTORE d set hash -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF set stream -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE set list a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SSCAN zset 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSH set a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HSET set f v -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZADD set 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XADD set * f v -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GET set -> -WRONGTYPE Operation against a key holding the wrong kind of value
> APPEND set x -> -WRONGTYPE Operation against a key holding the wrong kind of value
> INCR set -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SET set x -> OK
> TYPE set -> string
> SINTERSTORE list string -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SUNIONSTORE list nokey -> 0
> EXISTS list -> 0
"#,
    );
}

//! The number of changes that each request counts, for the save points and
//! `rdb_changes_since_last_save` of INFO. The numbers are those of Redis 8, which counts elements.

use base::quote::split_args;

use crate::fake::TestServer;

/// Each line is a number of changes and the request that counts them.
fn check(lines: &str) {
    let mut server = TestServer::new(4);
    for line in lines.trim().lines() {
        let (expected, request) = line.split_once(' ').expect("a number and a request");
        let before = server.node.unsaved_changes();
        server.request("a", &split_args(request.as_bytes()).expect("a request"));
        let changes = server.node.unsaved_changes() - before;
        assert_eq!(changes.to_string(), expected, "{request}");
    }
}

#[test]
fn changes_of_keys_and_strings() {
    check(
        r#"
1 SET a 1
3 MSET a 1 b 2 c 3
0 MSETNX a 1 d 3
2 MSETNX d 1 e 3
1 RENAME a b
0 RENAME b b
1 RENAME b free
0 RENAMENX free c
1 RENAMENX free b
1 COPY b a
1 COPY b a REPLACE
1 MOVE a 3
0 MOVE missing 3
2 DEL c d missing
1 EXPIRE b 100
1 PERSIST b
2 BITFIELD bits SET u8 0 1 SET u8 8 1 GET u8 0
1 BITFIELD bits SET u8 0 1 SET u8 8 2
3 PFADD p x y
0 PFADD p x
1 PFMERGE p p
1 PFMERGE q p
5 FLUSHDB
0 FLUSHDB
1 SET a 1
2 FLUSHALL
0 FLUSHALL
"#,
    );
}

#[test]
fn changes_of_lists_and_sets() {
    check(
        r#"
6 RPUSH l a b c d e f
2 LPUSHX l x y
3 LTRIM l 1 -3
1 LREM l 0 x
1 LMOVE l m LEFT RIGHT
1 LMOVE l l LEFT RIGHT
2 LPOP l 2
1 RPOP l 9
2 RPUSH m a b
2 BLMPOP 1 1 m LEFT COUNT 2
3 RPUSH n 3 1 2
3 SORT n STORE o
2 SORT n LIMIT 0 2 STORE o
1 SORT missing STORE o
3 SADD s a b c
1 SADD s c d
2 SMOVE s t a
2 SREM s b c x
5 SADD s 1 2 3 4 5
2 SPOP s 2
4 SPOP s 9
1 SUNIONSTORE u t t
1 SUNIONSTORE u t t
"#,
    );
}

#[test]
fn changes_of_sorted_sets() {
    check(
        r#"
2 ZADD z 1 a 2 b
2 ZADD z 1 a 3 b 4 c
1 ZINCRBY z 1 a
2 ZPOPMIN z 2
4 ZADD z 1 a 2 b 3 c 4 d
2 BZMPOP 1 1 z MIN COUNT 2
1 ZRANGESTORE y z 0 -1
1 ZRANGESTORE y z 0 -1
1 ZUNIONSTORE y 2 z z
1 ZUNIONSTORE y 1 missing
0 ZUNIONSTORE y 1 missing
2 ZREM z c d
2 GEOADD g 1 1 a 2 2 b
1 GEOADD g CH 1 1 a 2 3 b
2 GEOSEARCHSTORE near g FROMLONLAT 1 1 BYRADIUS 1000 km
1 GEOSEARCHSTORE near g FROMLONLAT 1 1 BYRADIUS 1 m
1 GEOSEARCHSTORE near g FROMLONLAT 50 50 BYRADIUS 1 m
2 ZREMRANGEBYRANK g 0 -1
"#,
    );
}

#[test]
fn changes_of_hashes() {
    check(
        r#"
4 HSET h a 1 b 2 c 3 d 4
2 HMSET h a 1 b 2
2 HPEXPIRE h 100000 FIELDS 2 a b
1 HPERSIST h FIELDS 3 a b c
3 HGETEX h EX 100 FIELDS 3 a b c
2 HGETEX h PERSIST FIELDS 3 a b d
2 HGETEX h PXAT 1 FIELDS 2 a b
2 HEXPIREAT h 1 FIELDS 2 c d
2 HSETEX h EX 100 FIELDS 2 a 1 b 2
2 HSETEX h PXAT 1 FIELDS 2 a 1 z 2
2 HSET h a 1 c 2
2 HGETDEL h FIELDS 3 a c x
3 HSET h a 1 c 2 d 3
3 HDEL h a c d x
"#,
    );
}

#[test]
fn changes_of_scripts() {
    check("3 EVAL \"return redis.call('RPUSH', KEYS[1], 1, 2, 3)\" 1 l\n0 EVAL \"return 1\" 0");
}

//! The table of workloads, by the names of the command line.
//!
//! A row holds templates of requests in a small notation that `template` compiles to bytes:
//!
//! - `{key}` is a random key of the range, `{value}` a value of `--data-size` bytes, `{10..99}` a
//!   random integer between two bounds of equal width; each may have literal text around it, so
//!   `list:{key}` keeps the keys of one type apart from those of another;
//! - `10*({key} {value})` repeats a group of arguments with new random values;
//! - `;` ends a command where a request is several, as in `MULTI ; 10*(SET {key} {value} ;) EXEC`,
//!   and `{same-key}` is the key before it in the request. Such a request is answered when all its
//!   commands are, and counts once;
//! - `{script:get}` and `{sha1:get}` are the source and the SHA-1 of one of the `scripts`.
//!
//! A row with both a read and a write alternates at random by `--ratio` (writes to reads); a row
//! with one of them does only that. A row that is meaningful only with certain clients, at one
//! depth or one ratio says so, and the command line overrides that. Not every command has a row:
//! `cargo xtask rows` requires one per class of cost. Invariant, tested below: names are unique
//! and every template compiles.

use super::{SubscriberPlan, Workload, WorkloadUser};

const fn read(name: &'static str, read: &'static str, fill: Option<&'static str>) -> Workload {
    Workload { read: Some(read), fill, ..Workload::new(name) }
}

const fn write(name: &'static str, write: &'static str, fill: Option<&'static str>) -> Workload {
    Workload { write: Some(write), fill, ..Workload::new(name) }
}

const fn both(
    name: &'static str,
    read: &'static str,
    write: &'static str,
    fill: Option<&'static str>,
) -> Workload {
    Workload { read: Some(read), write: Some(write), fill, ..Workload::new(name) }
}

const SET: Option<&str> = Some("SET {key} {value}");
const EXPIRING: Option<&str> = Some("SET {key} {value} EX {10000..99999}");
const COUNT: Option<&str> = Some("SET count:{key} {100000..999999}");
const LIST: Option<&str> = Some("RPUSH list:{key} {value}");
const ITEMS: Option<&str> = Some("RPUSH items:{key} 100*(item:{10..99})");
const MEMBERS: Option<&str> = Some("SADD set:{key} 10*(member:{10..99})");
const ONE_SET: Option<&str> = Some("SADD set:all {key}");

const FIELDS: Option<&str> = Some(
    "HSET hash:{key} field:0 {100000..999999} field:1 value-of-16-bytes field:2 value-of-16-bytes \
     field:3 value-of-16-bytes field:4 value-of-16-bytes field:5 value-of-16-bytes \
     field:6 value-of-16-bytes field:7 value-of-16-bytes field:8 value-of-16-bytes \
     field:9 value-of-16-bytes",
);
const ENDING_FIELDS: Option<&str> = Some(
    "HSETEX ending:{key} EX {10000..99999} FIELDS 4 field:0 value-of-16-bytes \
     field:1 value-of-16-bytes field:2 value-of-16-bytes field:3 value-of-16-bytes",
);
const ONE_HASH: Option<&str> = Some("HSET hash:all {key} value-of-32-bytes-value-of-32-byt");
const SORTED: Option<&str> = Some("RPUSH sort:{key} 10*({100..999})");
const ZSET: Option<&str> = Some("ZADD zset {100000..999999} {key}");
const ZSET_TWO: Option<&str> = Some("ZADD zset 2*({100000..999999} {key})");
const ZLEX: Option<&str> = Some("ZADD zlex 0 {key}");
const ZSMALL: Option<&str> = Some("ZADD zset:{key} 10*({100..999} member:{10..99})");

const STREAM: Option<&str> = Some("XADD stream:{key} * field1 value1 field2 value2");
/// One stream that has an entry for each key of the range.
const ONE_STREAM: Option<&str> = Some("XADD stream * name {key} field value");
/// A stream without entries for each key, and a group that reads it.
const READERS: Option<&str> = Some("XGROUP CREATE group:{key} readers 0 MKSTREAM");

/// Members of the one big sorted set removed, and added again as often.
const fn zset_removing(name: &'static str, remove: &'static str) -> Workload {
    Workload { read: Some(remove), write: ZSET, fill: ZSET, ..Workload::new(name) }
}

const LOAD_GET: &str = "SCRIPT LOAD {script:get}";
const LOAD_SET_ALL: &str = "SCRIPT LOAD {script:set-all}";
const LOAD_LIBRARY: &str = "FUNCTION LOAD REPLACE {script:library}";

/// A user with 20 rules for commands and 10 patterns of keys, of which the last one matches.
const READER: WorkloadUser = WorkloadUser { name: "bench-reader", password: "bench-password" };
const SET_READER: &str = "ACL SETUSER bench-reader reset on >bench-password \
    -@all +@read +@write +@connection +@string -@dangerous -@bitmap -@geo +ping +info +type \
    -getdel -getset -append -lpop -spop +hget +client|getname +client|setname +get \
    ~cache:* ~session:* ~user:*:profile ~queue:? ~lock:* ~feed:[a-z]* ~k*:archive ~job:* ~tag:* \
    ~key:*";

/// Members popped off the one big sorted set, which never gets empty: each write names two members,
/// of which about as many are new as the set lacks, so that it settles at half of the range.
const fn zset_popping(name: &'static str, pop: &'static str) -> Workload {
    Workload { read: Some(pop), write: ZSET_TWO, fill: ZSET, ..Workload::new(name) }
}

const BITS: Option<&str> = Some("SET bits:{key} {value}");
const ELEMENTS: Option<&str> = Some("PFADD hll:{key} 10*(element:{10..99})");
/// One HyperLogLog that has counted every key of the range.
const ONE_HLL: Option<&str> = Some("PFADD hll:all {key}");
/// Every key of the range as a place in one set, at a density of 2 per 1000 km2.
const PLACES: Option<&str> =
    Some("GEOADD places {10..99}.{100000..999999} {10..79}.{100000..999999} {key}");

const EVICTING: &str = "CONFIG SET maxmemory 24mb maxmemory-policy allkeys-lru";
/// A key that nearly never exists.
const NEW_KEY: &str = "SET {key}:{100000..999999} {value}";

/// A payload of a hash of 8 fields, chosen so that all its bytes are valid in a template.
const RESTORE: &str = "RESTORE restored:{key} 0 \u{4}\u{8}\
     \u{7}field:0\u{11}value-of-16-bytes\u{7}field:1\u{11}value-of-16-bytes\
     \u{7}field:2\u{11}value-of-16-bytes\u{7}field:3\u{11}value-of-16-bytes\
     \u{7}field:4\u{11}value-of-16-bytes\u{7}field:5\u{11}value-of-16-bytes\
     \u{7}field:6\u{11}value-of-16-bytes\u{7}field:7\u{11}value-00000004901\u{8}\0yG@Np0Fi \
     REPLACE";

/// Every workload, in the order in which `--all` runs them.
pub const TABLE: &[Workload] = &[
    // Connection.
    read("ping", "PING", None),
    read("echo", "ECHO {value}", None),
    // Strings.
    read("get", "GET {key}", SET),
    write("set", "SET {key} {value}", SET),
    both("mixed", "GET {key}", "SET {key} {value}", SET),
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
    // Its keys exist, so it sets none.
    write("msetnx10", "MSETNX 10*({key} {value})", SET),
    // All values are equal: the most work that LCS can have.
    read("lcs", "LCS {key} {key}", SET),
    // With conditions on the old value; Redis 8.0 has none of these.
    write("set_ifeq", "SET {key} {value} IFEQ {value}", SET),
    read("digest", "DIGEST {key}", SET),
    write("delex", "DELEX {key} IFEQ other", SET),
    write("delifeq", "DELIFEQ {key} other", SET),
    write("msetex10", "MSETEX 10 10*({key} {value}) EX {1000..9999}", SET),
    // Bitmaps.
    write("setbit", "SETBIT bits:{key} {1000..1999} 1", BITS),
    read("getbit", "GETBIT bits:{key} {1000..1999}", BITS),
    read("bitcount", "BITCOUNT bits:{key}", BITS),
    read("bitcount_bits", "BITCOUNT bits:{key} {100..999} -{100..999} BIT", BITS),
    read("bitpos", "BITPOS bits:{key} 0 {10..99}", BITS),
    write("bitop_and", "BITOP AND bits:result bits:{key} bits:{key}", BITS),
    write("bitop_not", "BITOP NOT bits:result bits:{key}", BITS),
    write("bitfield_incrby", "BITFIELD bits:{key} INCRBY u16 {1000..1999} 1", BITS),
    write("bitfield_set", "BITFIELD bits:{key} SET i32 #{10..60} {1000..9999}", BITS),
    read("bitfield_ro", "BITFIELD_RO bits:{key} GET u16 {1000..1999}", BITS),
    // HyperLogLogs: small ones of about ten elements, and one that has every key of the range.
    write("pfadd", "PFADD hll:{key} element:{10..99}", ELEMENTS),
    write("pfadd_100k", "PFADD hll:all {key}", ONE_HLL),
    read("pfcount", "PFCOUNT hll:{key}", ELEMENTS),
    read("pfcount2", "PFCOUNT hll:{key} hll:{key}", ELEMENTS),
    read("pfcount_100k", "PFCOUNT hll:all hll:all", ONE_HLL),
    write("pfmerge", "PFMERGE hll:result hll:{key} hll:{key}", ELEMENTS),
    write("pfmerge_100k", "PFMERGE hll:result hll:all", ONE_HLL),
    // Places.
    write(
        "geoadd",
        "GEOADD places {10..99}.{100000..999999} {10..79}.{100000..999999} {key}",
        PLACES,
    ),
    read("geodist", "GEODIST places {key} {key} km", PLACES),
    read("geohash", "GEOHASH places {key}", PLACES),
    read("geopos", "GEOPOS places {key}", PLACES),
    read(
        "geosearch_radius",
        "GEOSEARCH places FROMLONLAT {10..99} {10..79} BYRADIUS 100 km",
        PLACES,
    ),
    read(
        "geosearch_nearest",
        "GEOSEARCH places FROMMEMBER {key} BYRADIUS 200 km ASC COUNT 5 WITHDIST",
        PLACES,
    ),
    read("geosearch_box", "GEOSEARCH places FROMLONLAT {10..99} {10..79} BYBOX 200 200 km", PLACES),
    write("geosearchstore", "GEOSEARCHSTORE near places FROMMEMBER {key} BYRADIUS 50 km", PLACES),
    write("georadius", "GEORADIUS places {10..99} {10..79} 50 km", PLACES),
    read("georadius_ro", "GEORADIUS_RO places {10..99} {10..79} 50 km WITHCOORD", PLACES),
    write("georadiusbymember", "GEORADIUSBYMEMBER places {key} 50 km", PLACES),
    read("georadiusbymember_ro", "GEORADIUSBYMEMBER_RO places {key} 50 km", PLACES),
    // Lists. Those of one value grow during the run; those of a hundred short elements outlast it.
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
    // The blocking commands find an element immediately.
    write("blpop", "BLPOP items:{key} 1", ITEMS),
    write("brpop", "BRPOP items:{key} 1", ITEMS),
    write("blmpop", "BLMPOP 1 1 items:{key} LEFT", ITEMS),
    write("blmove", "BLMOVE items:{key} items:{key} LEFT RIGHT 1", ITEMS),
    write("brpoplpush", "BRPOPLPUSH items:{key} items:{key} 1", ITEMS),
    // Sets: small ones of about ten members, and one that has every key of the range.
    write("sadd", "SADD set:{key} member:{10..99}", MEMBERS),
    write("sadd_100k", "SADD set:all {key}", None),
    write("sadd10", "SADD set:{key} 10*(member:{10..99})", MEMBERS),
    // These empty the sets, so later removals find nothing.
    write("srem", "SREM set:{key} member:{10..99}", MEMBERS),
    write("srem_100k", "SREM set:all {key}", ONE_SET),
    write("spop", "SPOP set:{key}", MEMBERS),
    write("spop5", "SPOP set:{key} 5", MEMBERS),
    write("spop_100k", "SPOP set:all", ONE_SET),
    both("sadd_srem_100k", "SREM set:all {key}", "SADD set:all {key}", ONE_SET),
    read("sismember", "SISMEMBER set:{key} member:{10..99}", MEMBERS),
    read("sismember_100k", "SISMEMBER set:all {key}", ONE_SET),
    read("smismember10", "SMISMEMBER set:{key} 10*(member:{10..99})", MEMBERS),
    read("scard", "SCARD set:{key}", MEMBERS),
    read("smembers", "SMEMBERS set:{key}", MEMBERS),
    read("srandmember", "SRANDMEMBER set:{key}", MEMBERS),
    read("srandmember5", "SRANDMEMBER set:{key} 5", MEMBERS),
    read("srandmember_100k", "SRANDMEMBER set:all", ONE_SET),
    write("smove", "SMOVE set:{key} set:{key} member:{10..99}", MEMBERS),
    read("sinter", "SINTER set:{key} set:{key}", MEMBERS),
    read("sintercard", "SINTERCARD 2 set:{key} set:{key}", MEMBERS),
    write("sinterstore", "SINTERSTORE set:result set:{key} set:{key}", MEMBERS),
    read("sunion", "SUNION set:{key} set:{key}", MEMBERS),
    write("sunionstore", "SUNIONSTORE set:result set:{key} set:{key}", MEMBERS),
    read("sdiff", "SDIFF set:{key} set:{key}", MEMBERS),
    write("sdiffstore", "SDIFFSTORE set:result set:{key} set:{key}", MEMBERS),
    read("sscan", "SSCAN set:{key} 0", MEMBERS),
    read("sscan_100k", "SSCAN set:all 0", ONE_SET),
    // Sorted sets: one that has every key of the range, another where all scores are equal, and
    // small ones of about ten members.
    write("zadd", "ZADD zset {100000..999999} {key}", ZSET),
    write("zadd_small", "ZADD zset:{key} {100..999} member:{10..99}", ZSMALL),
    write("zincrby", "ZINCRBY zset {10..99} {key}", ZSET),
    read("zcard", "ZCARD zset", ZSET),
    read("zscore", "ZSCORE zset {key}", ZSET),
    read("zscore_small", "ZSCORE zset:{key} member:{10..99}", ZSMALL),
    read("zmscore10", "ZMSCORE zset 10*({key})", ZSET),
    read("zrank", "ZRANK zset {key}", ZSET),
    read("zrevrank", "ZREVRANK zset {key}", ZSET),
    read("zcount", "ZCOUNT zset {100000..499999} {500000..999999}", ZSET),
    read("zlexcount", "ZLEXCOUNT zlex [key:00 [key:00000000{100..999}", ZLEX),
    read("zrange_100", "ZRANGE zset 0 99", ZSET),
    read("zrange_100_scores", "ZRANGE zset 5000 5099 WITHSCORES", ZSET),
    read("zrange_small", "ZRANGE zset:{key} 0 -1 WITHSCORES", ZSMALL),
    read("zrevrange_100", "ZREVRANGE zset 5000 5099", ZSET),
    read("zrangebyscore_10", "ZRANGEBYSCORE zset {100000..999999} inf LIMIT 0 10", ZSET),
    read("zrevrangebyscore_10", "ZREVRANGEBYSCORE zset {100000..999999} 0 LIMIT 0 10", ZSET),
    read("zrangebylex_10", "ZRANGEBYLEX zlex [key:00000000{100..999} + LIMIT 0 10", ZLEX),
    read("zrevrangebylex_10", "ZREVRANGEBYLEX zlex [key:00000000{100..999} - LIMIT 0 10", ZLEX),
    write("zrangestore_100", "ZRANGESTORE zset:result zset 0 99", ZSET),
    zset_removing("zrem", "ZREM zset {key}"),
    zset_popping("zremrangebyrank", "ZREMRANGEBYRANK zset 0 0"),
    zset_removing("zremrangebyscore", "ZREMRANGEBYSCORE zset {100000..999999} 100001"),
    Workload {
        read: Some("ZREMRANGEBYLEX zlex - [key:0"),
        write: ZLEX,
        fill: ZLEX,
        ..Workload::new("zremrangebylex")
    },
    zset_popping("zpopmin", "ZPOPMIN zset"),
    zset_popping("zpopmax", "ZPOPMAX zset"),
    zset_popping("zmpop", "ZMPOP 1 zset MIN"),
    zset_popping("bzpopmin", "BZPOPMIN zset 1"),
    zset_popping("bzpopmax", "BZPOPMAX zset 1"),
    zset_popping("bzmpop", "BZMPOP 1 1 zset MIN"),
    read("zrandmember_10", "ZRANDMEMBER zset 10", ZSET),
    read("zunion", "ZUNION 2 zset:{key} zset:{key}", ZSMALL),
    read("zinter", "ZINTER 2 zset:{key} zset:{key}", ZSMALL),
    read("zdiff", "ZDIFF 2 zset:{key} zset:{key}", ZSMALL),
    read("zintercard", "ZINTERCARD 2 zset:{key} zset:{key}", ZSMALL),
    write("zunionstore", "ZUNIONSTORE zset:result 2 zset:{key} zset:{key}", ZSMALL),
    write("zinterstore", "ZINTERSTORE zset:result 2 zset:{key} zset:{key}", ZSMALL),
    write("zdiffstore", "ZDIFFSTORE zset:result 2 zset:{key} zset:{key}", ZSMALL),
    read("zscan", "ZSCAN zset 0 COUNT 10", ZSET),
    // Hashes: small ones of ten fields, and one that has every key of the range as a field.
    write("hset", "HSET hash:{key} field:{0..9} value-of-16-bytes", FIELDS),
    write("hset_100k", "HSET hash:all {key} value-of-32-bytes-value-of-32-byt", ONE_HASH),
    write("hmset", "HMSET hash:{key} field:1 value-of-16-bytes field:2 16-bytes-value-of", FIELDS),
    write("hsetnx", "HSETNX hash:{key} field:{0..9} value-of-16-bytes", FIELDS),
    read("hget", "HGET hash:{key} field:{0..9}", FIELDS),
    read("hget_100k", "HGET hash:all {key}", ONE_HASH),
    read("hmget5", "HMGET hash:{key} 5*(field:{0..9})", FIELDS),
    read("hgetall_10", "HGETALL hash:{key}", FIELDS),
    read("hkeys", "HKEYS hash:{key}", FIELDS),
    read("hvals", "HVALS hash:{key}", FIELDS),
    read("hlen", "HLEN hash:{key}", FIELDS),
    read("hexists", "HEXISTS hash:{key} field:{0..9}", FIELDS),
    read("hstrlen", "HSTRLEN hash:{key} field:{0..9}", FIELDS),
    write("hincrby", "HINCRBY hash:{key} field:0 {10..99}", FIELDS),
    write("hincrbyfloat", "HINCRBYFLOAT hash:{key} field:0 0.{10..99}", FIELDS),
    read("hrandfield", "HRANDFIELD hash:{key}", FIELDS),
    read("hrandfield5", "HRANDFIELD hash:{key} 5 WITHVALUES", FIELDS),
    read("hrandfield_100k", "HRANDFIELD hash:all", ONE_HASH),
    read("hscan", "HSCAN hash:{key} 0", FIELDS),
    read("hscan_100k", "HSCAN hash:all 0", ONE_HASH),
    write("hsetex", "HSETEX ending:{key} EX {10000..99999} FIELDS 1 field:{0..3} v", ENDING_FIELDS),
    write("hgetex", "HGETEX ending:{key} EX {10000..99999} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    write("hexpire", "HEXPIRE ending:{key} {10000..99999} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    write(
        "hpexpire",
        "HPEXPIRE ending:{key} {10000000..99999999} FIELDS 1 field:{0..3}",
        ENDING_FIELDS,
    ),
    write(
        "hexpireat",
        "HEXPIREAT ending:{key} {3000000000..9999999999} FIELDS 1 field:{0..3}",
        ENDING_FIELDS,
    ),
    write(
        "hpexpireat",
        "HPEXPIREAT ending:{key} {3000000000000..9999999999999} FIELDS 1 field:{0..3}",
        ENDING_FIELDS,
    ),
    read("httl", "HTTL ending:{key} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    read("hpttl", "HPTTL ending:{key} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    read("hexpiretime", "HEXPIRETIME ending:{key} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    read("hpexpiretime", "HPEXPIRETIME ending:{key} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    write("hpersist", "HPERSIST ending:{key} FIELDS 1 field:{0..3}", ENDING_FIELDS),
    // These empty the hashes, so later removals find nothing.
    write("hdel", "HDEL hash:{key} field:{0..9}", FIELDS),
    write("hdel_100k", "HDEL hash:all {key}", ONE_HASH),
    write("hgetdel", "HGETDEL hash:{key} FIELDS 1 field:{0..9}", FIELDS),
    // Streams. Those that are added to grow with the run, unless they are trimmed.
    write("xadd", "XADD stream:{key} * field1 value1 field2 value2", STREAM),
    write("xadd_100k", "XADD stream * name {key} field value", ONE_STREAM),
    write("xadd_maxlen", "XADD stream:{key} MAXLEN 10 * field1 value1 field2 value2", STREAM),
    write("xadd_maxlen_about", "XADD stream MAXLEN ~ 100000 * name {key} field value", ONE_STREAM),
    read("xlen", "XLEN stream:{key}", STREAM),
    read("xrange_1", "XRANGE stream:{key} - + COUNT 1", STREAM),
    read("xrange_10", "XRANGE stream - + COUNT 10", ONE_STREAM),
    read("xrange_100", "XRANGE stream - + COUNT 100", ONE_STREAM),
    read("xrevrange_10", "XREVRANGE stream + - COUNT 10", ONE_STREAM),
    read("xread_10", "XREAD COUNT 10 STREAMS stream 0", ONE_STREAM),
    read("xread_last", "XREAD STREAMS stream:{key} +", STREAM),
    // The entry does not exist, and only the first trimming of a stream removes entries.
    write("xdel", "XDEL stream:{key} 1-1", STREAM),
    write("xtrim", "XTRIM stream:{key} MAXLEN 1", STREAM),
    write(
        "xsetid",
        "XSETID bare:{key} {1000..9999}-0",
        Some("XGROUP CREATE bare:{key} g 0 MKSTREAM"),
    ),
    both(
        "xreadgroup",
        "XREADGROUP GROUP readers one COUNT 1 STREAMS group:{key} >",
        "XADD group:{key} * field1 value1 field2 value2",
        READERS,
    ),
    read("xpending", "XPENDING group:{key} readers", READERS),
    // Nothing is pending, so these find no entries.
    write("xack", "XACK group:{key} readers 1-1", READERS),
    write("xclaim", "XCLAIM group:{key} readers one 0 1-1", READERS),
    write("xautoclaim", "XAUTOCLAIM group:{key} readers one 0 0 COUNT 10", READERS),
    write("xgroup_createconsumer", "XGROUP CREATECONSUMER group:{key} readers {10..99}", READERS),
    write("xgroup_delconsumer", "XGROUP DELCONSUMER group:{key} readers {10..99}", READERS),
    write("xgroup_setid", "XGROUP SETID group:{key} readers 0", READERS),
    read("xinfo_stream", "XINFO STREAM stream:{key}", STREAM),
    read("xinfo_groups", "XINFO GROUPS group:{key}", READERS),
    read("xinfo_consumers", "XINFO CONSUMERS group:{key} readers", READERS),
    // Transactions, each of which is one request.
    write("multi_set10", "MULTI ; 10*(SET {key} {value} ;) EXEC", SET).on_one_connection(4),
    write(
        "watch_exec",
        "WATCH {key} ; GET {same-key} ; MULTI ; SET {same-key} {value} ; EXEC",
        SET,
    )
    .on_one_connection(4),
    // Scripts and functions that do what `get` and `multi_set10` do.
    read("eval_get", "EVAL {script:get} 1 {key}", SET).pipelined(16),
    read("evalsha_get", "EVALSHA {sha1:get} 1 {key}", SET).prepared(LOAD_GET).pipelined(16),
    read("fcall_get", "FCALL bench_get 1 {key}", SET).prepared(LOAD_LIBRARY).on_one_connection(16),
    write("eval_set10", "EVAL {script:set-all} 10 10*({key}) {value}", SET).on_one_connection(16),
    write("evalsha_set10", "EVALSHA {sha1:set-all} 10 10*({key}) {value}", SET)
        .prepared(LOAD_SET_ALL)
        .on_one_connection(16),
    both("mixed_eval", "GET {key}", "EVALSHA {sha1:get} 1 {key}", SET)
        .prepared(LOAD_GET)
        .mixed(4, 1),
    // `get` with a check of a user's rights.
    Workload { user: Some(READER), ..read("get_acl", "GET {key}", SET).prepared(SET_READER) },
    // `get` with tracking: the server remembers which client has read which key.
    Workload { greeting: Some("CLIENT TRACKING ON"), ..read("get_tracked", "GET {key}", SET) },
    // Messages: without receivers, with patterns that do not match, and to 1,000 receivers each.
    write("publish", "PUBLISH news:{key} {value}", None),
    Workload {
        write: Some("PUBLISH news:{key} {value}"),
        subscribers: Some(SubscriberPlan::Patterns(100_000)),
        ..Workload::new("publish_patterns")
    },
    Workload {
        write: Some("PUBLISH feed {value}"),
        subscribers: Some(SubscriberPlan::Channel("feed", 1000)),
        ..Workload::new("publish_1000")
    }
    .on_one_connection(4),
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
    write("sort_store", "SORT sort:{key} STORE sorted:{key}", SORTED),
    read("sort_ro", "SORT_RO sort:{key}", SORTED),
    write("copy", "COPY {key} copy:{key} REPLACE", SET),
    read("dump", "DUMP hash:{key}", FIELDS),
    write("restore", RESTORE, None),
    // The whole keyspace.
    read("dbsize", "DBSIZE", SET),
    read("randomkey", "RANDOMKEY", SET),
    read("scan", "SCAN 0 COUNT 10", SET),
    // These empty the range, so later deletions find nothing.
    write("del", "DEL {key}", SET),
    write("unlink", "UNLINK {key}", SET),
    // Insertions and deletions: about half of the range exists at any time.
    both("set_del", "DEL {key}", "SET {key} {value}", SET),
    // The last row, because the server keeps its limit: nearly each key is new and evicts another.
    write("set_evict", NEW_KEY, Some(NEW_KEY)).prepared(EVICTING),
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::batch::Batches;
    use crate::load::keys::ThreadIndex;
    use crate::load::shape::RequestShape;
    use crate::load::spec::LoadSpec;
    use crate::load::template::Template;
    use crate::load::workload::names;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert!(TABLE.iter().all(|row| names::find(row.name) == Some(row)));
    }

    #[test]
    fn only_rows_that_do_both_have_a_ratio() {
        assert!(TABLE.iter().all(|row| row.is_mixed() || row.settings.ratio.is_none()));
    }

    #[test]
    fn every_row_does_something_and_every_template_compiles() {
        let shape = RequestShape { keys: 1000, value_bytes: 32, ..RequestShape::default() };
        for row in TABLE {
            assert!(row.read.is_some() || row.write.is_some(), "{} is empty", row.name);
            for text in
                [row.read, row.write, row.fill, row.prepare, row.greeting].into_iter().flatten()
            {
                Template::compile(text, &shape).unwrap();
            }
        }
    }

    #[test]
    fn members_are_added_to_the_sorted_set_before_it_is_empty() {
        let shape = RequestShape { keys: 100, value_bytes: 32, ..RequestShape::default() };
        let names = ["zremrangebyrank", "zpopmin", "zmpop", "bzpopmin", "bzpopmax", "bzmpop"];
        for row in names.map(|name| names::find(name).unwrap()) {
            let ratio = row.settings.ratio.unwrap_or_default();
            let load =
                LoadSpec { ratio, shape: shape.clone(), pipeline: 16, ..LoadSpec::default() };
            let mut batches = Batches::new(row, &load, ThreadIndex::ONLY, None).unwrap();
            let mut members: HashSet<String> = (0..100).map(|n| format!("key:{n:012}")).collect();
            for _ in 0..2000 {
                let batch = std::str::from_utf8(batches.make_next(load.pipeline)).unwrap();
                for request in batch.split('*').skip(1) {
                    if request.contains("ZADD") {
                        let written = request.lines().filter(|line| line.starts_with("key:"));
                        members.extend(written.map(str::to_owned));
                    } else {
                        assert!(!members.is_empty(), "{} waits", row.name);
                        let popped = members.iter().next().cloned().unwrap();
                        members.remove(&popped);
                    }
                }
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

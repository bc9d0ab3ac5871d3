//! The default mode: a client is notified once of each key that it has read.

use crate::check::check;

#[test]
fn a_client_is_notified_once_of_a_key_that_it_has_read() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
> MSET k 1 other 1 -> OK
b> GET k -> "1"
> SET other 2 -> OK
b<
> SET k 2 -> OK
b< >["invalidate", ["k"]]
> SET k 3 -> OK
b<
b> MGET k nothing -> ["3", nil]
> SET nothing 1 -> OK
b< >["invalidate", ["nothing"]]
> DEL k nothing -> 2
b< >["invalidate", ["k"]]
b> GET k -> nil
b> STRLEN k -> 0
b> EXISTS k -> 0
b> TYPE k -> none
> APPEND k x -> 1
b< >["invalidate", ["k"]]
b> SET k 5 -> OK
b> INCR k -> 6
> SET k 6 -> OK
b<
"#,
    );
}

/// Redis does not remember what these commands return, because they may write: a client that caches
/// it there keeps a stale value.
#[test]
fn reading_with_a_new_expiry_is_reading() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
> SET k 1 -> OK
> HSET h f 1 -> 1
b> CLIENT TRACKING ON -> OK
b> HGETEX h FIELDS 1 f -> ["1"]
> HSET h f 2 -> 0
b< >["invalidate", ["h"]]
b> HGETEX h EX 100 FIELDS 1 f -> ["2"]
> HSET h g 2 -> 1
b< >["invalidate", ["h"]]
b> GETEX k -> "1"
> SET k 2 -> OK
b< >["invalidate", ["k"]]
b> GETEX k EX 100 -> "2"
b> GETEX k PERSIST -> "2" >["invalidate", ["k"]]
> SET k 3 -> OK
b< >["invalidate", ["k"]]
b> EVAL "return redis.call('GETEX', KEYS[1])" 1 k -> "3"
> SET k 4 -> OK
b< >["invalidate", ["k"]]
b> GETDEL k -> "4"
> SET k 5 -> OK
b<
"#,
    );
}

#[test]
fn every_kind_of_change_is_notified() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> GET k -> nil
> INCR k -> 1
b< >["invalidate", ["k"]]
b> GET k -> "1"
> EXPIRE k 100 -> 1
b< >["invalidate", ["k"]]
b> TTL k -> 100
> PERSIST k -> 1
b< >["invalidate", ["k"]]
b> MGET k l -> ["1", nil]
> RENAME k l -> OK
b< >["invalidate", ["k"]] >["invalidate", ["l"]]
b> MGET k l -> [nil, "1"]
> COPY l k -> 1
b< >["invalidate", ["k"]]
> COPY l k REPLACE -> 1
b<
b> MGET k l -> ["1", "1"]
> MOVE l 3 -> 1
b< >["invalidate", ["l"]]
b> GET k -> "1"
> PEXPIRE k 1 -> 1
b< >["invalidate", ["k"]]
b> GET k -> "1"
@advance 10
> GET k -> nil
b< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn every_kind_of_change_of_elements_is_notified() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> HGETALL h -> {}
> HSET h f 1 g 1 -> 2
b< >["invalidate", ["h"]]
b> HGET h f -> "1"
> HPEXPIRE h 5 FIELDS 1 f -> [1]
b< >["invalidate", ["h"]]
b> HGET h f -> "1"
@advance 10
> HLEN h -> 2
b<
> HGET h f -> nil
b< >["invalidate", ["h"]]
b> LRANGE l 0 -1 -> []
> RPUSH l a b c -> 3
b< >["invalidate", ["l"]]
b> LRANGE l 0 -1 -> ["a", "b", "c"]
> LPOP l -> "a"
b< >["invalidate", ["l"]]
b> SMEMBERS s -> ~[]
> SADD s 1 -> 1
b< >["invalidate", ["s"]]
b> ZRANGE z 0 -1 -> []
> ZADD z 1 a -> 1
b< >["invalidate", ["z"]]
b> ZRANGE z 0 -1 -> ["a"]
> ZADD z 1 a -> 0
b<
> ZUNIONSTORE z 1 z -> 1
b< >["invalidate", ["z"]]
b> XRANGE x - + -> []
> XADD x 1-1 f v -> "1-1"
b< >["invalidate", ["x"]]
b> SORT_RO s -> ["1"]
> SORT l STORE s -> -ERR One or more scores can't be converted into double
b<
"#,
    );
}

#[test]
fn the_database_is_ignored() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> GET k -> nil
> SELECT 1 -> OK
> SET k 1 -> OK
b< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn an_own_change_is_notified_after_the_reply() {
    check(
        r#"
> HELLO 3
{"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "master",
   "modules": []}
> CLIENT TRACKING ON -> OK
> GET k -> nil
> SET k 1 -> OK >["invalidate", ["k"]]
> GET k -> "1"
> MULTI -> OK
> SET k 2 -> QUEUED
> GET k -> QUEUED
> DEL k -> QUEUED
> EXEC -> [OK, "2", 1] >["invalidate", ["k"]] >["invalidate", ["k"]]
> SET k 3 -> OK
> GET k -> "3"
> EVAL "redis.call('get', KEYS[1]) return redis.call('set', KEYS[1], 5)" 1 k
OK >["invalidate", ["k"]]
> SET k 5 -> OK
> GET k -> "5"
> CLIENT REPLY SKIP
> SET k 6 -> >["invalidate", ["k"]]
> CLIENT TRACKING ON NOLOOP -> OK
> GET k -> "6"
> SET k 7 -> OK
b> SET k 8 -> OK
a<
> GET k -> "8"
b> SET k 8 -> OK
a< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn reads_of_a_script_count_for_its_client() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> EVAL "return redis.call('get', KEYS[1])" 2 k l -> nil
> MSET k 1 l 1 -> OK
b< >["invalidate", ["k"]]
b> EVAL_RO "return redis.call('ping')" 1 k -> PONG
> SET k 2 -> OK
b<
b> EVAL "return redis.call('incr', KEYS[1])" 1 k -> 3
> SET k 2 -> OK
b<
b> MULTI -> OK
b> GET k -> QUEUED
b> SET l 1 -> QUEUED
b> EXEC -> ["2", OK]
> EVAL "redis.call('set', KEYS[1], 1) redis.call('set', KEYS[2], 1)" 2 k l -> nil
b< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn keys_of_a_blocked_client_are_tracked_when_it_is_served() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> XREAD BLOCK 0 STREAMS x $
> XADD x 1-1 f v -> "1-1"
b< {"x": [["1-1", ["f", "v"]]]} >["invalidate", ["x"]]
> XADD x 1-2 f v -> "1-2"
b< >["invalidate", ["x"]]
> XADD x 1-3 f v -> "1-3"
b<
b> BLPOP l 0
> RPUSH l 1 -> 1
b< ["l", "1"]
> RPUSH l 2 -> 1
b<
"#,
    );
}

#[test]
fn an_expired_key_is_notified_when_it_is_found() {
    check(
        r#"
> HELLO 3
{"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "master",
   "modules": []}
> CLIENT TRACKING ON NOLOOP -> OK
> SET k 1 PX 5 -> OK
> GET k -> "1"
@advance 10
> GET k -> nil >["invalidate", ["k"]]
> EXISTS k -> 0
b> SET k 2 -> OK
a< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn a_client_that_stopped_tracking_is_not_notified() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
c> HELLO 3
c< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "maste
  r", "modules": []}
c> CLIENT TRACKING ON -> OK
b> GET k -> nil
c> GET k -> nil
b> CLIENT TRACKING OFF -> OK
> SET k 1 -> OK
b<
c< >["invalidate", ["k"]]
b> CLIENT TRACKING ON -> OK
b> GET k -> "1"
b> CLIENT TRACKING OFF -> OK
b> CLIENT TRACKING ON BCAST PREFIX x -> OK
> SET k 2 -> OK
b<
b> CLIENT TRACKING OFF -> OK
c> GET k -> "2"
@close c
> SET k 3 -> OK
d> CLIENT TRACKING ON -> OK
d> GET k -> "3"
> SET k 4 -> OK
d<
d> HELLO 3
d< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 4, "mode": "standalone", "role": "maste
  r", "modules": []}
d> GET k -> "4"
> SET k 5 -> OK
d< >["invalidate", ["k"]]
d> GET k -> "5"
d> RESET -> RESET
> SET k 6 -> OK
d<
> INFO clients -> ~~ *tracking_clients:0*
"#,
    );
}

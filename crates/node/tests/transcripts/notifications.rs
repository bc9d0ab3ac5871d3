//! Keyspace notifications: events, their channels, and their order.

use crate::check::check;

#[test]
fn an_event_is_published_to_its_key_and_by_its_name() {
    check(
        r#"
b> PSUBSCRIBE __key* -> ["psubscribe", "__key*", 1]
> SET k v -> OK
b<
> CONFIG SET notify-keyspace-events KEA -> OK
> SET k v -> OK
b< ["pmessage", "__key*", "__keyspace@0__:k", "set"]
   ["pmessage", "__key*", "__keyevent@0__:set", "k"]
> CONFIG SET notify-keyspace-events K$ -> OK
> SET k v -> OK
b< ["pmessage", "__key*", "__keyspace@0__:k", "set"]
> DEL k -> 1
b<
> CONFIG SET notify-keyspace-events Eg -> OK
> SET k v EX 100 -> OK
b< ["pmessage", "__key*", "__keyevent@0__:expire", "k"]
> SELECT 3 -> OK
> SET k v -> OK
> MOVE k 4 -> 1
b< ["pmessage", "__key*", "__keyevent@3__:move_from", "k"]
   ["pmessage", "__key*", "__keyevent@4__:move_to", "k"]
> CONFIG SET notify-keyspace-events A -> OK
> SET k v -> OK
b<
> CONFIG SET notify-keyspace-events "" -> OK
> DEL k -> 1
b<
"#,
    );
}

#[test]
fn the_parameter_is_printed_as_redis_does() {
    check(
        r#"
> CONFIG GET notify-keyspace-events -> ["notify-keyspace-events", ""]
> CONFIG SET notify-keyspace-events mEKx -> OK
> CONFIG GET notify-keyspace-events -> ["notify-keyspace-events", "xKEm"]
> CONFIG SET notify-keyspace-events dtexzhsl$gK -> OK
> CONFIG GET notify-keyspace-events -> ["notify-keyspace-events", "AK"]
> CONFIG SET notify-keyspace-events nK -> OK
> CONFIG GET notify-keyspace-events -> ["notify-keyspace-events", "nK"]
> CONFIG SET notify-keyspace-events KEAnm -> OK
> CONFIG GET notify-keyspace-events -> ["notify-keyspace-events", "AKEm"]
> CONFIG SET notify-keyspace-events q
-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event
   class character. Use 'Ag$lshzxeKEtmdn'.
"#,
    );
}

#[test]
fn keys_that_are_new_missed_or_expired() {
    check(
        r#"
> CONFIG SET notify-keyspace-events EAnm -> OK
b> PSUBSCRIBE * -> ["psubscribe", "*", 1]
> SET k v PX 100 -> OK
b< ["pmessage", "*", "__keyevent@0__:new", "k"] ["pmessage", "*", "__keyevent@0__:set", "k"]
   ["pmessage", "*", "__keyevent@0__:expire", "k"]
> SET k w KEEPTTL -> OK
b< ["pmessage", "*", "__keyevent@0__:set", "k"]
@advance 200
> GET k -> nil
b< ["pmessage", "*", "__keyevent@0__:expired", "k"] ["pmessage", "*", "__keyevent@0__:keymiss", "k"]
> OBJECT ENCODING k -> nil
> EXISTS k -> 0
b< ["pmessage", "*", "__keyevent@0__:keymiss", "k"]
> LPUSH l 1 -> 1
b< ["pmessage", "*", "__keyevent@0__:new", "l"] ["pmessage", "*", "__keyevent@0__:lpush", "l"]
> RENAME l m -> OK
b< ["pmessage", "*", "__keyevent@0__:new", "m"]
   ["pmessage", "*", "__keyevent@0__:rename_from", "l"]
   ["pmessage", "*", "__keyevent@0__:rename_to", "m"]
> LPOP m -> "1"
b< ["pmessage", "*", "__keyevent@0__:lpop", "m"] ["pmessage", "*", "__keyevent@0__:del", "m"]
> HSET h a 1 b 2 -> 2
b< ["pmessage", "*", "__keyevent@0__:new", "h"] ["pmessage", "*", "__keyevent@0__:hset", "h"]
> HPEXPIRE h 50 FIELDS 1 a -> [1]
b< ["pmessage", "*", "__keyevent@0__:hexpire", "h"]
@advance 100
> HGET h a -> nil
b< ["pmessage", "*", "__keyevent@0__:hexpired", "h"]
> LTRIM nokey 0 1 -> OK
> RPUSH l a b -> 2
b< ~~ *rpush*
> LTRIM l 0 -1 -> OK
b< ["pmessage", "*", "__keyevent@0__:ltrim", "l"]
> ZADD z 1 a -> 1
b< ~~ *new*zadd*
> ZUNIONSTORE z 1 z -> 1
b< ["pmessage", "*", "__keyevent@0__:zunionstore", "z"]
> COPY l z REPLACE -> 1
b< ["pmessage", "*", "__keyevent@0__:new", "z"] ["pmessage", "*", "__keyevent@0__:copy_to", "z"]
"#,
    );
}

#[test]
fn each_command_of_a_transaction_or_script_publishes_its_events() {
    check(
        r#"
> CONFIG SET notify-keyspace-events EA -> OK
b> PSUBSCRIBE * -> ["psubscribe", "*", 1]
> MULTI -> OK
> SET k v -> QUEUED
> PUBLISH c between -> QUEUED
> SELECT 1 -> QUEUED
> DEL k -> QUEUED
> SADD k a -> QUEUED
> EXEC -> [OK, 1, OK, 0, 1]
b< ["pmessage", "*", "__keyevent@0__:set", "k"] ["pmessage", "*", "c", "between"]
   ["pmessage", "*", "__keyevent@1__:sadd", "k"]
> EVAL "redis.call('INCR', KEYS[1]) redis.call('PUBLISH', 'c', 'm') redis.call('DEL', KEYS[1])" 1 n
nil
b< ["pmessage", "*", "__keyevent@1__:incrby", "n"] ["pmessage", "*", "c", "m"]
   ["pmessage", "*", "__keyevent@1__:del", "n"]
"#,
    );
}

#[test]
fn events_of_a_served_client_follow_those_of_the_serving_command() {
    check(
        r#"
> CONFIG SET notify-keyspace-events EA -> OK
b> PSUBSCRIBE * -> ["psubscribe", "*", 1]
c> SELECT 2 -> OK
c> BLMOVE from to LEFT RIGHT 0
c<
> SELECT 2 -> OK
> RPUSH from x -> 1
c< "x"
b< ["pmessage", "*", "__keyevent@2__:rpush", "from"] ["pmessage", "*", "__keyevent@2__:rpush", "to"]
   ["pmessage", "*", "__keyevent@2__:lpop", "from"] ["pmessage", "*", "__keyevent@2__:del", "from"]
"#,
    );
}

#[test]
fn a_client_is_notified_of_its_own_change() {
    check(
        r#"
> HELLO 3 -> ~~ *
> CONFIG SET notify-keyspace-events EA -> OK
> SUBSCRIBE __keyevent@0__:set -> >["subscribe", "__keyevent@0__:set", 1]
> SET k v -> OK >["message", "__keyevent@0__:set", "k"]
> CLIENT REPLY SKIP
> SET k v -> >["message", "__keyevent@0__:set", "k"]
> INCR k -> -ERR value is not an integer or out of range
> GET k -> "v"
"#,
    );
}

#[test]
fn misses_are_those_of_redis() {
    check(
        r#"
> CONFIG SET notify-keyspace-events lshzxeKE -> OK
> CONFIG GET notify-keyspace-events -> ["notify-keyspace-events", "lshzxeKE"]
> CONFIG SET notify-keyspace-events Eghmn -> OK
b> PSUBSCRIBE * -> ["psubscribe", "*", 1]
# A stream is looked up twice, first to check the request.
> XREAD STREAMS none 0 -> nil-array
b< ["pmessage", "*", "__keyevent@0__:keymiss", "none"]
   ["pmessage", "*", "__keyevent@0__:keymiss", "none"]
> XREAD STREAMS none other 0 0 -> nil-array
b< ~~ *none"* *other"* *none"* *other"*
# A hash whose last field expires existed, so this is no miss.
> HSET h f v -> 1
> HPEXPIRE h 10 FIELDS 1 f -> [1]
b< ~~ *:new*:hset*:hexpire"*
@advance 20
> HGET h f -> nil
b< ["pmessage", "*", "__keyevent@0__:hexpired", "h"] ["pmessage", "*", "__keyevent@0__:del", "h"]
> HGET h f -> nil
b< ["pmessage", "*", "__keyevent@0__:keymiss", "h"]
> HSET h f v g w -> 2
> HPEXPIRE h 10 FIELDS 2 f g -> [1, 1]
b< ~~ *:new*:hset*:hexpire"*
@advance 20
> HMGET h f g -> [nil, nil]
b< ["pmessage", "*", "__keyevent@0__:hexpired", "h"] ["pmessage", "*", "__keyevent@0__:del", "h"]
# A hash that one command removes and writes again is not a new key.
> HSET h f v -> 1
> HPEXPIRE h 10 FIELDS 1 f -> [1]
b< ~~ *:new*:hset*:hexpire"*
@advance 20
> HSETEX h FNX PX 1000 FIELDS 1 f v -> 1
b< ["pmessage", "*", "__keyevent@0__:hexpired", "h"] ["pmessage", "*", "__keyevent@0__:hset", "h"]
   ["pmessage", "*", "__keyevent@0__:hexpire", "h"]
@advance 2000
> HSETEX h FXX PX 1000 FIELDS 1 f v -> 0
b< ["pmessage", "*", "__keyevent@0__:hexpired", "h"] ["pmessage", "*", "__keyevent@0__:del", "h"]
"#,
    );
}

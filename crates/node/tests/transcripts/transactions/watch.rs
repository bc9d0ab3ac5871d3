//! WATCH and UNWATCH.

use crate::check::check;

#[test]
fn a_changed_key_stops_exec() {
    check(
        r#"
> SET k 1 -> OK
> WATCH k -> OK
> MULTI -> OK
> SET k 2 -> QUEUED
> EXEC -> [OK]
> WATCH k -> OK
b> SET k 3 -> OK
> MULTI -> OK
> SET k 4 -> QUEUED
> EXEC -> nil-array
> GET k -> "3"
> WATCH k l k -> OK
b> SET other 3 -> OK
b> GET k -> "3"
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH k -> OK
> SET k mine -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn unwatch_and_discard_end_the_watch() {
    check(
        r#"
> SET k 1 -> OK
> WATCH k -> OK
b> SET k 5 -> OK
> UNWATCH -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH k -> OK
b> SET k 6 -> OK
> MULTI -> OK
> DISCARD -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH k -> OK
b> DEL k -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn absent_keys_are_watched() {
    check(
        r#"
> WATCH nokey -> OK
b> SET nokey 1 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH nokey -> OK
b> EXPIRE nokey 100 -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH nokey -> OK
b> DEL other-nokey -> 0
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH x -> OK
b> SET x 1 -> OK
b> DEL x -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH x -> OK
b> DEL x -> 0
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
"#,
    );
}

#[test]
fn changes_of_lists_and_sets() {
    check(
        r#"
> RPUSH l a b -> 2
> WATCH l -> OK
b> LSET l 0 z -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH l -> OK
b> LTRIM l 0 -1 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH l -> OK
b> LPOP l 2 -> ["z", "b"]
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> SADD s a -> 1
> WATCH s -> OK
b> SADD s a -> 0
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH s -> OK
b> SMOVE s t a -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn changes_of_hashes_and_sorted_sets() {
    check(
        r#"
> HSET h f 1 -> 1
> WATCH h -> OK
b> HINCRBY h f 1 -> 2
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> ZADD z 1 a -> 1
> WATCH z -> OK
b> ZADD z 1 a -> 0
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH z -> OK
b> ZINCRBY z 1 a -> "2"
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn changes_of_strings_and_names() {
    check(
        r#"
> SET i 1 -> OK
> WATCH i -> OK
b> INCR i -> 2
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH i -> OK
b> PERSIST i -> 0
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH i j -> OK
b> RENAME i j -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH copy -> OK
b> COPY j copy -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn changes_of_streams_and_bits() {
    check(
        r#"
> XADD x 1-1 a b -> "1-1"
> WATCH x -> OK
b> XDEL x 1-1 -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> SETBIT bits 1 1 -> 0
> WATCH bits -> OK
b> BITFIELD bits SET u8 0 3 -> [64]
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> PFADD hll a -> 1
> WATCH hll -> OK
b> PFADD hll b -> 1
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn changes_by_sort() {
    check(
        r#"
> WATCH l -> OK
b> SORT s STORE l -> 0
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> RPUSH numbers 3 1 2 -> 3
> WATCH sorted -> OK
b> SORT numbers STORE sorted -> 3
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
"#,
    );
}

#[test]
fn flushed_databases() {
    check(
        r#"
> SET k 1 -> OK
> WATCH k -> OK
b> SELECT 1 -> OK
b> SET k 2 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH k -> OK
b> FLUSHDB -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH k -> OK
b> FLUSHALL -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH k -> OK
b> FLUSHALL -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
"#,
    );
}

#[test]
fn swapped_databases() {
    check(
        r#"
> SET k 1 -> OK
> SELECT 5 -> OK
> WATCH k -> OK
b> SWAPDB 0 5 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH k -> OK
b> SWAPDB 5 6 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> WATCH nokey -> OK
b> SWAPDB 5 6 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> WATCH k -> OK
b> SWAPDB 5 5 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
"#,
    );
}

#[test]
fn keys_that_expire_while_watched() {
    check(
        r#"
> SET k 1 PX 200 -> OK
> WATCH k -> OK
@advance 250
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> SET k 1 PX 200 -> OK
> WATCH k -> OK
@advance 250
b> GET k -> nil
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> SET k 1 PX 200 -> OK
@advance 250
> WATCH k -> OK
b> GET k -> nil
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
"#,
    );
}

#[test]
fn keys_that_had_already_expired_when_watched() {
    check(
        r#"
> SET k 1 PX 200 -> OK
@advance 250
> WATCH k -> OK
b> SET k 2 -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> SET k 1 PX 200 -> OK
@advance 250
> WATCH k -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
> SET k 1 PX 200 -> OK
@advance 250
> WATCH k -> OK
b> FLUSHALL -> OK
> MULTI -> OK
> PING -> QUEUED
> EXEC -> [PONG]
"#,
    );
}

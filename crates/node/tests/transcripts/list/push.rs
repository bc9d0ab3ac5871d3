//! LPUSH, RPUSH, LPUSHX, RPUSHX.

use crate::check::check;

#[test]
fn push() {
    check(
        r#"
> RPUSH l a -> 1
! rpush:l => RPUSH l a
> RPUSH l b c -> 3
! rpush:l => RPUSH l b c
> LPUSH l x -> 4
! lpush:l => LPUSH l x
> LPUSH l y z -> 6
! lpush:l => LPUSH l y z
> LRANGE l 0 -1 -> ["z", "y", "x", "a", "b", "c"]
> TYPE l -> list
> LPUSH new "" 007 12 -5 9223372036854775807 "a b\x00\xff" -> 6
> LRANGE new 0 -1 -> ["a b\x00\xff", "9223372036854775807", "-5", "12", "007", ""]
# The expiry stays.
> PEXPIRE l 100000 -> 1
> RPUSH l d -> 7
> PTTL l -> 100000
> PEXPIRE l 1 -> 1
@advance 20
> LPUSH l only -> 1
! expired:l => DEL l
! lpush:l => LPUSH l only
> LRANGE l 0 -1 -> ["only"]
"#,
    );
}

#[test]
fn push_onto_existing_lists() {
    check(
        r#"
> LPUSHX l a -> 0
> RPUSHX l a b -> 0
> EXISTS l -> 0
> RPUSH l m -> 1
> LPUSHX l a b -> 3
! lpush:l => LPUSHX l a b
> RPUSHX l y z -> 5
! rpush:l => RPUSHX l y z
> LRANGE l 0 -1 -> ["b", "a", "m", "y", "z"]
"#,
    );
}

#[test]
fn push_errors() {
    check(
        r#"
> SET s v -> OK
> LPUSH s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSH s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LPUSHX s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSHX s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LPUSH l -> -ERR wrong number of arguments for 'lpush' command
> RPUSH l -> -ERR wrong number of arguments for 'rpush' command
> LPUSHX l -> -ERR wrong number of arguments for 'lpushx' command
> RPUSHX l -> -ERR wrong number of arguments for 'rpushx' command
> GET s -> "v"
> EXISTS l -> 0
"#,
    );
}

//! LSET, LINSERT, LREM, LTRIM.

use crate::check::check;

#[test]
fn set() {
    check(
        r#"
> RPUSH l a b c -> 3
> LSET l 1 two -> OK
! lset:l => LSET l 1 two
> LSET l -1 3 -> OK
> LSET l 0 "" -> OK
> LRANGE l 0 -1 -> ["", "two", "3"]
> LSET l 3 x -> -ERR index out of range
> LSET l -4 x -> -ERR index out of range
> LSET l x y -> -ERR value is not an integer or out of range
> LSET l 9223372036854775808 y -> -ERR value is not an integer or out of range
> LSET missing 0 x -> -ERR no such key
> LSET missing x y -> -ERR no such key
> SET s v -> OK
> LSET s 0 x -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LSET l 0 -> -ERR wrong number of arguments for 'lset' command
"#,
    );
}

#[test]
fn insert() {
    check(
        r#"
> RPUSH l a b 3 b -> 4
> LINSERT l BEFORE b x -> 5
! linsert:l => LINSERT l BEFORE b x
> LINSERT l after b y -> 6
! linsert:l => LINSERT l after b y
> LINSERT l AFTER 3 3.5 -> 7
> LINSERT l BEFORE a first -> 8
> LINSERT l AFTER last z -> -1
> LRANGE l 0 -1 -> ["first", "a", "x", "b", "y", "3", "3.5", "b"]
> RPUSH l end -> 9
> LINSERT l AFTER end last -> 10
> LRANGE l -2 -1 -> ["end", "last"]
> LINSERT missing AFTER a b -> 0
> LINSERT l BETWEEN a b -> -ERR syntax error
> LINSERT missing BETWEEN a b -> -ERR syntax error
> SET s v -> OK
> LINSERT s BEFORE a b -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LINSERT l BEFORE a -> -ERR wrong number of arguments for 'linsert' command
"#,
    );
}

#[test]
fn remove() {
    check(
        r#"
> RPUSH l a b a c a d a -> 7
> LREM l 1 a -> 1
! lrem:l => LREM l 1 a
> LRANGE l 0 -1 -> ["b", "a", "c", "a", "d", "a"]
> LREM l -1 a -> 1
> LRANGE l 0 -1 -> ["b", "a", "c", "a", "d"]
> LREM l 0 x -> 0
> LREM l 0 a -> 2
> LRANGE l 0 -1 -> ["b", "c", "d"]
> RPUSH l 5 5 6 05 -> 7
> LREM l 5 5 -> 2
> LRANGE l 0 -1 -> ["b", "c", "d", "6", "05"]
> DEL l -> 1
> RPUSH l z z -> 2
> LREM l -5 z -> 2
! lrem:l del:l => LREM l -5 z
> EXISTS l -> 0
> LREM l 1 z -> 0
> LREM l x z -> -ERR value is not an integer or out of range
> LREM l -9223372036854775808 z
-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> LREM l 9223372036854775807 z -> 0
> SET s v -> OK
> LREM s 0 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LREM s x a -> -ERR value is not an integer or out of range
> LREM l 1 -> -ERR wrong number of arguments for 'lrem' command
"#,
    );
}

#[test]
fn trim() {
    check(
        r#"
> RPUSH l a b c d e -> 5
> LTRIM l 0 -1 -> OK
> LTRIM l -100 100 -> OK
> LTRIM l 1 -2 -> OK
! ltrim:l => LTRIM l 1 -2
> LRANGE l 0 -1 -> ["b", "c", "d"]
> LTRIM l 1 9 -> OK
> LRANGE l 0 -1 -> ["c", "d"]
> LTRIM l 0 0 -> OK
> LRANGE l 0 -1 -> ["c"]
> LTRIM l 1 0 -> OK
! ltrim:l del:l => LTRIM l 1 0
> EXISTS l -> 0
> LTRIM l 0 1 -> OK
> RPUSH l a -> 1
> LTRIM l 5 9 -> OK
> EXISTS l -> 0
> LTRIM l x 1 -> -ERR value is not an integer or out of range
> LTRIM l 0 x -> -ERR value is not an integer or out of range
> SET s v -> OK
> LTRIM s 0 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LTRIM l 0 -> -ERR wrong number of arguments for 'ltrim' command
"#,
    );
}

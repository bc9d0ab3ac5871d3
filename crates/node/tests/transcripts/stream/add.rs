//! XADD and XLEN.

use crate::check::check;

#[test]
fn entries_and_identifiers() {
    check(
        r#"
> XADD s 1-1 a 1 b two -> "1-1"
! xadd:s => XADD s 1-1 a 1 b two
> XADD s 1-2 a 007 b "" -> "1-2"
> XADD s 1-* c 3 -> "1-3"
! xadd:s => XADD s 1-3 c 3
> XADD s 5 a -1 b 99999999999 -> "5-0"
! xadd:s => XADD s 5 a -1 b 99999999999
> XADD s 5-* a x b y -> "5-1"
> XADD s 6-* a x b y -> "6-0"
> XADD s 0007-09 a x b y -> "7-9"
> XLEN s -> 7
> XRANGE s - +
[["1-1", ["a", "1", "b", "two"]], ["1-2", ["a", "007", "b", ""]], ["1-3", ["c", "3"]], ["5-0",
   ["a", "-1", "b", "99999999999"]], ["5-1", ["a", "x", "b", "y"]], ["6-0", ["a", "x", "b",
   "y"]], ["7-9", ["a", "x", "b", "y"]]]
> TYPE s -> stream
> OBJECT ENCODING s -> "stream"
> XADD zero 0-* a b -> "0-1"
> XADD zero 0-1 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD zero 0-2 a b -> "0-2"
> XADD zero 0-* a b -> "0-3"
"#,
    );
}

#[test]
fn identifiers_follow_the_clock() {
    check(
        r#"
> XADD s * a b -> "1700000000000-0"
! xadd:s => XADD s 1700000000000-0 a b
> XADD s * a b -> "1700000000000-1"
@advance 5
> XADD s * a b -> "1700000000005-0"
> XADD s 9000000000000-7 a b -> "9000000000000-7"
> XADD s * a b -> "9000000000000-8"
> XADD s 9000000000000-18446744073709551615 a b -> "9000000000000-18446744073709551615"
> XADD s 9000000000000-* a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s * a b -> "9000000000001-0"
> XADD s 18446744073709551615-18446744073709551614 a b
"18446744073709551615-18446744073709551614"
> XADD s * a b -> "18446744073709551615-18446744073709551615"
> XADD s * a b -> -ERR The stream has exhausted the last possible ID, unable to add more items
> XADD s 1-1 a b -> -ERR The stream has exhausted the last possible ID, unable to add more items
> XADD s 1-* a b -> -ERR The stream has exhausted the last possible ID, unable to add more items
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XADD -> -ERR wrong number of arguments for 'xadd' command
> XADD s * -> -ERR wrong number of arguments for 'xadd' command
> XADD s * a -> -ERR wrong number of arguments for 'xadd' command
> XADD s * a b c -> -ERR wrong number of arguments for 'xadd' command
> XADD s 1-1 -> -ERR wrong number of arguments for 'xadd' command
> XADD s 0-0 a b -> -ERR The ID specified in XADD must be greater than 0-0
> XADD s 0 a b -> -ERR The ID specified in XADD must be greater than 0-0
> XADD s x a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s - a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s + a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s *-1 a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s 1-2-3 a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s 1-18446744073709551616 a b -> -ERR Invalid stream ID specified as stream command argument
> EXISTS s -> 0
> XADD s 5-5 a b -> "5-5"
> XADD s 5-5 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s 5-4 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s 4-* a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s 5-18446744073709551615 a b -> "5-18446744073709551615"
> XADD s 5-* a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> SET text v -> OK
> XADD text * a b -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XADD text NOMKSTREAM * a b -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XLEN text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XLEN nokey -> 0
> XLEN s -> 2
> XLEN s s -> -ERR wrong number of arguments for 'xlen' command
"#,
    );
}

#[test]
fn nomkstream() {
    check(
        r#"
> XADD s NOMKSTREAM * a b -> nil
> EXISTS s -> 0
> XADD s 1-1 a b -> "1-1"
> XADD s nomkstream NOMKSTREAM 1-2 a b -> "1-2"
! xadd:s => XADD s nomkstream NOMKSTREAM 1-2 a b
> HELLO 3 -> ~~ {*}
> XADD t NOMKSTREAM * a b -> nil
"#,
    );
}

#[test]
fn trimming_options() {
    check(
        r#"
> XADD s MAXLEN 5 MINID 1 * a b
-ERR syntax error, MAXLEN and MINID options at the same time are not compatible
> XADD s MAXLEN 5 MAXLEN 6 * a b
-ERR syntax error, MAXLEN and MINID options at the same time are not compatible
> XADD s MAXLEN -1 * a b -> -ERR The MAXLEN argument must be >= 0.
> XADD s MAXLEN x * a b -> -ERR value is not an integer or out of range
> XADD s MAXLEN ~ x * a b -> -ERR value is not an integer or out of range
> XADD s MINID x * a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s MINID - * a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s MAXLEN ~ 5 LIMIT -1 * a b -> -ERR The LIMIT argument must be >= 0.
> XADD s MAXLEN ~ 5 LIMIT x * a b -> -ERR value is not an integer or out of range
> XADD s MAXLEN 5 LIMIT 3 * a b
-ERR syntax error, LIMIT cannot be used without the special ~ option
> XADD s MAXLEN 5 LIMIT 0 * a b
-ERR syntax error, LIMIT cannot be used without the special ~ option
> XADD s LIMIT 3 * a b
-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
> XADD s LIMIT 0 1-1 a b -> -ERR syntax error, LIMIT cannot be used without the special ~ option
> XADD s MAXLEN 5 NOMKSTREAM -> -ERR wrong number of arguments for 'xadd' command
> XADD s MAXLEN = 5 -> -ERR wrong number of arguments for 'xadd' command
> XADD s MAXLEN 5 ~ * a b -> -ERR Invalid stream ID specified as stream command argument
> XADD s maxlen = 2 2-1 a b -> "2-1"
! xadd:s => XADD s maxlen = 2 2-1 a b
> XADD s MAXLEN 1 3-1 a b -> "3-1"
! xadd:s xtrim:s => XADD s MAXLEN 1 3-1 a b
> XRANGE s - + -> [["3-1", ["a", "b"]]]
> XADD s MINID 4 4-1 a b -> "4-1"
! xadd:s xtrim:s => XADD s MINID 4 4-1 a b
> XADD s MINID = 9 5-1 a b -> "5-1"
> XLEN s -> 0
> XRANGE s - + -> []
> XADD s MAXLEN 0 6-1 a b -> "6-1"
> XLEN s -> 0
> EXISTS s -> 1
"#,
    );
}

#[test]
fn inexact_trimming_is_replayed_exactly() {
    check(
        r#"
> CONFIG SET stream-node-max-entries 2 -> OK
> XADD s 1-1 a b -> "1-1"
> XADD s 1-2 a b -> "1-2"
> XADD s 1-3 a b -> "1-3"
> XADD s 1-4 a b -> "1-4"
> XADD s MAXLEN ~ 3 1-5 a b -> "1-5"
! xadd:s xtrim:s => XADD s MAXLEN = 3 1-5 a b
> XADD s MAXLEN ~ 3 * a b -> "1700000000000-0"
! xadd:s => XADD s MAXLEN = 4 1700000000000-0 a b
> XADD s MAXLEN ~ 0 LIMIT 1 9000000000000-1 a b -> "9000000000000-1"
! xadd:s => XADD s MAXLEN = 5 9000000000000-1 a b
> XADD s LIMIT 4 MAXLEN ~ 0 9000000000000-2 a b -> "9000000000000-2"
! xadd:s xtrim:s => XADD s MAXLEN = 2 9000000000000-2 a b
> XRANGE s - + -> [["9000000000000-1", ["a", "b"]], ["9000000000000-2", ["a", "b"]]]
> XADD s MINID ~ 9100000000000 9000000000000-3 a b -> "9000000000000-3"
! xadd:s xtrim:s => XADD s MINID = 18446744073709551615-18446744073709551615 9000000000000-3 a b
> XADD s MINID ~ 9000000000000-5 9000000000000-4 a b -> "9000000000000-4"
> XADD s MINID ~ 9000000000000-5 9000000000000-5 a b -> "9000000000000-5"
> XADD s MINID ~ 9000000000000-5 9000000000000-6 a b -> "9000000000000-6"
> XRANGE s - + -> [["9000000000000-5", ["a", "b"]], ["9000000000000-6", ["a", "b"]]]
"#,
    );
}

//! Features after Redis 8.0: XDELEX, XACKDEL, trimming that respects groups, XREADGROUP CLAIM.

use crate::check::check;

/// Three entries; group `g` has read all, and `h` has read one.
const GROUPS: &str = r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XGROUP CREATE s g 0 -> OK
> XGROUP CREATE s h 0 -> OK
> XREADGROUP GROUP g c STREAMS s >
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
> XREADGROUP GROUP h d COUNT 1 STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
"#;

#[track_caller]
fn check_with_groups(transcript: &str) {
    check(&format!("{GROUPS}{transcript}"));
}

#[test]
fn xdelex() {
    check_with_groups(
        r#"
> XDELEX s IDS 2 1-1 9-9 -> [1, -1]
! xdel:s => XDEL s 1-1
> XPENDING s g -> [3, "1-1", "1-3", [["c", "3"]]]
> XDELEX s IDS 1 1-1 DELREF -> [-1]
!  => XACK s g 1-1 | XACK s h 1-1
> XPENDING s g -> [2, "1-2", "1-3", [["c", "2"]]]
> XPENDING s h -> [0, nil, nil, nil-array]
> XDELEX s ACKED IDS 2 1-2 1-3 -> [2, 2]
> XACK s g 1-2 1-3 -> 2
> XDELEX s ACKED IDS 1 1-2 -> [2]
> XREADGROUP GROUP h d NOACK STREAMS s > -> [["s", [["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
> XDELEX s acked ids 2 1-2 1-2 -> [1, -1]
! xdel:s => XDEL s 1-2
> XDELEX s DELREF IDS 1 1-3 -> [1]
> XLEN s -> 0
> XDELEX nokey IDS 2 1-1 1-2 -> [-1, -1]
"#,
    );
}

#[test]
fn xackdel() {
    check_with_groups(
        r#"
> XACKDEL s h IDS 2 1-1 1-2 -> [1, -1]
! xdel:s => XACK s h 1-1 | XDEL s 1-1
> XPENDING s h -> [0, nil, nil, nil-array]
> XPENDING s g -> [3, "1-1", "1-3", [["c", "3"]]]
> XACKDEL s g KEEPREF IDS 1 1-1 -> [1]
!  => XACK s g 1-1
> XACKDEL s g ACKED IDS 1 1-2 -> [2]
!  => XACK s g 1-2
> XPENDING s g -> [1, "1-3", "1-3", [["c", "1"]]]
> XREADGROUP GROUP h d STREAMS s > -> [["s", [["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
> XACKDEL s h ACKED IDS 2 1-2 1-3 -> [1, 2]
> XREADGROUP GROUP h d STREAMS s 0 -> [["s", []]]
> XACKDEL s g DELREF IDS 1 1-3 -> [1]
> XLEN s -> 0
> XACKDEL s nogroup IDS 1 1-1 -> [-1]
> XACKDEL nokey g IDS 1 1-1 -> [-1]
"#,
    );
}

#[test]
fn errors_of_both() {
    check(
        r#"
> XDELEX s IDS 1 -> -ERR wrong number of arguments for 'xdelex' command
> XACKDEL s g IDS 1 -> -ERR wrong number of arguments for 'xackdel' command
> XDELEX s IDS 0 1-1 -> -ERR Number of IDs must be a positive integer
> XDELEX s IDS x 1-1 -> -ERR Number of IDs must be a positive integer
> XDELEX s IDS -1 1-1 -> -ERR Number of IDs must be a positive integer
> XDELEX s IDS 2 1-1 -> -ERR The `numids` parameter must match the number of arguments
> XDELEX s IDS 1 1-1 1-2 -> -ERR syntax error
> XDELEX s KEEPREF ACKED IDS 1 1-1 -> -ERR syntax error
> XDELEX s FOO IDS 1 1-1 -> -ERR syntax error
> XDELEX s IDS 1 x -> -ERR Invalid stream ID specified as stream command argument
> XACKDEL s g IDS 1 x -> -ERR Invalid stream ID specified as stream command argument
> XACKDEL s g DELREF DELREF IDS 1 1-1 -> -ERR syntax error
> SET t v -> OK
> XDELEX t IDS 1 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XACKDEL t g IDS 1 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn trimming_that_respects_groups() {
    check_with_groups(
        r#"
> XACK s g 1-1 1-2 -> 2
> XTRIM s MAXLEN 0 ACKED -> 0
> XACK s h 1-1 -> 1
> XTRIM s ACKED MAXLEN 0 -> 1
! xtrim:s => XTRIM s MAXLEN 2
> XRANGE s - + -> [["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]
> XTRIM s MAXLEN 0 KEEPREF ACKED -> -ERR syntax error
> XADD s DELREF MAXLEN ~ 0 1-4 a 4 -> "1-4"
! xadd:s xtrim:s => XADD s MAXLEN = 0 1-4 a 4 | XACK s g 1-3
> XPENDING s g -> [0, nil, nil, nil-array]
> XADD s KEEPREF 1-5 a 5 -> "1-5"
! xadd:s => XADD s 1-5 a 5
> XADD s KEEPREF DELREF 1-5 a 5 -> -ERR Invalid stream ID specified as stream command argument
> XTRIM s MINID 9 KEEPREF -> 1
! xtrim:s => XTRIM s MINID 9
> XLEN s -> 0
"#,
    );
}

#[test]
fn trimming_that_leaves_entries_of_groups_between_others() {
    check_with_groups(
        r#"
> XGROUP SETID s h 1-3 -> OK
> XACK s h 1-1 -> 1
> XACK s g 1-2 -> 1
> XTRIM s MAXLEN 0 ACKED -> 1
! xtrim:s => XDEL s 1-2
> XADD s ACKED MAXLEN 0 1-4 a 4 -> "1-4"
! xadd:s => XADD s MAXLEN 3 1-4 a 4
> XACK s g 1-3 -> 1
> XADD s NOMKSTREAM ACKED MAXLEN = 1 1-5 a 5 -> "1-5"
! xadd:s xtrim:s => XADD s 1-5 a 5 | XDEL s 1-3
> XRANGE s - + -> [["1-1", ["a", "1"]], ["1-4", ["a", "4"]], ["1-5", ["a", "5"]]]
> XREADGROUP GROUP g c STREAMS s >
[["s", [["1-4", ["a", "4"]], ["1-5", ["a", "5"]]]]]
> XTRIM s MINID ~ 9 LIMIT 0 DELREF -> 3
! xtrim:s => XTRIM s MINID = 18446744073709551615-18446744073709551615 | XACK s g 1-1 1-4 1-5
"#,
    );
}

#[test]
fn reading_pending_entries() {
    check_with_groups(
        r#"
@advance 50
> XCLAIM s g c 0 1-1 JUSTID -> ["1-1"]
@advance 50
> XADD s 1-4 a 4 -> "1-4"
> XREADGROUP GROUP g e CLAIM 60 COUNT 1 STREAMS s > -> [["s", [["1-2", ["a", "2"], 100, 1]]]]
! xgroup-createconsumer:s => XCLAIM s g e 0 1-2 TIME 1700000000100 RETRYCOUNT 2 FORCE JUSTID
   LASTID 1-3
> XREADGROUP GROUP g e CLAIM 50 STREAMS s >
[["s", [["1-3", ["a", "3"], 100, 1], ["1-1", ["a", "1"], 50, 1], ["1-4", ["a", "4"], 0, 0]]]]
!  => XCLAIM s g e 0 1-3 1-1 TIME 1700000000100 RETRYCOUNT 2 FORCE JUSTID LASTID 1-4 | XCLAIM s g e
   0 1-4 TIME 1700000000100 RETRYCOUNT 1 FORCE JUSTID LASTID 1-4 | XGROUP SETID s g 1-4
   ENTRIESREAD 4
> XPENDING s g -> [4, "1-1", "1-4", [["e", "4"]]]
> XREADGROUP GROUP g c CLAIM 1 STREAMS s > -> nil-array
> XREADGROUP GROUP g c CLAIM 1 STREAMS s 0 -> [["s", []]]
> XDEL s 1-1 -> 1
> XREADGROUP GROUP g c CLAIM 0 NOACK COUNT 2 STREAMS s >
[["s", [["1-2", ["a", "2"], 0, 2], ["1-3", ["a", "3"], 0, 2]]]]
> XPENDING s g -> [4, "1-1", "1-4", [["c", "2"], ["e", "2"]]]
"#,
    );
}

#[test]
fn errors_of_claim() {
    check_with_groups(
        r#"
> XREADGROUP GROUP g c CLAIM x STREAMS s > -> -ERR min-idle-time is not an integer
> XREADGROUP GROUP g c CLAIM -0 STREAMS s > -> -ERR min-idle-time is not an integer
> XREADGROUP GROUP g c CLAIM -1 STREAMS s > -> -ERR min-idle-time must be a positive integer
> XREADGROUP GROUP g c CLAIM STREAMS s > -> -ERR min-idle-time is not an integer
> XREADGROUP GROUP g CLAIM 5 c STREAMS s > -> -ERR syntax error
> XREAD CLAIM 5 STREAMS s 0
-ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.
> XREADGROUP CLAIM 9223372036854775807 GROUP g c STREAMS s > -> nil-array
"#,
    );
}

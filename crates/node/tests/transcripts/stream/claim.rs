//! XCLAIM and XAUTOCLAIM.

use crate::check::check;

#[test]
fn claiming() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c STREAMS s >
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
@advance 100
> XCLAIM s g d 200 1-1 1-2 -> []
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g d
> XCLAIM s g d 100 1-1 1-2 9-9 -> [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]
!  => XCLAIM s g d 0 1-1 1-2 TIME 1700000000100 RETRYCOUNT 2 FORCE JUSTID LASTID 1-3
> XPENDING s g - + 10 -> [["1-1", "d", 0, 2], ["1-2", "d", 0, 2], ["1-3", "c", 100, 1]]
> XCLAIM s g d 0 1-3 JUSTID -> ["1-3"]
!  => XCLAIM s g d 0 1-3 TIME 1700000000100 RETRYCOUNT 1 FORCE JUSTID LASTID 1-3
> XCLAIM s g c 0 1-3 IDLE 40 RETRYCOUNT 7 -> [["1-3", ["a", "3"]]]
> XPENDING s g - + 10 c -> [["1-3", "c", 40, 7]]
> XCLAIM s g c 0 1-3 TIME 1699999999000 RETRYCOUNT -4 -> [["1-3", ["a", "3"]]]
> XPENDING s g - + 10 c -> [["1-3", "c", 1100, 8]]
> XCLAIM s g c 0 1-3 TIME 99999999999999 justid -> ["1-3"]
> XPENDING s g - + 10 c -> [["1-3", "c", 0, 8]]
> XCLAIM s g c 0 1-3 IDLE 99999999999999999 justid -> ["1-3"]
> XPENDING s g - + 10 c -> [["1-3", "c", 0, 8]]
> XINFO CONSUMERS s g
[["name", "c", "pending", 1, "idle", 0, "inactive", 0], ["name", "d", "pending", 2, "idle", 0,
   "inactive", 0]]
"#,
    );
}

#[test]
fn claiming_with_force() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XGROUP CREATE s g 0 -> OK
> XCLAIM s g c 0 1-1 -> []
> XCLAIM s g c 0 1-1 FORCE -> [["1-1", ["a", "1"]]]
!  => XCLAIM s g c 0 1-1 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 0-0
> XCLAIM s g c 100 1-2 9-9 FORCE JUSTID RETRYCOUNT 5 TIME 1699999990000 -> ["1-2"]
!  => XCLAIM s g c 0 1-2 TIME 1699999990000 RETRYCOUNT 5 FORCE JUSTID LASTID 0-0
> XPENDING s g - + 10 -> [["1-1", "c", 0, 2], ["1-2", "c", 10000, 5]]
> XCLAIM s g c 0 9-9 LASTID 1-1 -> []
!  => XGROUP SETID s g 1-1 ENTRIESREAD -1
> XCLAIM s g c 0 9-9 LASTID 0-5 -> []
> XCLAIM s g c 0 1-1 LASTID 1-2 JUSTID -> ["1-1"]
!  => XCLAIM s g c 0 1-1 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 2, "last-delivered-id", "1-2", "entries-read", nil,
   "lag", 0]]
"#,
    );
}

#[test]
fn deleted_entries() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c STREAMS s >
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
> XDEL s 1-2 -> 1
> XCLAIM s g d 0 1-1 1-2 1-3 -> [["1-1", ["a", "1"]], ["1-3", ["a", "3"]]]
! xgroup-createconsumer:s => XCLAIM s g d 0 1-1 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID
   LASTID 1-3 | XCLAIM s g d 0 1-2 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-3 |
   XCLAIM s g d 0 1-3 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 1-3
> XPENDING s g -> [2, "1-1", "1-3", [["d", "2"]]]
> XCLAIM s g d 0 1-2 FORCE -> []
"#,
    );
}

#[test]
fn errors_of_xclaim() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XCLAIM s g c 0 -> -ERR wrong number of arguments for 'xclaim' command
> XCLAIM s g c 0 1-1 -> -NOGROUP No such key 's' or consumer group 'g'
> XCLAIM nokey g c 0 1-1 -> -NOGROUP No such key 'nokey' or consumer group 'g'
> XCLAIM nokey g c x y -> -NOGROUP No such key 'nokey' or consumer group 'g'
> XGROUP CREATE s g 0 -> OK
> XCLAIM s g c x 1-1 -> -ERR Invalid min-idle-time argument for XCLAIM
> XCLAIM s g c 0 x -> -ERR Unrecognized XCLAIM option 'x'
> XCLAIM s g c 0 1-1 x -> -ERR Unrecognized XCLAIM option 'x'
> XCLAIM s g c 0 1-1 IDLE -> -ERR Unrecognized XCLAIM option 'IDLE'
> XCLAIM s g c 0 1-1 IDLE x -> -ERR Invalid IDLE option argument for XCLAIM
> XCLAIM s g c 0 1-1 TIME x -> -ERR Invalid TIME option argument for XCLAIM
> XCLAIM s g c 0 1-1 RETRYCOUNT x -> -ERR Invalid RETRYCOUNT option argument for XCLAIM
> XCLAIM s g c 0 1-1 LASTID x -> -ERR Invalid stream ID specified as stream command argument
> XCLAIM s g c 0 1-1 FORCE 1-1 -> -ERR Unrecognized XCLAIM option '1-1'
> XINFO CONSUMERS s g -> []
> XCLAIM s g c -5 1-1 -> []
> XCLAIM s g c 0 FORCE -> []
> SET t v -> OK
> XCLAIM t g c 0 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn xautoclaim_in_parts() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XADD s 1-4 a 4 -> "1-4"
> XGROUP CREATE s g 0 -> OK
> XAUTOCLAIM s g d 0 - -> ["0-0", [], []]
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g d
> XREADGROUP GROUP g c STREAMS s >
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]], ["1-4", ["a", "4"]]]]]
> XAUTOCLAIM s g d 0 - COUNT 2 -> ["1-3", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]], []]
!  => XCLAIM s g d 0 1-1 1-2 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 1-4
> XAUTOCLAIM s g d 0 1-3 count 1 -> ["1-4", [["1-3", ["a", "3"]]], []]
> XAUTOCLAIM s g d 0 (1-3 JUSTID -> ["0-0", ["1-4"], []]
!  => XCLAIM s g d 0 1-4 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-4
> XPENDING s g - + 10
[["1-1", "d", 0, 2], ["1-2", "d", 0, 2], ["1-3", "d", 0, 2], ["1-4", "d", 0, 1]]
> XDEL s 1-2 1-4 -> 2
> XAUTOCLAIM s g e 0 0 COUNT 2 -> ["1-3", [["1-1", ["a", "1"]]], ["1-2"]]
! xgroup-createconsumer:s => XCLAIM s g e 0 1-1 TIME 1700000000000 RETRYCOUNT 3 FORCE JUSTID
   LASTID 1-4 | XCLAIM s g e 0 1-2 TIME 1700000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 1-4
> XAUTOCLAIM s g e 0 1-3 -> ["0-0", [["1-3", ["a", "3"]]], ["1-4"]]
> XPENDING s g -> [2, "1-1", "1-3", [["e", "2"]]]
> HELLO 3 -> ~~ {*}
> XAUTOCLAIM s g e 0 0 -> ["0-0", [["1-1", ["a", "1"]], ["1-3", ["a", "3"]]], []]
"#,
    );
}

#[test]
fn entries_below_the_idle_time_are_not_claimed() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
@advance 50
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["1-2", ["a", "2"]]]]]
> XAUTOCLAIM s g d 50 0 -> ["0-0", [["1-1", ["a", "1"]]], []]
> XAUTOCLAIM s g d 50 0 -> ["0-0", [], []]
> XAUTOCLAIM s g d -1 0 JUSTID -> ["0-0", ["1-1", "1-2"], []]
"#,
    );
}

#[test]
fn xautoclaim_examines_a_limited_number_of_entries() {
    check(
        r#"
> XGROUP CREATE s g 0 MKSTREAM -> OK
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 1 -> "1-2"
> XADD s 1-3 a 1 -> "1-3"
> XADD s 1-4 a 1 -> "1-4"
> XADD s 1-5 a 1 -> "1-5"
> XADD s 1-6 a 1 -> "1-6"
> XADD s 1-7 a 1 -> "1-7"
> XADD s 1-8 a 1 -> "1-8"
> XADD s 1-9 a 1 -> "1-9"
> XADD s 1-10 a 1 -> "1-10"
> XADD s 1-11 a 1 -> "1-11"
> XCLAIM s g c 0 1-1 1-2 1-3 1-4 1-5 1-6 1-7 1-8 1-9 1-10 1-11 FORCE JUSTID
["1-1", "1-2", "1-3", "1-4", "1-5", "1-6", "1-7", "1-8", "1-9", "1-10", "1-11"]
> XAUTOCLAIM s g c 100000 - COUNT 1 -> ["1-11", [], []]
> XAUTOCLAIM s g c 100000 1-11 COUNT 1 -> ["0-0", [], []]
"#,
    );
}

#[test]
fn errors_of_xautoclaim() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XAUTOCLAIM s g c 0 -> -ERR wrong number of arguments for 'xautoclaim' command
> XAUTOCLAIM s g c 0 0 -> -NOGROUP No such key 's' or consumer group 'g'
> XAUTOCLAIM nokey g c 0 0 -> -NOGROUP No such key 'nokey' or consumer group 'g'
> XAUTOCLAIM nokey g c x 0 -> -ERR Invalid min-idle-time argument for XAUTOCLAIM
> XGROUP CREATE s g 0 -> OK
> XAUTOCLAIM s g c x 0 -> -ERR Invalid min-idle-time argument for XAUTOCLAIM
> XAUTOCLAIM s g c 0 x -> -ERR Invalid stream ID specified as stream command argument
> XAUTOCLAIM s g c 0 (18446744073709551615-18446744073709551615
-ERR invalid start ID for the interval
> XAUTOCLAIM s g c 0 0 COUNT 0 -> -ERR COUNT must be > 0
> XAUTOCLAIM s g c 0 0 COUNT -1 -> -ERR COUNT must be > 0
> XAUTOCLAIM s g c 0 0 COUNT x -> -ERR COUNT must be > 0
> XAUTOCLAIM s g c 0 0 COUNT 576460752303423488 -> -ERR COUNT must be > 0
> XAUTOCLAIM s g c 0 0 COUNT -> -ERR syntax error
> XAUTOCLAIM s g c 0 0 FOO -> -ERR syntax error
> XAUTOCLAIM s g c 0 + COUNT 1 JUSTID -> ["0-0", [], []]
> SET t v -> OK
> XAUTOCLAIM t g c 0 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

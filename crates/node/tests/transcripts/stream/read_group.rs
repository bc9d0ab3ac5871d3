//! XREADGROUP without waiting.

use crate::check::check;

#[test]
fn new_entries() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 2-1 a 3 -> "2-1"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
! xgroup-createconsumer:s => XCLAIM s g c 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID
   LASTID 1-1 | XGROUP SETID s g 1-1 ENTRIESREAD 1
> XREADGROUP GROUP g c STREAMS s > -> [["s", [["1-2", ["a", "2"]], ["2-1", ["a", "3"]]]]]
!  => XCLAIM s g c 0 1-2 2-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 2-1 | XGROUP
   SETID s g 2-1 ENTRIESREAD 3
> XREADGROUP GROUP g c STREAMS s > -> nil-array
> XREADGROUP GROUP g d STREAMS s > -> nil-array
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g d
> XREADGROUP GROUP g d STREAMS s 0 -> [["s", []]]
> XREADGROUP GROUP g c COUNT 2 STREAMS s 0 -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XREADGROUP GROUP g c STREAMS s 1-1 -> [["s", [["1-2", ["a", "2"]], ["2-1", ["a", "3"]]]]]
> XREADGROUP GROUP g c STREAMS s 1-2 -> [["s", [["2-1", ["a", "3"]]]]]
> XREADGROUP GROUP g c STREAMS s 2-1 -> [["s", []]]
> XREADGROUP GROUP g c STREAMS s 18446744073709551615-18446744073709551615 -> nil-array
> XADD s 3-1 a 4 -> "3-1"
> XREADGROUP GROUP g c STREAMS s 18446744073709551615-18446744073709551615
[["s", [["3-1", ["a", "4"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 2, "pending", 4, "last-delivered-id", "3-1", "entries-read", 4,
   "lag", 0]]
"#,
    );
}

#[test]
fn without_acknowledgement() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c NOACK COUNT 1 STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g c | XGROUP SETID s g 1-1 ENTRIESREAD 1
> XREADGROUP NOACK GROUP g c STREAMS s > -> [["s", [["1-2", ["a", "2"]]]]]
!  => XGROUP SETID s g 1-2 ENTRIESREAD 2
> XPENDING s g -> [0, nil, nil, nil-array]
> XREADGROUP GROUP g c NOACK STREAMS s 0 -> [["s", []]]
"#,
    );
}

#[test]
fn several_streams() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD t 2-1 b 1 -> "2-1"
> XGROUP CREATE s g 0 -> OK
> XGROUP CREATE t g $ -> OK
> XREADGROUP GROUP g c STREAMS s t > > -> [["s", [["1-1", ["a", "1"]]]]]
! xgroup-createconsumer:s xgroup-createconsumer:t => XCLAIM s g c 0 1-1 TIME 1700000000000
   RETRYCOUNT 1 FORCE JUSTID LASTID 1-1 | XGROUP SETID s g 1-1 ENTRIESREAD 1 | XGROUP
   CREATECONSUMER t g c
> XADD t 2-2 b 2 -> "2-2"
> XREADGROUP GROUP g c STREAMS s t 0 >
[["s", [["1-1", ["a", "1"]]]], ["t", [["2-2", ["b", "2"]]]]]
> XREADGROUP GROUP g c STREAMS s t 0 0
[["s", [["1-1", ["a", "1"]]]], ["t", [["2-2", ["b", "2"]]]]]
> HELLO 3 -> ~~ {*}
> XADD t 2-3 b 3 -> "2-3"
> XREADGROUP GROUP g c STREAMS s t 0 > -> {"s": [["1-1", ["a", "1"]]], "t": [["2-3", ["b", "3"]]]}
> XREADGROUP GROUP g c STREAMS s t > > -> nil
> XREADGROUP GROUP g c COUNT 1 STREAMS t 0 -> {"t": [["2-2", ["b", "2"]]]}
"#,
    );
}

#[test]
fn deleted_entries_in_the_history() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c STREAMS s > -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XDEL s 1-1 -> 1
> XREADGROUP GROUP g c STREAMS s 0 -> [["s", [["1-1", nil-array], ["1-2", ["a", "2"]]]]]
> HELLO 3 -> ~~ {*}
> XREADGROUP GROUP g c STREAMS s 0 -> {"s": [["1-1", nil], ["1-2", ["a", "2"]]]}
"#,
    );
}

#[test]
fn entries_of_another_consumer() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
> XGROUP SETID s g 0 -> OK
> XREADGROUP GROUP g d STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
> XPENDING s g - + 10 -> [["1-1", "d", 0, 1]]
> XREADGROUP GROUP g c STREAMS s 0 -> [["s", []]]
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP -> -ERR wrong number of arguments for 'xreadgroup' command
> XREADGROUP STREAMS s > x y z
-ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.
> XREADGROUP COUNT 1 NOACK STREAMS s u > > -> -ERR Missing GROUP option for XREADGROUP
> XREADGROUP GROUP g STREAMS s > x -> -ERR syntax error
> XREADGROUP GROUP g c STREAMS s t >
-ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.
> XREADGROUP GROUP g c COUNT x STREAMS s > -> -ERR value is not an integer or out of range
> XREADGROUP GROUP g c BLOCK x STREAMS s > -> -ERR timeout is not an integer or out of range
> XREADGROUP GROUP g c FOO STREAMS s > -> -ERR syntax error
> XREADGROUP GROUP g c COUNT 1 s > -> -ERR syntax error
> XREADGROUP GROUP h c STREAMS s >
-NOGROUP No such key 's' or consumer group 'h' in XREADGROUP with GROUP option
> XREADGROUP GROUP g c STREAMS nokey >
-NOGROUP No such key 'nokey' or consumer group 'g' in XREADGROUP with GROUP option
> XREADGROUP GROUP g c STREAMS s $
-ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this
   consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just
   return an empty result set.
> XREADGROUP GROUP g c STREAMS s +
-ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this
   consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just
   return an empty result set.
> XREADGROUP GROUP g c STREAMS s - -> -ERR Invalid stream ID specified as stream command argument
> XREADGROUP GROUP g c STREAMS s x -> -ERR Invalid stream ID specified as stream command argument
> XREADGROUP GROUP g c STREAMS s nokey > x
-NOGROUP No such key 'nokey' or consumer group 'g' in XREADGROUP with GROUP option
> SET t v -> OK
> XREADGROUP GROUP g c STREAMS t >
-WRONGTYPE Operation against a key holding the wrong kind of value
> XREADGROUP GROUP g c STREAMS s t > >
-WRONGTYPE Operation against a key holding the wrong kind of value
> XINFO CONSUMERS s g -> []
"#,
    );
}

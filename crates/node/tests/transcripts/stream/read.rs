//! XREAD without waiting.

use crate::check::check;

#[test]
fn from_several_streams() {
    check(
        r#"
> XREAD STREAMS s 0 -> nil-array
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD t 5-1 b 1 -> "5-1"
> XREAD STREAMS s 0 -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XREAD STREAMS s t 0 0
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]], ["t", [["5-1", ["b", "1"]]]]]
> XREAD STREAMS s t 1-2 0 -> [["t", [["5-1", ["b", "1"]]]]]
> XREAD STREAMS s t 1-2 5-1 -> nil-array
> XREAD COUNT 1 STREAMS s t 0-0 0 -> [["s", [["1-1", ["a", "1"]]]], ["t", [["5-1", ["b", "1"]]]]]
> XREAD COUNT 0 STREAMS s 0 -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XREAD COUNT -1 STREAMS s 0 -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XREAD STREAMS s $ -> nil-array
> XREAD STREAMS s + -> [["s", [["1-2", ["a", "2"]]]]]
> XREAD COUNT 5 STREAMS s t + 0 -> [["s", [["1-2", ["a", "2"]]]], ["t", [["5-1", ["b", "1"]]]]]
> XREAD STREAMS nokey + -> nil-array
> XREAD STREAMS nokey t 0 $ -> nil-array
> XREAD STREAMS s s 0 1-1
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]], ["s", [["1-2", ["a", "2"]]]]]
> XREAD STREAMS s 18446744073709551615-18446744073709551615 -> nil-array
> XREAD STREAMS s 1 -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XREAD STREAMS s 2 -> nil-array
> XADD last 18446744073709551615-18446744073709551615 a b
"18446744073709551615-18446744073709551615"
> XREAD STREAMS last + -> [["last", [["18446744073709551615-18446744073709551615", ["a", "b"]]]]]
> XREAD STREAMS last 18446744073709551615-18446744073709551614
[["last", [["18446744073709551615-18446744073709551615", ["a", "b"]]]]]
> XDEL s 1-2 -> 1
> XREAD STREAMS s + -> [["s", [["1-1", ["a", "1"]]]]]
> XREAD STREAMS s 1-1 -> nil-array
> XDEL s 1-1 -> 1
> XREAD STREAMS s + -> nil-array
"#,
    );
}

#[test]
fn in_resp3() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD t 5-1 b 1 -> "5-1"
> HELLO 3 -> ~~ {*}
> XREAD STREAMS s 0 -> {"s": [["1-1", ["a", "1"]]]}
> XREAD STREAMS s t 0 0 -> {"s": [["1-1", ["a", "1"]]], "t": [["5-1", ["b", "1"]]]}
> XREAD STREAMS s t 0 5-1 -> {"s": [["1-1", ["a", "1"]]]}
> XREAD STREAMS s 1-1 -> nil
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XREAD -> -ERR wrong number of arguments for 'xread' command
> XREAD STREAMS s -> -ERR wrong number of arguments for 'xread' command
> XREAD STREAMS s t 0
-ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.
> XREAD STREAMS s t u 0 0
-ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.
> XREAD COUNT 1 s 0 -> -ERR syntax error
> XREAD COUNT x STREAMS s 0 -> -ERR value is not an integer or out of range
> XREAD BLOCK x STREAMS s 0 -> -ERR timeout is not an integer or out of range
> XREAD BLOCK -1 STREAMS s 0 -> -ERR timeout is negative
> XREAD BLOCK 1.5 STREAMS s 0 -> -ERR timeout is not an integer or out of range
> XREAD BLOCK 9223372036854775807 STREAMS s 0 -> -ERR timeout is out of range
> XREAD GROUP g c STREAMS s 0
-ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.
> XREAD NOACK STREAMS s 0
-ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.
> XREAD FOO STREAMS s 0 -> -ERR syntax error
> XREAD COUNT 1 BLOCK STREAMS -> -ERR timeout is not an integer or out of range
> XREAD STREAMS s >
-ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer>
   option.
> XREAD STREAMS s - -> -ERR Invalid stream ID specified as stream command argument
> XREAD STREAMS s x -> -ERR Invalid stream ID specified as stream command argument
> XREAD STREAMS s (1 -> -ERR Invalid stream ID specified as stream command argument
> SET k v -> OK
> XREAD STREAMS k 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XREAD STREAMS s k 0 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XREAD STREAMS k x -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn block_does_not_wait_for_existing_entries() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XREAD BLOCK 0 STREAMS s 0 -> [["s", [["1-1", ["a", "1"]]]]]
> XREAD BLOCK 1000 COUNT 1 STREAMS s t 0 $ -> [["s", [["1-1", ["a", "1"]]]]]
"#,
    );
}

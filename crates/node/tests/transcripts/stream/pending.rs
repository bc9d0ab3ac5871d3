//! XACK and XPENDING.

use crate::check::check;

#[test]
fn acknowledging() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XACK nokey g 1-1 -> 0
> XACK s g 1-1 -> 0
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c STREAMS s >
[["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
> XACK s g 1-2 -> 1
!  => XACK s g 1-2
> XACK s g 1-2 -> 0
> XACK s g 1-1 x -> -ERR Invalid stream ID specified as stream command argument
> XACK s h x -> 0
> XACK nokey g x -> 0
> XPENDING s g -> [2, "1-1", "1-3", [["c", "2"]]]
> XACK s g 9-9 1-1 1-1 1-3 -> 2
> XPENDING s g -> [0, nil, nil, nil-array]
> XACK s g -> -ERR wrong number of arguments for 'xack' command
> XACK s g - -> -ERR Invalid stream ID specified as stream command argument
> SET t v -> OK
> XACK t g 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn the_summary() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XGROUP CREATE s g 0 -> OK
> XPENDING s g -> [0, nil, nil, nil-array]
> XREADGROUP GROUP g c2 COUNT 1 STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
> XREADGROUP GROUP g c1 STREAMS s > -> [["s", [["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
> XREADGROUP GROUP g c3 STREAMS s > -> nil-array
> XPENDING s g -> [3, "1-1", "1-3", [["c1", "2"], ["c2", "1"]]]
> HELLO 3 -> ~~ {*}
> XPENDING s g -> [3, "1-1", "1-3", [["c1", "2"], ["c2", "1"]]]
> XACK s g 1-1 1-2 1-3 -> 3
> XPENDING s g -> [0, nil, nil, nil]
"#,
    );
}

#[test]
fn extended_form() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c COUNT 2 STREAMS s > -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
@advance 100
> XREADGROUP GROUP g d STREAMS s > -> [["s", [["1-3", ["a", "3"]]]]]
> XPENDING s g - + 10 -> [["1-1", "c", 100, 1], ["1-2", "c", 100, 1], ["1-3", "d", 0, 1]]
> XPENDING s g - + 2 -> [["1-1", "c", 100, 1], ["1-2", "c", 100, 1]]
> XPENDING s g (1-1 (1-3 10 -> [["1-2", "c", 100, 1]]
> XPENDING s g 1-2 1-2 10 c -> [["1-2", "c", 100, 1]]
> XPENDING s g - + 10 d -> [["1-3", "d", 0, 1]]
> XPENDING s g - + 10 nobody -> []
> XPENDING s g IDLE 50 - + 10 -> [["1-1", "c", 100, 1], ["1-2", "c", 100, 1]]
> XPENDING s g IDLE 100 - + 1 c -> [["1-1", "c", 100, 1]]
> XPENDING s g idle 101 - + 10 -> []
> XPENDING s g IDLE -5 - + 1 d -> [["1-3", "d", 0, 1]]
> XPENDING s g - + 0 -> []
> XPENDING s g - + -1 -> []
> XPENDING s g + - 10 -> []
> XREADGROUP GROUP g c COUNT 1 STREAMS s 0 -> [["s", [["1-1", ["a", "1"]]]]]
> XPENDING s g - + 10 c -> [["1-1", "c", 0, 2], ["1-2", "c", 100, 1]]
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XPENDING -> -ERR wrong number of arguments for 'xpending' command
> XPENDING s g -> -NOGROUP No such key 's' or consumer group 'g'
> XPENDING nokey g -> -NOGROUP No such key 'nokey' or consumer group 'g'
> XGROUP CREATE s g 0 -> OK
> XPENDING s g - -> -ERR syntax error
> XPENDING s g - + -> -ERR syntax error
> XPENDING s g - + x -> -ERR value is not an integer or out of range
> XPENDING s g x + 10 -> -ERR Invalid stream ID specified as stream command argument
> XPENDING s g - x 10 -> -ERR Invalid stream ID specified as stream command argument
> XPENDING s g (18446744073709551615-18446744073709551615 + 10
-ERR invalid start ID for the interval
> XPENDING s g - (0-0 10 -> -ERR invalid end ID for the interval
> XPENDING s g IDLE 5 - + -> -ERR syntax error
> XPENDING s g IDLE x - + 10 -> -ERR value is not an integer or out of range
> XPENDING s g IDLE 5 - + 10 c more -> -ERR syntax error
> XPENDING s g - + 10 c more -> []
> XPENDING s h - + 10 -> -NOGROUP No such key 's' or consumer group 'h'
> SET t v -> OK
> XPENDING t g -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

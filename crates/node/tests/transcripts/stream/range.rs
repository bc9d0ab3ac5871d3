//! XRANGE and XREVRANGE.

use crate::check::check;

#[test]
fn both_directions_with_limits_and_counts() {
    check(
        r#"
> XADD s 1-1 n 1 -> "1-1"
> XADD s 1-2 n 2 -> "1-2"
> XADD s 2-0 n 3 m x -> "2-0"
> XADD s 3-5 n 4 -> "3-5"
> XRANGE s - +
[["1-1", ["n", "1"]], ["1-2", ["n", "2"]], ["2-0", ["n", "3", "m", "x"]], ["3-5", ["n", "4"]]]
> XREVRANGE s + -
[["3-5", ["n", "4"]], ["2-0", ["n", "3", "m", "x"]], ["1-2", ["n", "2"]], ["1-1", ["n", "1"]]]
> XRANGE s 1 1 -> [["1-1", ["n", "1"]], ["1-2", ["n", "2"]]]
> XRANGE s 1-2 2 -> [["1-2", ["n", "2"]], ["2-0", ["n", "3", "m", "x"]]]
> XREVRANGE s 2 1-2 -> [["2-0", ["n", "3", "m", "x"]], ["1-2", ["n", "2"]]]
> XRANGE s (1-1 (3-5 -> [["1-2", ["n", "2"]], ["2-0", ["n", "3", "m", "x"]]]
> XREVRANGE s (3-5 (1-1 -> [["2-0", ["n", "3", "m", "x"]], ["1-2", ["n", "2"]]]
> XRANGE s (1-1 3 -> [["1-2", ["n", "2"]], ["2-0", ["n", "3", "m", "x"]], ["3-5", ["n", "4"]]]
> XRANGE s 2-1 3-4 -> []
> XRANGE s 3 1 -> []
> XRANGE s - + COUNT 2 -> [["1-1", ["n", "1"]], ["1-2", ["n", "2"]]]
> XREVRANGE s + - COUNT 2 -> [["3-5", ["n", "4"]], ["2-0", ["n", "3", "m", "x"]]]
> XRANGE s - + COUNT 2 count 1 -> [["1-1", ["n", "1"]]]
> XRANGE s - + COUNT 0 -> nil-array
> XRANGE s - + COUNT -1 -> nil-array
> XREVRANGE s + - COUNT 0 -> nil-array
> XRANGE nokey - + -> []
> XRANGE nokey - + COUNT 0 -> []
> XRANGE s + - -> []
> XRANGE s (1 (2 -> [["1-1", ["n", "1"]], ["1-2", ["n", "2"]], ["2-0", ["n", "3", "m", "x"]]]
> XREVRANGE s (2 (1 -> [["2-0", ["n", "3", "m", "x"]], ["1-2", ["n", "2"]], ["1-1", ["n", "1"]]]
"#,
    );
}

#[test]
fn invalid_limits() {
    check(
        r#"
> XADD s 1-1 n 1 -> "1-1"
> XRANGE s (18446744073709551615-18446744073709551615 + -> -ERR invalid start ID for the interval
> XRANGE s - (0-0 -> -ERR invalid end ID for the interval
> XREVRANGE s (0-0 - -> -ERR invalid end ID for the interval
> XREVRANGE s + (18446744073709551615-18446744073709551615 -> -ERR invalid start ID for the interval
> XRANGE s (- + -> -ERR Invalid stream ID specified as stream command argument
> XRANGE s - (+ -> -ERR Invalid stream ID specified as stream command argument
> XRANGE s ( + -> -ERR Invalid stream ID specified as stream command argument
> XRANGE s x + -> -ERR Invalid stream ID specified as stream command argument
> XRANGE s - x -> -ERR Invalid stream ID specified as stream command argument
> XRANGE s - + COUNT -> -ERR syntax error
> XRANGE s - + COUNT x -> -ERR value is not an integer or out of range
> XRANGE s - + LIMIT 1 -> -ERR syntax error
> XRANGE s - + 1 -> -ERR syntax error
> XRANGE s - -> -ERR wrong number of arguments for 'xrange' command
> XRANGE s 1-1-1 + -> -ERR Invalid stream ID specified as stream command argument
> XRANGE s 18446744073709551616 + -> -ERR Invalid stream ID specified as stream command argument
> SET t v -> OK
> XRANGE t - + -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XREVRANGE t + - -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XRANGE t x + -> -ERR Invalid stream ID specified as stream command argument
"#,
    );
}

#[test]
fn both_protocols() {
    check(
        r#"
> XADD s 1-1 n 1 -> "1-1"
> HELLO 3 -> ~~ {*}
> XRANGE s - + -> [["1-1", ["n", "1"]]]
> XRANGE s - + COUNT 0 -> nil
> XREVRANGE nokey + - -> []
"#,
    );
}

#[test]
fn many_chunks() {
    check(
        r#"
> CONFIG SET stream-node-max-entries 3 -> OK
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 b 3 -> "1-3"
> XADD s 2-1 a 4 -> "2-1"
> XADD s 2-2 a 5 a 6 -> "2-2"
> XADD s 2-3 a 7 -> "2-3"
> XADD s 3-1 a 8 -> "3-1"
> XDEL s 1-3 2-1 -> 2
> XRANGE s - +
[["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["2-2", ["a", "5", "a", "6"]], ["2-3", ["a", "7"]],
   ["3-1", ["a", "8"]]]
> XREVRANGE s + -
[["3-1", ["a", "8"]], ["2-3", ["a", "7"]], ["2-2", ["a", "5", "a", "6"]], ["1-2", ["a", "2"]],
   ["1-1", ["a", "1"]]]
> XRANGE s 1-3 2-2 -> [["2-2", ["a", "5", "a", "6"]]]
> XREVRANGE s 2-2 1-3 -> [["2-2", ["a", "5", "a", "6"]]]
> XRANGE s (1-2 + -> [["2-2", ["a", "5", "a", "6"]], ["2-3", ["a", "7"]], ["3-1", ["a", "8"]]]
> XRANGE s - 1-3 -> [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]
"#,
    );
}

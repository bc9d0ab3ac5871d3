//! LLEN, LINDEX, LRANGE, LPOS.

use crate::check::check;

#[test]
fn length() {
    check(
        r#"
> LLEN l -> 0
> RPUSH l a b c -> 3
> LLEN l -> 3
> SET s v -> OK
> LLEN s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LLEN -> -ERR wrong number of arguments for 'llen' command
"#,
    );
}

#[test]
fn index() {
    check(
        r#"
> RPUSH l a 20 c -> 3
> LINDEX l 0 -> "a"
> LINDEX l 1 -> "20"
> LINDEX l -1 -> "c"
> LINDEX l -3 -> "a"
> LINDEX l 3 -> nil
> LINDEX l -4 -> nil
> LINDEX l 9223372036854775807 -> nil
> LINDEX l -9223372036854775808 -> nil
> LINDEX missing 0 -> nil
> LINDEX missing x -> nil
> LINDEX l x -> -ERR value is not an integer or out of range
> LINDEX l 01 -> -ERR value is not an integer or out of range
> SET s v -> OK
> LINDEX s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LINDEX s x -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LINDEX l -> -ERR wrong number of arguments for 'lindex' command
> HELLO 3 -> ~~ *
> LINDEX l 9 -> nil
"#,
    );
}

#[test]
fn range() {
    check(
        r#"
> RPUSH l a b c 4 e -> 5
> LRANGE l 0 -1 -> ["a", "b", "c", "4", "e"]
> LRANGE l 1 3 -> ["b", "c", "4"]
> LRANGE l -2 -1 -> ["4", "e"]
> LRANGE l -100 100 -> ["a", "b", "c", "4", "e"]
> LRANGE l 0 0 -> ["a"]
> LRANGE l 3 1 -> []
> LRANGE l 5 9 -> []
> LRANGE l 0 -6 -> []
> LRANGE l -9223372036854775808 9223372036854775807 -> ["a", "b", "c", "4", "e"]
> LRANGE missing 0 -1 -> []
> LRANGE missing x 0 -> -ERR value is not an integer or out of range
> LRANGE l 0 x -> -ERR value is not an integer or out of range
> LRANGE l 1.0 2 -> -ERR value is not an integer or out of range
> SET s v -> OK
> LRANGE s 0 -1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE l 0 -> -ERR wrong number of arguments for 'lrange' command
"#,
    );
}

#[test]
fn position() {
    check(
        r#"
> RPUSH l a b c 1 2 3 c c -> 8
> LPOS l a -> 0
> LPOS l c -> 2
> LPOS l 1 -> 3
> LPOS l x -> nil
> LPOS l c RANK 1 -> 2
> LPOS l c RANK 2 -> 6
> LPOS l c RANK 4 -> nil
> LPOS l c RANK -1 -> 7
> LPOS l c RANK -3 -> 2
> LPOS l c RANK -4 -> nil
> LPOS l c COUNT 0 -> [2, 6, 7]
> LPOS l c COUNT 1 -> [2]
> LPOS l c COUNT 2 -> [2, 6]
> LPOS l c COUNT 100 -> [2, 6, 7]
> LPOS l x COUNT 2 -> []
> LPOS l c COUNT 0 RANK 2 -> [6, 7]
> LPOS l c COUNT 2 RANK -1 -> [7, 6]
> LPOS l c RANK -2 COUNT 0 -> [6, 2]
> LPOS l c RANK 9223372036854775807 -> nil
> LPOS l c RANK 2 RANK 1 -> 2
> LPOS l c RANK 5 COUNT 0 -> []
"#,
    );
}

#[test]
fn position_with_options() {
    check(
        r#"
> RPUSH l a b c 1 2 3 c c -> 8
> LPOS l c COUNT 0 MAXLEN 2 -> []
> LPOS l c COUNT 0 MAXLEN 3 -> [2]
> LPOS l c COUNT 0 MAXLEN 0 -> [2, 6, 7]
> LPOS l c COUNT 0 RANK -1 MAXLEN 3 -> [7, 6]
> LPOS l a RANK -1 MAXLEN 7 -> nil
> LPOS l a rank -1 maxlen 8 -> 0
> LPOS missing a -> nil
> LPOS missing a COUNT 1 -> []
> HELLO 3 -> ~~ *
> LPOS l x -> nil
> LPOS missing a -> nil
"#,
    );
}

#[test]
fn position_errors() {
    check(
        r#"
> RPUSH l a -> 1
> LPOS l a RANK 0
-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use
   negative to start from the end of the list
> LPOS l a RANK x -> -ERR value is not an integer or out of range
> LPOS l a RANK -9223372036854775808
-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> LPOS l a COUNT -1 -> -ERR COUNT can't be negative
> LPOS l a COUNT x -> -ERR COUNT can't be negative
> LPOS l a MAXLEN -1 -> -ERR MAXLEN can't be negative
> LPOS l a MAXLEN x -> -ERR MAXLEN can't be negative
> LPOS l a RANK -> -ERR syntax error
> LPOS l a FOO -> -ERR syntax error
> LPOS l a FOO 1 -> -ERR syntax error
> LPOS l a COUNT 1 RANK -> -ERR syntax error
> LPOS missing a COUNT -1 -> -ERR COUNT can't be negative
> SET s v -> OK
> LPOS s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LPOS s a COUNT x -> -ERR COUNT can't be negative
> LPOS l -> -ERR wrong number of arguments for 'lpos' command
"#,
    );
}

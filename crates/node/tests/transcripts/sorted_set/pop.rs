//! Members popped from both ends, with and without waiting.

use super::check_both;
use crate::check::check;

#[test]
fn pops_from_both_ends() {
    check_both(
        r#"
> ZADD z 1 a 2 b 3 c 4 d 5.5 e -> 5
> ZPOPMIN z -> ["a", "1"]
! zpopmin:z => ZPOPMIN z
> ZPOPMAX z -> ["e", "5.5"]
! zpopmax:z => ZPOPMAX z
> ZPOPMIN z 0 -> []
> ZPOPMIN z 2 -> ["b", "2", "c", "3"]
! zpopmin:z => ZPOPMIN z 2
> ZPOPMAX z 9 -> ["d", "4"]
! zpopmax:z del:z => ZPOPMAX z 9
> EXISTS z -> 0
> ZPOPMIN z -> []
> ZPOPMAX z 3 -> []
> ZADD z 1 a 2 b 3 c 4 d -> 4
> HELLO 3 -> ~~ {*}
> ZPOPMIN z -> ["a", ,1]
> ZPOPMAX z 1 -> [["d", ,4]]
> ZPOPMAX z 2 -> [["c", ,3], ["b", ,2]]
> ZPOPMIN z -> []
> ZPOPMIN z 2 -> []
"#,
    );
}

#[test]
fn pops_from_the_first_of_several_sets() {
    check_both(
        r#"
> ZADD b 1 x 2 y 3 z -> 3
> ZMPOP 2 a b MIN -> ["b", [["x", "1"]]]
! zpopmin:b => ZPOPMIN b 1
> ZMPOP 2 a b MAX COUNT 9 -> ["b", [["z", "3"], ["y", "2"]]]
! zpopmax:b del:b => ZPOPMAX b 2
> ZMPOP 2 a b MIN -> nil-array
> ZADD a 1 p 2 q -> 2
> HELLO 3 -> ~~ {*}
> ZMPOP 1 a max count 1 -> ["a", [["q", ,2]]]
> ZMPOP 2 a b min -> ["a", [["p", ,1]]]
> ZMPOP 2 a b min -> nil
"#,
    );
}

#[test]
fn errors_of_pops() {
    check(
        r#"
> SET s 1 -> OK
> ZPOPMIN s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZPOPMAX s 2 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZPOPMIN s x -> -ERR value is out of range, must be positive
> ZPOPMIN z -1 -> -ERR value is out of range, must be positive
> ZPOPMIN z x -> -ERR value is out of range, must be positive
> ZPOPMIN z 1 2 -> -ERR syntax error
> ZPOPMIN -> -ERR wrong number of arguments for 'zpopmin' command
> ZMPOP 1 s MIN -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZMPOP 2 z s MIN -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZMPOP 0 z MIN -> -ERR numkeys should be greater than 0
> ZMPOP -1 z MIN -> -ERR numkeys should be greater than 0
> ZMPOP x z MIN -> -ERR numkeys should be greater than 0
> ZMPOP 1 z -> -ERR wrong number of arguments for 'zmpop' command
> ZMPOP 2 z MIN -> -ERR syntax error
> ZMPOP 1 z FOO -> -ERR syntax error
> ZMPOP 1 z MIN COUNT 0 -> -ERR count should be greater than 0
> ZMPOP 1 z MIN COUNT x -> -ERR count should be greater than 0
> ZMPOP 1 z MIN COUNT -> -ERR syntax error
> ZMPOP 1 z MIN COUNT 1 COUNT 2 -> -ERR syntax error
> ZMPOP 1 z MIN MAX -> -ERR syntax error
> ZMPOP 9223372036854775807 z MIN -> -ERR syntax error
> ZPOPMIN s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn blocking_pops_that_do_not_wait() {
    check_both(
        r#"
> ZADD b 1 x 2 y 3 z 4 u 5 v -> 5
> BZPOPMIN a b 0 -> ["b", "x", "1"]
! zpopmin:b => ZPOPMIN b
> BZPOPMAX b a 0.5 -> ["b", "v", "5"]
! zpopmax:b => ZPOPMAX b
> BZMPOP 0 2 a b MIN -> ["b", [["y", "2"]]]
! zpopmin:b => ZPOPMIN b 1
> BZMPOP 0.1 2 a b MAX COUNT 9 -> ["b", [["u", "4"], ["z", "3"]]]
! zpopmax:b del:b => ZPOPMAX b 2
> ZADD b 1 x 2 y -> 2
> HELLO 3 -> ~~ {*}
> BZPOPMIN a b 0 -> ["b", "x", ,1]
> BZMPOP 0 2 a b MAX -> ["b", [["y", ,2]]]
"#,
    );
}

#[test]
fn errors_of_blocking_pops() {
    check(
        r#"
> SET s 1 -> OK
> BZPOPMIN s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BZPOPMIN a s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BZPOPMAX a x -> -ERR timeout is not a float or out of range
> BZPOPMAX a -1 -> -ERR timeout is negative
> BZPOPMAX a inf -> -ERR timeout is out of range
> BZPOPMIN a -> -ERR wrong number of arguments for 'bzpopmin' command
> BZPOPMIN s x -> -ERR timeout is not a float or out of range
> BZMPOP 0 1 s MIN -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BZMPOP x 1 a MIN -> -ERR timeout is not a float or out of range
> BZMPOP -1 1 a MIN -> -ERR timeout is negative
> BZMPOP 0 0 a MIN -> -ERR numkeys should be greater than 0
> BZMPOP x 0 a MIN -> -ERR numkeys should be greater than 0
> BZMPOP 0 1 a -> -ERR wrong number of arguments for 'bzmpop' command
> BZMPOP 0 1 a FOO -> -ERR syntax error
> BZMPOP 0 1 a MIN COUNT 0 -> -ERR count should be greater than 0
> BZMPOP x 1 a MIN COUNT 0 -> -ERR count should be greater than 0
"#,
    );
}

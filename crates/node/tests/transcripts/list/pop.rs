//! LPOP, RPOP, LMPOP.

use crate::check::check;

#[test]
fn pop() {
    check(
        r#"
> RPUSH l a 2 c -> 3
> LPOP l -> "a"
! lpop:l => LPOP l
> RPOP l -> "c"
! rpop:l => RPOP l
> LPOP l -> "2"
! lpop:l del:l => LPOP l
> EXISTS l -> 0
> LPOP l -> nil
> RPOP l -> nil
> HELLO 3 -> ~~ *
> LPOP l -> nil
> LPOP l 1 -> nil
"#,
    );
}

#[test]
fn pop_several_elements() {
    check(
        r#"
> RPUSH l a b c d e f 7 -> 7
> LPOP l 0 -> []
> RPOP l 0 -> []
> LPOP l 2 -> ["a", "b"]
! lpop:l => LPOP l 2
> RPOP l 2 -> ["7", "f"]
! rpop:l => RPOP l 2
> LPOP l 1 -> ["c"]
> LLEN l -> 2
> RPOP l 100 -> ["e", "d"]
! rpop:l del:l => RPOP l 100
> EXISTS l -> 0
> LPOP l 2 -> nil-array
> RPOP l 0 -> nil-array
> RPUSH l 1 2 3 -> 3
> LPOP l 9223372036854775807 -> ["1", "2", "3"]
"#,
    );
}

#[test]
fn pop_errors() {
    check(
        r#"
> SET s v -> OK
> LPOP s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPOP s 2 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSH l a -> 1
> LPOP l -1 -> -ERR value is out of range, must be positive
> RPOP l x -> -ERR value is out of range, must be positive
> LPOP missing -1 -> -ERR value is out of range, must be positive
> LPOP s x -> -ERR value is out of range, must be positive
> LPOP l 1 2 -> -ERR wrong number of arguments for 'lpop' command
> RPOP l 1 2 -> -ERR wrong number of arguments for 'rpop' command
> LPOP -> -ERR wrong number of arguments for 'lpop' command
> LLEN l -> 1
"#,
    );
}

#[test]
fn pop_from_the_first_existing_list() {
    check(
        r#"
> RPUSH b 1 2 3 4 -> 4
> RPUSH c x -> 1
> LMPOP 3 a b c LEFT -> ["b", ["1"]]
! lpop:b => LPOP b 1
> LMPOP 2 b c right COUNT 2 -> ["b", ["4", "3"]]
! rpop:b => RPOP b 2
> LMPOP 2 b c LEFT count 10 -> ["b", ["2"]]
! lpop:b del:b => LPOP b 1
> LMPOP 2 b c RIGHT -> ["c", ["x"]]
! rpop:c del:c => RPOP c 1
> LMPOP 2 b c RIGHT -> nil-array
> LMPOP 1 b LEFT COUNT 2 -> nil-array
> HELLO 3 -> ~~ *
> LMPOP 1 b LEFT -> nil
"#,
    );
}

#[test]
fn errors_of_lmpop() {
    check(
        r#"
> SET s v -> OK
> RPUSH l a -> 1
> LMPOP 2 s l LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LMPOP 2 missing s LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LMPOP 2 l s LEFT -> ["l", ["a"]]
> LMPOP 0 l LEFT -> -ERR numkeys should be greater than 0
> LMPOP -1 l LEFT -> -ERR numkeys should be greater than 0
> LMPOP x l LEFT -> -ERR numkeys should be greater than 0
> LMPOP 9223372036854775807 l LEFT -> -ERR syntax error
> LMPOP 2 l LEFT -> -ERR syntax error
> LMPOP 1 l -> -ERR wrong number of arguments for 'lmpop' command
> LMPOP 1 l MIDDLE -> -ERR syntax error
> LMPOP 1 l LEFT COUNT -> -ERR syntax error
> LMPOP 1 l LEFT COUNT 0 -> -ERR count should be greater than 0
> LMPOP 1 l LEFT COUNT -1 -> -ERR count should be greater than 0
> LMPOP 1 l LEFT COUNT x -> -ERR count should be greater than 0
> LMPOP 1 l LEFT COUNT 1 COUNT 1 -> -ERR syntax error
> LMPOP 1 l LEFT LIMIT 1 -> -ERR syntax error
> LMPOP 1 l LEFT COUNT 1 x -> -ERR syntax error
> LMPOP 1 -> -ERR wrong number of arguments for 'lmpop' command
"#,
    );
}

//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP that do not wait.

use crate::check::check;

#[test]
fn pop_from_existing_lists() {
    check(
        r#"
> RPUSH a 1 2 -> 2
> RPUSH b x y z -> 3
> BLPOP a b 1 -> ["a", "1"]
! lpop:a => LPOP a
> BRPOP missing b a 0 -> ["b", "z"]
! rpop:b => RPOP b
> BLPOP a b 0.5 -> ["a", "2"]
! lpop:a del:a => LPOP a
> BLPOP a b 1e2 -> ["b", "x"]
> BRPOP b b 0 -> ["b", "y"]
! rpop:b del:b => RPOP b
> EXISTS a b -> 0
"#,
    );
}

#[test]
fn pop_errors() {
    check(
        r#"
> SET s v -> OK
> RPUSH l a -> 1
> BLPOP s 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BLPOP missing s l 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BRPOP l s 1 -> ["l", "a"]
> RPUSH l a -> 1
> BLPOP l x -> -ERR timeout is not a float or out of range
> BLPOP l -1 -> -ERR timeout is negative
> BLPOP s x -> -ERR timeout is not a float or out of range
> BRPOP l 9223372036854775807 -> -ERR timeout is out of range
> BLPOP l inf -> -ERR timeout is out of range
> BLPOP l -> -ERR wrong number of arguments for 'blpop' command
> BRPOP 1 -> -ERR wrong number of arguments for 'brpop' command
> LLEN l -> 1
"#,
    );
}

#[test]
fn move_from_existing_lists() {
    check(
        r#"
> RPUSH a 1 2 3 -> 3
> BLMOVE a b LEFT RIGHT 1 -> "1"
! rpush:b lpop:a => LMOVE a b LEFT RIGHT
> BLMOVE a b right left 0 -> "3"
! lpush:b rpop:a => LMOVE a b right left
> BRPOPLPUSH a b 0.1 -> "2"
! lpush:b rpop:a del:a => RPOPLPUSH a b
> LRANGE b 0 -1 -> ["2", "3", "1"]
> BRPOPLPUSH b b 1 -> "1"
> LRANGE b 0 -1 -> ["1", "2", "3"]
> SET s v -> OK
> BLMOVE s b LEFT LEFT 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BLMOVE b s LEFT LEFT 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BRPOPLPUSH b s 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BRPOPLPUSH s b 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BLMOVE b c UP LEFT 1 -> -ERR syntax error
> BLMOVE b c LEFT DOWN x -> -ERR syntax error
> BLMOVE b c LEFT LEFT x -> -ERR timeout is not a float or out of range
> BLMOVE b c LEFT LEFT -1 -> -ERR timeout is negative
> BRPOPLPUSH b c x -> -ERR timeout is not a float or out of range
> BRPOPLPUSH b c -0.5 -> -ERR timeout is negative
> BLMOVE b c LEFT LEFT -> -ERR wrong number of arguments for 'blmove' command
> BRPOPLPUSH b c -> -ERR wrong number of arguments for 'brpoplpush' command
> LLEN b -> 3
"#,
    );
}

#[test]
fn pop_from_the_first_existing_list() {
    check(
        r#"
> RPUSH b 1 2 3 4 -> 4
> BLMPOP 1 2 a b LEFT -> ["b", ["1"]]
! lpop:b => LPOP b 1
> BLMPOP 0 2 a b right count 2 -> ["b", ["4", "3"]]
! rpop:b => RPOP b 2
> BLMPOP 0.1 1 b LEFT COUNT 100 -> ["b", ["2"]]
! lpop:b del:b => LPOP b 1
> SET s v -> OK
> RPUSH l a -> 1
> BLMPOP 1 2 s l LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
> BLMPOP x 1 l LEFT -> -ERR timeout is not a float or out of range
> BLMPOP -1 1 l LEFT -> -ERR timeout is negative
> BLMPOP 1 0 l LEFT -> -ERR numkeys should be greater than 0
> BLMPOP 1 x l LEFT -> -ERR numkeys should be greater than 0
> BLMPOP x x l LEFT -> -ERR numkeys should be greater than 0
> BLMPOP 1 2 l LEFT -> -ERR syntax error
> BLMPOP 1 1 l UP -> -ERR syntax error
> BLMPOP 1 1 l LEFT COUNT 0 -> -ERR count should be greater than 0
> BLMPOP x 1 l LEFT COUNT 0 -> -ERR count should be greater than 0
> BLMPOP 1 1 l LEFT COUNT -> -ERR syntax error
> BLMPOP 1 1 l -> -ERR wrong number of arguments for 'blmpop' command
> LLEN l -> 1
"#,
    );
}

//! LMOVE, RPOPLPUSH.

use crate::check::check;

#[test]
fn moves() {
    check(
        r#"
> RPUSH a 1 2 3 four -> 4
> LMOVE a b LEFT RIGHT -> "1"
! rpush:b lpop:a => LMOVE a b LEFT RIGHT
> LMOVE a b RIGHT LEFT -> "four"
! lpush:b rpop:a => LMOVE a b RIGHT LEFT
> LMOVE a b left left -> "2"
> LMOVE a b right right -> "3"
! rpush:b rpop:a del:a => LMOVE a b right right
> EXISTS a -> 0
> LRANGE b 0 -1 -> ["2", "four", "1", "3"]
> LMOVE a b LEFT LEFT -> nil
> RPOPLPUSH b c -> "3"
! lpush:c rpop:b => RPOPLPUSH b c
> RPOPLPUSH missing c -> nil
> LRANGE c 0 -1 -> ["3"]
> HELLO 3 -> ~~ *
> RPOPLPUSH missing c -> nil
"#,
    );
}

#[test]
fn rotation() {
    check(
        r#"
> RPUSH l a b c -> 3
> LMOVE l l LEFT RIGHT -> "a"
! rpush:l lpop:l => LMOVE l l LEFT RIGHT
> LRANGE l 0 -1 -> ["b", "c", "a"]
> RPOPLPUSH l l -> "a"
> LRANGE l 0 -1 -> ["a", "b", "c"]
> LMOVE l l LEFT LEFT -> "a"
> LRANGE l 0 -1 -> ["a", "b", "c"]
> DEL l -> 1
> RPUSH l one -> 1
> PEXPIRE l 100000 -> 1
> LMOVE l l RIGHT LEFT -> "one"
! lpush:l rpop:l => LMOVE l l RIGHT LEFT
> PTTL l -> 100000
> LRANGE l 0 -1 -> ["one"]
"#,
    );
}

#[test]
fn move_errors() {
    check(
        r#"
> SET s v -> OK
> RPUSH l a -> 1
> LMOVE s l LEFT LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LMOVE l s LEFT LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
> LMOVE missing s LEFT LEFT -> nil
> RPOPLPUSH s l -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPOPLPUSH l s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> RPOPLPUSH missing s -> nil
> LMOVE l b UP LEFT -> -ERR syntax error
> LMOVE l b LEFT DOWN -> -ERR syntax error
> LMOVE l b LEFT -> -ERR wrong number of arguments for 'lmove' command
> RPOPLPUSH l -> -ERR wrong number of arguments for 'rpoplpush' command
> LRANGE l 0 -1 -> ["a"]
> EXISTS b -> 0
"#,
    );
}

//! Clients that wait for keys: who is served when, and with what.

use crate::check::check;

#[test]
fn first_come_first_served() {
    check(
        r#"
@client a
> BLPOP k 0
@client b
> BRPOP k 0
@client c
> BLPOP other k 0
@client w
> RPUSH k 1 2 3 4
4
! rpush:k => RPUSH k 1 2 3 4
! lpop:k => LPOP k
! rpop:k => RPOP k
! lpop:k => LPOP k
@hears a
["k", "1"]
@hears b
["k", "4"]
@hears c
["k", "2"]
> LRANGE k 0 -1
["3"]
# Those who were served wait no more.
> RPUSH other x
1
@client c
> PING
PONG
> BLPOP other 0
["other", "x"]
"#,
    );
}

#[test]
fn what_is_served_is_gone_for_everyone_else() {
    check(
        r#"
@client a
> BLPOP k 0
@client w
> RPUSH k only
1
! rpush:k => RPUSH k only
! lpop:k del:k => LPOP k
@hears a
["k", "only"]
> EXISTS k
0
> LPUSH k x y
2
> LRANGE k 0 -1
["y", "x"]
"#,
    );
}

#[test]
fn one_client_waits_for_the_same_key_twice_and_for_several() {
    check(
        r#"
@client a
> BLPOP k k l k 0
@client b
> BLPOP l 0
@client w
> RPUSH k 1
1
@hears a
["k", "1"]
> RPUSH l 2 3
2
@hears a
@hears b
["l", "2"]
> LRANGE l 0 -1
["3"]
> INFO clients
~~ *blocked_clients:0*total_blocking_keys:0\\r\\n*
"#,
    );
}

#[test]
fn a_chain_of_moves() {
    check(
        r#"
@client a
> BLMOVE k1 k2 LEFT RIGHT 0
@client b
> BRPOPLPUSH k2 k3 0
@client c
> BLMOVE k3 k4 LEFT LEFT 0
@client d
> BLPOP k4 0
@client w
> RPUSH k1 x
1
! rpush:k1 => RPUSH k1 x
! rpush:k2 lpop:k1 del:k1 => LMOVE k1 k2 LEFT RIGHT
! lpush:k3 rpop:k2 del:k2 => RPOPLPUSH k2 k3
! lpush:k4 lpop:k3 del:k3 => LMOVE k3 k4 LEFT LEFT
! lpop:k4 del:k4 => LPOP k4
@hears a
"x"
@hears b
"x"
@hears c
"x"
@hears d
["k4", "x"]
> EXISTS k1 k2 k3 k4
0
"#,
    );
}

#[test]
fn moves_in_a_ring_end() {
    check(
        r#"
@client a
> BLMOVE k l LEFT RIGHT 0
@client b
> BLMOVE l k LEFT RIGHT 0
@client c
> BLMOVE k k LEFT RIGHT 0
@client w
> RPUSH k 1 2
2
@hears a
"1"
@hears b
"1"
@hears c
"2"
> LRANGE k 0 -1
["2", "1"]
> EXISTS l
0
"#,
    );
}

#[test]
fn a_move_to_another_type_is_an_error_and_takes_nothing() {
    check(
        r#"
@client a
> BLMOVE k s LEFT RIGHT 0
@client b
> BLPOP k 0
@client w
> SET s text
OK
> RPUSH k 1
1
@hears a
-WRONGTYPE Operation against a key holding the wrong kind of value
@hears b
["k", "1"]
"#,
    );
}

#[test]
fn a_key_of_another_type_is_not_waited_for() {
    check(
        r#"
@client a
> BLPOP k 1
@client b
> BZPOPMIN k 1
@client w
> SET k text
OK
! set:k => SET k text
@hears a
@hears b
> DEL k
1
> ZADD k 1 m
1
! zadd:k => ZADD k 1 m
! zpopmin:k del:k => ZPOPMIN k
@hears a
@hears b
["k", "m", "1"]
> RPUSH k 1
1
@hears a
["k", "1"]
"#,
    );
}

#[test]
fn whatever_brings_a_list_serves() {
    check(
        r#"
@client w
> RPUSH from 1
1
@client a
> BLPOP k 0
@client w
> RENAME from k
OK
! rename_from:from rename_to:k => RENAME from k
! lpop:k del:k => LPOP k
@hears a
["k", "1"]
@client a
> BLPOP k 0
@client w
> RPUSH from 2
1
> COPY from k
1
@hears a
["k", "2"]
@client a
> BLPOP k 0
@client w
> LMOVE from k LEFT LEFT
"2"
@hears a
["k", "2"]
@client a
> BLPOP k 0
@client w
> RPUSH from 3 1 2
3
> SORT from STORE k
3
@hears a
["k", "1"]
> DEL k from
2
@client a
> SELECT 1
OK
> BLPOP k 0
@client w
> RPUSH k 7
1
@hears a
> MOVE k 1
1
! move_from:k move_to:k@1 => MOVE k 1
! lpop:k del:k => LPOP k
@hears a
["k", "7"]
> RPUSH k 8
1
> COPY k k DB 2
1
@client a
> SELECT 2
OK
> BLPOP k 0
["k", "8"]
"#,
    );
}

#[test]
fn databases_are_apart_and_may_be_exchanged() {
    check(
        r#"
@client a
> BLPOP k 0
@client b
> SELECT 1
OK
> BLPOP k 0
@client w
> SELECT 2
OK
> RPUSH k 1 2
2
> FLUSHDB
OK
> RPUSH k 1 2
2
> SWAPDB 1 2
OK
!  => SWAPDB 1 2
! lpop:k => LPOP k
@hears a
@hears b
["k", "1"]
> SWAPDB 1 0
OK
@hears a
["k", "2"]
> FLUSHALL
OK
"#,
    );
}

#[test]
fn reading_an_awaited_key_serves_nobody() {
    check(
        r#"
@client a
> BLPOP k 0
@client w
> LLEN k
0
> EXISTS k k2 k3
0
> DEL k
0
> RPUSHX k 1
0
> KEYS *
[]
@hears a
> SET k v PX 100
OK
@advance 101
> GET k
nil
> RPUSH k 1
1
@hears a
["k", "1"]
"#,
    );
}

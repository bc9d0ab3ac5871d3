//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP that wait.

use crate::check::check;

#[test]
fn a_push_serves() {
    check(
        r#"
> BLPOP l 0
@client b
> RPUSH l one
1
! rpush:l => RPUSH l one
! lpop:l del:l => LPOP l
@hears a
["l", "one"]
> EXISTS l
0
@client a
> BRPOP m l 0
@client b
> LPUSH l 1 2 3
3
! lpush:l => LPUSH l 1 2 3
! rpop:l => RPOP l
@hears a
["l", "1"]
> LRANGE l 0 -1
["3", "2"]
@client a
> HELLO 3
~~ *
> BLPOP none 0
@client b
> LPUSH none x
1
@hears a
["none", "x"]
"#,
    );
}

#[test]
fn first_come_first_served() {
    check(
        r#"
> BLPOP l 0
@client b
> BLPOP other l 0
@client c
> BRPOP l 0
@client d
> BLPOP l 0
@client e
> RPUSH l 1 2 3
3
! rpush:l => RPUSH l 1 2 3
! lpop:l => LPOP l
! lpop:l => LPOP l
! rpop:l del:l => RPOP l
@hears a
["l", "1"]
@hears b
["l", "2"]
@hears c
["l", "3"]
> RPUSH l 4 5
2
@hears d
["l", "4"]
> LRANGE l 0 -1
["5"]
"#,
    );
}

#[test]
fn the_wait_ends() {
    check(
        r#"
> BLPOP l 0.5
@advance 600
@hears a
nil-array
> BLMOVE l m LEFT RIGHT 0.5
@advance 600
@hears a
nil-array
> BRPOPLPUSH l m 0.5
@advance 600
@hears a
nil-array
> BLMPOP 0.5 2 l m LEFT
@advance 600
@hears a
nil-array
> BLPOP l 0
@client b
> CLIENT UNBLOCK 99999
0
@client c
> BLPOP l 0
@close
@client b
> RPUSH l x y
2
@hears a
["l", "x"]
> LRANGE l 0 -1
["y"]
"#,
    );
}

#[test]
fn other_types_do_not_serve() {
    check(
        r#"
> BLPOP l 0
@client b
> SET l v
OK
> DEL l
1
> LPUSH l x
1
@hears a
["l", "x"]
@client a
> BLMOVE src dst LEFT RIGHT 0
@client b
> SET dst v
OK
> LPUSH src a b
2
! lpush:src => LPUSH src a b
@hears a
-WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE src 0 -1
["b", "a"]
"#,
    );
}

#[test]
fn moves_feed_each_other() {
    check(
        r#"
> BLMOVE one two LEFT RIGHT 0
@client b
> BRPOPLPUSH two three 0
@client c
> BLPOP three 0
@client d
> RPUSH one x
1
! rpush:one => RPUSH one x
! rpush:two lpop:one del:one => LMOVE one two LEFT RIGHT
! lpush:three rpop:two del:two => RPOPLPUSH two three
! lpop:three del:three => LPOP three
@hears a
"x"
@hears b
"x"
@hears c
["three", "x"]
> EXISTS one two three
0
@client a
> BLMOVE self self LEFT RIGHT 0
@client d
> RPUSH self 1 2
2
@hears a
"1"
> LRANGE self 0 -1
["2", "1"]
"#,
    );
}

#[test]
fn pops_of_several_wait() {
    check(
        r#"
> BLMPOP 0 2 l m RIGHT COUNT 2
@client b
> RPUSH m 1 2 3
3
! rpush:m => RPUSH m 1 2 3
! rpop:m => RPOP m 2
@hears a
["m", ["3", "2"]]
> DEL m
1
@client a
> BLMPOP 0 1 l LEFT COUNT 10
@client b
> LPUSH l only
1
! lpush:l => LPUSH l only
! lpop:l del:l => LPOP l 1
@hears a
["l", ["only"]]
"#,
    );
}

#[test]
fn whatever_makes_a_list_serves() {
    check(
        r#"
> RPUSH kept 1 2 3
3
> BLPOP l 0
@client b
> RENAME kept l
OK
@hears a
["l", "1"]
@client a
> BLPOP copy 0
@client b
> COPY l copy
1
@hears a
["copy", "2"]
> LRANGE copy 0 -1
["3"]
@client a
> BLPOP sorted 0
@client b
> SORT l STORE sorted
2
@hears a
["sorted", "2"]
@client a
> BLPOP moved 0
@client b
> LMOVE l moved LEFT LEFT
"2"
! lpush:moved lpop:l => LMOVE l moved LEFT LEFT
! lpop:moved del:moved => LPOP moved
@hears a
["moved", "2"]
@client a
> BLPOP x 0
@client b
> RPUSHX x 1
0
> LINSERT x BEFORE a b
0
> LPUSH x 1
1
@hears a
["x", "1"]
"#,
    );
}

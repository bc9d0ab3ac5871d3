//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP that wait.

use crate::check::check;

#[test]
fn a_push_serves_a_waiter() {
    check(
        r#"
a> BLPOP l 0
b> RPUSH l one -> 1
! rpush:l => RPUSH l one
! lpop:l del:l => LPOP l
a< ["l", "one"]
b> EXISTS l -> 0
a> BRPOP m l 0
b> LPUSH l 1 2 3 -> 3
! lpush:l => LPUSH l 1 2 3
! rpop:l => RPOP l
a< ["l", "1"]
b> LRANGE l 0 -1 -> ["3", "2"]
a> HELLO 3 -> ~~ *
a> BLPOP none 0
b> LPUSH none x -> 1
a< ["none", "x"]
"#,
    );
}

#[test]
fn first_come_first_served() {
    check(
        r#"
a> BLPOP l 0
b> BLPOP other l 0
c> BRPOP l 0
d> BLPOP l 0
e> RPUSH l 1 2 3 -> 3
! rpush:l => RPUSH l 1 2 3
! lpop:l => LPOP l
! lpop:l => LPOP l
! rpop:l del:l => RPOP l
a< ["l", "1"]
b< ["l", "2"]
c< ["l", "3"]
e> RPUSH l 4 5 -> 2
d< ["l", "4"]
e> LRANGE l 0 -1 -> ["5"]
"#,
    );
}

#[test]
fn waits_time_out() {
    check(
        r#"
a> BLPOP l 0.5
@advance 600
a< nil-array
a> BLMOVE l m LEFT RIGHT 0.5
@advance 600
a< nil-array
a> BRPOPLPUSH l m 0.5
@advance 600
a< nil-array
a> BLMPOP 0.5 2 l m LEFT
@advance 600
a< nil-array
a> BLPOP l 0
b> CLIENT UNBLOCK 99999 -> 0
c> BLPOP l 0
@close c
b> RPUSH l x y -> 2
a< ["l", "x"]
b> LRANGE l 0 -1 -> ["y"]
"#,
    );
}

#[test]
fn other_types_do_not_serve_waiters() {
    check(
        r#"
a> BLPOP l 0
b> SET l v -> OK
b> DEL l -> 1
b> LPUSH l x -> 1
a< ["l", "x"]
a> BLMOVE src dst LEFT RIGHT 0
b> SET dst v -> OK
b> LPUSH src a b -> 2
! lpush:src => LPUSH src a b
a< -WRONGTYPE Operation against a key holding the wrong kind of value
b> LRANGE src 0 -1 -> ["b", "a"]
"#,
    );
}

#[test]
fn a_served_move_serves_another() {
    check(
        r#"
a> BLMOVE one two LEFT RIGHT 0
b> BRPOPLPUSH two three 0
c> BLPOP three 0
d> RPUSH one x -> 1
! rpush:one => RPUSH one x
! rpush:two lpop:one del:one => LMOVE one two LEFT RIGHT
! lpush:three rpop:two del:two => RPOPLPUSH two three
! lpop:three del:three => LPOP three
a< "x"
b< "x"
c< ["three", "x"]
d> EXISTS one two three -> 0
a> BLMOVE self self LEFT RIGHT 0
d> RPUSH self 1 2 -> 2
a< "1"
d> LRANGE self 0 -1 -> ["2", "1"]
"#,
    );
}

#[test]
fn pops_of_several_lists_wait() {
    check(
        r#"
a> BLMPOP 0 2 l m RIGHT COUNT 2
b> RPUSH m 1 2 3 -> 3
! rpush:m => RPUSH m 1 2 3
! rpop:m => RPOP m 2
a< ["m", ["3", "2"]]
b> DEL m -> 1
a> BLMPOP 0 1 l LEFT COUNT 10
b> LPUSH l only -> 1
! lpush:l => LPUSH l only
! lpop:l del:l => LPOP l 1
a< ["l", ["only"]]
"#,
    );
}

#[test]
fn every_command_that_creates_a_list_serves_waiters() {
    check(
        r#"
a> RPUSH kept 1 2 3 -> 3
a> BLPOP l 0
b> RENAME kept l -> OK
a< ["l", "1"]
a> BLPOP copy 0
b> COPY l copy -> 1
a< ["copy", "2"]
b> LRANGE copy 0 -1 -> ["3"]
a> BLPOP sorted 0
b> SORT l STORE sorted -> 2
a< ["sorted", "2"]
a> BLPOP moved 0
b> LMOVE l moved LEFT LEFT -> "2"
! lpush:moved lpop:l => LMOVE l moved LEFT LEFT
! lpop:moved del:moved => LPOP moved
a< ["moved", "2"]
a> BLPOP x 0
b> RPUSHX x 1 -> 0
b> LINSERT x BEFORE a b -> 0
b> LPUSH x 1 -> 1
a< ["x", "1"]
"#,
    );
}

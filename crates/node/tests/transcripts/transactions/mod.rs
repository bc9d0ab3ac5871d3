//! MULTI, EXEC and DISCARD.

mod groups;
mod watch;

use crate::check::check;

#[test]
fn queued_commands_run_at_exec() {
    check(
        r#"
> MULTI -> OK
> SET k v -> QUEUED
> INCR n -> QUEUED
> GET k -> QUEUED
> EXEC -> [OK, 1, "v"]
> EXEC -> -ERR EXEC without MULTI
> MULTI -> OK
> EXEC -> []
> MULTI -> OK
> SET k other -> QUEUED
> DISCARD -> OK
> GET k -> "v"
> DISCARD -> -ERR DISCARD without MULTI
> MULTI -> OK
> MULTI -> -ERR MULTI calls can not be nested
> GET k -> QUEUED
> WATCH k -> -ERR WATCH inside MULTI is not allowed
> EXEC -> ["v"]
> MULTI -> OK
> SELECT 1 -> QUEUED
> SET k one -> QUEUED
> SELECT 0 -> QUEUED
> GET k -> QUEUED
> EXEC -> [OK, OK, OK, "v"]
> SELECT 1 -> OK
> GET k -> "one"
> SWAPDB 0 1 -> OK
> GET k -> "v"
"#,
    );
}

#[test]
fn a_rejected_command_aborts_and_a_failed_one_does_not() {
    check(
        r#"
> SET k v -> OK
> MULTI -> OK
> SET k -> -ERR wrong number of arguments for 'set' command
> SET k other -> QUEUED
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> GET k -> "v"
> MULTI -> OK
> NOSUCH a -> ~~ -ERR unknown command 'NOSUCH', with args beginning with: 'a'*
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> MULTI -> OK
> CONFIG NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP.
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> MULTI -> OK
> INCR k -> QUEUED
> APPEND k w -> QUEUED
> LPUSH k x -> QUEUED
> GET k -> QUEUED
> EXEC
[-ERR value is not an integer or out of range, 2, -WRONGTYPE Operation against a key holding the wro
  ng kind of value, "vw"]
> MULTI -> OK
> SET k -> -ERR wrong number of arguments for 'set' command
> DISCARD -> OK
> MULTI -> OK
> GET k -> QUEUED
> EXEC -> ["vw"]
"#,
    );
}

#[test]
fn arities_and_subcommands() {
    check(
        r#"
> MULTI x -> -ERR wrong number of arguments for 'multi' command
> EXEC x
-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
> MULTI -> OK
> EXEC x
-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
> EXEC -> -ERR EXEC without MULTI
> DISCARD x -> -ERR wrong number of arguments for 'discard' command
> WATCH -> -ERR wrong number of arguments for 'watch' command
> UNWATCH x -> -ERR wrong number of arguments for 'unwatch' command
> UNWATCH -> OK
> MULTI -> OK
> UNWATCH -> QUEUED
> PING -> QUEUED
> ECHO x -> QUEUED
> EXEC -> [OK, PONG, "x"]
"#,
    );
}

#[test]
fn blocking_commands_do_not_block() {
    check(
        r#"
> MULTI -> OK
> BLPOP l 0 -> QUEUED
> BRPOP l 0 -> QUEUED
> BLMPOP 0 1 l LEFT -> QUEUED
> BLMOVE l m LEFT RIGHT 0 -> QUEUED
> BRPOPLPUSH l m 0 -> QUEUED
> BZPOPMIN z 0 -> QUEUED
> BZMPOP 0 1 z MIN -> QUEUED
> XREAD BLOCK 0 STREAMS s 0 -> QUEUED
> XGROUP CREATE s g $ MKSTREAM -> QUEUED
> XREADGROUP GROUP g c BLOCK 0 STREAMS s > -> QUEUED
> RPUSH l a b -> QUEUED
> BLPOP l 0 -> QUEUED
> BLMOVE l m LEFT RIGHT 0 -> QUEUED
> EXEC
[nil-array, nil-array, nil-array, nil, nil, nil-array, nil-array, nil-array, OK, nil-array, 2, ["l",
   "a"], "b"]
> HELLO 3 -> ~~ {*}
> MULTI -> OK
> BLPOP l 0 -> QUEUED
> BLMOVE l m LEFT RIGHT 0 -> QUEUED
> EXEC -> [nil, nil]
"#,
    );
}

#[test]
fn commands_that_visit_all_shards() {
    check(
        r#"
> MSET a 1 b 2 c 3 -> OK
> MULTI -> OK
> SET d 4 -> QUEUED
> KEYS *z -> QUEUED
> SCAN 0 MATCH d -> QUEUED
> DBSIZE -> QUEUED
> DEL a b c d -> QUEUED
> RANDOMKEY -> QUEUED
> EXEC -> [OK, [], ["0", ["d"]], 4, 4, nil]
> MULTI -> OK
> SET a 1 -> QUEUED
> FLUSHALL -> QUEUED
> GET a -> QUEUED
> SET b 2 -> QUEUED
> DBSIZE -> QUEUED
> EXEC -> [OK, OK, nil, OK, 1]
> MULTI -> OK
> RPUSH l 2 1 -> QUEUED
> MSET w1 5 w2 4 -> QUEUED
> SORT l BY w* -> QUEUED
> EXEC -> [2, OK, ["2", "1"]]
> MULTI -> OK
> SET x 1 -> QUEUED
> SWAPDB 0 1 -> QUEUED
> GET x -> QUEUED
> SELECT 1 -> QUEUED
> GET x -> QUEUED
> KEYS x -> QUEUED
> EXEC -> [OK, OK, nil, OK, "1", ["x"]]
"#,
    );
}

#[test]
fn a_transaction_ends_with_its_connection_state() {
    check(
        r#"
> SET k 1 -> OK
> WATCH k -> OK
> MULTI -> OK
> SET k 2 -> QUEUED
> RESET -> RESET
> EXEC -> -ERR EXEC without MULTI
> GET k -> "1"
> WATCH k -> OK
> MULTI -> OK
> SET k 2 -> QUEUED
@close a
b> GET k -> "1"
b> SET k 3 -> OK
a> EXEC -> -ERR EXEC without MULTI
a> MULTI -> OK
a> QUIT -> OK
"#,
    );
}

#[test]
fn blocked_clients_are_served_at_the_end() {
    check(
        r#"
b> BLPOP l 0
> MULTI -> OK
> RPUSH l a -> QUEUED
> LPUSH l b -> QUEUED
> EXEC -> [1, 2]
b< ["l", "b"]
> LRANGE l 0 -1 -> ["a"]
b> BLPOP l2 0
> MULTI -> OK
> RPUSH l2 a -> QUEUED
> DEL l2 -> QUEUED
> EXEC -> [1, 1]
b<
> MULTI -> OK
> SELECT 1 -> QUEUED
> RPUSH l2 other -> QUEUED
> SELECT 0 -> QUEUED
> RPUSH l2 mine -> QUEUED
> EXEC -> [OK, 1, OK, 1]
b< ["l2", "mine"]
b> BLPOP l3 0
> MULTI -> OK
> RPUSH l3 a -> QUEUED
> FLUSHALL -> QUEUED
> RPUSH l3 b -> QUEUED
> EXEC -> [1, OK, 1]
b< ["l3", "b"]
"#,
    );
}

#[test]
fn a_transaction_leaves_one_effect() {
    check(
        r#"
> MULTI -> OK
> SET k v EX 10 -> QUEUED
> GET k -> QUEUED
> EXPIRE k 100 -> QUEUED
> SADD s a -> QUEUED
> SPOP s -> QUEUED
> SELECT 2 -> QUEUED
> INCRBYFLOAT f 1.5 -> QUEUED
> EXEC -> [OK, "v", 1, 1, "a", OK, "1.5"]
! set:k expire:k expire:k sadd:s spop:s del:s incrbyfloat:f@2 => SET k v PXAT 1700000010000 |
   PEXPIREAT k 1700000100000 | SADD s a | SREM s a | @2 SET f 1.5 KEEPTTL
> MULTI -> OK
> GET k -> QUEUED
> EXEC -> [nil]
> SET e 1 PX 10 -> OK
@advance 20
> MULTI -> OK
> GET e -> QUEUED
> SET e 2 -> QUEUED
> EXEC -> [nil, OK]
! expired:e set:e => DEL e | SET e 2
"#,
    );
}

#[test]
fn client_list_and_info_show_transactions() {
    check(
        r#"
> CLIENT INFO -> ~~ *flags=N *multi=-1 watch=0 *multi-mem=0 *
b> WATCH a b -> OK
b> SET a 1 -> OK
> CLIENT LIST -> ~~ *flags=d *multi=-1 watch=0 *
b> MULTI -> OK
b> SET key value -> QUEUED
> CLIENT LIST -> ~~ *flags=xd *multi=0 watch=0 *multi-mem=0 *
b> DISCARD -> OK
> CLIENT LIST -> ~~ *cmd=client|list *flags=N *multi=-1 watch=0 *cmd=discard *
b> MULTI -> OK
b> SET key value -> QUEUED
> CLIENT LIST -> ~~ *flags=x *multi=1 watch=0 *multi-mem=??*
b> DISCARD -> OK
> INFO clients -> ~~ *watching_clients:0*total_watched_keys:0*
b> WATCH a b -> OK
> INFO clients -> ~~ *watching_clients:1*total_watched_keys:2*
"#,
    );
}

#[test]
fn replies_can_be_off() {
    check(
        r#"
> CLIENT REPLY OFF
> MULTI
> SET k v
> EXEC
> CLIENT REPLY ON -> OK
> GET k -> "v"
> CLIENT REPLY SKIP
> MULTI
> GET k -> QUEUED
> CLIENT REPLY OFF -> QUEUED
> DISCARD -> OK
"#,
    );
}

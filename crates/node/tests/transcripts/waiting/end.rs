//! Waits that end without an element, and how waits are counted and shown.

use crate::check::check;

#[test]
fn waits_time_out() {
    check(
        r#"
a> BLPOP k 0.25
b> HELLO 3 -> ~~ {*}
b> BLPOP k 0.5
c> BLMOVE k l LEFT LEFT 0.5
d> BLPOP k 0
@advance 250
a<
@advance 1
a< nil-array
b<
@advance 250
b< nil
c< nil-array
@advance 1000000
w> RPUSH k 1 -> 1
d< ["k", "1"]
a<
"#,
    );
}

#[test]
fn unblock_ends_a_wait() {
    check(
        r#"
w> CLIENT ID -> 1
a> CLIENT ID -> 2
a> BLPOP k 0
w> CLIENT UNBLOCK 2 -> 1
a< nil-array
w> CLIENT UNBLOCK 2 -> 0
a> BLPOP k 0
w> CLIENT UNBLOCK 2 error -> 1
w> CLIENT UNBLOCK 2 ERROR -> 0
a< -UNBLOCKED client unblocked via CLIENT UNBLOCK
a> BLPOP k 0
w> CLIENT UNBLOCK 2 TIMEOUT -> 1
a< nil-array
w> RPUSH k 1 -> 1
w> LLEN k -> 1
w> CLIENT UNBLOCK 1 -> 0
w> CLIENT UNBLOCK 99 -> 0
w> CLIENT UNBLOCK 2 now -> -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
w> INFO errorstats -> ~~ *errorstat_UNBLOCKED:count=1*
"#,
    );
}

#[test]
fn a_disconnected_client_takes_no_element() {
    check(
        r#"
a> BLPOP k 0
@close a
b> CLIENT ID -> 2
b> BLPOP k 0
w> CLIENT KILL ID 2 -> 1
w> RPUSH k 1 -> 1
! rpush:k => RPUSH k 1
w> LRANGE k 0 -1 -> ["1"]
w> INFO clients -> ~~ *blocked_clients:0*total_blocking_keys:0\\r\\n*
"#,
    );
}

#[test]
fn a_wait_is_shown_and_counted_once() {
    check(
        r#"
w> CONFIG SET slowlog-log-slower-than -1 -> OK
a> BLPOP k l 0
b> BLPOP l 10
w> CLIENT LIST ID 2 -> ~~ "id=2 * flags=b *cmd=blpop *"
w> INFO clients -> ~~ *blocked_clients:2*in_timeout_table:1*total_blocking_keys:2*_on_nokey:0*
w> RPUSH l 1 -> 1
w> CLIENT LIST ID 2 -> ~~ "id=2 * flags=N *
w> INFO clients -> ~~ *blocked_clients:1\\r\\n*total_blocking_keys:1\\r\\n*
w> INFO commandstats -> ~~ *cmdstat_blpop:calls=1,*rejected_calls=0,failed_calls=0*
@advance 10001
w> INFO commandstats -> ~~ *cmdstat_blpop:calls=2,*rejected_calls=0,failed_calls=0*
a> BLPOP k 0
w> CLIENT UNBLOCK 2 ERROR -> 1
w> INFO commandstats -> ~~ *cmdstat_blpop:calls=3,*rejected_calls=0,failed_calls=1*
a> BLPOP k 0
@close a
w> INFO commandstats -> ~~ *cmdstat_blpop:calls=3,*
"#,
    );
}

#[test]
fn the_slow_log_has_a_wait_after_the_command_that_ended_it() {
    check(
        r#"
w> CONFIG SET slowlog-log-slower-than 0 -> OK
a> BLPOP k 0
w> SLOWLOG RESET -> OK
w> RPUSH k 1 -> 1
w> SLOWLOG GET 2
w< ~~ *3, *"BLPOP", "k", "0"*, "127.0.0.1:40002", ""*2, *"RPUSH", "k", "1"*, "127.0.0.1:40001", ""*
"#,
    );
}

#[test]
fn client_reply_suppresses_the_reply_of_a_wait() {
    check(
        r#"
a> CLIENT REPLY SKIP
a> BLPOP k 0
w> RPUSH k 1 2 -> 2
a<
a> PING -> PONG
a> CLIENT REPLY OFF
a> BLPOP l 0
w> RPUSH l 1 -> 1
a<
a> CLIENT REPLY ON -> OK
a> LLEN l -> 0
"#,
    );
}

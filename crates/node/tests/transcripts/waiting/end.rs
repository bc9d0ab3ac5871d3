//! How a wait ends when nothing comes, and how it is counted and seen.

use crate::check::check;

#[test]
fn waits_run_out_of_time() {
    check(
        r#"
@client a
> BLPOP k 0.25
@client b
> HELLO 3
~~ {*}
> BLPOP k 0.5
@client c
> BLMOVE k l LEFT LEFT 0.5
@client d
> BLPOP k 0
@advance 249
@hears a
@advance 1
@hears a
nil-array
@hears b
@advance 250
@hears b
nil
@hears c
nil-array
@advance 1000000
@client w
> RPUSH k 1
1
@hears d
["k", "1"]
@hears a
"#,
    );
}

#[test]
fn unblock_ends_a_wait() {
    check(
        r#"
@client w
> CLIENT ID
1
@client a
> CLIENT ID
2
> BLPOP k 0
@client w
> CLIENT UNBLOCK 2
1
@hears a
nil-array
> CLIENT UNBLOCK 2
0
@client a
> BLPOP k 0
@client w
> CLIENT UNBLOCK 2 error
1
> CLIENT UNBLOCK 2 ERROR
0
@hears a
-UNBLOCKED client unblocked via CLIENT UNBLOCK
@client a
> BLPOP k 0
@client w
> CLIENT UNBLOCK 2 TIMEOUT
1
@hears a
nil-array
> RPUSH k 1
1
> LLEN k
1
> CLIENT UNBLOCK 1
0
> CLIENT UNBLOCK 99
0
> CLIENT UNBLOCK 2 now
-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
> INFO errorstats
~~ *errorstat_UNBLOCKED:count=1*
"#,
    );
}

#[test]
fn who_is_gone_takes_nothing() {
    check(
        r#"
@client a
> BLPOP k 0
@close
@client b
> CLIENT ID
2
> BLPOP k 0
@client w
> CLIENT KILL ID 2
1
> RPUSH k 1
1
! rpush:k => RPUSH k 1
> LRANGE k 0 -1
["1"]
> INFO clients
~~ *blocked_clients:0*total_blocking_keys:0\\r\\n*
"#,
    );
}

#[test]
fn a_wait_is_seen_and_counted_once() {
    check(
        r#"
@client w
> CONFIG SET slowlog-log-slower-than -1
OK
@client a
> BLPOP k l 0
@client b
> BLPOP l 10
@client w
> CLIENT LIST ID 2
~~ "id=2 * flags=b *cmd=blpop *"
> INFO clients
~~ *blocked_clients:2*in_timeout_table:1*total_blocking_keys:2*_on_nokey:0*
> RPUSH l 1
1
> CLIENT LIST ID 2
~~ "id=2 * flags=N *
> INFO clients
~~ *blocked_clients:1\\r\\n*total_blocking_keys:1\\r\\n*
> INFO commandstats
~~ *cmdstat_blpop:calls=1,*rejected_calls=0,failed_calls=0*
@advance 10000
> INFO commandstats
~~ *cmdstat_blpop:calls=2,*rejected_calls=0,failed_calls=0*
@client a
> BLPOP k 0
@client w
> CLIENT UNBLOCK 2 ERROR
1
> INFO commandstats
~~ *cmdstat_blpop:calls=3,*rejected_calls=0,failed_calls=1*
@client a
> BLPOP k 0
@close
@client w
> INFO commandstats
~~ *cmdstat_blpop:calls=3,*
"#,
    );
}

#[test]
fn the_slow_log_has_a_wait_behind_what_ended_it() {
    check(
        r#"
@client w
> CONFIG SET slowlog-log-slower-than 0
OK
@client a
> BLPOP k 0
@client w
> SLOWLOG RESET
OK
> RPUSH k 1
1
> SLOWLOG GET 2
~~ *3, *"BLPOP", "k", "0"*, "127.0.0.1:40002", ""*2, *"RPUSH", "k", "1"*, "127.0.0.1:40001", ""*
"#,
    );
}

#[test]
fn client_reply_silences_a_wait() {
    check(
        r#"
@client a
> CLIENT REPLY SKIP
> BLPOP k 0
@client w
> RPUSH k 1 2
2
@hears a
@client a
> PING
PONG
> CLIENT REPLY OFF
> BLPOP l 0
@client w
> RPUSH l 1
1
@hears a
@client a
> CLIENT REPLY ON
OK
> LLEN l
0
"#,
    );
}

//! `maxmemory`: refused commands and evicted keys.
//!
//! A key takes 1000 bytes here, and everything else a million (`fake_shards`).

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn writes_are_refused_without_eviction() {
    check(
        r#"
> SET old 1 -> OK
> CONFIG SET maxmemory 1mb -> OK
> SET k 1 -> OK
> CONFIG SET maxmemory 1m -> OK
> SET k 1 -> -OOM command not allowed when used memory > 'maxmemory'.
> APPEND k 1 -> -OOM command not allowed when used memory > 'maxmemory'.
> GET k -> "1"
> EXPIRE k 100 -> 1
> DEL k -> 1
> GETDEL nokey -> nil
> PING -> PONG
> CLIENT REPLY SKIP
> SET k 1
> INFO errorstats -> ~~ *errorstat_OOM:count=3*
> INFO commandstats -> ~~ *cmdstat_set:calls=2,*rejected_calls=2,*
> CONFIG SET maxmemory 0 -> OK
> SET k 1 -> OK
"#,
    );
}

#[test]
fn transactions_are_refused_as_a_whole() {
    check(
        r#"
> CONFIG SET maxmemory 1 -> OK
> MULTI -> OK
> SET k 1 -> -OOM command not allowed when used memory > 'maxmemory'.
> GET k -> QUEUED
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> MULTI -> OK
> GET k -> QUEUED
> EXEC -> [nil]
> CONFIG SET maxmemory 0 -> OK
> MULTI -> OK
> SET k 1 -> QUEUED
b> CONFIG SET maxmemory 1 -> OK
> EXEC
-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmem
  ory'.
> GET k -> nil
> EXEC -> -ERR EXEC without MULTI
b> CONFIG SET maxmemory 0 -> OK
# A transaction that starts below the limit ends, even if it lowers the limit.
> MULTI -> OK
> INCR k -> QUEUED
> CONFIG SET maxmemory 1 -> QUEUED
> INCR k -> QUEUED
> EXEC -> [1, OK, 2]
> INCR k -> -OOM command not allowed when used memory > 'maxmemory'.
"#,
    );
}

#[test]
fn flags_allow_scripts_to_run_above_the_limit() {
    check(
        r##"
> FUNCTION LOAD "#!lua name=lib
  \nredis.register_function{function_name='any', callback=function() return 1 end}
  \nredis.register_function{function_name='oom', flags={'allow-oom'},
  callback=function(keys) return redis.call('set', keys[1], 1) end}"
"lib"
> SET k 5 -> OK
> CONFIG SET maxmemory 1 -> OK
# A script without flags may run, and its first write is refused if it uses memory.
> EVAL "return redis.call('get', KEYS[1])" 1 k -> "5"
> EVAL "return redis.call('set', KEYS[1], 1)" 1 k
~~ -OOM command not allowed when used memory > 'maxmemory'. script: *
> EVAL "local r = redis.pcall('set', KEYS[1], 1); return r.err" 1 k
"OOM command not allowed when used memory > 'maxmemory'."
> EVAL "redis.call('del', KEYS[1]); return redis.call('set', KEYS[1], 6)" 1 k -> OK
> EVAL "#!lua\nreturn 1" 0 -> -OOM command not allowed when used memory > 'maxmemory'.
> EVAL "#!lua flags=no-writes\nreturn 1" 0 -> 1
> EVAL "#!lua flags=allow-oom\nreturn redis.call('set', KEYS[1], 7)" 1 k -> OK
> FCALL any 0 -> -OOM command not allowed when used memory > 'maxmemory'.
> FCALL oom 1 k -> OK
> MULTI -> OK
> EVAL "#!lua\nreturn 1" 0 -> -OOM command not allowed when used memory > 'maxmemory'.
> DISCARD -> OK
"##,
    );
}

#[test]
fn a_transaction_with_a_script_that_may_not_run_does_nothing() {
    let mut server = TestServer::new(1);
    let library = r##"
> FUNCTION LOAD "#!lua name=lib
  \nredis.register_function('f', function() return redis.call('set', 'done', 1) end)
  \nredis.register_function{function_name='r', flags={'no-writes'}, callback=function() end}"
"lib"
> SCRIPT LOAD "#!lua\nreturn redis.call('set', 'done', 1)"
"SHA"
> RPUSH l 1 2 3 -> 3
"##;
    let sha = "c306eb8fe79d8268a8ee5148e816834c1c603275";
    run(&mut server, &library.replace("SHA", sha));
    let aborted = "-EXECABORT Transaction discarded because of: OOM command not allowed when used \
                   memory > 'maxmemory'.";
    let body = r##"EVAL "#!lua\nreturn redis.call('set', 'done', 1)" 0"##;
    for (script, reply) in [
        (body.to_owned(), aborted),
        (body.replace("EVAL", "EVAL_RO"), aborted),
        (format!("EVALSHA {sha} 0"), aborted),
        (format!("EVALSHA_RO {} 0", sha.to_uppercase()), aborted),
        ("FCALL f 0".to_owned(), aborted),
        ("FCALL_RO f 0".to_owned(), aborted),
        ("FCALL r 0".to_owned(), "[\"1\", nil]"),
        (r##"EVAL "#!lua flags=no-writes\nreturn 7" 0"##.to_owned(), "[\"2\", 7]"),
        (r##"EVAL "return 8" 0"##.to_owned(), "[\"3\", 8]"),
    ] {
        let steps = format!(
            "\n> CONFIG SET maxmemory 0 -> OK\n> MULTI -> OK\n> LPOP l -> QUEUED\n> {script} -> \
             QUEUED\nb> CONFIG SET maxmemory 1 -> OK\n> EXEC\n{reply}\n> EXISTS done -> 0\n"
        );
        run(&mut server, &steps);
    }
}

#[test]
fn keys_in_use_are_not_searched_again_immediately() {
    for policy in ["allkeys-random", "allkeys-lru", "volatile-ttl"] {
        let mut server = TestServer::new(1);
        let fill = "
> CONFIG SET maxmemory 1001000 maxmemory-policy POLICY -> OK
> SET a 1 EX 100 -> OK
> SET b 1 EX 100 -> OK
";
        run(&mut server, &fill.replace("POLICY", policy));
        server.set_busy(Some(0));
        run(&mut server, "> PING\nPONG\n");
        assert_eq!(server.evicts_in_ms(), Some(1), "{policy}");
        server.set_busy(None);
        run(&mut server, "> PING\nPONG\n> DBSIZE\n1\n");
    }
}

#[test]
fn events_of_evictions_follow_the_error_of_a_subscriber_that_is_refused() {
    check(
        r#"
> CONFIG SET notify-keyspace-events KEA maxmemory-policy volatile-lru -> OK
> SET vol 1 EX 1000 -> OK
> HELLO 3 -> ~~ {*}
> PSUBSCRIBE __keyevent@0__:evicted -> >["psubscribe", "__keyevent@0__:evicted", 1]
> CONFIG SET maxmemory 1 -> OK
> SET a 1 -> ~~ -OOM command not allowed*pmessage*"vol"?
"#,
    );
}

#[test]
fn the_least_recently_used_key_is_evicted_first() {
    check(
        r#"
> CONFIG SET maxmemory-policy allkeys-lru maxmemory 1003000 maxmemory-samples 64 -> OK
> SET a 1 -> OK
@advance 1000
> SET b 1 -> OK
@advance 1000
> SET c 1 -> OK
@advance 1000
> GET a -> "1"
@advance 1000
> SET d 1 -> OK
! set:d => SET d 1
# Any command evicts keys.
> PING -> PONG
! evicted:b => DEL b
> CONFIG SET lazyfree-lazy-eviction yes -> OK
@advance 1000
> SELECT 1 -> OK
> SET e 1 -> OK
@advance 1000
> SET f 1 -> OK
! evicted:c => UNLINK c
! set:f => SET f 1
> SELECT 0 -> OK
! evicted:a => UNLINK a
> KEYS * -> ["d"]
> INFO stats -> ~~ *evicted_keys:3*
> INFO memory
~~ *maxmemory:1003000*maxmemory_human:979.49K*maxmemory_policy:allkeys-lru*mem_not_counted_f
  or_evict:0*
"#,
    );
}

#[test]
fn the_least_frequently_used_key_is_evicted_first() {
    check(
        r#"
> CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 -> OK
> MSET a 1 b 1 c 1 -> OK
> OBJECT FREQ a -> 5
> OBJECT IDLETIME a -> ~~ -ERR An LFU maxmemory policy is selected, idle time not tracked. *
> MGET a a a c c c -> ["1", "1", "1", "1", "1", "1"]
> OBJECT FREQ a -> 8
> CLIENT NO-TOUCH ON -> OK
> GET b -> "1"
> OBJECT FREQ b -> 5
> CLIENT NO-TOUCH OFF -> OK
> CONFIG SET maxmemory 1002000 maxmemory-samples 64 -> OK
> PING -> PONG
! evicted:b => DEL b
# An overwritten key keeps its access counter.
> SET a 2 -> OK
> OBJECT FREQ a -> 9
@advance 180000
> OBJECT FREQ a -> 6
> OBJECT FREQ c -> 5
> CONFIG SET lfu-decay-time 0 -> OK
> OBJECT FREQ a -> 9
> CONFIG SET maxmemory 0 maxmemory-policy allkeys-lru -> OK
> OBJECT FREQ a -> ~~ -ERR An LFU maxmemory policy is not selected, *
> GET a -> "2"
> OBJECT IDLETIME a -> 0
"#,
    );
}

#[test]
fn volatile_policies_spare_keys_without_an_expiry() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let mut server = TestServer::new(1024);
        run(
            &mut server,
            &format!(
                r#"
> MSET a 1 b 1 c 1 -> OK
> SET d 1 EX 1000 -> OK
> CONFIG SET maxmemory-policy {policy} maxmemory 1003000 -> OK
> PING -> PONG
! evicted:d => DEL d
> SET e 1 -> OK
> SET f 1 -> -OOM command not allowed when used memory > 'maxmemory'.
> PERSIST e -> 0
> EXPIRE e 100 -> 1
> SET f 1 -> OK
! evicted:e => DEL e
! set:f => SET f 1
> HSETEX h FIELDS 1 f v -> -OOM command not allowed when used memory > 'maxmemory'.
"#
            ),
        );
    }
    check(
        r#"
> SET late 1 EX 1000 -> OK
> SET soon 1 EX 10 -> OK
> SET never 1 -> OK
> CONFIG SET maxmemory-policy volatile-ttl maxmemory 1002000 maxmemory-samples 64 -> OK
> PING -> PONG
! evicted:soon => DEL soon
"#,
    );
}

#[test]
fn a_random_policy_evicts_any_key() {
    check(
        r#"
> MSET a 1 b 1 c 1 d 1 -> OK
> CONFIG SET maxmemory-policy allkeys-random maxmemory 1000000 -> OK
> SET k 1 -> OK
> DBSIZE -> 0
> INFO stats -> ~~ *evicted_keys:5*
> CONFIG SET maxmemory 999999 -> OK
> SET k 1 -> -OOM command not allowed when used memory > 'maxmemory'.
> CONFIG RESETSTAT -> OK
> INFO stats -> ~~ *evicted_keys:0*
"#,
    );
}

#[test]
fn evictions_touch_watched_keys_and_end_waits() {
    check(
        r#"
> SET w 1 -> OK
> WATCH w -> OK
> CONFIG SET maxmemory-policy allkeys-random maxmemory 1000000 -> OK
b> PING -> PONG
> MULTI -> OK
> PING -> QUEUED
> EXEC -> nil-array
> CONFIG SET maxmemory 0 -> OK
> XGROUP CREATE s g $ MKSTREAM -> OK
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
> CONFIG SET maxmemory 1000000 -> OK
> PING -> PONG
b< ~~ -NOGROUP *
"#,
    );
}

#[test]
fn no_key_is_evicted_during_a_pause() {
    check(
        r#"
> SET k 1 -> OK
> CLIENT PAUSE 100 WRITE -> OK
> CONFIG SET maxmemory-policy allkeys-random maxmemory 1000000 -> OK
> GET k -> "1"
> DBSIZE -> 1
@advance 200
> GET k -> nil
"#,
    );
}

#[test]
fn integers_are_not_shared_under_lru_and_lfu_policies() {
    check(
        r#"
> SET i 1 -> OK
> OBJECT REFCOUNT i -> 2147483647
> CONFIG SET maxmemory 1gb maxmemory-policy allkeys-random -> OK
> OBJECT REFCOUNT i -> 2147483647
> CONFIG SET maxmemory-policy volatile-lfu -> OK
> OBJECT REFCOUNT i -> 1
> CONFIG SET maxmemory 0 -> OK
> OBJECT REFCOUNT i -> 2147483647
"#,
    );
}

#[test]
fn the_parameters_have_redis_s_ranges() {
    check(
        r#"
> CONFIG GET maxmemory*
["maxmemory", "0", "maxmemory-policy", "noeviction", "maxmemory-clients", "0",
   "maxmemory-samples", "5", "maxmemory-eviction-tenacity", "10"]
> CONFIG SET maxmemory-clients 7% -> OK
> CONFIG GET maxmemory-clients -> ["maxmemory-clients", "7%"]
> CONFIG SET maxmemory-clients 1.5mb
~~ -ERR * argument 'maxmemory-clients') - argument must be a memory or percent value
> CONFIG SET maxmemory-clients 0 -> OK
> CONFIG SET maxmemory 1.5mb -> ~~ -ERR * argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory 10% -> ~~ -ERR * argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory-policy lru
~~ -ERR * argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random,
   volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
> CONFIG SET maxmemory-samples 0 -> ~~ -ERR *argument must be between 1 and 64 inclusive
> CONFIG SET maxmemory-eviction-tenacity 101
~~ -ERR *argument must be between 0 and 100 inclusive
> CONFIG SET lfu-decay-time -1 -> ~~ -ERR *argument must be between 0 and 2147483647 inclusive
> CONFIG SET slave-ignore-maxmemory no -> OK
> CONFIG GET replica-ignore-maxmemory -> ["replica-ignore-maxmemory", "no"]
"#,
    );
}

//! Clients that wait for keys: the order in which they are served.

use crate::check::check;
use crate::fake::TestServer;

#[test]
fn first_come_first_served() {
    check(
        r#"
a> BLPOP k 0
b> BRPOP k 0
c> BLPOP other k 0
w> RPUSH k 1 2 3 4 -> 4
! rpush:k => RPUSH k 1 2 3 4
! lpop:k => LPOP k
! rpop:k => RPOP k
! lpop:k => LPOP k
a< ["k", "1"]
b< ["k", "4"]
c< ["k", "2"]
w> LRANGE k 0 -1 -> ["3"]
# Clients that were served no longer wait.
w> RPUSH other x -> 1
c> PING -> PONG
c> BLPOP other 0 -> ["other", "x"]
"#,
    );
}

#[test]
fn a_served_element_is_gone_for_other_clients() {
    check(
        r#"
a> BLPOP k 0
w> RPUSH k only -> 1
! rpush:k => RPUSH k only
! lpop:k del:k => LPOP k
a< ["k", "only"]
w> EXISTS k -> 0
w> LPUSH k x y -> 2
w> LRANGE k 0 -1 -> ["y", "x"]
"#,
    );
}

#[test]
fn one_client_waits_for_the_same_key_twice_and_for_several() {
    check(
        r#"
a> BLPOP k k l k 0
b> BLPOP l 0
w> RPUSH k 1 -> 1
a< ["k", "1"]
w> RPUSH l 2 3 -> 2
a<
b< ["l", "2"]
w> LRANGE l 0 -1 -> ["3"]
w> INFO clients -> ~~ *blocked_clients:0*total_blocking_keys:0\\r\\n*
"#,
    );
}

/// As in Redis, which repeats the command, but without overtaking a client that has waited longer.
#[test]
fn of_several_keys_the_first_serves() {
    let fill = "w> MULTI\nw< OK\nw> RPUSH {t}k2 2 3\nw< QUEUED\nw> RPUSH {t}k1 1\nw< QUEUED\n\
                w> EXEC\nw< [2, 1]\n";
    check(&format!(
        "a> BLPOP {{t}}k1 {{t}}k2 0\n{fill}a< [\"{{t}}k1\", \"1\"]\nw> LLEN {{t}}k2\nw< 2\n"
    ));
    check(&format!("a> BLMPOP 0 2 {{t}}k1 {{t}}k2 LEFT\n{fill}a< [\"{{t}}k1\", [\"1\"]]\n"));
    check(&format!(
        "b> BLPOP {{t}}k1 0\na> BLPOP {{t}}k1 {{t}}k2 0\n{fill}a< [\"{{t}}k2\", \"2\"]\n\
         b< [\"{{t}}k1\", \"1\"]\n"
    ));
    check(
        r#"
a> BZPOPMIN z1 z2 0
b> BZPOPMIN z1 z2 0
w> EVAL "redis.call('ZADD', KEYS[2], 2, 'y'); redis.call('ZADD', KEYS[1], 1, 'x')" 2 z1 z2 -> nil
a< ["z1", "x", "1"]
b< ["z2", "y", "2"]
w> SET z1 text -> OK
a> BZPOPMIN z1 z2 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
w> DEL z1 -> 1
a> BZPOPMIN z1 z2 0
w> MULTI -> OK
w> ZADD z2 2 y -> QUEUED
w> SET z1 text -> QUEUED
w> EXEC -> [1, OK]
a< -WRONGTYPE Operation against a key holding the wrong kind of value
w> ZCARD z2 -> 1
"#,
    );
}

/// An earlier key that has another type by then ends a wait; a later key does not.
#[test]
fn an_earlier_key_of_another_type_ends_the_wait() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let waits = [
        ("BLPOP", "0", "RPUSH b v", "[\"b\", \"v\"]"),
        ("BRPOP", "0", "RPUSH b v", "[\"b\", \"v\"]"),
        ("BLMPOP 0 2", "LEFT", "RPUSH b v", "[\"b\", [\"v\"]]"),
        ("BZPOPMIN", "0", "ZADD b 1 v", "[\"b\", \"v\", \"1\"]"),
        ("BZPOPMAX", "0", "ZADD b 1 v", "[\"b\", \"v\", \"1\"]"),
        ("BZMPOP 0 2", "MIN", "ZADD b 1 v", "[\"b\", [[\"v\", \"1\"]]]"),
    ];
    for (command, end, write, reply) in waits {
        for first in ["a", "c"] {
            let (second, heard) = if first == "a" { ("b", wrong) } else { ("b a", reply) };
            let command = command.replace('2', if first == "a" { "2" } else { "3" });
            check(&format!(
                "
r> {command} {first} {second} {end}
w> SET a text -> OK
r<
w> {write} -> 1
r< {heard}
w> EXISTS b -> {left}
",
                left = u8::from(heard == wrong)
            ));
        }
        check(&format!(
            "
r> {command} a b {end}
w> SET a text PX 50 -> OK
@advance 51
w> {write} -> 1
r< {reply}
"
        ));
    }
}

/// No command waits for a shard while it holds one, so another type in that shard is not seen.
#[test]
fn a_key_whose_shard_is_in_use_stops_no_command() {
    let mut server = TestServer::new(1024);
    let shard = server.shard_of("a");
    let send = |server: &mut TestServer, words: &str, client: &str| {
        let args: Vec<_> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        server.request(client, &args).0
    };
    send(&mut server, "BLPOP a b 0", "reader");
    assert_eq!(send(&mut server, "SET a text", "writer"), b"+OK\r\n");
    server.set_busy(Some(shard));
    assert_eq!(send(&mut server, "RPUSH b v", "writer"), b":1\r\n");
    server.set_busy(None);
    // It stays in the queue of the other key until then.
    send(&mut server, "PING", "writer");
    assert_eq!(server.received("reader"), b"*2\r\n$1\r\nb\r\n$1\r\nv\r\n");
}

/// At the end of a script, clients that wait for its changed keys are served, by the order of keys
/// in their requests, whether the script declares these keys or not.
#[test]
fn of_several_undeclared_keys_of_a_script_the_first_serves() {
    let push = "redis.call('RPUSH', 'b', 1) redis.call('RPUSH', 'a', 2)";
    for keys in ["0", "1 b", "1 a", "1 other", "2 a b"] {
        let run = format!("EVAL \"{push}\" {keys}");
        let left = "w> LRANGE b 0 -1\nw< [\"1\"]\nw> EXISTS a\nw< 0\n";
        check(&format!("r> BLPOP a b 0\nw> {run}\nw< nil\nr< [\"a\", \"2\"]\n{left}"));
        check(&format!(
            "r> BLPOP a b 0\nw> MULTI\nw< OK\nw> {run}\nw< QUEUED\nw> EXEC\nw< [nil]\n\
             r< [\"a\", \"2\"]\n{left}"
        ));
        check(&format!(
            "r> XREAD BLOCK 0 STREAMS a b 0 0\nw> {}\nw< nil\n\
             r< [[\"a\", [[\"1-1\", [\"f\", \"v\"]]]], [\"b\", [[\"1-1\", [\"f\", \"v\"]]]]]\n",
            run.replace("'RPUSH', 'b', 1", "'XADD', 'b', '1-1', 'f', 'v'")
                .replace("'RPUSH', 'a', 2", "'XADD', 'a', '1-1', 'f', 'v'")
        ));
    }
    // The first waiter is served first, whatever other keys its reply needs.
    check(
        r#"
r> BLMOVE a target LEFT LEFT 0
s> BLPOP a 0
t> BLPOP target 0
w> EVAL "redis.call('RPUSH', 'a', 1, 2)" 0 -> nil
r< "1"
s< ["a", "2"]
t< ["target", "1"]
"#,
    );
}

#[test]
fn a_chain_of_moves() {
    check(
        r#"
a> BLMOVE k1 k2 LEFT RIGHT 0
b> BRPOPLPUSH k2 k3 0
c> BLMOVE k3 k4 LEFT LEFT 0
d> BLPOP k4 0
w> RPUSH k1 x -> 1
! rpush:k1 => RPUSH k1 x
! rpush:k2 lpop:k1 del:k1 => LMOVE k1 k2 LEFT RIGHT
! lpush:k3 rpop:k2 del:k2 => RPOPLPUSH k2 k3
! lpush:k4 lpop:k3 del:k3 => LMOVE k3 k4 LEFT LEFT
! lpop:k4 del:k4 => LPOP k4
a< "x"
b< "x"
c< "x"
d< ["k4", "x"]
w> EXISTS k1 k2 k3 k4 -> 0
"#,
    );
}

#[test]
fn moves_in_a_ring_end() {
    check(
        r#"
a> BLMOVE k l LEFT RIGHT 0
b> BLMOVE l k LEFT RIGHT 0
c> BLMOVE k k LEFT RIGHT 0
w> RPUSH k 1 2 -> 2
a< "1"
b< "1"
c< "2"
w> LRANGE k 0 -1 -> ["2", "1"]
w> EXISTS l -> 0
"#,
    );
}

#[test]
fn a_move_to_another_type_is_an_error_and_takes_nothing() {
    check(
        r#"
a> BLMOVE k s LEFT RIGHT 0
b> BLPOP k 0
w> SET s text -> OK
w> RPUSH k 1 -> 1
a< -WRONGTYPE Operation against a key holding the wrong kind of value
b< ["k", "1"]
"#,
    );
}

#[test]
fn a_key_of_another_type_does_not_serve_a_waiter() {
    check(
        r#"
a> BLPOP k 1
b> BZPOPMIN k 1
w> SET k text -> OK
! set:k => SET k text
a<
b<
w> DEL k -> 1
w> ZADD k 1 m -> 1
! zadd:k => ZADD k 1 m
! zpopmin:k del:k => ZPOPMIN k
a<
b< ["k", "m", "1"]
w> RPUSH k 1 -> 1
a< ["k", "1"]
"#,
    );
}

#[test]
fn every_command_that_creates_a_list_serves_waiters() {
    check(
        r#"
w> RPUSH from 1 -> 1
a> BLPOP k 0
w> RENAME from k -> OK
! rename_from:from rename_to:k => RENAME from k
! lpop:k del:k => LPOP k
a< ["k", "1"]
a> BLPOP k 0
w> RPUSH from 2 -> 1
w> COPY from k -> 1
a< ["k", "2"]
a> BLPOP k 0
w> LMOVE from k LEFT LEFT -> "2"
a< ["k", "2"]
a> BLPOP k 0
w> RPUSH from 3 1 2 -> 3
w> SORT from STORE k -> 3
a< ["k", "1"]
w> DEL k from -> 2
a> SELECT 1 -> OK
a> BLPOP k 0
w> RPUSH k 7 -> 1
a<
w> MOVE k 1 -> 1
! move_from:k move_to:k@1 => MOVE k 1
! lpop:k del:k => LPOP k
a< ["k", "7"]
w> RPUSH k 8 -> 1
w> COPY k k DB 2 -> 1
a> SELECT 2 -> OK
a> BLPOP k 0 -> ["k", "8"]
"#,
    );
}

#[test]
fn databases_are_separate_and_can_be_swapped() {
    check(
        r#"
a> BLPOP k 0
b> SELECT 1 -> OK
b> BLPOP k 0
w> SELECT 2 -> OK
w> RPUSH k 1 2 -> 2
w> FLUSHDB -> OK
w> RPUSH k 1 2 -> 2
w> SWAPDB 1 2 -> OK
!  => SWAPDB 1 2
! lpop:k => LPOP k
a<
b< ["k", "1"]
w> SWAPDB 1 0 -> OK
a< ["k", "2"]
w> FLUSHALL -> OK
"#,
    );
}

#[test]
fn scripts_that_swap_databases_serve_waiters() {
    let brings = [
        "EVAL \"redis.call('SWAPDB', 0, 1)\" 0",
        "EVAL \"redis.call('SWAPDB', 0, 1)\" 1 k",
        "FCALL swap 0",
    ];
    for bring in brings {
        check(&format!(
            r##"
w> FUNCTION LOAD "#!lua name=l\nredis.register_function('swap',
   function() redis.call('SWAPDB', 0, 1) end)"
w< "l"
w> SELECT 1 -> OK
w> RPUSH k 1 2 3 -> 3
w> SELECT 0 -> OK
a> BLPOP k 0
w> {bring} -> nil
a< ["k", "1"]
w> LRANGE k 0 -1 -> ["2", "3"]
b> SELECT 1 -> OK
b> BLPOP k 0
w> MULTI -> OK
w> {bring} -> QUEUED
w> EXEC -> [nil]
b< ["k", "2"]
"##
        ));
    }
}

#[test]
fn reads_serve_no_waiters() {
    check(
        r#"
a> BLPOP k 0
w> LLEN k -> 0
w> EXISTS k k2 k3 -> 0
w> DEL k -> 0
w> RPUSHX k 1 -> 0
w> KEYS * -> []
a<
w> SET k v PX 100 -> OK
@advance 101
w> GET k -> nil
w> RPUSH k 1 -> 1
a< ["k", "1"]
"#,
    );
}

/// Waiters cost nothing for commands that cannot serve them.
#[test]
fn only_commands_that_can_serve_waiters_lock_their_destinations() {
    let mut server = TestServer::new(1024);
    let send = |server: &mut TestServer, client: &str, words: &str| {
        let args: Vec<_> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let (reply, _) = server.request(client, &args);
        (reply, server.take_most_held())
    };
    for number in 0..100 {
        let wait = format!("BLMOVE k destination{number} LEFT RIGHT 0");
        let (_, held) = send(&mut server, &format!("c{number}"), &wait);
        assert!(held <= 2, "client {number} began to wait with {held} shards held");
    }
    let (_, held) = send(&mut server, "last", "BLPOP k 0");
    assert!(held <= 1, "{held}");
    let (reply, held) = send(&mut server, "writer", "RPUSH k a b");
    assert_eq!(reply, b":2\r\n");
    assert!(held > 80, "{held}");
    for number in 0..3 {
        let (reply, _) = send(&mut server, "writer", &format!("LLEN destination{number}"));
        assert_eq!(reply, format!(":{}\r\n", usize::from(number < 2)).into_bytes());
    }
}

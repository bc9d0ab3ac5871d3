//! MONITOR: the requests that it shows, and their form.

use crate::check::check;

#[test]
fn every_request_is_shown_in_one_line() {
    check(
        r#"
b> MONITOR -> OK
> set "k\n\"\x00" v -> OK
b< ~~ ??????????.?????? ?0 *? "set" "k\\n\\"\\x00" "v"
> Incr k2 -> 1
> GET nothing -> nil
b< ~~ * "Incr" "k2" * "GET" "nothing"
# Failing commands are shown; commands that are not executed are not shown.
> LPUSH k2 x -> -WRONGTYPE Operation against a key holding the wrong kind of value
b< ~~ * "LPUSH" "k2" "x"
> GET -> -ERR wrong number of arguments for 'get' command
> nothing -> ~~ -ERR unknown command 'nothing', with args beginning with:*
b<
> SELECT 3 -> OK
b< ~~ * ?3 *? "SELECT" "3"
# Administrative commands and MONITOR are not shown.
> CONFIG GET port -> ["port", "6379"]
c> MONITOR -> OK
b<
> ECHO "" -> ""
b< ~~ * "ECHO" ""
c< ~~ * "ECHO" ""
@close c
> PING -> PONG
b< ~~ * "PING"
"#,
    );
}

#[test]
fn passwords_are_not_shown() {
    check(
        r#"
b> MONITOR -> OK
> AUTH secret -> ~~ -ERR AUTH <password> called without any password configured*
b< ~~ * "AUTH" "(redacted)"
> HELLO 2 AUTH default secret SETNAME me -> ~~ ?"server"*
b< ~~ * "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "me"
# A client name is not a password.
> HELLO 2 SETNAME auth SETNAME AUTH -> ~~ ?"server"*
b< ~~ * "HELLO" "2" "SETNAME" "auth" "SETNAME" "AUTH"
> HELLO 2 SETNAME auth auth default auth setname me -> ~~ ?"server"*
b< ~~ * "HELLO" "2" "SETNAME" "auth" "auth" "(redacted)" "(redacted)" "setname" "me"
> HELLO 2 SETNAME AUTH default secret -> -ERR Syntax error in HELLO option 'default'
b< ~~ * "HELLO" "2" "SETNAME" "AUTH" "(redacted)" "(redacted)"
> HELLO AUTH default secret -> -ERR Protocol version is not an integer or out of range
b< ~~ * "HELLO" "AUTH" "(redacted)" "(redacted)"
"#,
    );
}

#[test]
fn commands_of_transactions_and_scripts_are_shown() {
    check(
        r#"
b> MONITOR -> OK
> MULTI -> OK
b< ~~ * "MULTI"
> INCR k -> QUEUED
> SELECT 2 -> QUEUED
b<
> EXEC -> [1, OK]
b< ~~ * ?0 *? "INCR" "k" * ?2 *? "SELECT" "2" * ?2 *? "EXEC"
> MULTI -> OK
> GET -> -ERR wrong number of arguments for 'get' command
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
b< ~~ * "MULTI" * "EXEC"
> SELECT 0 -> OK
b< ~~ * "SELECT" "0"
> EVAL "redis.call('SELECT', 4) return redis.call('SET', KEYS[1], ARGV[1])" 1 k v -> OK
b< ~~ * ?0 *? "EVAL" * "1" "k" "v" * ?4 lua? "SELECT" "4" * ?4 lua? "SET" "k" "v"
> EVAL "return redis.call('GET', 'none')" 0 -> nil
b< ~~ * ?0 *? "EVAL" * ?0 lua? "GET" "none"
> EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
-NOSCRIPT No matching script. Please use EVAL.
b< ~~ * "EVALSHA" "ffffffffffffffffffffffffffffffffffffffff" "0"
> MULTI -> OK
> EVAL "return redis.call('ECHO', 'x')" 0 -> QUEUED
> EXEC -> ["x"]
b< ~~ * "MULTI" * "EVAL" * ?0 lua? "ECHO" "x" * "EXEC"
> EVAL "return redis.call('MONITOR')" 0 -> ~~ -ERR This Redis command is not allowed from script*
b< ~~ * "EVAL" *
> MULTI -> OK
> MONITOR -> QUEUED
> EXEC -> [-ERR MONITOR isn't allowed for DENY BLOCKING client]
b< ~~ * "MULTI" * "EXEC"
"#,
    );
}

#[test]
fn a_blocking_command_is_shown_when_it_starts() {
    check(
        r#"
b> MONITOR -> OK
c> BLPOP l 0
c<
b< ~~ * "BLPOP" "l" "0"
> RPUSH l x -> 1
c< ["l", "x"]
b< ~~ * "RPUSH" "l" "x"
c> BLPOP l 1
c<
b< ~~ * "BLPOP" "l" "1"
@advance 1500
@deadlines c
c< nil-array
b<
"#,
    );
}

#[test]
fn a_client_in_monitor_cannot_use_keys_until_reset() {
    check(
        r#"
b> MONITOR -> OK
b> GET k -> -ERR Replica can't interact with the keyspace
b> PUBLISH c m -> -ERR Replica can't interact with the keyspace
b> EVAL "return 1" 0 -> -ERR Replica can't interact with the keyspace
b> MULTI -> ~~ OK * "MULTI"
b> SET k v -> -ERR Replica can't interact with the keyspace
b> DISCARD -> ~~ OK * "DISCARD"
# A second MONITOR has no effect and no reply.
b> MONITOR
b<
b> PING -> ~~ PONG * "PING"
> CLIENT LIST TYPE normal -> ~~ *id=* flags=O *id=* flags=N *
b> SUBSCRIBE c -> ~~ ?"subscribe", "c", 1? * "SUBSCRIBE" "c"
> CLIENT LIST TYPE pubsub -> ~~ *id=* flags=OP *sub=1 *
> PUBLISH c m -> 1
b< ~~ ?"message", "c", "m"? * "PUBLISH" "c" "m"
b> UNSUBSCRIBE -> ~~ ?"unsubscribe", "c", 0? * "UNSUBSCRIBE"
b> CLIENT REPLY OFF
b<
> PING -> PONG
b<
b> CLIENT REPLY ON -> ~~ OK * "CLIENT" "REPLY" "ON"
b> RESET -> RESET
b> GET k -> nil
> GET k -> nil
b<
"#,
    );
}

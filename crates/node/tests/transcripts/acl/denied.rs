//! Denied commands, keys and channels, and their errors.

use command::Find;
use node::{Entry, table};

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn commands_and_keys() {
    check(
        r#"
> ACL SETUSER u on nopass +get +set +mget +acl|whoami +config|get +select|1 ~a* %R~r -> OK
b> AUTH u x -> OK
b> ACL WHOAMI -> "u"
b> SET a1 v -> OK
b> GET a1 -> "v"
b> GET b -> -NOPERM No permissions to access a key
b> SET r v -> -NOPERM No permissions to access a key
b> GET r -> nil
b> MGET a1 r b -> -NOPERM No permissions to access a key
b> DEL a1 -> -NOPERM User u has no permissions to run the 'del' command
b> CONFIG SET hz 10 -> -NOPERM User u has no permissions to run the 'config|set' command
b> CONFIG GET hz -> ["hz", "10"]
b> SELECT 1 -> OK
b> SELECT 0 -> -NOPERM User u has no permissions to run the 'select' command
b> PING -> -NOPERM User u has no permissions to run the 'ping' command
# The form is checked first.
b> DEL -> -ERR wrong number of arguments for 'del' command
b> CONFIG nosuch -> -ERR unknown subcommand 'nosuch'. Try CONFIG HELP.
# Commands without authentication need no rule.
b> HELLO 2 -> ~~ *
b> RESET -> RESET
b> ACL WHOAMI -> "default"
"#,
    );
}

#[test]
fn a_change_takes_effect_immediately() {
    check(
        r#"
> ACL SETUSER u on nopass +get ~* -> OK
b> AUTH u x -> OK
b> GET k -> nil
> ACL SETUSER u -get -> OK
b> GET k -> -NOPERM User u has no permissions to run the 'get' command
> ACL SETUSER u +@all &* -> OK
b> GET k -> nil
b> PING -> PONG
# Clients of a user that is turned off stay connected.
> ACL SETUSER u off -> OK
b> PING -> PONG
c> AUTH u x -> -WRONGPASS invalid username-password pair or user is disabled.
# A client may remove rules of its own user.
b> ACL SETUSER u nocommands -> OK
b> ACL SETUSER u allcommands -> -NOPERM User u has no permissions to run the 'acl|setuser' command
"#,
    );
}

#[test]
fn sort_by_keys_that_patterns_name() {
    check(
        r#"
> RPUSH l 1 -> 1
> ACL SETUSER u on nopass (+sort ~l) -> OK
b> AUTH u x -> OK
b> SORT l -> ["1"]
b> SORT l BY nosort -> ["1"]
b> SORT l BY w* -> -ERR BY option of SORT denied due to insufficient ACL permissions.
b> SORT l LIMIT 0 1 GET w* -> -ERR GET option of SORT denied due to insufficient ACL permissions.
b> SORT l NOSUCH BY w* -> -ERR syntax error
b> SORT l LIMIT 0 x BY w* -> -ERR value is not an integer or out of range
> ACL SETUSER v on nopass +@all ~l -> OK
c> AUTH v x -> OK
c> EVAL_RO "return redis.pcall('SORT', 'l', 'BY', 'w*')" 0
c< -ERR Write commands are not allowed from read-only scripts.
c> EVAL "return redis.pcall('SORT', 'l', 'BY', 'w*')" 0
c< -ERR BY option of SORT denied due to insufficient ACL permissions.
b> SORT l BY w* LIMIT 0 x -> -ERR BY option of SORT denied due to insufficient ACL permissions.
b> SORT m NOSUCH -> -NOPERM No permissions to access a key
b> SORT m BY w* -> -NOPERM No permissions to access a key
> ACL SETUSER u +@transaction -> OK
b> MULTI -> OK
b> SORT l BY w* -> QUEUED
b> SORT l -> QUEUED
b> EXEC -> [-ERR BY option of SORT denied due to insufficient ACL permissions., ["1"]]
> ACL SETUSER u (+sort ~l %W~*) -> OK
b> SORT l BY w* -> -ERR BY option of SORT denied due to insufficient ACL permissions.
> ACL SETUSER u (+sort ~l %R~*) -> OK
b> SORT l BY w* -> ["1"]
> ACL DRYRUN u SORT l BY w* -> OK
"#,
    );
}

#[test]
fn a_blocked_client_whose_command_is_denied_now() {
    check(
        r#"
> ACL SETUSER u on nopass +@all ~* -> OK
b> AUTH u x -> OK
b> BLPOP l 0
> ACL SETUSER u resetkeys -> OK
> RPUSH l v -> 1
b< -NOPERM No permissions to access a key
> LRANGE l 0 -1 -> ["v"]
> INFO commandstats
~~ *cmdstat_blpop:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0*
> ACL LOG
~~ *"reason", "key", "context", "toplevel", "object", "l", "username", "u"*cmd=blpop user=u *
# A change that denies it nothing has no effect on it.
> ACL SETUSER u allkeys -> OK
b> BLPOP m 0
> ACL SETUSER u resetkeys ~m -get -> OK
b<
> RPUSH m v -> 1
b< ["m", "v"]
"#,
    );
}

#[test]
fn transactions() {
    check(
        r#"
> ACL SETUSER u on nopass +@transaction +set +get +ping +acl ~a* -> OK
b> AUTH u x -> OK
b> MULTI -> OK
b> INCR a -> -NOPERM User u has no permissions to run the 'incr' command
b> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> ACL LOG
~~ \[\["count", 1, "reason", "command", "context", "multi", "object", "incr", "username", "u", *
# The rules at execution count.
b> MULTI -> OK
b> SET a 1 -> QUEUED
b> GET a -> QUEUED
b> PING -> QUEUED
> ACL SETUSER u -ping resetkeys %W~a -> OK
b> EXEC
b< [OK, -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC
   call. This command is no longer allowed for the following reason: no permission to touch the
   specified keys, -NOPERM ACLs rules changed between the moment the transaction was accumulated and
   the EXEC call. This command is no longer allowed for the following reason: no permission to
   execute the command or subcommand]
> ACL LOG
~~ \[\["count", 1, "reason", "command", "context", "multi", "object", "ping", *cmd=exec user=u *
   \["count", 1, "reason", "key", "context", "multi", "object", "a", *
b> MULTI -> OK
b> SET a 2 -> QUEUED
b> ACL SETUSER u -set -> QUEUED
b> SET a 3 -> QUEUED
b> EXEC -> ~~ \[OK, OK, -NOPERM ACLs rules changed between *command or subcommand\]
> GET a -> "2"
> ACL SETUSER u -exec -> OK
b> MULTI -> OK
b> EXEC
b< -EXECABORT Transaction discarded because of: NOPERM User u has no permissions to run the 'exec'
   command
"#,
    );
}

#[test]
fn wrong_numbers_of_keys() {
    check(
        r#"
> ACL SETUSER u on nopass +@all ~l -> OK
b> AUTH u x -> OK
b> ZUNIONSTORE d 1 k -> -NOPERM No permissions to access a key
b> ZUNIONSTORE d 5 k -> -ERR syntax error
b> ZUNIONSTORE d 0 k -> -ERR at least 1 input key is needed for 'zunionstore' command
b> ZINTERSTORE d x k -> -ERR value is not an integer or out of range
b> ZDIFFSTORE d -1 k -> -ERR at least 1 input key is needed for 'zdiffstore' command
b> ZUNION 5 k -> -ERR syntax error
b> EVAL "return 1" 5 k -> -ERR Number of keys can't be greater than number of args
b> ACL DRYRUN u ZUNIONSTORE d 5 k -> OK
"#,
    );
}

/// The rules of users do not check such requests, so the commands must refuse them.
#[test]
fn commands_refuse_wrong_numbers_of_keys() {
    let has_others = |entry: &&Entry| {
        let keys = entry.spec.keys;
        keys.len() > 1 && keys.iter().any(|spec| matches!(spec.find, Find::Count { .. }))
    };
    let mut server = TestServer::new(4);
    let mut seen = 0;
    for entry in table().entries().iter().filter(has_others) {
        for count in ["0", "-1", "3", "x", "9223372036854775807"] {
            let request = [&entry.name, "d", count, "k", "l"].map(|word| word.as_bytes().to_vec());
            let (reply, effects) = server.request("a", &request);
            assert!(reply.starts_with(b"-"), "{} {count}", entry.name);
            assert!(effects.is_empty(), "{} {count}", entry.name);
            seen += 1;
        }
    }
    assert!(seen > 0, "no command has a number of keys");
}

/// The following commands run with the rules of the default user, and their replies are not sent,
/// as in Redis 8.0.6.
#[test]
fn a_transaction_that_removes_its_own_user() {
    let mut server = TestServer::new(4);
    let begin = r#"
> ACL SETUSER default -get -> OK
> ACL SETUSER u on nopass +@all ~a -> OK
b> AUTH u x -> OK
b> CLIENT SETNAME before -> OK
b> MULTI -> OK
b> SET b 1 -> -NOPERM No permissions to access a key
b> DISCARD -> OK
b> MULTI -> OK
b> SET a 1 -> QUEUED
b> ACL DELUSER u -> QUEUED
b> GETDEL a -> QUEUED
b> EVAL "redis.call('SET', 'b', 2) return redis.call('ACL', 'WHOAMI')" 0 -> QUEUED
b> GET a -> QUEUED
"#;
    run(&mut server, begin);
    let (reply, _) = server.request("b", &[b"EXEC".to_vec()]);
    assert_eq!(String::from_utf8_lossy(&reply), "*5\r\n+OK\r\n:1\r\n");
    let end = r#"
# A user that is added again is a different user.
b> CLIENT GETNAME -> nil
> EXISTS a b -> 1
> STRLEN b -> 1
> ACL LOG -> ~~ \[\["count", 1, "reason", "command", *"object", "get", "username", "default", *
"#;
    run(&mut server, end);
}

#[test]
fn scripts() {
    check(
        r#"
> ACL SETUSER u on nopass +eval +eval_ro +set +get +sort ~a* %R~r -> OK
b> AUTH u x -> OK
b> EVAL "return redis.call('set', KEYS[1], ARGV[1])" 1 a v -> OK
b> EVAL "return 1" 1 b -> -NOPERM No permissions to access a key
b> EVAL "return redis.call('get', 'b')" 0
b< ~~ -ERR ACL failure in script: No permissions to access a key script: *
b> EVAL "return redis.pcall('incr', 'a')" 0
b< -ERR ACL failure in script: User u has no permissions to run the 'incr' command
b> EVAL_RO "return redis.pcall('incr', 'a')" 0
b< -ERR ACL failure in script: User u has no permissions to run the 'incr' command
b> EVAL "return redis.pcall('sort', 'a', 'by', 'w*')" 0
b< -ERR BY option of SORT denied due to insufficient ACL permissions.
> ACL LOG
~~ \[\["count", 2, "reason", "command", "context", "lua", "object", "incr", "username", "u", *
b> EVAL "return {redis.acl_check_cmd('set', 'a', 1), redis.acl_check_cmd('get', 'b')}" 0 -> [1, nil]
b> EVAL "return redis.acl_check_cmd('nosuch')" 0
b< ~~ -ERR Invalid command passed to redis.acl_check_cmd()*
b> EVAL "return redis.acl_check_cmd('config', 'nosuch')" 0
b< ~~ -ERR Invalid command passed to redis.acl_check_cmd()*
b> GET a -> "v"
"#,
    );
}

/// Other arguments determine the positions of keys, and options their access.
#[test]
fn movable_keys() {
    check(
        r#"
> ACL SETUSER u on nopass +@all %R~r %W~w -> OK
> ACL DRYRUN u EVAL "return 1" 2 r w -> "User u has no permissions to access the 'r' key"
> ACL DRYRUN u EVAL_RO "return 1" 1 r x -> OK
> ACL DRYRUN u EVALSHA_RO 0 1 w -> "User u has no permissions to access the 'w' key"
> ACL DRYRUN u FCALL f 1 x -> "User u has no permissions to access the 'x' key"
> ACL DRYRUN u FCALL_RO f 1 r x -> OK
> ACL DRYRUN u ZUNIONSTORE w 1 r WEIGHTS 1 -> OK
> ACL DRYRUN u ZUNIONSTORE w 2 r x -> "User u has no permissions to access the 'x' key"
> ACL DRYRUN u SORT r STORE w -> OK
> ACL DRYRUN u SORT r STORE r -> "User u has no permissions to access the 'r' key"
> ACL DRYRUN u SORT r LIMIT 0 1 -> OK
> ACL DRYRUN u GEORADIUS r 1 1 1 m STORE w -> OK
> ACL DRYRUN u GEORADIUS r 1 1 1 m STOREDIST x -> "User u has no permissions to access the 'x' key"
> ACL DRYRUN u GEORADIUS r 1 1 1 m STORE x STOREDIST w
"User u has no permissions to access the 'x' key"
> ACL DRYRUN u GEORADIUSBYMEMBER r 1 1 m STORE w STOREDIST x
"User u has no permissions to access the 'x' key"
> ACL DRYRUN u GEORADIUS r 1 1 1 m STORE w STORE w STORE w -> OK
# The key that is written. Redis checks the first key.
> ACL DRYRUN u GEORADIUS r 1 1 1 m STORE x STORE w -> OK
> ACL DRYRUN u GEORADIUS r 1 1 1 m STORE w STORE x
"User u has no permissions to access the 'x' key"
> ACL DRYRUN u XREAD COUNT 1 STREAMS r 0 -> OK
> ACL DRYRUN u XREAD COUNT 1 STREAMS r w 0 0 -> "User u has no permissions to access the 'w' key"
> ACL DRYRUN u XREADGROUP GROUP g c STREAMS x > -> "User u has no permissions to access the 'x' key"
> ACL DRYRUN u LMPOP 2 w x LEFT -> "User u has no permissions to access the 'w' key"
> ACL DRYRUN u BLMOVE r w LEFT RIGHT 0 -> "User u has no permissions to access the 'r' key"
> ACL DRYRUN u BITFIELD_RO r GET u8 0 -> OK
> ACL DRYRUN u BITFIELD r GET u8 0 -> OK
> ACL DRYRUN u BITFIELD r SET u8 0 1 -> "User u has no permissions to access the 'r' key"
> ACL DRYRUN u SET w v -> OK
> ACL DRYRUN u SET w v GET -> "User u has no permissions to access the 'w' key"
"#,
    );
}

#[test]
fn functions_and_queued_scripts() {
    check(
        r##"
> FUNCTION LOAD REPLACE "#!lua name=acl\n
   redis.register_function('f', function(k, a) return redis.call(unpack(a)) end)"
"acl"
> ACL SETUSER u on nopass +fcall +eval +set +multi +exec ~a* -> OK
b> AUTH u x -> OK
b> FCALL f 1 b set a 1 -> -NOPERM No permissions to access a key
b> FCALL f 1 a set a 1 -> OK
b> FCALL f 0 set b 1 -> ~~ -ERR ACL failure in script: No permissions to access a key script: *
b> FCALL f 0 get a
b< ~~ -ERR ACL failure in script: User u has no permissions to run the 'get' command script: *
> ACL LOG 1
~~ \[\["count", 1, "reason", "command", "context", "lua", "object", "get", "username", "u", *
b> MULTI -> OK
b> EVAL "return redis.call('set', KEYS[1], ARGV[1])" 1 a 2 -> QUEUED
b> EVAL "return redis.call('set', KEYS[1], ARGV[1])" 1 a 3 -> QUEUED
b> FCALL f 0 set a 4 -> QUEUED
> ACL SETUSER u -set -fcall -> OK
b> EXEC
b< ~~ \[-ERR ACL failure in script: User u has no permissions to run the 'set' command script: *,
   -ERR ACL failure in script: *, -NOPERM ACLs rules changed between *command or subcommand\]
> GET a -> "1"
"##,
    );
}

#[test]
fn denials_are_counted() {
    // A running server has counts of its own.
    let mut server = TestServer::with_config(4, node::config::Config::default());
    run(
        &mut server,
        r#"
> ACL SETUSER u on nopass +get ~a -> OK
b> AUTH u x -> OK
b> AUTH nobody x -> -WRONGPASS invalid username-password pair or user is disabled.
b> HELLO 3 AUTH u -> ~~ -ERR Syntax error in HELLO option*
b> HELLO 3 AUTH nobody x -> -WRONGPASS invalid username-password pair or user is disabled.
b> GET b -> -NOPERM No permissions to access a key
b> DEL a -> -NOPERM User u has no permissions to run the 'del' command
b> DEL a -> -NOPERM User u has no permissions to run the 'del' command
b> DEL a -> -NOPERM User u has no permissions to run the 'del' command
> INFO stats -> ~~ *acl_access_denied_auth:2?r?nacl_access_denied_cmd:3?r?nacl_access_denied_key:1*
> CONFIG RESETSTAT -> OK
> INFO stats -> ~~ *total_error_replies:0*acl_access_denied_auth:2*acl_access_denied_cmd:3*
b> DEL a -> ~~ -NOPERM*
> INFO commandstats
~~ *cmdstat_del:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0*
> INFO errorstats -> ~~ *errorstat_NOPERM:count=1*
"#,
    );
}

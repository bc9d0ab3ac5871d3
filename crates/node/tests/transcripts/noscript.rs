//! Commands that are denied to scripts, and DEBUG SET-DISABLE-DENY-SCRIPTS, which allows some of
//! them.

use node::config::{Config, Permit};

use crate::check::run;
use crate::fake::TestServer;

/// As in Redis, except for commands on scripts and transactions, which stay denied.
#[test]
fn commands_that_are_denied_to_scripts_can_be_allowed() {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    run(
        &mut TestServer::with_config(4, config),
        r#"
> EVAL "return redis.call('DEBUG', 'PROTOCOL', 'integer')" 0
~~ -ERR This Redis command is not allowed from script script: *
> DEBUG SET-DISABLE-DENY-SCRIPTS 1 -> OK
> EVAL "return redis.call('DEBUG', 'PROTOCOL', 'integer')" 0 -> 12345
> EVAL "redis.setresp(3) return redis.call('DEBUG', 'PROTOCOL', 'verbatim')" 0
"This is a verbatim\nstring"
> EVAL "return redis.call('CLIENT', 'LIST')" 0 -> ~~ ?id=1 addr=*cmd=eval *
> EVAL "return redis.call('CONFIG', 'SET', 'hz', '20')" 0 -> OK
> CONFIG GET hz -> ["hz", "20"]
> DEBUG set-disable-deny-scripts x -> OK
> EVAL "return redis.call('DEBUG', 'PROTOCOL', 'integer')" 0
~~ -ERR This Redis command is not allowed from script script: *
"#,
    );
    let mut server = permissive();
    for command in ["'EVAL', 'return 1', 0", "'SCRIPT', 'FLUSH'", "'FUNCTION', 'LIST'", "'MULTI'"] {
        let request = format!("> EVAL \"return redis.call({command})\" 0\n");
        let denied = "~~ -ERR This Redis command is not allowed from script script: *\n";
        run(&mut server, &(request + denied));
    }
}

/// A server on which scripts may call denied commands.
fn permissive() -> TestServer {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    let mut server = TestServer::with_config(4, config);
    run(&mut server, "> DEBUG SET-DISABLE-DENY-SCRIPTS 1\nOK\n");
    server
}

/// In Redis, scripts have a client of their own, which they may change.
#[test]
fn a_script_does_not_change_its_client() {
    let denied = [
        "'AUTH', 'u', 'x'",
        "'HELLO'",
        "'HELLO', 3, 'AUTH', 'u', 'x'",
        "'QUIT'",
        "'RESET'",
        "'CLIENT', 'REPLY', 'OFF'",
        "'CLIENT', 'REPLY', 'SKIP'",
        "'CLIENT', 'SETNAME', 'x'",
        "'CLIENT', 'SETINFO', 'LIB-NAME', 'x'",
        "'CLIENT', 'NO-TOUCH', 'ON'",
        "'CLIENT', 'NO-EVICT', 'ON'",
        "'SUBSCRIBE', 'c'",
        "'PSUBSCRIBE', 'c'",
        "'SSUBSCRIBE', 'c'",
        "'UNSUBSCRIBE'",
        "'PUNSUBSCRIBE'",
        "'SUNSUBSCRIBE'",
        "'MULTI'",
        "'EXEC'",
        "'DISCARD'",
        "'WATCH', 'k'",
        "'UNWATCH'",
    ];
    let mut server = permissive();
    run(&mut server, "> ACL SETUSER u on nopass ~* +@all\nOK\n> CLIENT SETNAME me\nOK\n");
    for command in denied {
        run(
            &mut server,
            &format!(
                r#"
> EVAL "return redis.call({command})" 0
~~ -ERR This Redis command is not allowed from script script: *
> MULTI -> OK
> EVAL "return redis.call({command})" 0 -> QUEUED
> EXEC -> ~~ ?-ERR This Redis command is not allowed from script script: *
> CLIENT INFO
~~ *name=me * flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 *user=default *resp=2 lib-name= *
"#
            ),
        );
    }
    run(
        &mut server,
        r#"
> EVAL "redis.call('SELECT', 3) return redis.call('CLIENT', 'INFO')" 0 -> ~~ *name=me * db=3 *
> CLIENT INFO -> ~~ *name=me * db=0 *
> EVAL "redis.call('BLPOP', 'q', 0) return redis.call('CLIENT', 'GETNAME')" 0 -> "me"
"#,
    );
}

/// The client is closed when the script ends.
#[test]
fn a_script_may_close_its_client() {
    let mut server = permissive();
    run(
        &mut server,
        r#"
b> ACL SETUSER u on nopass ~* +@all -> OK
b> AUTH u x -> OK
b> EVAL "redis.call('ACL', 'DELUSER', 'u') return redis.call('ECHO', 'end')" 0 -> "end"
b> CLIENT ID -> 3
"#,
    );
    run(
        &mut permissive(),
        r#"
b> CLIENT ID -> 2
b> MULTI -> OK
b> EVAL "return redis.call('CLIENT', 'KILL', 'ID', 2, 'SKIPME', 'no')" 0 -> QUEUED
b> PING -> QUEUED
b> EXEC -> [1, PONG]
b> CLIENT ID -> 3
"#,
    );
}

//! BGREWRITEAOF, DEBUG LOADAOF, and what is refused while the append-only file cannot be written.
//! What is in the files is tested elsewhere.

use node::config::{Config, Permit};
use node::persistence::Cause;

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn rewrites() {
    check(
        r#"
> BGREWRITEAOF
Background append only file rewriting started
> BGREWRITEAOF now
-ERR wrong number of arguments for 'bgrewriteaof' command
> MULTI
OK
> BGREWRITEAOF
QUEUED
> EXEC
[Background append only file rewriting scheduled]
> EVAL "return redis.pcall('bgrewriteaof').err" 0
"ERR This Redis command is not allowed from script"
"#,
    );
}

#[test]
fn parameters() {
    check(
        r#"
> CONFIG GET append*
["appendonly", "no", "appendfilename", "appendonly.aof", "appenddirname", "appendonlydir",
   "appendfsync", "everysec"]
> CONFIG SET appendfsync always no-appendfsync-on-rewrite yes aof-timestamp-enabled yes
OK
> CONFIG SET appendfsync sometimes
-ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the
   following: everysec, always, no
> CONFIG SET appendfilename other
-ERR CONFIG SET failed (possibly related to argument 'appendfilename') - can't set immutable config
> CONFIG SET auto-aof-rewrite-min-size 1mb auto-aof-rewrite-percentage 50
OK
> CONFIG GET auto-aof*
["auto-aof-rewrite-percentage", "50", "auto-aof-rewrite-min-size", "1048576"]
> CONFIG SET appendonly yes
OK
"#,
    );
}

#[test]
fn debug_loadaof() {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    let mut server = TestServer::with_config(1, config);
    run(
        &mut server,
        r#"
> SET k v
OK
> DEBUG LOADAOF
OK
> GET k
nil
> DEBUG LOADAOF x
-ERR unknown subcommand or wrong number of arguments for 'LOADAOF'. Try DEBUG HELP.
"#,
    );
}

#[test]
fn writes_are_refused_while_the_file_cannot_be_written() {
    let mut server = TestServer::with_config(1, Config::default());
    run(&mut server, "> SET k v\nOK\n");
    let text = "MISCONF Errors writing to the AOF file: No space left on device";
    server.node.refuse_writes(Cause::AppendOnly, Some(text.to_owned()));
    run(
        &mut server,
        r##"
> SET k w
-MISCONF Errors writing to the AOF file: No space left on device
> PING
-MISCONF Errors writing to the AOF file: No space left on device
> GET k
"v"
> EVAL "return redis.call('get', KEYS[1])" 1 k
"v"
> EVAL "return redis.pcall('set', KEYS[1], 'w').err" 1 k
"MISCONF Errors writing to the AOF file: No space left on device"
> EVAL "#!lua\nreturn 1" 0
-MISCONF Errors writing to the AOF file: No space left on device
> EVAL "#!lua flags=no-writes\nreturn 1" 0
1
> MULTI
OK
> GET k
QUEUED
> SET k w
-MISCONF Errors writing to the AOF file: No space left on device
> EXEC
-EXECABORT Transaction discarded because of previous errors.
> MULTI
OK
> GET k
QUEUED
> EXEC
["v"]
"##,
    );
    server.node.refuse_writes(Cause::AppendOnly, None);
    run(&mut server, "> SET k w\nOK\n> PING\nPONG\n");
}

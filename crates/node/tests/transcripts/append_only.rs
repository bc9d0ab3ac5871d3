//! BGREWRITEAOF, WAITAOF, DEBUG LOADAOF, and writes that are refused while the append-only file
//! cannot be written. Other tests check the content of the files.

use node::config::{Config, Permit};
use node::state::refusals::Cause;

use store::LogPosition;

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn bgrewriteaof_starts_or_is_refused() {
    check(
        r#"
> BGREWRITEAOF -> Background append only file rewriting started
> BGREWRITEAOF now -> -ERR wrong number of arguments for 'bgrewriteaof' command
> MULTI -> OK
> BGREWRITEAOF -> QUEUED
> EXEC -> [Background append only file rewriting scheduled]
> EVAL "return redis.pcall('bgrewriteaof').err" 0
"ERR This Redis command is not allowed from script"
"#,
    );
}

#[test]
fn parameters_can_be_set() {
    check(
        r#"
> CONFIG GET append*
["appendonly", "no", "appendfilename", "appendonly.aof", "appenddirname", "appendonlydir",
   "appendfsync", "everysec"]
> CONFIG SET appendfsync always no-appendfsync-on-rewrite yes aof-timestamp-enabled yes -> OK
> CONFIG SET appendfsync sometimes
-ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the
   following: everysec, always, no
> CONFIG SET appendfilename other
-ERR CONFIG SET failed (possibly related to argument 'appendfilename') - can't set immutable config
> CONFIG SET auto-aof-rewrite-min-size 1mb auto-aof-rewrite-percentage 50 -> OK
> CONFIG GET auto-aof*
["auto-aof-rewrite-percentage", "50", "auto-aof-rewrite-min-size", "1048576"]
> CONFIG SET appendonly yes -> OK
"#,
    );
}

#[test]
fn waitaof_without_an_append_only_file() {
    check(
        r#"
> WAITAOF -> -ERR wrong number of arguments for 'waitaof' command
> WAITAOF a 0 0 -> -ERR value is not an integer or out of range
> WAITAOF 2 0 0 -> -ERR value is out of range, value must between 0 and 1
> WAITAOF -1 0 0 -> -ERR value is out of range, value must between 0 and 1
> WAITAOF 0 -1 0 -> -ERR value is out of range, must be positive
> WAITAOF 0 99999999999999999999 0 -> -ERR value is out of range, must be positive
> WAITAOF 0 0 -1 -> -ERR timeout is negative
> WAITAOF 1 0 a -> -ERR timeout is not an integer or out of range
> WAITAOF 1 0 9223372036854775807 -> -ERR timeout is out of range
> WAITAOF 1 0 0 -> -ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.
> WAITAOF 0 0 0 -> [0, 0]
> WAITAOF 0 1 20
@advance 20
a<
@advance 1
a< [0, 0]
> MULTI -> OK
> WAITAOF 0 1 0 -> QUEUED
> EXEC -> [[0, 0]]
> EVAL "return redis.call('waitaof', 0, 1, 0)" 0 -> [0, 0]
"#,
    );
}

#[test]
fn waitaof_waits_for_the_writes_of_its_client() {
    let mut server = TestServer::with_config(4, Config::default());
    // The durable position of the log; the test's log counts appended units.
    let synced = |server: &TestServer, position| {
        server.node.durability.set(Some(LogPosition { log: 1, position }));
    };
    run(
        &mut server,
        "> CONFIG SET appendonly yes\nOK\n> WAITAOF 1 0 5\n@advance 6\na< [0, 0]\n> SET k v\nOK\n",
    );
    synced(&server, 1);
    run(
        &mut server,
        r#"
> WAITAOF 1 0 0 -> [1, 0]
> WAITAOF 1 1 20
@advance 21
a< [1, 0]
# A client without writes does not wait.
b> WAITAOF 1 0 0 -> [1, 0]
> SET k w -> OK
b> WAITAOF 1 0 0 -> [1, 0]
> GET k -> "w"
> WAITAOF 0 0 0 -> [0, 0]
> WAITAOF 1 0 50
@advance 51
a< [0, 0]
> WAITAOF 1 0 0
b> CLIENT UNBLOCK 1 TIMEOUT -> 1
a< [0, 0]
> WAITAOF 1 0 0
b> CLIENT UNBLOCK 1 ERROR -> 1
a< -UNBLOCKED client unblocked via CLIENT UNBLOCK
> MULTI -> OK
> WAITAOF 1 0 0 -> QUEUED
> EXEC -> [[0, 0]]
> WAITAOF 1 0 0
"#,
    );
    synced(&server, 2);
    let number = server.node.waits.find(1).map(|waiter| {
        assert!(waiter.log_wait().unwrap().is_over(&server.node.durability));
        waiter.log_reached()
    });
    assert_eq!(number, Some(true));
    run(&mut server, "b> PING\nb< PONG\na< [1, 0]\n> INFO clients\n~~ *blocked_clients:0*\n");
}

#[test]
fn debug_loadaof() {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    let mut server = TestServer::with_config(1, config);
    run(
        &mut server,
        r#"
> SET k v -> OK
> DEBUG LOADAOF -> OK
> GET k -> nil
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
> SET k w -> -MISCONF Errors writing to the AOF file: No space left on device
> PING -> -MISCONF Errors writing to the AOF file: No space left on device
> GET k -> "v"
> EVAL "return redis.call('get', KEYS[1])" 1 k -> "v"
> EVAL "return redis.pcall('set', KEYS[1], 'w').err" 1 k
"MISCONF Errors writing to the AOF file: No space left on device"
> EVAL "#!lua\nreturn 1" 0 -> -MISCONF Errors writing to the AOF file: No space left on device
> EVAL "#!lua flags=no-writes\nreturn 1" 0 -> 1
> MULTI -> OK
> GET k -> QUEUED
> SET k w -> -MISCONF Errors writing to the AOF file: No space left on device
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> MULTI -> OK
> GET k -> QUEUED
> EXEC -> ["v"]
"##,
    );
    server.node.refuse_writes(Cause::AppendOnly, None);
    run(&mut server, "> SET k w\nOK\n> PING\nPONG\n");
    // A script that declares that it writes is refused before anything of its transaction runs.
    let queue = r##"
> HELLO 3 -> ~~ {*}
> SUBSCRIBE c -> >["subscribe", "c", 1]
b> MULTI -> OK
b> PUBLISH c first -> QUEUED
b> EVAL "#!lua\nreturn 1" 0 -> QUEUED
"##;
    run(&mut server, queue);
    server.node.refuse_writes(Cause::AppendOnly, Some(text.to_owned()));
    run(
        &mut server,
        r##"
b> EXEC -> ~~ -EXECABORT Transaction discarded because of: MISCONF Errors writing to the AOF*
a<
b> MULTI -> OK
b> EVAL "#!lua\nreturn 1" 0 -> -MISCONF Errors writing to the AOF file: No space left on device
b> EXEC -> -EXECABORT Transaction discarded because of previous errors.
"##,
    );
}

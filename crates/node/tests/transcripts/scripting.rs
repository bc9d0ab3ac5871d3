//! EVAL, EVALSHA, FCALL, SCRIPT and FUNCTION.

use base::quote::split_args;

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn scripts_call_commands() {
    check(
        r#"
> SET k v -> OK
> EVAL "return redis.call('GET', KEYS[1])" 1 k -> "v"
> EVAL "return redis.call('GET', KEYS[1])" 1 k -> "v"
> EVAL "return {KEYS[1], ARGV[1], #ARGV}" 1 k a b -> ["k", "a", 2]
> EVAL "return redis.call('GET', 'other')" 0 -> nil
> EVAL "redis.call('SET', 'other', 'x'); return redis.call('GET', 'other')" 1 k -> "x"
> EVAL "return {1, 2, {3, 'x'}, redis.call('KEYS', 'oth*')}" 0 -> [1, 2, [3, "x"], ["other"]]
> EVAL "return redis.call('FLUSHALL')" 0 -> OK
> DBSIZE -> 0
> EVAL "redis.call('SELECT', 3); redis.call('SET', 'k', 'three'); return redis.call('GET', 'k')" 0
"three"
> GET k -> nil
> SELECT 3 -> OK
> GET k -> "three"
"#,
    );
}

#[test]
fn commands_that_scripts_may_not_call() {
    check(
        r#"
> EVAL "return redis.call('NOSUCH')" 0
-ERR Unknown Redis command called from script script: 7ae0187b9ac91447963709e3bfd83c5935fec648, on @
  user_script:1.
> EVAL "return redis.call('CONFIG','NOSUCH')" 0
-ERR Unknown Redis command called from script script: 690b5d44f28a93f363ef59b07707a80221345397, on @
  user_script:1.
> EVAL "return redis.call('MULTI')" 0
-ERR This Redis command is not allowed from script script: ba922d924f6e7808414359ed93c37767dd0532ce,
   on @user_script:1.
> EVAL "return redis.call('CLIENT','ID')" 0
-ERR This Redis command is not allowed from script script: 14a340356663d6198502058227488df08c8f36d8,
   on @user_script:1.
> EVAL "return redis.pcall('incr','k','k')" 0
-ERR Wrong number of args calling Redis command from script
> EVAL "redis.call('set','k','v'); return redis.call('incr','k')" 0
-ERR value is not an integer or out of range script: ebc71347c287adf40b34d33b2d121624b6563b4d, on @u
  ser_script:1.
> EVAL "return redis.call()" 0
-ERR Please specify at least one argument for this redis lib call script: 0a907e1429221a4d85516cab7f
  d219a82a9439d8, on @user_script:1.
> EVAL "return redis.call('set',{})" 0
-ERR Lua redis lib command arguments must be strings or integers script: db89706d57456abe96578a34e71
  07d6748549bb5, on @user_script:1.
> EVAL "return redis.call('eval','return 1',0)" 0
-ERR This Redis command is not allowed from script script: 595931feb16e9cba240a2e4c6a852627761118e3,
   on @user_script:1.
> EVAL_RO "return redis.call('SET', 'k', 'v')" 0
-ERR Write commands are not allowed from read-only scripts. script: 5c4d62f4e30c54fb15935b5892148e5c
  e7374077, on @user_script:1.
> EVAL_RO "\x23!lua\nreturn 1" 0
-ERR Can not execute a script with write flag using *_ro command.
> EVAL "\x23!lua flags=no-writes\nreturn redis.call('SET', 'a', 'b')" 0
-ERR Write commands are not allowed from read-only scripts. script: 8805fffef50bd8a238f8a362b2781d41
  a76c0523, on @user_script:2.
> EVAL "\x23!lua flags=nosuch\nreturn 1" 0 -> -ERR Unexpected flag in script shebang: nosuch
> EVAL_RO "return redis.call('GET', 'k')" 1 k -> "v"
"#,
    );
}

#[test]
fn malformed_requests_run_no_script() {
    check(
        r#"
> EVAL "return 1" -> -ERR wrong number of arguments for 'eval' command
> EVAL "return 1" x -> -ERR value is not an integer or out of range
> EVAL "return 1" -1 -> -ERR Number of keys can't be negative
> EVAL "return 1" 2 a -> -ERR Number of keys can't be greater than number of args
> EVALSHA zz 0 -> -NOSCRIPT No matching script. Please use EVAL.
> EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
-NOSCRIPT No matching script. Please use EVAL.
> FCALL nosuch 0 -> -ERR Function not found
> FCALL nosuch x -> -ERR Function not found
> SCRIPT KILL -> -NOTBUSY No scripts in execution right now.
> FUNCTION KILL -> -NOTBUSY No scripts in execution right now.
> SCRIPT FLUSH X -> -ERR SCRIPT FLUSH only support SYNC|ASYNC option
> FUNCTION FLUSH X -> -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
> FUNCTION LOAD x -> -ERR Missing library metadata
> FUNCTION DELETE nosuch -> -ERR Library not found
> FUNCTION LIST x -> -ERR Unknown argument x
> FUNCTION LOAD a b -> -ERR Unknown option given: a
"#,
    );
}

#[test]
fn scripts_are_cached() {
    check(
        r#"
> SCRIPT LOAD "return 1" -> "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
> SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x -> [1, 0]
> EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 -> 1
> EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0 -> 1
> SCRIPT FLUSH -> OK
> EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
-NOSCRIPT No matching script. Please use EVAL.
> EVAL "return 1" 0 -> 1
> EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 -> 1
> EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 -> 1
> SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db -> "return 1"
> SCRIPT SHOW e0 -> -NOSCRIPT No matching script. Please use EVAL.
> SCRIPT DEBUG YES -> -ERR SCRIPT DEBUG is not supported: there is no debugger
> SCRIPT DEBUG sync -> -ERR SCRIPT DEBUG is not supported: there is no debugger
> SCRIPT DEBUG No -> OK
> SCRIPT DEBUG off -> -ERR Use SCRIPT DEBUG YES/SYNC/NO
> SCRIPT HELP -> ~~ ?SCRIPT <subcommand>*
> SCRIPT FLUSH ASYNC -> OK
> SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db -> [0]
"#,
    );
}

#[test]
fn functions() {
    check(
        r#"
> FUNCTION LOAD "\x23!lua name=lib\nredis.register_function('f', function(k) return #k end)"
"lib"
> FUNCTION DELETE lib -> OK
> FUNCTION LOAD "\x23!lua name=lib\nredis.register_function('f', function(k) return k[1] end)"
"lib"
> EVAL "return 'x'" 0 -> "x"
> FUNCTION LOAD "\x23!lua name=m\nredis.register_function('g', function(k, a) return a[1] end)"
"m"
> SET k v -> OK
> FCALL f 1 k -> "k"
> FCALL F 1 k -> "k"
> FCALL g 0 a -> "a"
> FCALL_RO g 0 a -> -ERR Can not execute a script with write flag using *_ro command.
> FCALL_RO f 1 k -> -ERR Can not execute a script with write flag using *_ro command.
> FUNCTION STATS
["running_script", nil, "engines", ["LUA", ["libraries_count", 2, "functions_count", 2]]]
> FUNCTION LIST LIBRARYNAME l*
[["library_name", "lib", "engine", "LUA", "functions", [["name", "f", "description", nil, "flags", [
  ]]]]]
> FUNCTION LOAD "\x23!lua name=lib\nredis.register_function('f', function() return 2 end)"
-ERR Library 'lib' already exists
> FUNCTION LOAD REPLACE "\x23!lua name=lib\nredis.register_function('f', function() return 2 end)"
"lib"
> FCALL f 0 -> 2
> FCALL g 0 -> nil
> FUNCTION DELETE lib -> OK
> FCALL f 0 -> -ERR Function not found
> FUNCTION HELP -> ~~ ?FUNCTION <subcommand>*
> FUNCTION FLUSH -> OK
> FUNCTION LIST -> []
"#,
    );
}

#[test]
fn scripts_in_transactions() {
    check(
        r#"
> MULTI -> OK
> EVAL "return redis.call('INCR', KEYS[1])" 1 n -> QUEUED
> EVAL "return redis.call('INCR', 'beyond')" 0 -> QUEUED
> EVAL "return redis.call('KEYS', '*') " 0 -> QUEUED
> EXEC -> [1, 1, ["beyond", "n"]]
> MULTI -> OK
> EVAL "return redis.call('INCR', KEYS[1])" 1 n -> QUEUED
> SET k 1 -> QUEUED
> EXEC -> [2, OK]
> MULTI -> OK
> EVAL "return redis.call('NOSUCH')" 0 -> QUEUED
> PING -> QUEUED
> EXEC
[-ERR Unknown Redis command called from script script: 7ae0187b9ac91447963709e3bfd83c5935fec648, on
   @user_script:1., PONG]
"#,
    );
}

#[test]
fn a_script_leaves_one_effect() {
    check(
        r#"
> EVAL "redis.call('SADD', KEYS[1], 'a'); return redis.call('SPOP', KEYS[1])" 1 s -> "a"
! sadd:s spop:s del:s => SADD s a | SREM s a
> EVAL "redis.call('SET', KEYS[1], 1); return redis.call('EXPIRE', KEYS[1], 10)" 1 k -> 1
! set:k expire:k => SET k 1 | PEXPIREAT k 1700000010000
> EVAL "return redis.call('GET', KEYS[1])" 1 k -> "1"
> MULTI -> OK
> EVAL "return redis.call('INCR', KEYS[1])" 1 n -> QUEUED
> INCR n -> QUEUED
> EXEC -> [1, 2]
! incrby:n incrby:n => INCR n | INCR n
> EVAL "redis.set_repl(redis.REPL_NONE); return redis.call('SET', 'k', 2)" 1 k -> OK
"#,
    );
}

#[test]
fn clients_blocked_on_keys_are_served() {
    check(
        r#"
b> BLPOP l 0
> EVAL "redis.call('RPUSH', KEYS[1], 'a', 'b'); return redis.call('LLEN', KEYS[1])" 1 l -> 2
b< ["l", "a"]
b> BLPOP m 0
> EVAL "redis.call('RPUSH', 'm', 'a', 'b'); return redis.call('LLEN', 'm')" 0 -> 2
b< ["m", "a"]
b> BLPOP n 0
> EVAL "redis.call('RPUSH', 'n', 'a'); return redis.call('LLEN', 'l')" 1 l -> 1
b< ["n", "a"]
b> WATCH w -> OK
> EVAL "return redis.call('SET', 'w', 1)" 0 -> OK
b> MULTI -> OK
b> PING -> QUEUED
b> EXEC -> nil-array
"#,
    );
}

#[test]
fn a_pause_of_writes_does_not_suspend_read_only_scripts() {
    check(
        r#"
> FUNCTION LOAD "\x23!lua name=reads\nredis.register_function{function_name='reads',
   flags={'no-writes'}, callback=function() return 'read' end}"
"reads"
> SCRIPT LOAD "\x23!lua flags=no-writes\nreturn 'loaded'"
"bb29f80c4909c082c58647daa986ef6a4947cb21"
c> MULTI -> OK
c> EVAL "\x23!lua flags=no-writes\nreturn 'queued before'" 0 -> QUEUED
b> CLIENT PAUSE 100000 WRITE -> OK
> EVAL "\x23!lua flags=no-writes\nreturn 'reads'" 0 -> "reads"
> FCALL reads 0 -> "read"
> MULTI -> OK
> EVAL "\x23!lua flags=no-writes\nreturn 'queued'" 0 -> QUEUED
> EXEC -> ["queued"]
c> EXEC -> ["queued before"]
"#,
    );
}

#[test]
fn a_pause_of_writes_uses_the_flags_that_a_function_has_when_it_runs() {
    let reads = "redis.register_function{function_name='f', flags={'no-writes'}, \
                 callback=function() return 'read' end}";
    let writes = "redis.register_function('f', function() return redis.call('SET', 'k', 'v') end)";
    let transcript = r##"
> FUNCTION LOAD "#!lua name=l\nBEFORE" -> "l"
c> MULTI -> OK
c> FCALL f 0 -> QUEUED
> FUNCTION LOAD REPLACE "#!lua name=l\nAFTER" -> "l"
> CLIENT PAUSE 1000 WRITE -> OK
c> EXEC
"##;
    let transcript = |before, after| transcript.replace("BEFORE", before).replace("AFTER", after);
    check(&(transcript(reads, writes) + "@advance 1000\nc> EXEC\nc< [OK]\n"));
    check(&(transcript(writes, reads) + "c< [\"read\"]\n"));
}

#[test]
fn log_lines_of_scripts_are_written_in_every_context() {
    let mut server = TestServer::new(4);
    run(
        &mut server,
        r#"
> EVAL "redis.log(redis.LOG_NOTICE, 'a', 'b'); redis.log(redis.LOG_VERBOSE, 'not logged')" 0 -> nil
> MULTI -> OK
> EVAL "redis.log(redis.LOG_WARNING, 'queued')" 0 -> QUEUED
> EXEC -> [nil]
> FUNCTION LOAD "\x23!lua name=l\nredis.log(redis.LOG_NOTICE, 'loading') redis.register_function('f'
  , function() end)"
"l"
"#,
    );
    assert_eq!(*server.host.logged.borrow(), ["a b", "queued", "loading"]);
}

#[test]
fn a_script_that_logs_without_end_leaves_a_bounded_amount() {
    let mut server = TestServer::new(4);
    run(
        &mut server,
        r#"
> EVAL "local s = string.rep('x', 1e5) for i = 1, 100 do redis.log(redis.LOG_NOTICE, s) end" 0
nil
"#,
    );
    let logged = server.host.logged.borrow();
    let (last, lines) = logged.split_last().unwrap();
    assert_eq!((lines.len(), lines[0].len()), (15, 64 * 1024));
    assert_eq!(last, "Scripts have logged more than 1048576 bytes at once: 85 lines are left out");
}

#[test]
fn a_read_only_script_cannot_write() {
    check(
        r#"
> PFADD h a -> 1
> EVAL_RO "return redis.pcall('pfcount', 'h')" 1 h
-ERR Write commands are not allowed from read-only scripts.
> EVAL "\x23!lua flags=no-writes\nreturn redis.pcall('pfcount', 'h')" 1 h
-ERR Write commands are not allowed from read-only scripts.
> EVAL "return redis.call('pfcount', 'h')" 1 h -> 1
"#,
    );
}

#[test]
fn details_of_calls_from_scripts() {
    check(
        r#"
# A container with a handler of its own.
> EVAL "return redis.pcall('command', 'nosuch')" 0 -> -ERR Unknown Redis command called from script
> EVAL "return redis.acl_check_cmd('command', 'nosuch')" 0
-ERR Invalid command passed to redis.acl_check_cmd() script: 34701fe7720b2a53e83942f2785352607aaf6f5
  3, on @user_script:1.
# A set has no order.
> SADD s c b a 10 9 x -> 6
> EVAL "return redis.call('sort', 's', 'by', 'nosort')" 1 s -> ["10", "9", "a", "b", "c", "x"]
> EVAL "return redis.call('sort_ro', 's', 'by', 'nosort', 'desc', 'limit', 1, 2)" 1 s -> ["c", "b"]
> EVAL "return 1" 0 -> 1
> SCRIPT EXISTS E0E1F9FABFC9D4800C877A703B823AC0578FF8DB e0e1f9fabfc9d4800c877a703b823ac0578ff8db
[1, 1]
> FUNCTION FLUSH SYNC x
-ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.
> FUNCTION FLUSH x -> -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
"#,
    );
}

#[test]
fn errors_within_a_reply_are_counted() {
    check(
        r##"
> EVAL "return {{err='BAZ a'}, {err='one'}, {{err='BAZ b'}}, redis.pcall('nosuch')}" 0
[-BAZ a, -one, [-BAZ b], -ERR Unknown Redis command called from script]
> INFO errorstats
"# Errorstats\r\nerrorstat_BAZ:count=2\r\nerrorstat_ERR:count=2\r\n"
> EVAL "return {err='#A=b,c:d x'}" 0 -> -#A=b,c:d x
> INFO errorstats
"# Errorstats\r\nerrorstat__A=b,c_d:count=1\r\nerrorstat_BAZ:count=2\r\nerrorstat_ERR:count=2\r\n"
"##,
    );
}

#[test]
fn resetstat_resets_the_number_of_evicted_scripts() {
    let mut server = TestServer::new(4);
    for number in 0..510 {
        run(&mut server, &format!("> EVAL \"return {number}\" 0\n{number}\n"));
    }
    run(
        &mut server,
        r#"
> INFO stats -> ~~ *evicted_scripts:10?*
> CONFIG RESETSTAT -> OK
> INFO stats -> ~~ *evicted_scripts:0?*
"#,
    );
}

#[test]
fn errors_repeat_the_bytes_of_arguments() {
    let mut server = TestServer::new(4);
    let mut check = |request: &[&[u8]], expected: &[u8]| {
        let args: Vec<Vec<u8>> = request.iter().map(|arg| arg.to_vec()).collect();
        assert_eq!(server.request("a", &args).0, expected, "{request:?}");
    };
    check(&[b"FUNCTION", b"LIST", b"\xff"], b"-ERR Unknown argument \xff\r\n");
    check(&[b"FUNCTION", b"LOAD", b"\xff", b"x"], b"-ERR Unknown option given: \xff\r\n");
}

#[test]
fn values_that_a_script_or_transaction_replaces_are_freed_while_it_runs() {
    let check = |requests: &[&str]| {
        let mut server = TestServer::new(4);
        // The log keeps all of it until the end.
        server.end_log();
        for request in requests {
            let args = split_args(request.as_bytes()).expect("it is quoted well");
            let (reply, _) = server.request("a", &args);
            assert!(!reply.starts_with(b"-"), "{request}: {}", String::from_utf8_lossy(&reply));
        }
        let freed = server.host.freed.get();
        assert!((70..90).contains(&freed), "{requests:?}: {freed} times");
    };
    let script = |body: &str| {
        format!("EVAL \"local v = string.rep('x', 1e6) for i = 1, 80 do {body} end\" 1 k")
    };
    let call = |args: &str| format!("redis.call({args})");
    let set = call("'set', KEYS[1], v");
    check(&[&script(&set)]);
    check(&[&script(&(set.clone() + &call("'unlink', KEYS[1]")))]);
    check(&[&script(&(set.clone() + &call("'flushall'")))]);
    check(&[&script(&(call("'rpush', KEYS[1], v") + &call("'del', KEYS[1]")))]);
    check(&["MULTI", &script(&set), "EXEC"]);
    let queued = ["SETRANGE k 1000000 x", "DEL k"].repeat(80);
    check(&[&["MULTI"], &*queued, &["EXEC"]].concat());
}

#[test]
fn info_shows_the_memory_of_code_that_was_only_loaded() {
    check(
        r##"
> INFO memory -> ~~ *used_memory_lua:0?*
> SCRIPT LOAD "return 1" -> "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
> INFO memory -> ~~ *used_memory_lua:[1-9]*
"##,
    );
    check(
        r##"
> INFO memory -> ~~ *used_memory_lua:0?*
> FUNCTION LOAD "#!lua name=l\nredis.register_function('f', function() end)" -> "l"
> INFO memory -> ~~ *used_memory_lua:[1-9]*
"##,
    );
}

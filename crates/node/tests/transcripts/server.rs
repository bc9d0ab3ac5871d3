//! TIME, SHUTDOWN, MEMORY, DEBUG, LOLWUT.

use std::time::Duration;

use crate::check::{check, run};
use crate::fake::TestServer;
use node::config::{Config, Permit};
use node::host::{SaveAtEnd, Shutdown};

#[test]
fn time() {
    check(
        r#"
> TIME -> ["1700000000", "0"]
@advance 1234
> TIME -> ["1700000001", "234000"]
> TIME x -> -ERR wrong number of arguments for 'time' command
"#,
    );
}

#[test]
fn shutdown_ends_the_process_without_a_reply() {
    for (request, save, now, force) in [
        ("SHUTDOWN", SaveAtEnd::ByConfig, false, false),
        ("SHUTDOWN NOSAVE", SaveAtEnd::No, false, false),
        ("SHUTDOWN SAVE", SaveAtEnd::Yes, false, false),
        ("shutdown nosave now force", SaveAtEnd::No, true, true),
        ("SHUTDOWN FORCE SAVE", SaveAtEnd::Yes, false, true),
    ] {
        let mut server = TestServer::new(1);
        run(&mut server, &format!("> {request}\n"));
        assert_eq!(*server.host.shutdowns.borrow(), [Shutdown { save, now, force }], "{request}");
    }
    let mut server = TestServer::new(1);
    run(
        &mut server,
        r#"
> SHUTDOWN NOSUCH -> -ERR syntax error
> SHUTDOWN SAVE NOSAVE -> -ERR syntax error
> SHUTDOWN ABORT -> -ERR No shutdown in progress.
> SHUTDOWN ABORT ABORT -> -ERR No shutdown in progress.
> SHUTDOWN ABORT NOW -> -ERR syntax error
> SHUTDOWN NOSAVE ABORT -> -ERR syntax error
"#,
    );
    assert!(server.host.shutdowns.borrow().is_empty());
}

#[test]
fn an_aborted_shutdown_gets_its_reply_in_a_pause_too() {
    let mut server = TestServer::new(1);
    run(&mut server, "> SHUTDOWN\n");
    server.node.end_pause_for_ever();
    run(
        &mut server,
        r#"
b> CLIENT PAUSE 1000 ALL -> OK
b> SHUTDOWN
b<
# The request is executed again.
> SHUTDOWN -> -ERR Errors trying to SHUTDOWN. Check logs.
> SHUTDOWN
"#,
    );
    assert_eq!(server.host.shutdowns.borrow().len(), 1);
}

#[test]
fn a_shutdown_refused_at_its_retry_is_dropped() {
    let mut server = TestServer::new(1);
    run(&mut server, "> SHUTDOWN\n");
    server.node.end_pause_for_ever();
    run(
        &mut server,
        r#"
b> ACL SETUSER default -shutdown -> OK
> SHUTDOWN -> -NOPERM User default has no permissions to run the 'shutdown' command
b> ACL SETUSER default +shutdown -> OK
> SHUTDOWN
"#,
    );
    assert_eq!(server.host.shutdowns.borrow().len(), 2);
}

#[test]
fn memory() {
    check(
        r#"
> MEMORY USAGE k -> nil
> SET k v -> OK
> MEMORY USAGE k -> 26
> MEMORY USAGE k SAMPLES 5 samples 0 -> 26
> MEMORY USAGE k SAMPLES -1 -> -ERR syntax error
> MEMORY USAGE k SAMPLES -> -ERR syntax error
> MEMORY USAGE k NOSUCH 5 -> -ERR syntax error
> MEMORY USAGE nokey SAMPLES x -> -ERR value is not an integer or out of range
> MEMORY USAGE -> -ERR wrong number of arguments for 'memory|usage' command
> MEMORY PURGE -> OK
> MEMORY MALLOC-STATS -> "report"
> MEMORY DOCTOR -> ~~ "The server holds next to nothing*
> MEMORY NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try MEMORY HELP.
> MEMORY HELP -> ~~ \[MEMORY <subcommand> *, USAGE <key> \[SAMPLES <count>], *
> MEMORY STATS
~~ \["peak.allocated", 4194304, "total.allocated", 3145728, "startup.allocated", 1048576, *,
   "db.0", \["overhead.hashtable.main", *, "overhead.hashtable.expires", 0],
   "overhead.db.hashtable.lut", *, "overhead.db.hashtable.rehashing", 0, "overhead.total", *,
   "db.dict.rehashing.count", 0, "keys.count", 1, "keys.bytes-per-key", 2097152,
   *"peak.percentage", "75", *"allocator.muzzy", 8192, *
> MEMORY STATS x -> -ERR wrong number of arguments for 'memory|stats' command
> HELLO 3 -> ~~ {*
> MEMORY STATS
~~ {"peak.allocated": 4194304, *, "db.0": {"overhead.hashtable.main": *,
   "overhead.hashtable.expires": 0}, *"peak.percentage": ,75, *
> MEMORY DOCTOR -> ~~ =txt:The server holds*
"#,
    );
}

#[test]
fn debug_populate_adds_keys() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    let mut server = TestServer::with_config(4, config);
    run(
        &mut server,
        r#"
> DEBUG POPULATE
-ERR unknown subcommand or wrong number of arguments for 'POPULATE'. Try DEBUG HELP.
> DEBUG POPULATE 1 a 1 b
-ERR unknown subcommand or wrong number of arguments for 'POPULATE'. Try DEBUG HELP.
> DEBUG POPULATE x -> -ERR value is out of range, must be positive
> DEBUG POPULATE -3 -> -ERR value is out of range, must be positive
> DEBUG POPULATE 2 pre x -> -ERR value is out of range, must be positive
> DEBUG POPULATE 2 pre -1 -> -ERR value is out of range, must be positive
> DEBUG POPULATE 0 -> OK
> DEBUG POPULATE 3 -> OK
> GET key:2 -> "value:2"
> EXISTS key:3 -> 0
> SET key:4 own -> OK
> DEBUG POPULATE 6 key 3 -> OK
> MGET key:0 key:4 key:5 -> ["value:0", "own", "val"]
> DBSIZE -> 6
> DEBUG POPULATE 2 pre 12 -> OK
> GET pre:1 -> "value:1\x00\x00\x00\x00\x00"
> STRLEN pre:0 -> 12
> DEBUG POPULATE 2 none 0 -> OK
> GET none:1 -> "value:1"
> MULTI -> OK
> DEBUG POPULATE 2 queued -> QUEUED
> EXEC -> [OK]
> EXISTS queued:0 queued:1 -> 2
"#,
    );
}

#[test]
fn debug_delays_the_log() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    let mut server = TestServer::with_config(4, config);
    run(
        &mut server,
        r#"
> DEBUG AOF-FLUSH-SLEEP
-ERR unknown subcommand or wrong number of arguments for 'AOF-FLUSH-SLEEP'. Try DEBUG HELP.
> DEBUG AOF-FLUSH-SLEEP 500000 -> OK
> DEBUG AOF-FLUSH-SLEEP -5 -> OK
> DEBUG AOF-FLUSH-SLEEP x -> OK
"#,
    );
}

#[test]
fn debug_writes_to_the_log_and_counts_references() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    let mut server = TestServer::with_config(4, config);
    run(
        &mut server,
        r#"
> DEBUG LOG "a line" -> OK
> SET n 9999 -> OK
> DEBUG OBJECT n -> ~~ Value at:0x* refcount:2147483647 encoding:int *
"#,
    );
    assert_eq!(*server.host.logged.borrow(), ["DEBUG LOG: a line"]);
}

#[test]
fn debug_shows_expired_keys_that_are_still_stored() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    let mut server = TestServer::with_config(4, config);
    run(
        &mut server,
        r#"
> DEBUG SET-ACTIVE-EXPIRE 0 -> OK
> SET k v PX 10 -> OK
@advance 11
> DEBUG OBJECT k -> ~~ Value at:0x* encoding:embstr *
> GET k -> nil
> DEBUG OBJECT k -> -ERR no such key
"#,
    );
}

#[test]
fn debug_needs_permission() {
    let forbidden = "-ERR DEBUG command not allowed. *";
    check(&format!("> DEBUG SLEEP 0\n~~ {forbidden}\n> DEBUG HELP\n~~ {forbidden}\n"));
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    let mut server = TestServer::with_config(4, config);
    run(
        &mut server,
        r#"
> DEBUG -> -ERR wrong number of arguments for 'debug' command
> DEBUG NOSUCH -> -ERR unknown subcommand or wrong number of arguments for 'NOSUCH'. Try DEBUG HELP.
> DEBUG sleep -> -ERR unknown subcommand or wrong number of arguments for 'sleep'. Try DEBUG HELP.
> DEBUG QUICKLIST-PACKED-THRESHOLD 4gb
-ERR argument must be a memory value bigger than 1 and smaller than 4gb
> DEBUG quicklist-packed-threshold x
-ERR argument must be a memory value bigger than 1 and smaller than 4gb
> DEBUG quicklist-packed-threshold 5kb -> OK
> DEBUG SLEEP 0.25 -> OK
> DEBUG SLEEP x -> OK
> DEBUG SLEEP -1 -> OK
> DEBUG ERROR "FOO bar" -> -FOO bar
> DEBUG OBJECT nokey -> -ERR no such key
> SET k v -> OK
> DEBUG OBJECT k
~~ Value at:0x* refcount:1 encoding:embstr serializedlength:2 lru:* lru_seconds_idle:0
@advance 5000
> DEBUG OBJECT k -> ~~ * lru_seconds_idle:5
> DEBUG LISTPACK nokey -> -ERR no such key
> DEBUG LISTPACK k -> -ERR Not a listpack encoded object.
> RPUSH list a 12 +1 -> 3
> DEBUG LISTPACK list -> ["a", 12, "+1"]
> ZADD zset 1.5 a 2 7 -> 2
> DEBUG LISTPACK zset -> ["a", "1.5", 7, 2]
> HSETEX hash PXAT 1900000000000 FIELDS 1 f v -> 1
> HSET hash g 5 -> 1
> DEBUG LISTPACK hash -> ["f", "v", 1900000000000, "g", 5, 0]
> DEBUG HELP -> ~~ \[DEBUG <subcommand> *
> DEBUG SET-ACTIVE-EXPIRE 0 -> OK
"#,
    );
    let slept: Vec<_> = server.host.sleeps.borrow().clone();
    assert_eq!(slept, [Duration::from_millis(250), Duration::ZERO, Duration::ZERO]);
    assert!(!server.node.active_expire.load(std::sync::atomic::Ordering::Relaxed));
    run(&mut server, "> DEBUG SET-ACTIVE-EXPIRE 1\nOK\n");
    assert!(server.node.active_expire.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn debug_protocol_shows_each_type() {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    run(
        &mut TestServer::with_config(1, config),
        r#"
> DEBUG PROTOCOL string -> "Hello World"
> DEBUG PROTOCOL Integer -> 12345
> DEBUG PROTOCOL double -> "3.141"
> DEBUG PROTOCOL null -> nil
> DEBUG PROTOCOL array -> [0, 1, 2]
> DEBUG PROTOCOL set -> [0, 1, 2]
> DEBUG PROTOCOL map -> [0, 0, 1, 1, 2, 0]
> DEBUG PROTOCOL attrib -> "Some real reply following the attribute"
> DEBUG PROTOCOL push -> -ERR RESP2 is not supported by this command
> DEBUG PROTOCOL true -> 1
> DEBUG PROTOCOL false -> 0
> DEBUG PROTOCOL verbatim -> "This is a verbatim\nstring"
> DEBUG PROTOCOL bignum -> "1234567999999999999999999999999999999"
> DEBUG PROTOCOL nosuch
-ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|ar
  ray|set|map|attrib|push|verbatim|true|false
> HELLO 3 -> ~~ {*
> DEBUG PROTOCOL double -> ,3.141
> DEBUG PROTOCOL set -> ~[0, 1, 2]
> DEBUG PROTOCOL map -> {0: #f, 1: #t, 2: #f}
> DEBUG PROTOCOL push -> "Some real reply following the push reply" >["server-cpu-usage", 42]
> DEBUG PROTOCOL true -> #t
> DEBUG PROTOCOL verbatim -> =txt:This is a verbatim\nstring
> DEBUG PROTOCOL bignum -> (1234567999999999999999999999999999999)
"#,
    );
}

#[test]
fn lolwut_weaves() {
    let version = env!("CARGO_PKG_VERSION");
    check(&format!(
        r#"
> LOLWUT -> ~~ *Weft ver. {version}\\n"
> LOLWUT VERSION 5 3 2 -> ~~ *Weft ver. {version}\\n"
> LOLWUT VERSION 1 -> "Weft ver. {version}\n"
> LOLWUT nosuch x -> ~~ *Weft ver. {version}\\n"
> LOLWUT VERSION x -> -ERR value is not an integer or out of range
> LOLWUT VERSION 5 x -> -ERR value is not an integer or out of range
"#
    ));
}

#[test]
fn digests_are_those_of_redis() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    for shards in [1, 4, 1024] {
        run(
            &mut TestServer::with_config(shards, config.clone()),
            r#"
> DEBUG DIGEST -> 0000000000000000000000000000000000000000
> SET string text -> OK
> SET int 12 -> OK
> RPUSH list a 2 c -> 3
> SADD set a 2 c -> 3
> HSET hash f v g 2 -> 2
> ZADD zset 1 a 2.5 b -> 2
> XADD stream 1-1 f v g 2 -> "1-1"
> SET ending v PX 100000 -> OK
> DEBUG DIGEST-VALUE -> []
> DEBUG DIGEST-VALUE string -> [2ce3f57ae020966eb041fa6a47e5221ee0d42d6b]
> DEBUG DIGEST-VALUE int -> [655ac46b180ad2f61a3cee25f0b1780fa2ec879a]
> DEBUG DIGEST-VALUE list -> [a7d44a05834a15685f039e13f5da9c84e37ce0a3]
> DEBUG DIGEST-VALUE set -> [6aa0a97d256895d83b79bbdd47f20f0a4fc2455a]
> DEBUG DIGEST-VALUE hash -> [9dc7e1ed596e8ccab4b91d04b8317fc85b68294a]
> DEBUG DIGEST-VALUE zset -> [c45c5b051acd64070e5ed1a949939d5145f806c5]
> DEBUG DIGEST-VALUE stream -> [8551276864e67acc9e58c42c490ba228cc233280]
> DEBUG DIGEST-VALUE ending -> [311b17018163335616e089f6b951c82c477335ac]
> DEBUG DIGEST-VALUE nokey -> [0000000000000000000000000000000000000000]
> DEBUG DIGEST-VALUE nokey string
[0000000000000000000000000000000000000000,
   2ce3f57ae020966eb041fa6a47e5221ee0d42d6b]
> DEBUG DIGEST -> 163dd2abd8b16c8e2a9f14ed46b5a2786a211b2b
> ZADD zset:exp 1e15 m0 1e16 m1 29327200000000 m2 99999999999999984 m3 inf m4 -inf m5 -> 6
> ZADD zset:exp -0 m6 0 m7 3.25 m8 1e-7 m9 100000000 m10 12345678900 m11 -> 6
> DEBUG DIGEST-VALUE zset:exp -> [94bfbde96e2ab95498793a0bd345cc9ed65604b9]
> DEL zset:exp -> 1
> HSET limited f v -> 1
> HEXPIRE limited 100 FIELDS 1 f -> [1]
> DEBUG DIGEST-VALUE limited -> [74b891d3701022bf67574b56900ce11f3e5270b3]
> DEBUG DIGEST -> 29f4b44cb4e9e438a5819874906e956db66464c3
"#,
        );
    }
}

#[test]
fn digests_do_not_depend_on_encoding_or_database() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    for shards in [1, 4, 1024] {
        run(
            &mut TestServer::with_config(shards, config.clone()),
            r#"
> SELECT 1 -> OK
> SET string text -> OK
> DEBUG DIGEST -> ~~ ????????????????????????????????????????
> DEBUG DIGEST-VALUE string -> [2ce3f57ae020966eb041fa6a47e5221ee0d42d6b]
> CONFIG SET set-max-listpack-entries 1 hash-max-listpack-entries 1 -> OK
> SADD set c 2 a -> 3
> DEBUG DIGEST-VALUE set -> [6aa0a97d256895d83b79bbdd47f20f0a4fc2455a]
> HSET hash g 2 f v -> 2
> DEBUG DIGEST-VALUE hash -> [9dc7e1ed596e8ccab4b91d04b8317fc85b68294a]
"#,
        );
    }
}

#[test]
fn modules_cannot_be_loaded() {
    let permit = Config { enable_module_command: Permit::Local, ..Config::default() };
    run(
        &mut TestServer::with_config(4, permit),
        r#"
> MODULE LOAD nosuch.so -> -ERR Error loading the extension. Please check the server logs.
> MODULE LOADEX nosuch.so CONFIG name value ARGS x
-ERR Error loading the extension. Please check the server logs.
> MODULE UNLOAD nosuch -> -ERR Error unloading module: no such module with that name
> MODULE LOAD -> -ERR wrong number of arguments for 'module|load' command
> MODULE NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try MODULE HELP.
> MODULE HELP -> ~~ ?MODULE <subcommand>*
"#,
    );
    check(
        r#"
> MODULE LIST -> []
> MODULE UNLOAD nosuch
-ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run
   it from a local connection, otherwise you need to set this option in the configuration file, and
   then restart the server.
> MODULE LOAD nosuch.so
-ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run
   it from a local connection, otherwise you need to set this option in the configuration file, and
   then restart the server.
"#,
    );
}

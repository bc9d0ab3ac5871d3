//! TIME, SHUTDOWN, MEMORY, DEBUG, LOLWUT.

use std::time::Duration;

use crate::check::{check, run};
use crate::fake::World;
use node::config::{Config, Permit};
use node::host::Shutdown;

#[test]
fn time() {
    check(
        r#"
> TIME
["1700000000", "0"]
@advance 1234
> TIME
["1700000001", "234000"]
> TIME x
-ERR wrong number of arguments for 'time' command
"#,
    );
}

#[test]
fn shutdown_ends_the_process_without_a_reply() {
    for (request, now, force) in [
        ("SHUTDOWN", false, false),
        ("SHUTDOWN NOSAVE", false, false),
        ("shutdown nosave now force", true, true),
        ("SHUTDOWN FORCE SAVE", false, true),
    ] {
        let mut world = World::new(1);
        run(&mut world, &format!("> {request}\n"));
        assert_eq!(*world.host.shutdowns.borrow(), [Shutdown { now, force }], "{request}");
    }
    let mut world = World::new(1);
    run(
        &mut world,
        r#"
> SHUTDOWN NOSUCH
-ERR syntax error
> SHUTDOWN SAVE NOSAVE
-ERR syntax error
> SHUTDOWN ABORT
-ERR No shutdown in progress.
> SHUTDOWN ABORT ABORT
-ERR No shutdown in progress.
> SHUTDOWN ABORT NOW
-ERR syntax error
> SHUTDOWN NOSAVE ABORT
-ERR syntax error
> SHUTDOWN SAVE
-ERR Errors trying to SHUTDOWN. Check logs.
"#,
    );
    assert!(world.host.shutdowns.borrow().is_empty());
}

#[test]
fn memory() {
    check(
        r#"
> MEMORY USAGE k
nil
> SET k v
OK
> MEMORY USAGE k
24
> MEMORY USAGE k SAMPLES 5 samples 0
24
> MEMORY USAGE k SAMPLES -1
-ERR syntax error
> MEMORY USAGE k SAMPLES
-ERR syntax error
> MEMORY USAGE k NOSUCH 5
-ERR syntax error
> MEMORY USAGE nokey SAMPLES x
-ERR value is not an integer or out of range
> MEMORY USAGE
-ERR wrong number of arguments for 'memory|usage' command
> MEMORY PURGE
OK
> MEMORY MALLOC-STATS
"report"
> MEMORY DOCTOR
~~ "The server holds next to nothing*
> MEMORY NOSUCH
-ERR unknown subcommand 'NOSUCH'. Try MEMORY HELP.
> MEMORY HELP
~~ \[MEMORY <subcommand> *, USAGE <key> \[SAMPLES <count>], *
> MEMORY STATS
~~ \["peak.allocated", 4194304, "total.allocated", 3145728, "startup.allocated", 1048576, *,
   "db.0", \["overhead.hashtable.main", *, "overhead.hashtable.expires", 0], *"keys.count", 1,
   "keys.bytes-per-key", 2097152, *"peak.percentage", "75", *
> MEMORY STATS x
-ERR wrong number of arguments for 'memory|stats' command
> HELLO 3
~~ {*
> MEMORY STATS
~~ {"peak.allocated": 4194304, *, "db.0": {"overhead.hashtable.main": *,
   "overhead.hashtable.expires": 0}, *"peak.percentage": ,75, *
> MEMORY DOCTOR
~~ =txt:The server holds*
"#,
    );
}

#[test]
fn debug_is_for_those_who_may() {
    let forbidden = "-ERR DEBUG command not allowed. *";
    check(&format!("> DEBUG SLEEP 0\n~~ {forbidden}\n> DEBUG HELP\n~~ {forbidden}\n"));
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    let mut world = World::with_config(4, config);
    run(
        &mut world,
        r#"
> DEBUG
-ERR wrong number of arguments for 'debug' command
> DEBUG NOSUCH
-ERR unknown subcommand or wrong number of arguments for 'NOSUCH'. Try DEBUG HELP.
> DEBUG sleep
-ERR unknown subcommand or wrong number of arguments for 'sleep'. Try DEBUG HELP.
> DEBUG QUICKLIST-PACKED-THRESHOLD 4gb
-ERR argument must be a memory value bigger than 1 and smaller than 4gb
> DEBUG quicklist-packed-threshold x
-ERR argument must be a memory value bigger than 1 and smaller than 4gb
> DEBUG quicklist-packed-threshold 5kb
OK
> DEBUG SLEEP 0.25
OK
> DEBUG SLEEP x
OK
> DEBUG SLEEP -1
OK
> DEBUG ERROR "FOO bar"
-FOO bar
> DEBUG OBJECT nokey
-ERR no such key
> SET k v
OK
> DEBUG OBJECT k
~~ Value at:0x* refcount:1 encoding:embstr lru:* lru_seconds_idle:0
@advance 5000
> DEBUG OBJECT k
~~ * lru_seconds_idle:5
> DEBUG HELP
~~ \[DEBUG <subcommand> *
> DEBUG SET-ACTIVE-EXPIRE 0
OK
"#,
    );
    let slept: Vec<_> = world.host.sleeps.borrow().clone();
    assert_eq!(slept, [Duration::from_millis(250), Duration::ZERO, Duration::ZERO]);
    assert!(!world.node.active_expire.load(std::sync::atomic::Ordering::Relaxed));
    run(&mut world, "> DEBUG SET-ACTIVE-EXPIRE 1\nOK\n");
    assert!(world.node.active_expire.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn debug_protocol_shows_each_type() {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    run(
        &mut World::with_config(1, config),
        r#"
> DEBUG PROTOCOL string
"Hello World"
> DEBUG PROTOCOL Integer
12345
> DEBUG PROTOCOL double
"3.141"
> DEBUG PROTOCOL null
nil
> DEBUG PROTOCOL array
[0, 1, 2]
> DEBUG PROTOCOL set
[0, 1, 2]
> DEBUG PROTOCOL map
[0, 0, 1, 1, 2, 0]
> DEBUG PROTOCOL attrib
"Some real reply following the attribute"
> DEBUG PROTOCOL push
-ERR RESP2 is not supported by this command
> DEBUG PROTOCOL true
1
> DEBUG PROTOCOL false
0
> DEBUG PROTOCOL verbatim
"This is a verbatim\nstring"
> DEBUG PROTOCOL bignum
"1234567999999999999999999999999999999"
> DEBUG PROTOCOL nosuch
-ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|ar
  ray|set|map|attrib|push|verbatim|true|false
> HELLO 3
~~ {*
> DEBUG PROTOCOL double
,3.141
> DEBUG PROTOCOL set
~[0, 1, 2]
> DEBUG PROTOCOL map
{0: #f, 1: #t, 2: #f}
> DEBUG PROTOCOL push
"Some real reply following the push reply" >["server-cpu-usage", 42]
> DEBUG PROTOCOL true
#t
> DEBUG PROTOCOL verbatim
=txt:This is a verbatim\nstring
> DEBUG PROTOCOL bignum
(1234567999999999999999999999999999999)
"#,
    );
}

#[test]
fn lolwut_weaves() {
    let version = env!("CARGO_PKG_VERSION");
    check(&format!(
        r#"
> LOLWUT
~~ *Weft ver. {version}\\n"
> LOLWUT VERSION 5 3 2
~~ *Weft ver. {version}\\n"
> LOLWUT VERSION 1
"Weft ver. {version}\n"
> LOLWUT nosuch x
~~ *Weft ver. {version}\\n"
> LOLWUT VERSION x
-ERR value is not an integer or out of range
> LOLWUT VERSION 5 x
-ERR value is not an integer or out of range
"#
    ));
}

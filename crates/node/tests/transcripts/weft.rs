//! WEFT: the commands that Redis does not have.

use std::fmt::Write;

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn forms() {
    check(
        r##"
> WEFT HOTKEYS -> []
> WEFT BIGKEYS -> []
> WEFT HELP -> ~~ \[WEFT <subcommand> *
> WEFT NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try WEFT HELP.
> WEFT HOTKEYS 5 -> -ERR syntax error
> WEFT BIGKEYS COUNT -> -ERR syntax error
> WEFT BIGKEYS COUNT x -> -ERR value is not an integer or out of range
> WEFT HOTKEYS COUNT 0 -> -ERR value is out of range, value must between 1 and 1024
> WEFT BIGKEYS COUNT 1025 -> -ERR value is out of range, value must between 1 and 1024
"##,
    );
}

#[test]
fn big_keys_are_listed_by_type() {
    check(
        r##"
> SETRANGE s 16382 x -> 16383
> WEFT BIGKEYS -> []
> APPEND s y -> 16384
> SETRANGE t 100000 x -> 100001
> SELECT 1 -> OK
> EVAL "for i = 1, 600 do redis.call('rpush', 'l', i) redis.call('sadd', 'm', i)
   redis.call('xadd', 'x', i, 'f', 'v') end" 3 l m x
nil
> WEFT BIGKEYS
[["db", 1, "key", "l", "type", "list", "size", 600], ["db", 1, "key", "m", "type", "set", "size",
   600], ["db", 1, "key", "x", "type", "stream", "size", 600], ["db", 0, "key", "t", "type", "str
  ing",
   "size", 100001], ["db", 0, "key", "s", "type", "string", "size", 16384]]
> WEFT BIGKEYS COUNT 1 -> ~~ *"string", "size", 100001\]\]
> DEL l x -> 2
> RENAME m n -> OK
> PEXPIRE n 10 -> 1
> COPY n o -> 1
> PERSIST o -> 1
> HELLO 3 -> ~~ {*
@advance 11
> WEFT BIGKEYS COUNT 1
[{"db": 1, "key": "o", "type": "set", "size": 600}, {"db": 0, "key": "t", "type": "string",
   "size": 100001}]
> FLUSHALL -> OK
> WEFT BIGKEYS -> []
"##,
    );
}

#[test]
fn hot_keys_are_sampled() {
    let mut server = TestServer::new(4);
    let mut requests = String::new();
    for number in 0..20_000 {
        let key = if number % 4 == 0 { number } else { -(number % 2) };
        write!(requests, "> EXISTS k{key}\n0\n").unwrap();
    }
    run(&mut server, &requests);
    let shown = r##"
> WEFT HOTKEYS COUNT 1 -> ~~ \[\["db", 0, "key", "k-1", "requests-per-second", ???*\]\]
@advance 800000
> WEFT HOTKEYS COUNT 1 -> []
"##;
    run(&mut server, shown);
}

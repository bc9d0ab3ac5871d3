//! COMMAND.

use crate::check::check;

#[test]
fn information_has_ten_elements() {
    check(
        r#"
> COMMAND INFO memory|usage
[["memory|usage", -3, [readonly], 2, 2, 1, [@read, @slow], [], [["flags", [RO], "begin_search",
   ["type", "index", "spec", ["index", 2]], "find_keys", ["type", "range", "spec", ["lastkey", 0,
   "keystep", 1, "limit", 0]]]], []]]
> COMMAND INFO SLOWLOG
[["slowlog", -2, [], 0, 0, 0, [@slow], [], [], [["slowlog|get", -2, [admin, loading, stale], 0, 0,
   0, [@admin, @slow, @dangerous], ["request_policy:all_nodes", "nondeterministic_output"], [],
   []], ["slowlog|help", 2, [loading, stale], 0, 0, 0, [@slow], [], [], []], ["slowlog|len", 2,
   [admin, loading, stale], 0, 0, 0, [@admin, @slow, @dangerous], ["request_policy:all_nodes",
   "response_policy:agg_sum", "nondeterministic_output"], [], []], ["slowlog|reset", 2, [admin,
   loading, stale], 0, 0, 0, [@admin, @slow, @dangerous], ["request_policy:all_nodes",
   "response_policy:all_succeeded"], [], []]]]]
> COMMAND INFO nosuch Time memory|nosuch get|x
[nil, ["time", 1, [loading, stale, fast], 0, 0, 0, [@fast], ["nondeterministic_output"], [],
   []], nil, nil]
> COMMAND INFO -> ~~ \[*\["time", 1, *
> COMMAND -> ~~ \[*\["time", 1, *
> HELLO 3 -> ~~ {*
> COMMAND INFO memory|usage nosuch
[["memory|usage", -3, ~[readonly], 2, 2, 1, ~[@read, @slow], ~[], ~[{"flags": ~[RO],
   "begin_search": {"type": "index", "spec": {"index": 2}}, "find_keys": {"type": "range",
   "spec": {"lastkey": 0, "keystep": 1, "limit": 0}}}], ~[]], nil]
> COMMAND INFO lolwut shutdown command|count
[["lolwut", -1, ~[readonly, fast], 0, 0, 0, ~[@read, @fast], ~[], ~[], ~[]], ["shutdown", -1,
   ~[admin, noscript, loading, stale, no_multi, allow_busy], 0, 0, 0, ~[@admin, @slow,
   @dangerous], ~[], ~[], ~[]], ["command|count", 2, ~[loading, stale], 0, 0, 0, ~[@slow,
   @connection], ~[], ~[], ~[]]]
"#,
    );
}

#[test]
fn documentation_omits_empty_fields() {
    check(
        r#"
> COMMAND DOCS nosuch -> []
> COMMAND DOCS TIME nosuch
["time", ["summary", "Returns the server's time.", "since", "2.6.0", "group", "server",
   "complexity", "O(1)"]]
> COMMAND DOCS -> ~~ \[*"time", \["summary", *
> HELLO 3 -> ~~ {*
> COMMAND DOCS time time
{"time": {"summary": "Returns the server's time.", "since": "2.6.0", "group": "server",
   "complexity": "O(1)"}, "time": {"summary": "Returns the server's time.", "since": "2.6.0",
   "group": "server", "complexity": "O(1)"}}
> COMMAND DOCS memory|usage
{"memory|usage": {"summary": "Returns the bytes of a key and its value.", "since": "4.0.0",
   "group": "server", "complexity": "O(N) with N samples.", "arguments": [{"name": "key",
   "type": "key", "display_text": "key", "key_spec_index": 0}, {"name": "count",
   "type": "integer", "display_text": "count", "token": "SAMPLES", "flags": ~[optional]}]}}
> COMMAND DOCS lolwut
{"lolwut": {"summary": "Returns a picture of woven threads and the server's version.",
   "since": "5.0.0", "group": "server", "arguments": [{"name": "version", "type": "integer",
   "display_text": "version", "token": "VERSION", "flags": ~[optional]}]}}
> COMMAND DOCS debug -> ~~ {"debug": {*, "complexity": "*", "doc_flags": ~\[syscmd\]}}
> COMMAND DOCS config|set
{"config|set": {"summary": "Changes all given parameters, or none.", "since": "2.0.0",
   "group": "server", "complexity": "O(N) with N parameters.", "history": ~[["7.0.0",
   "Takes several parameters."]], "arguments": [{"name": "data", "type": "block",
   "flags": ~[multiple], "arguments": [{"name": "parameter", "type": "string",
   "display_text": "parameter"}, {"name": "value", "type": "string", "display_text": "value"}]}]}}
> COMMAND DOCS shutdown
~~ *"arguments": \[{"name": "save-selector", "type": "oneof", "flags": ~\[optional\],
   "arguments": \[{"name": "nosave", "type": "pure-token", "display_text": "nosave",
   "token": "NOSAVE"}, *{"name": "now", "type": "pure-token", "display_text": "now",
   "token": "NOW", "since": "7.0.0", "flags": ~\[optional\]}*
> COMMAND DOCS MEMORY
~~ {"memory": {"summary": "*", "subcommands": {"memory|doctor": {*"memory|usage": {*}}}}
"#,
    );
}

#[test]
fn lists_are_filtered() {
    check(
        r#"
> COMMAND LIST -> ~~ \[*"config", "config|get", *
> COMMAND LIST FILTERBY PATTERN MEMORY*
["memory", "memory|doctor", "memory|help", "memory|malloc-stats", "memory|purge", "memory|stats",
   "memory|usage"]
> COMMAND LIST filterby pattern config|[gs]et -> ["config|get", "config|set"]
> COMMAND LIST FILTERBY ACLCAT Admin -> ~~ *"config|get", *"shutdown"*
> COMMAND LIST FILTERBY ACLCAT @admin -> []
> COMMAND LIST FILTERBY MODULE vectorset -> []
> COMMAND LIST FILTERBY NOSUCH x -> -ERR syntax error
> COMMAND LIST FILTERBY PATTERN -> -ERR syntax error
> COMMAND LIST FILTERBY PATTERN a b -> -ERR syntax error
> COMMAND LIST nosuch PATTERN a -> -ERR syntax error
"#,
    );
}

#[test]
fn getkeys_of_commands_with_optional_keys() {
    check(
        r#"
> COMMAND GETKEYS PFMERGE a b -> ["a", "b"]
> COMMAND GETKEYS PFMERGE a -> -ERR Invalid arguments specified for command
> COMMAND GETKEYSANDFLAGS PFMERGE a -> -ERR Invalid arguments specified for command
> COMMAND GETKEYS SORT a -> ["a"]
> COMMAND GETKEYS SORT a STORE b -> ["a", "b"]
> COMMAND GETKEYS SORT_RO a -> ["a"]
> COMMAND GETKEYS GEORADIUS a 1 1 1 m -> ["a"]
> COMMAND GETKEYS GEORADIUSBYMEMBER a b 1 m -> ["a"]
"#,
    );
}

#[test]
fn getkeys_finds_keys() {
    check(
        r#"
> COMMAND GETKEYS get k -> ["k"]
> COMMAND GETKEYS set k v -> ["k"]
> COMMAND GETKEYS MEMORY USAGE k SAMPLES 5 -> ["k"]
> COMMAND GETKEYS -> -ERR wrong number of arguments for 'command|getkeys' command
> COMMAND GETKEYS get -> -ERR Invalid number of arguments specified for command
> COMMAND GETKEYS get a b -> -ERR Invalid number of arguments specified for command
> COMMAND GETKEYS nosuch a -> -ERR Invalid command specified
> COMMAND GETKEYS memory nosuch k -> -ERR Invalid command specified
> COMMAND GETKEYS command nosuch -> -ERR Invalid command specified
> COMMAND GETKEYS ping a -> -ERR The command has no key arguments
> COMMAND GETKEYS config -> -ERR The command has no key arguments
> COMMAND GETKEYS memory stats -> -ERR The command has no key arguments
> COMMAND GETKEYS XREAD COUNT streams NOSUCH STREAMS a b 0 0 -> ["a", "b"]
> COMMAND GETKEYS XREADGROUP GROUP g c NOSUCH STREAMS a > -> ["a"]
> COMMAND GETKEYS XREAD COUNT 1 a b -> -ERR Invalid arguments specified for command
> COMMAND GETKEYS ZUNION 2 a -> -ERR Invalid arguments specified for command
> COMMAND GETKEYS ZUNIONSTORE d 0 a -> -ERR Invalid arguments specified for command
> COMMAND GETKEYSANDFLAGS ZUNIONSTORE d x a -> -ERR Invalid arguments specified for command
> COMMAND GETKEYS EVAL "return 1" 0 -> []
> COMMAND GETKEYS EVAL "return 1" 2 k -> []
> COMMAND GETKEYSANDFLAGS FCALL_RO f 1 k -> [["k", [RO, access]]]
> COMMAND GETKEYSANDFLAGS SET k get -> [["k", [OW, update]]]
> COMMAND GETKEYSANDFLAGS SET k v EX 5 Get -> [["k", [RW, access, update]]]
> COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 OVERFLOW FAIL get u8 1 -> [["k", [RO, access]]]
> COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 SET u8 0 1 -> [["k", [RW, access, update]]]
> COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 -> [["k", [RW, access, update]]]
> COMMAND GETKEYSANDFLAGS memory usage k -> [["k", [RO]]]
> COMMAND GETKEYSANDFLAGS sort k by w_* store d -> [["k", [RO, access]], ["d", [OW, update]]]
> COMMAND GETKEYSANDFLAGS nosuch -> -ERR Invalid command specified
> HELLO 3 -> ~~ {*
> COMMAND GETKEYSANDFLAGS get k -> [["k", ~[RO, access]]]
"#,
    );
}

#[test]
fn other_subcommands() {
    check(
        r#"
> COMMAND COUNT -> ~~ [1-9]*
> COMMAND COUNT x -> -ERR wrong number of arguments for 'command|count' command
> COMMAND NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP.
> COMMAND HELP -> ~~ \[COMMAND <subcommand> *, COUNT, *
"#,
    );
}

/// Clients show this header, and look for it.
#[test]
fn help_has_the_frame_of_redis() {
    for name in [
        "PUBSUB", "SCRIPT", "FUNCTION", "CLIENT", "CONFIG", "ACL", "SLOWLOG", "LATENCY", "MEMORY",
        "COMMAND", "MODULE", "OBJECT", "XGROUP", "XINFO",
    ] {
        let header = r"<subcommand> \[<arg> \[value] \[opt] ...]. Subcommands are:";
        check(&format!("> {name} HELP\n~~ \\[{name} {header}, *]"));
    }
    for name in ["pubsub", "Client", "CONFIG"] {
        check(&format!("> {name} HELP -> ~~ *, HELP,     Print this help.]"));
    }
}

/// Clients' own tests compare these texts.
#[test]
fn docs_of_sort_and_set_are_those_of_redis() {
    check(
        r##"
> COMMAND DOCS SORT
~~ *"Sorts the elements in a list, a set, or a sorted set, optionally storing the result."*
> COMMAND DOCS SET
~~ *"complexity", "O(1)", "history", *"2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."*
"##,
    );
}

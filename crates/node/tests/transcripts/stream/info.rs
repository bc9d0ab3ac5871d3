//! XINFO.

use crate::check::check;

#[test]
fn xinfo_stream() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XGROUP CREATE s g 0 -> OK
> XINFO STREAM s
["length", 2, "radix-tree-keys", 1, "radix-tree-nodes", 2, "last-generated-id", "1-2",
   "max-deleted-entry-id", "0-0", "entries-added", 2, "recorded-first-entry-id", "1-1", "groups",
   1, "first-entry", ["1-1", ["a", "1"]], "last-entry", ["1-2", ["a", "2"]]]
> HELLO 3 -> ~~ {*}
> XINFO STREAM s
{"length": 2, "radix-tree-keys": 1, "radix-tree-nodes": 2, "last-generated-id": "1-2",
   "max-deleted-entry-id": "0-0", "entries-added": 2, "recorded-first-entry-id": "1-1", "groups":
   1, "first-entry": ["1-1", ["a", "1"]], "last-entry": ["1-2", ["a", "2"]]}
> XDEL s 1-1 1-2 -> 2
> XINFO STREAM s
{"length": 0, "radix-tree-keys": 0, "radix-tree-nodes": 1, "last-generated-id": "1-2",
   "max-deleted-entry-id": "1-2", "entries-added": 2, "recorded-first-entry-id": "0-0", "groups":
   1, "first-entry": nil, "last-entry": nil}
> HELLO 2 -> ~~ *
> XINFO STREAM s
["length", 0, "radix-tree-keys", 0, "radix-tree-nodes", 1, "last-generated-id", "1-2",
   "max-deleted-entry-id", "1-2", "entries-added", 2, "recorded-first-entry-id", "0-0", "groups",
   1, "first-entry", nil, "last-entry", nil]
"#,
    );
}

#[test]
fn xinfo_stream_full() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XGROUP CREATE s g 0 -> OK
> XGROUP CREATE s h $ ENTRIESREAD 1 -> OK
> XREADGROUP GROUP g c COUNT 2 STREAMS s > -> [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
> XGROUP CREATECONSUMER s g d -> 1
> XINFO STREAM s FULL
["length", 3, "radix-tree-keys", 1, "radix-tree-nodes", 2, "last-generated-id", "1-3",
   "max-deleted-entry-id", "0-0", "entries-added", 3, "recorded-first-entry-id", "1-1",
   "entries", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]]], "groups",
   [["name", "g", "last-delivered-id", "1-2", "entries-read", 2, "lag", 1, "pel-count", 2,
   "pending", [["1-1", "c", 1700000000000, 1], ["1-2", "c", 1700000000000, 1]], "consumers",
   [["name", "c", "seen-time", 1700000000000, "active-time", 1700000000000, "pel-count", 2,
   "pending", [["1-1", 1700000000000, 1], ["1-2", 1700000000000, 1]]], ["name", "d", "seen-time",
   1700000000000, "active-time", -1, "pel-count", 0, "pending", []]]], ["name", "h",
   "last-delivered-id", "1-3", "entries-read", 1, "lag", 2, "pel-count", 0, "pending", [],
   "consumers", []]]]
> XINFO STREAM s full count -1 -> ~~ *"entries", *"1-1", *"1-2", *"1-3", *"groups", *
> XINFO STREAM s full count 0 -> ~~ *"entries", *"1-1", *"1-2", *"1-3", *"groups", *
> HELLO 3 -> ~~ {*}
> XINFO STREAM s FULL COUNT 1
{"length": 3, "radix-tree-keys": 1, "radix-tree-nodes": 2, "last-generated-id": "1-3",
   "max-deleted-entry-id": "0-0", "entries-added": 3, "recorded-first-entry-id": "1-1",
   "entries": [["1-1", ["a", "1"]]], "groups": [{"name": "g", "last-delivered-id": "1-2",
   "entries-read": 2, "lag": 1, "pel-count": 2, "pending": [["1-1", "c", 1700000000000, 1]],
   "consumers": [{"name": "c", "seen-time": 1700000000000, "active-time": 1700000000000,
   "pel-count": 2, "pending": [["1-1", 1700000000000, 1]]}, {"name": "d", "seen-time":
   1700000000000, "active-time": -1, "pel-count": 0, "pending": []}]}, {"name": "h",
   "last-delivered-id": "1-3", "entries-read": 1, "lag": 2, "pel-count": 0, "pending": [],
   "consumers": []}]}
"#,
    );
}

#[test]
fn xinfo_groups_and_consumers() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XINFO GROUPS s -> []
> XGROUP CREATE s g 0 -> OK
> XGROUP CREATE s h 0-5 -> OK
> XREADGROUP GROUP g c STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
@advance 30
> XREADGROUP GROUP g c STREAMS s > -> nil-array
@advance 12
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 1, "last-delivered-id", "1-1", "entries-read", 1,
   "lag", 0], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "0-5",
   "entries-read", nil, "lag", 1]]
> XINFO CONSUMERS s g -> [["name", "c", "pending", 1, "idle", 12, "inactive", 42]]
> XINFO CONSUMERS s h -> []
> HELLO 3 -> ~~ {*}
> XINFO GROUPS s
[{"name": "g", "consumers": 1, "pending": 1, "last-delivered-id": "1-1", "entries-read": 1,
   "lag": 0}, {"name": "h", "consumers": 0, "pending": 0, "last-delivered-id": "0-5",
   "entries-read": nil, "lag": 1}]
> XINFO CONSUMERS s g -> [{"name": "c", "pending": 1, "idle": 12, "inactive": 42}]
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XINFO -> -ERR wrong number of arguments for 'xinfo' command
> XINFO FOO -> -ERR unknown subcommand 'FOO'. Try XINFO HELP.
> XINFO STREAM -> -ERR wrong number of arguments for 'xinfo|stream' command
> XINFO STREAM nokey -> -ERR no such key
> XINFO GROUPS nokey -> -ERR no such key
> XINFO CONSUMERS nokey g -> -ERR no such key
> XINFO CONSUMERS nokey -> -ERR wrong number of arguments for 'xinfo|consumers' command
> XADD s 1-1 a 1 -> "1-1"
> XINFO CONSUMERS s g -> -NOGROUP No such consumer group 'g' for key name 's'
> XINFO GROUPS s x -> -ERR wrong number of arguments for 'xinfo|groups' command
> XINFO STREAM s FOO
-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO STREAM s FULL COUNT
-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO STREAM s FULL FOO 1
-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO STREAM s FULL COUNT x -> -ERR value is not an integer or out of range
> XINFO STREAM s FULL COUNT 1 2
-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO STREAM s FOO COUNT 1
-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO HELP x -> -ERR wrong number of arguments for 'xinfo|help' command
> XGROUP HELP x -> -ERR wrong number of arguments for 'xgroup|help' command
> SET t v -> OK
> XINFO STREAM t -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XINFO GROUPS t -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XINFO CONSUMERS t g -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn help() {
    check(
        r#"
> XINFO HELP -> ~~ *XINFO <subcommand> *Subcommands are:, CONSUMERS *Print these lines.*
> XGROUP HELP -> ~~ *XGROUP <subcommand> *Subcommands are:, CREATE *Print these lines.*
"#,
    );
}

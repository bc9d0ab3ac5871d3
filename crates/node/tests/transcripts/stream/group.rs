//! XGROUP.

use crate::check::check;

#[test]
fn creating_and_destroying() {
    check(
        r#"
> XGROUP CREATE s g $
-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use
   the MKSTREAM option to create an empty stream automatically.
> XGROUP CREATE s g $ MKSTREAM -> OK
! xgroup-create:s => XGROUP CREATE s g $ MKSTREAM
> TYPE s -> stream
> XLEN s -> 0
> XGROUP CREATE s g $ MKSTREAM -> -BUSYGROUP Consumer Group name already exists
> XGROUP CREATE s g 0 -> -BUSYGROUP Consumer Group name already exists
> XADD s 1-1 a b -> "1-1"
> XADD s 2-1 a b -> "2-1"
> XGROUP CREATE s h $ -> OK
! xgroup-create:s => XGROUP CREATE s h $
> XGROUP CREATE s i 1 -> OK
> XGROUP CREATE s j 1-1 ENTRIESREAD 1 -> OK
> XGROUP CREATE s k 0-0 entriesread -1 mkstream -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil,
   "lag", 2], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "2-1",
   "entries-read", nil, "lag", 0], ["name", "i", "consumers", 0, "pending", 0,
   "last-delivered-id", "1-0", "entries-read", nil, "lag", 2], ["name", "j", "consumers", 0,
   "pending", 0, "last-delivered-id", "1-1", "entries-read", 1, "lag", 1], ["name", "k",
   "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil, "lag", 2]]
> XGROUP SETID s h 0 -> OK
! xgroup-setid:s => XGROUP SETID s h 0
> XGROUP SETID s i $ ENTRIESREAD 7 -> OK
> XGROUP SETID s j - -> OK
> XGROUP SETID s k + -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil,
   "lag", 2], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "0-0",
   "entries-read", nil, "lag", 2], ["name", "i", "consumers", 0, "pending", 0,
   "last-delivered-id", "2-1", "entries-read", 7, "lag", -5], ["name", "j", "consumers", 0,
   "pending", 0, "last-delivered-id", "0-0", "entries-read", nil, "lag", 2], ["name", "k",
   "consumers", 0, "pending", 0, "last-delivered-id",
   "18446744073709551615-18446744073709551615", "entries-read", nil, "lag", nil]]
> XGROUP DESTROY s h -> 1
! xgroup-destroy:s => XGROUP DESTROY s h
> XGROUP DESTROY s h -> 0
> XGROUP DESTROY nokey h
-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use
   the MKSTREAM option to create an empty stream automatically.
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XGROUP -> -ERR wrong number of arguments for 'xgroup' command
> XGROUP FOO -> -ERR unknown subcommand 'FOO'. Try XGROUP HELP.
> XGROUP CREATE s g -> -ERR wrong number of arguments for 'xgroup|create' command
> XGROUP CREATE s g x MKSTREAM -> -ERR Invalid stream ID specified as stream command argument
> XGROUP CREATE s g - MKSTREAM -> -ERR Invalid stream ID specified as stream command argument
> EXISTS s -> 0
> XGROUP CREATE s g 0 FOO
-ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
> XGROUP CREATE s g 0 ENTRIESREAD
-ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
> XGROUP CREATE s g 0 ENTRIESREAD x -> -ERR value is not an integer or out of range
> XGROUP CREATE s g 0 ENTRIESREAD -2 -> -ERR value for ENTRIESREAD must be positive or -1
> XGROUP CREATE s g 0 MKSTREAM ENTRIESREAD 1 ENTRIESREAD 2
-ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
"#,
    );
}

#[test]
fn errors_without_a_group() {
    check(
        r#"
> XADD s 1-1 a b -> "1-1"
> XGROUP SETID s g -> -ERR wrong number of arguments for 'xgroup|setid' command
> XGROUP SETID s g 0 -> -NOGROUP No such consumer group 'g' for key name 's'
> XGROUP SETID nokey g 0
-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use
   the MKSTREAM option to create an empty stream automatically.
> XGROUP CREATE s g 0 -> OK
> XGROUP SETID s g x -> -ERR Invalid stream ID specified as stream command argument
> XGROUP SETID s g 0 MKSTREAM
-ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.
> XGROUP SETID s g 0 ENTRIESREAD 1 ENTRIESREAD 2
-ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.
> XGROUP SETID s g 0 ENTRIESREAD -2 -> -ERR value for ENTRIESREAD must be positive or -1
> XGROUP DESTROY s -> -ERR wrong number of arguments for 'xgroup|destroy' command
> XGROUP CREATECONSUMER s g -> -ERR wrong number of arguments for 'xgroup|createconsumer' command
> XGROUP CREATECONSUMER s nogroup c -> -NOGROUP No such consumer group 'nogroup' for key name 's'
> XGROUP CREATECONSUMER nokey g c
-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use
   the MKSTREAM option to create an empty stream automatically.
> XGROUP DELCONSUMER s nogroup c -> -NOGROUP No such consumer group 'nogroup' for key name 's'
> XGROUP DELCONSUMER nokey g c
-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use
   the MKSTREAM option to create an empty stream automatically.
> SET t v -> OK
> XGROUP CREATE t g 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XGROUP CREATE t g 0 MKSTREAM -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XGROUP DESTROY t g -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XGROUP CREATECONSUMER t g c -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn consumers() {
    check(
        r#"
> XGROUP CREATE s g 0 MKSTREAM -> OK
> XGROUP CREATECONSUMER s g b -> 1
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g b
> XGROUP CREATECONSUMER s g b -> 0
> XGROUP CREATECONSUMER s g a -> 1
> XINFO CONSUMERS s g
[["name", "a", "pending", 0, "idle", 0, "inactive", -1], ["name", "b", "pending", 0, "idle", 0,
   "inactive", -1]]
> XADD s 1-1 a b -> "1-1"
> XADD s 1-2 a b -> "1-2"
> XREADGROUP GROUP g b STREAMS s > -> [["s", [["1-1", ["a", "b"]], ["1-2", ["a", "b"]]]]]
> XGROUP DELCONSUMER s g b -> 2
! xgroup-delconsumer:s => XGROUP DELCONSUMER s g b
> XGROUP DELCONSUMER s g b -> 0
> XGROUP DELCONSUMER s g a -> 0
> XPENDING s g -> [0, nil, nil, nil-array]
> XINFO CONSUMERS s g -> []
"#,
    );
}

//! XDEL and XSETID.

use crate::check::check;

#[test]
fn deleting() {
    check(
        r#"
> XADD s 1-1 a 1 -> "1-1"
> XADD s 1-2 a 2 -> "1-2"
> XADD s 1-3 a 3 -> "1-3"
> XADD s 1-4 a 4 -> "1-4"
> XDEL s 1-2 -> 1
! xdel:s => XDEL s 1-2
> XDEL s 1-2 -> 0
> XDEL s 1-4 1-4 9-9 1-1 -> 2
! xdel:s => XDEL s 1-4 1-4 9-9 1-1
> XRANGE s - + -> [["1-3", ["a", "3"]]]
> XLEN s -> 1
> XADD s 1-4 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XDEL s 1 -> 0
> XDEL s 1-3 -> 1
> XLEN s -> 0
> EXISTS s -> 1
> XRANGE s - + -> []
> XREVRANGE s + - -> []
> XADD s 1-4 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s 1-5 a b -> "1-5"
> XDEL nokey 1-1 -> 0
> XDEL nokey x -> 0
> XDEL s 1-5 x -> -ERR Invalid stream ID specified as stream command argument
> XLEN s -> 1
> XDEL s - -> -ERR Invalid stream ID specified as stream command argument
> XDEL s -> -ERR wrong number of arguments for 'xdel' command
> SET t v -> OK
> XDEL t 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> XDEL t x -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn setting_the_last_identifier() {
    check(
        r#"
> XSETID s 1-1 -> -ERR no such key
> XADD s 2-2 a b -> "2-2"
> XADD s 2-3 a b -> "2-3"
> XSETID s 2-2 -> -ERR The ID specified in XSETID is smaller than the target stream top item
> XSETID s 2-3 -> OK
! xsetid:s => XSETID s 2-3
> XSETID s 200-0 -> OK
> XADD s 100-0 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s 200-* a b -> "200-1"
> XSETID s 300-0 ENTRIESADDED 1
-ERR The entries_added specified in XSETID is smaller than the target stream length
> XSETID s 300-0 ENTRIESADDED -1 -> -ERR entries_added must be positive
> XSETID s 300-0 ENTRIESADDED x -> -ERR value is not an integer or out of range
> XSETID s 300-0 ENTRIESADDED -> -ERR syntax error
> XSETID s 300-0 MAXDELETEDID -> -ERR syntax error
> XSETID s 300-0 MAXDELETEDID x -> -ERR Invalid stream ID specified as stream command argument
> XSETID s 300-0 MAXDELETEDID 301-0
-ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id
> XSETID s 300-0 FOO 1 -> -ERR syntax error
> XSETID s x -> -ERR Invalid stream ID specified as stream command argument
> XSETID s - -> -ERR Invalid stream ID specified as stream command argument
> XSETID s -> -ERR wrong number of arguments for 'xsetid' command
> XSETID s 300-0 entriesadded 10 maxdeletedid 250-0 -> OK
! xsetid:s => XSETID s 300-0 entriesadded 10 maxdeletedid 250-0
> XINFO STREAM s
~~ *"length", 3, "radix-tree-keys", 1, *, "last-generated-id", "300-0", "max-deleted-entry-id",
   "250-0", "entries-added", 10, "recorded-first-entry-id", "2-2", *
> XDEL s 200-1 -> 1
> XDEL s 2-2 2-3 -> 2
> XSETID s 249-0 -> -ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
> XSETID s 250-0 ENTRIESADDED 0 -> OK
> XADD s 250-0 a b
-ERR The ID specified in XADD is equal or smaller than the target stream top item
> SET t v -> OK
> XSETID t 1-1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn deleted_entries_are_remembered() {
    check(
        r#"
> XADD s 1-0 a b -> "1-0"
> XADD s 2-0 a b -> "2-0"
> XADD s 3-0 a b -> "3-0"
> XADD s 4-0 a b -> "4-0"
> XDEL s 3-0 -> 1
> XINFO STREAM s
~~ *"max-deleted-entry-id", "3-0", "entries-added", 4, "recorded-first-entry-id", "1-0", *
> XDEL s 1-0 -> 1
> XINFO STREAM s
~~ *"max-deleted-entry-id", "3-0", "entries-added", 4, "recorded-first-entry-id", "2-0", *
> XTRIM s MAXLEN 1 -> 1
> XINFO STREAM s
~~ *"max-deleted-entry-id", "3-0", "entries-added", 4, "recorded-first-entry-id", "4-0", *
> COPY s t -> 1
> XDEL t 4-0 -> 1
> XINFO STREAM t
~~ *"max-deleted-entry-id", "4-0", "entries-added", 4, "recorded-first-entry-id", "0-0", *
> XINFO STREAM s
~~ *"max-deleted-entry-id", "3-0", "entries-added", 4, "recorded-first-entry-id", "4-0", *
> DEL s -> 1
> EXISTS s t -> 1
"#,
    );
}

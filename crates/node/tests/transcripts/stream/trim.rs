//! XTRIM.

use crate::check::check;

#[test]
fn by_length() {
    check(
        r#"
> CONFIG SET stream-node-max-entries 2 -> OK
> XTRIM s MAXLEN 5 -> 0
> XADD s 1-1 a b -> "1-1"
> XADD s 1-2 a b -> "1-2"
> XADD s 1-3 a b -> "1-3"
> XADD s 1-4 a b -> "1-4"
> XADD s 1-5 a b -> "1-5"
> XTRIM s MAXLEN 5 -> 0
> XTRIM s MAXLEN ~ 4 -> 0
> XTRIM s MAXLEN 4 -> 1
! xtrim:s => XTRIM s MAXLEN 4
> XTRIM s MAXLEN ~ 3 -> 1
! xtrim:s => XTRIM s MAXLEN = 3
> XTRIM s MAXLEN = 2 -> 1
> XRANGE s - + -> [["1-4", ["a", "b"]], ["1-5", ["a", "b"]]]
> XINFO STREAM s -> ~~ *"length", 2, "radix-tree-keys", 2, *
> XTRIM s MAXLEN ~ 0 LIMIT 1 -> 1
! xtrim:s => XTRIM s MAXLEN = 1
> XTRIM s MAXLEN ~ 0 LIMIT 1 -> 1
! xtrim:s => XTRIM s MAXLEN = 0
> XTRIM s MAXLEN 0 -> 0
> EXISTS s -> 1
> XADD s 1-6 a b -> "1-6"
> XTRIM s MAXLEN ~ 0 LIMIT 0 -> 1
"#,
    );
}

#[test]
fn by_identifier() {
    check(
        r#"
> CONFIG SET stream-node-max-entries 3 -> OK
> XADD s 1-1 a b -> "1-1"
> XADD s 1-2 a b -> "1-2"
> XADD s 2-1 a b -> "2-1"
> XADD s 2-2 a b -> "2-2"
> XADD s 3-1 a b -> "3-1"
> XTRIM s MINID 1 -> 0
> XTRIM s MINID 1-2 -> 1
> XTRIM s MINID ~ 2-1 -> 0
> XTRIM s MINID ~ 2-2 -> 2
! xtrim:s => XTRIM s MINID = 2-2
> XTRIM s MINID = 3 -> 1
! xtrim:s => XTRIM s MINID = 3
> XRANGE s - + -> [["3-1", ["a", "b"]]]
> XTRIM s MINID 18446744073709551615-18446744073709551615 -> 1
> XLEN s -> 0
> XINFO STREAM s
~~ *"length", 0, "radix-tree-keys", 0, "radix-tree-nodes", 1, "last-generated-id", "3-1",
   "max-deleted-entry-id", "0-0", "entries-added", 5, "recorded-first-entry-id", "0-0", *
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> XTRIM s -> -ERR wrong number of arguments for 'xtrim' command
> XTRIM s MAXLEN -> -ERR wrong number of arguments for 'xtrim' command
> XTRIM s MAXLEN x -> -ERR value is not an integer or out of range
> XTRIM s MAXLEN -5 -> -ERR The MAXLEN argument must be >= 0.
> XTRIM s MAXLEN 9223372036854775808 -> -ERR value is not an integer or out of range
> XTRIM s MINID x -> -ERR Invalid stream ID specified as stream command argument
> XTRIM s MINID + -> -ERR Invalid stream ID specified as stream command argument
> XTRIM s MAXLEN 1 MINID 1
-ERR syntax error, MAXLEN and MINID options at the same time are not compatible
> XTRIM s LIMIT 5 -> -ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
> XTRIM s LIMIT 0 -> -ERR syntax error, XTRIM must be called with a trimming strategy
> XTRIM s MAXLEN 5 LIMIT 1 -> -ERR syntax error, LIMIT cannot be used without the special ~ option
> XTRIM s MAXLEN = 5 LIMIT 1 -> -ERR syntax error, LIMIT cannot be used without the special ~ option
> XTRIM s MAXLEN ~ 5 LIMIT -1 -> -ERR The LIMIT argument must be >= 0.
> XTRIM s MAXLEN ~ 5 LIMIT -> -ERR syntax error
> XTRIM s MAXLEN ~ -> -ERR value is not an integer or out of range
> XTRIM s MAXLEN ~ 5 x -> -ERR syntax error
> XTRIM s NOMKSTREAM MAXLEN 5 -> -ERR syntax error
> XTRIM s MAXLEN 5 * -> -ERR syntax error
> SET t v -> OK
> XTRIM t MAXLEN 5 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

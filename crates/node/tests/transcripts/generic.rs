//! Commands on keys of any type.

use crate::check::check;

#[test]
fn counting_and_removing() {
    check(
        r#"
> SET a 1 -> OK
> SET b hello -> OK
> EXISTS a a b nokey -> 3
> EXISTS -> -ERR wrong number of arguments for 'exists' command
> TOUCH b b nokey -> 2
> TOUCH -> -ERR wrong number of arguments for 'touch' command
> TYPE a -> string
> TYPE nokey -> none
> TYPE a b -> -ERR wrong number of arguments for 'type' command
> DEL a a nokey -> 1
! del:a => DEL a a nokey
> DEL a -> 0
> SET a 1 -> OK
> UNLINK a b nokey a -> 2
! del:a del:b => UNLINK a b nokey a
> UNLINK -> -ERR wrong number of arguments for 'unlink' command
> DEL -> -ERR wrong number of arguments for 'del' command
> EXISTS a b -> 0
"#,
    );
}

#[test]
fn copies() {
    check(
        r#"
> SET a 1 -> OK
> COPY a -> -ERR wrong number of arguments for 'copy' command
> COPY a a -> -ERR source and destination objects are the same
> COPY nokey nokey DB 0 -> -ERR source and destination objects are the same
> COPY a c DB x -> -ERR value is not an integer or out of range
> COPY a c DB 16 -> -ERR DB index is out of range
> COPY a c DB -1 -> -ERR DB index is out of range
> COPY a c DB 99999999999
-ERR value is out of range, value must between -2147483648 and 2147483647
> COPY a c DB -> -ERR syntax error
> COPY a c foo -> -ERR syntax error
> COPY nokey c -> 0
> COPY a c -> 1
! copy_to:c => COPY a c
> COPY a c -> 0
> SET c 5 -> OK
> COPY a c replace REPLACE -> 1
! copy_to:c => COPY a c replace REPLACE
> GET c -> "1"
> COPY a a DB 1 -> 1
! copy_to:a@1 => COPY a a DB 1
> COPY a a DB 1 -> 0
> COPY a c db 1 db 2 -> 1
! copy_to:c@2 => COPY a c db 1 db 2
# The copy has the expiry too, and is independent.
> EXPIRE a 100 -> 1
> COPY a c REPLACE -> 1
> TTL c -> 100
> DEL a -> 1
> TTL c -> 100
> GET c -> "1"
"#,
    );
}

#[test]
fn copies_of_long_strings_are_independent() {
    let long = "x".repeat(20_000);
    check(&format!(
        r#"
> SET a {long} -> OK
> COPY a b -> 1
> SET a short -> OK
> GET b -> "{long}"
> GET a -> "short"
"#
    ));
}

#[test]
fn moves() {
    check(
        r#"
> SET a 1 -> OK
> MOVE a x -> -ERR value is not an integer or out of range
> MOVE a 0 -> -ERR source and destination objects are the same
> MOVE a 16 -> -ERR DB index is out of range
> MOVE a -1 -> -ERR DB index is out of range
> MOVE a 99999999999999 -> -ERR value is out of range, value must between -2147483648 and 2147483647
> MOVE nokey 0 -> -ERR source and destination objects are the same
> MOVE nokey 1 -> 0
> MOVE a -> -ERR wrong number of arguments for 'move' command
> EXPIRE a 50 -> 1
> MOVE a 1 -> 1
! move_from:a move_to:a@1 => MOVE a 1
> MOVE a 1 -> 0
> SET a 2 -> OK
> MOVE a 1 -> 0
> GET a -> "2"
> SWAPDB 0 1 -> OK
> GET a -> "1"
> TTL a -> 50
# An expired key in the target database does not prevent a move.
> SWAPDB 0 1 -> OK
@advance 50001
> MOVE a 1 -> 1
! expired:a => DEL a
! move_from:a move_to:a@1 => MOVE a 1
"#,
    );
}

#[test]
fn renames() {
    check(
        r#"
> RENAME nokey nokey -> -ERR no such key
> RENAME nokey x -> -ERR no such key
> RENAMENX nokey x -> -ERR no such key
> RENAME a -> -ERR wrong number of arguments for 'rename' command
> SET a 1 -> OK
> RENAME a a -> OK
> RENAMENX a a -> 0
> EXPIRE a 100 -> 1
> SET b old -> OK
> RENAMENX a b -> 0
> RENAME a b -> OK
! rename_from:a rename_to:b => RENAME a b
> GET a -> nil
> GET b -> "1"
> TTL b -> 100
> RENAMENX b a -> 1
! rename_from:b rename_to:a => RENAMENX b a
> EXISTS b -> 0
> TTL a -> 100
> SET c x -> OK
> RENAME c a -> OK
> TTL a -> -1
"#,
    );
}

#[test]
fn object_shows_encodings_and_references() {
    let long = "x".repeat(45);
    check(&format!(
        r#"
> OBJECT -> -ERR wrong number of arguments for 'object' command
> OBJECT foo bar baz -> -ERR unknown subcommand 'foo'. Try OBJECT HELP.
> OBJECT ENCODING -> -ERR wrong number of arguments for 'object|encoding' command
> OBJECT HELP foo -> -ERR wrong number of arguments for 'object|help' command
> OBJECT HELP
~~ \[OBJECT <subcommand> \[<arg> \[value] \[opt] ...]. Subcommands are:, ENCODING <key>, *, HELP, *]
> OBJECT ENCODING nokey -> nil
> OBJECT FREQ nokey -> nil
> OBJECT IDLETIME nokey -> nil
> OBJECT REFCOUNT nokey -> nil
> SET i 9999 -> OK
> OBJECT REFCOUNT i -> 2147483647
> SET i 10000 -> OK
> OBJECT REFCOUNT i -> 1
> SET i -1 -> OK
> OBJECT REFCOUNT i -> 1
> OBJECT encoding i -> "int"
> SET s hello -> OK
> OBJECT ENCODING s -> "embstr"
> OBJECT REFCOUNT s -> 1
> SET s {long} -> OK
> OBJECT ENCODING s -> "raw"
> OBJECT FREQ s
~~ -ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note *
"#
    ));
}

#[test]
fn idle_time_counts_from_the_last_use() {
    check(
        r#"
> SET s 1 -> OK
> OBJECT IDLETIME s -> 0
@advance 10000
# None of these updates the access time.
> TTL s -> -1
> TYPE s -> string
> EXISTS s -> 1
> OBJECT ENCODING s -> "int"
> OBJECT IDLETIME s -> 10
> TOUCH s -> 1
> OBJECT IDLETIME s -> 0
@advance 10000
> GET s -> "1"
> OBJECT IDLETIME s -> 0
@advance 10000
> EXPIRE s 100 -> 1
> OBJECT IDLETIME s -> 0
@advance 10000
> RENAME s t -> OK
> OBJECT IDLETIME t -> 0
"#,
    );
}

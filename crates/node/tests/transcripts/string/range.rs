//! APPEND, SETRANGE, GETRANGE, SUBSTR, STRLEN.

use crate::check::check;

#[test]
fn append() {
    check(
        r#"
> APPEND k "" -> 0
> GET k -> ""
> APPEND k "" -> 0
> APPEND k 12 -> 2
! append:k => APPEND k 12
> APPEND k 34 -> 4
> GET k -> "1234"
> APPEND new 12 -> 2
! append:new => APPEND new 12
> APPEND new " and more" -> 11
> GET new -> "12 and more"
> PSETEX k 100 v -> OK
> APPEND k w -> 2
> GET k -> "vw"
@advance 150
> APPEND k x -> 1
! expired:k => DEL k
! append:k => APPEND k x
> APPEND k -> -ERR wrong number of arguments for 'append' command
"#,
    );
}

#[test]
fn setrange() {
    check(
        r#"
> SETRANGE k 0 "" -> 0
> SETRANGE k 5 "" -> 0
> GET k -> nil
> SETRANGE k 3 ab -> 5
! setrange:k => SETRANGE k 3 ab
> GET k -> "\x00\x00\x00ab"
> SET k 12345 -> OK
> SETRANGE k 1 9 -> 5
! setrange:k => SETRANGE k 1 9
> GET k -> "19345"
> SETRANGE k 2 "" -> 5
> SETRANGE k 100 "" -> 5
> SETRANGE k 4 67 -> 6
> GET k -> "193467"
> SET k hello PX 100 -> OK
> SETRANGE k 7 world -> 12
> GET k -> "hello\x00\x00world"
@advance 150
> SETRANGE k 1 x -> 2
! expired:k => DEL k
! setrange:k => SETRANGE k 1 x
> GET k -> "\x00x"
"#,
    );
}

#[test]
fn strings_grow_beyond_the_size_of_an_entry() {
    check(
        r#"
> SET k 7 -> OK
> SETRANGE k 16383 x -> 16384
> APPEND k yz -> 16386
> GETRANGE k 16381 -1 -> "\x00\x00xyz"
> GETRANGE k 0 2 -> "7\x00\x00"
> SETRANGE k 16384 abc -> 16387
> GETRANGE k -5 -1 -> "\x00xabc"
> STRLEN k -> 16387
> SETRANGE new 20000 a -> 20001
! setrange:new => SETRANGE new 20000 a
> GETRANGE new 19998 30000 -> "\x00\x00a"
> SET new b -> OK
> APPEND new c -> 2
> GET new -> "bc"
"#,
    );
}

#[test]
fn setrange_errors() {
    check(
        r#"
> SET k 12345 -> OK
> SETRANGE k -1 x -> -ERR offset is out of range
> SETRANGE k -1 "" -> -ERR offset is out of range
> SETRANGE nokey -1 "" -> -ERR offset is out of range
> SETRANGE k abc x -> -ERR value is not an integer or out of range
> SETRANGE k 9223372036854775808 x -> -ERR value is not an integer or out of range
> SETRANGE k 9223372036854775807 x -> -ERR string exceeds maximum allowed size (proto-max-bulk-len)
> SETRANGE k 9223372036854775807 "" -> 5
> SETRANGE nokey 9223372036854775807 "" -> 0
> SETRANGE k 536870912 x -> -ERR string exceeds maximum allowed size (proto-max-bulk-len)
> SETRANGE nokey 536870911 xy -> -ERR string exceeds maximum allowed size (proto-max-bulk-len)
> MGET k nokey -> ["12345", nil]
> SETRANGE k 1 -> -ERR wrong number of arguments for 'setrange' command
"#,
    );
}

#[test]
fn getrange() {
    check(
        r#"
> SET k "This is a string" -> OK
> GETRANGE k 0 3 -> "This"
> GETRANGE k -3 -1 -> "ing"
> GETRANGE k 0 -1 -> "This is a string"
> GETRANGE k 10 100 -> "string"
> GETRANGE k 5 3 -> ""
> GETRANGE k 0 0 -> "T"
> GETRANGE k 15 20 -> "g"
> GETRANGE k 16 20 -> ""
> GETRANGE k -100 100 -> "This is a string"
> GETRANGE k -1 -5 -> ""
> GETRANGE k -50 -100 -> ""
"#,
    );
}

#[test]
fn getrange_at_the_edges() {
    check(
        r#"
> SET k "This is a string" -> OK
# An end before the first byte counts as the first byte.
> GETRANGE k -100 -50 -> "T"
> GETRANGE k -100 -16 -> "T"
> GETRANGE k -100 -17 -> "T"
> GETRANGE k 0 -17 -> "T"
> GETRANGE k 0 -100 -> "T"
> GETRANGE k 9223372036854775807 9223372036854775807 -> ""
> GETRANGE k -9223372036854775808 9223372036854775807 -> "This is a string"
> GETRANGE k -9223372036854775808 -9223372036854775808 -> "T"
> GETRANGE k a 1 -> -ERR value is not an integer or out of range
> GETRANGE k 1 9223372036854775808 -> -ERR value is not an integer or out of range
> GETRANGE nokey a 1 -> -ERR value is not an integer or out of range
> GETRANGE nokey 0 -1 -> ""
> SET empty "" -> OK
> GETRANGE empty 0 -1 -> ""
> GETRANGE empty -5 -1 -> ""
> SET i -12345 -> OK
> GETRANGE i 0 2 -> "-12"
> GETRANGE k 0 -> -ERR wrong number of arguments for 'getrange' command
"#,
    );
}

#[test]
fn substr() {
    check(
        r#"
> SET k "This is a string" -> OK
> SUBSTR k 0 3 -> "This"
> SUBSTR k -100 -50 -> "T"
> SUBSTR nokey 0 3 -> ""
> SUBSTR k x 3 -> -ERR value is not an integer or out of range
> SUBSTR k -> -ERR wrong number of arguments for 'substr' command
"#,
    );
}

#[test]
fn strlen() {
    check(
        r#"
> STRLEN nokey -> 0
> MSET a abc i -123 e "" -> OK
> STRLEN a -> 3
> STRLEN i -> 4
> STRLEN e -> 0
> STRLEN -> -ERR wrong number of arguments for 'strlen' command
"#,
    );
}

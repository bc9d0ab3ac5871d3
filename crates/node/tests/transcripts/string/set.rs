//! SET and its relatives, MSET, MSETNX.

use crate::check::check;

#[test]
fn set_plain() {
    check(
        r#"
> SET k v -> OK
! set:k => SET k v
> GET k -> "v"
> set k "two words" -> OK
! set:k => set k two words
> GET k -> "two words"
> SET k "" -> OK
> GET k -> ""
> SET k -0 -> OK
> GET k -> "-0"
> SET k 9223372036854775807 -> OK
> GET k -> "9223372036854775807"
> SET k -> -ERR wrong number of arguments for 'set' command
> GET -> -ERR wrong number of arguments for 'get' command
> GET a b -> -ERR wrong number of arguments for 'get' command
"#,
    );
}

#[test]
fn set_conditions() {
    check(
        r#"
> SET k a XX -> nil
> SET k a NX -> OK
! set:k => SET k a NX
> SET k b NX -> nil
> SET k c xx -> OK
! set:k => SET k c xx
> SET k d NX NX -> nil
> SET k d XX XX -> OK
> SET k e NX XX -> -ERR syntax error
> SET k e XX NX -> -ERR syntax error
> SET k e NX FOO -> -ERR syntax error
> SET k e FOO -> -ERR syntax error
> SET k e PERSIST -> -ERR syntax error
> SET k e "" -> -ERR syntax error
> GET k -> "d"
"#,
    );
}

#[test]
fn set_get() {
    check(
        r#"
> SET k a GET -> nil
! set:k => SET k a
> SET k b GET -> "a"
! set:k => SET k b
> SET k 12 get GET -> "b"
! set:k => SET k 12
> SET k c NX GET -> "12"
> GET k -> "12"
> SET k c XX GET -> "12"
! set:k => SET k c XX
> SET k d GET KEEPTTL -> "c"
! set:k => SET k d KEEPTTL
> SET m x XX GET -> nil
> GET m -> nil
> SET m x GET NX -> nil
! set:m => SET m x NX
> SET m GET GET -> "x"
! set:m => SET m GET
> SET GET GET GET -> nil
! set:GET => SET GET GET
> SET k e GET EX 10 -> "d"
! set:k expire:k => SET k e PXAT 1700000010000
> SET k f EX 10 GET -> "e"
! set:k expire:k => SET k f PXAT 1700000010000
> SET q v nx ex 100 get -> nil
! set:q expire:q => SET q v PXAT 1700000100000
> SET q w NX GET EX 10 -> "v"
"#,
    );
}

#[test]
fn set_with_expiry() {
    check(
        r#"
> SET k v EX 10 -> OK
! set:k expire:k => SET k v PXAT 1700000010000
> SET k v px 1500 -> OK
! set:k expire:k => SET k v PXAT 1700000001500
> SET k v EXAT 1700001000 -> OK
! set:k expire:k => SET k v PXAT 1700001000000
> SET k v PXAT 1700001000123 -> OK
! set:k expire:k => SET k v PXAT 1700001000123
> SET k v EX 10 EX 20 -> OK
! set:k expire:k => SET k v PXAT 1700000020000
> SET k v PXAT 9223372036854775807 -> OK
! set:k expire:k => SET k v PXAT 9223372036854775807
> SET k v XX PX 1000 -> OK
! set:k expire:k => SET k v PXAT 1700000001000
@advance 900
> GET k -> "v"
> SET k w KEEPTTL -> OK
! set:k => SET k w KEEPTTL
> GET k -> "w"
@advance 150
> GET k -> nil
! expired:k => DEL k
> SET k v PX 100 -> OK
@advance 150
> SET k w NX -> OK
! expired:k => DEL k
! set:k => SET k w NX
> SET k v PX 100 -> OK
> SET k w -> OK
@advance 150
> GET k -> "w"
> SET k w KEEPTTL KEEPTTL -> OK
> SET k v PX 100 -> OK
@advance 150
> SET k w GET -> nil
! expired:k => DEL k
! set:k => SET k w
"#,
    );
}

#[test]
fn an_expiry_in_the_past_is_stored_and_the_key_then_expires() {
    check(
        r#"
> SET k v EXAT 5 -> OK
! set:k expire:k => SET k v PXAT 5000
> GET k -> nil
! expired:k => DEL k
> SET k v -> OK
> SET k v PXAT 5000 -> OK
! set:k expire:k => SET k v PXAT 5000
> GET k -> nil
! expired:k => DEL k
"#,
    );
}

#[test]
fn set_expiry_errors() {
    check(
        r#"
> SET k old -> OK
> SET k v EX 10 KEEPTTL -> -ERR syntax error
> SET k v KEEPTTL EX 10 -> -ERR syntax error
> SET k v EX 10 PX 20 -> -ERR syntax error
> SET k v EXAT 10 PXAT 20 -> -ERR syntax error
> SET k v EX -> -ERR syntax error
> SET k v NX PXAT -> -ERR syntax error
> SET k v EX abc FOO -> -ERR syntax error
> SET k v EX abc -> -ERR value is not an integer or out of range
> SET k v EX 1.5 -> -ERR value is not an integer or out of range
> SET k v EX 010 -> -ERR value is not an integer or out of range
> SET k v EX +10 -> -ERR value is not an integer or out of range
> SET k v EX 9223372036854775808 -> -ERR value is not an integer or out of range
> SET k v EX 0 -> -ERR invalid expire time in 'set' command
> SET k v EX -1 -> -ERR invalid expire time in 'set' command
> SET k v EX 9223372036854775807 -> -ERR invalid expire time in 'set' command
> SET k v EX 9223372036854775 -> -ERR invalid expire time in 'set' command
> SET k v PX 9223372036854775807 -> -ERR invalid expire time in 'set' command
> SET k v EXAT 0 -> -ERR invalid expire time in 'set' command
> SET k v EXAT -1 -> -ERR invalid expire time in 'set' command
> SET k v EXAT 9223372036854776 -> -ERR invalid expire time in 'set' command
> SET k v PXAT 0 -> -ERR invalid expire time in 'set' command
> SET k v NX GET EX 0 -> -ERR invalid expire time in 'set' command
> GET k -> "old"
"#,
    );
}

#[test]
fn setnx_setex_psetex_getset() {
    check(
        r#"
> SETNX k 1 -> 1
! set:k => SETNX k 1
> SETNX k 2 -> 0
> GET k -> "1"
> SETNX k -> -ERR wrong number of arguments for 'setnx' command
> SETEX k 10 v -> OK
! set:k expire:k => SET k v PXAT 1700000010000
> PSETEX k 1000 w -> OK
! set:k expire:k => SET k w PXAT 1700000001000
> GET k -> "w"
> SETEX k 0 v -> -ERR invalid expire time in 'setex' command
> SETEX k -1 v -> -ERR invalid expire time in 'setex' command
> SETEX k abc v -> -ERR value is not an integer or out of range
> SETEX k 9223372036854775807 v -> -ERR invalid expire time in 'setex' command
> PSETEX k 0 v -> -ERR invalid expire time in 'psetex' command
> PSETEX k 9223372036854775807 v -> -ERR invalid expire time in 'psetex' command
> PSETEX k x v -> -ERR value is not an integer or out of range
> SETEX k 10 -> -ERR wrong number of arguments for 'setex' command
> PSETEX k 10 -> -ERR wrong number of arguments for 'psetex' command
> GETSET k x -> "w"
! set:k => SET k x
@advance 1100
> GETSET k 12 -> "x"
! set:k => SET k 12
> GETSET k y -> "12"
> GETSET m x -> nil
! set:m => SET m x
> GETSET m -> -ERR wrong number of arguments for 'getset' command
> PSETEX k 100 v -> OK
@advance 150
> SETNX k w -> 1
! expired:k => DEL k
! set:k => SETNX k w
"#,
    );
}

#[test]
fn mset() {
    check(
        r#"
> MSET a 1 -> OK
! set:a => MSET a 1
> MSET a 2 b abc a 3 -> OK
! set:a set:b set:a => MSET a 2 b abc a 3
> MGET a b nokey a -> ["3", "abc", nil, "3"]
> MSET a -> -ERR wrong number of arguments for 'mset' command
> MSET a 1 b -> -ERR wrong number of arguments for 'mset' command
> MSET a 1 b 2 c -> -ERR wrong number of arguments for 'mset' command
> MGET -> -ERR wrong number of arguments for 'mget' command
> MGET a b -> ["3", "abc"]
> PSETEX a 100 v -> OK
> MSET a w -> OK
@advance 150
> MGET a -> ["w"]
"#,
    );
}

#[test]
fn msetnx() {
    check(
        r#"
> MSETNX a 1 b 2 a 3 -> 1
! set:a set:b set:a => MSETNX a 1 b 2 a 3
> MGET a b -> ["3", "2"]
> MSETNX c 1 b 5 -> 0
> MGET b c -> ["2", nil]
> MSETNX a -> -ERR wrong number of arguments for 'msetnx' command
> MSETNX c 1 d -> -ERR wrong number of arguments for 'msetnx' command
> PSETEX a 100 v -> OK
@advance 150
> MSETNX a 1 -> 1
! expired:a => DEL a
! set:a => MSETNX a 1
"#,
    );
}

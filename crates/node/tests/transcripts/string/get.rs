//! GET, MGET (also under MSET), GETDEL and GETEX.

use crate::check::check;

#[test]
fn getdel() {
    check(
        r#"
> GETDEL k -> nil
> SET k v EX 10 -> OK
> GETDEL k -> "v"
! del:k => DEL k
> GETDEL k -> nil
> SET k 12 -> OK
> getdel k -> "12"
! del:k => DEL k
> GETDEL -> -ERR wrong number of arguments for 'getdel' command
> PSETEX k 100 v -> OK
@advance 150
> GETDEL k -> nil
! expired:k => DEL k
"#,
    );
}

#[test]
fn getex() {
    check(
        r#"
> SET k 1 EX 100 -> OK
> GETEX k -> "1"
> GETEX k PERSIST -> "1"
! persist:k => PERSIST k
> GETEX k PERSIST -> "1"
> GETEX k EX 10 -> "1"
! expire:k => PEXPIREAT k 1700000010000
> GETEX k px 1500 -> "1"
! expire:k => PEXPIREAT k 1700000001500
> GETEX k EXAT 1700001000 -> "1"
! expire:k => PEXPIREAT k 1700001000000
> GETEX k PXAT 1700001000123 -> "1"
! expire:k => PEXPIREAT k 1700001000123
> GETEX k PXAT 9223372036854775807 -> "1"
! expire:k => PEXPIREAT k 9223372036854775807
> GETEX k EX 10 ex 20 -> "1"
! expire:k => PEXPIREAT k 1700000020000
> GETEX k persist PERSIST -> "1"
! persist:k => PERSIST k
> GETEX k PX 100 -> "1"
@advance 150
> GETEX k PERSIST -> nil
! expired:k => DEL k
> SET k v -> OK
> GETEX k EXAT 5 -> "v"
! del:k => DEL k
> GET k -> nil
> SET k v -> OK
> GETEX k PXAT 5000 -> "v"
! del:k => DEL k
# An expiry of exactly now removes the key, although an existing key would stay for this ms.
> SET k v -> OK
> GETEX k PXAT 1700000000150 -> "v"
! del:k => DEL k
> SET k v PXAT 1700000000150 -> OK
> GETEX k -> "v"
"#,
    );
}

#[test]
fn getex_errors() {
    check(
        r#"
> SET k v -> OK
> GETEX k EX 0 -> -ERR invalid expire time in 'getex' command
> GETEX k EX -5 -> -ERR invalid expire time in 'getex' command
> GETEX k PXAT 0 -> -ERR invalid expire time in 'getex' command
> GETEX k EX abc -> -ERR value is not an integer or out of range
> GETEX k PX 9223372036854775807 -> -ERR invalid expire time in 'getex' command
> GETEX k EX 9223372036854775807 -> -ERR invalid expire time in 'getex' command
> GETEX k EX -> -ERR syntax error
> GETEX k EX 10 PX 10 -> -ERR syntax error
> GETEX k EX 10 PERSIST -> -ERR syntax error
> GETEX k PERSIST EX 10 -> -ERR syntax error
> GETEX k NX -> -ERR syntax error
> GETEX k KEEPTTL -> -ERR syntax error
> GETEX k GET -> -ERR syntax error
> GETEX -> -ERR wrong number of arguments for 'getex' command
# The amount is checked only if the key exists; the words are always checked.
> GETEX nokey -> nil
> GETEX nokey EX 10 -> nil
> GETEX nokey EX 0 -> nil
> GETEX nokey EX abc -> nil
> GETEX nokey BAD -> -ERR syntax error
"#,
    );
}

//! SET IFEQ and its variants, DELEX, DELIFEQ, DIGEST, MSETEX.

use crate::check::check;

#[test]
fn set_if() {
    check(
        r#"
> SET k a -> OK
> SET k b IFEQ a -> OK
! set:k => SET k b
> SET k c IFEQ a -> nil
> SET k c ifeq b GET -> "b"
! set:k => SET k c
> SET k d IFEQ x GET -> "c"
> SET k d EX 100 IFEQ c -> OK
! set:k expire:k => SET k d PXAT 1700000100000
> SET k e IFEQ d KEEPTTL -> OK
! set:k => SET k e KEEPTTL
> TTL k -> 100
> SET k f IFNE e -> nil
> SET k f IFNE x -> OK
! set:k => SET k f
> TTL k -> -1
> SET nokey x IFEQ a -> nil
> SET nokey x IFEQ a GET -> nil
> EXISTS nokey -> 0
> SET new x IFNE a GET -> nil
! set:new => SET new x
> SET i 10 -> OK
> SET i 11 IFEQ 010 -> nil
> SET i 11 IFEQ 10 -> OK
"#,
    );
}

#[test]
fn set_if_digest() {
    check(
        r#"
> SET k "" -> OK
> SET k a IFDEQ 2d06800538d394c3 -> nil
> SET k a IFDEQ 2D06800538D394C2 -> OK
! set:k => SET k a
> DIGEST k -> "e6c632b61e964e1f"
> SET k b IFDNE e6c632b61e964e1f -> nil
> SET k b IFDNE 2d06800538d394c2 -> OK
> GET k -> "b"
> SET nokey b IFDEQ 2d06800538d394c2 -> nil
> SET new b IFDNE 2d06800538d394c2 -> OK
> SET k b IFDNE 2d06800538d394c -> -ERR must be exactly 16 hexadecimal characters
> SET k b IFDEQ 2d06800538d394cx -> -ERR must be exactly 16 hexadecimal characters
"#,
    );
}

#[test]
fn set_if_errors() {
    check(
        r#"
> SET k a -> OK
> SET k b IFEQ -> -ERR syntax error
> SET k b IFEQ a NX -> -ERR syntax error
> SET k b NX IFEQ a -> -ERR syntax error
> SET k b XX IFNE a -> -ERR syntax error
> SET k b IFEQ a IFEQ c -> -ERR syntax error
> SET k b IFEQ a IFDNE 2d06800538d394c2 -> -ERR syntax error
> SADD s a -> 1
> SET s x IFEQ a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SET s x IFNE a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SET s x IFEQ a GET -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GETEX k IFEQ a -> -ERR syntax error
> GET k -> "a"
"#,
    );
}

#[test]
fn delex() {
    check(
        r#"
> MSET a 1 b x c y -> OK
> DELEX a -> 1
! del:a => DEL a
> DELEX a -> 0
> DELEX b IFEQ y -> 0
> DELEX b IFNE x -> 0
> DELEX b IFEQ x -> 1
! del:b => DEL b
> DELEX c ifne x -> 1
! del:c => DEL c
> DELEX c IFNE x -> 0
> SET e "" -> OK
> DELEX e IFDNE 2d06800538d394c2 -> 0
> DELEX e IFDEQ 2d06800538d394c2 -> 1
! del:e => DEL e
> SADD s m -> 1
> DELEX s IFEQ m -> -WRONGTYPE Operation against a key holding the wrong kind of value
> DELEX s -> 1
! del:s => DEL s
> DELEX a IFEQ -> -ERR wrong number of arguments for 'delex' command
> DELEX a IFEQ a b -> -ERR wrong number of arguments for 'delex' command
> DELEX a NX b -> -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
> DELEX a IFDEQ x -> -ERR must be exactly 16 hexadecimal characters
> DELEX -> -ERR wrong number of arguments for 'delex' command
"#,
    );
}

#[test]
fn delifeq() {
    check(
        r#"
> MSET k a i 11 -> OK
> DELIFEQ k b -> 0
> DELIFEQ k a -> 1
! del:k => DEL k
> DELIFEQ k a -> 0
> DELIFEQ i 11 -> 1
> SADD s m -> 1
> DELIFEQ s m -> -WRONGTYPE Operation against a key holding the wrong kind of value
> DELIFEQ k -> -ERR wrong number of arguments for 'delifeq' command
"#,
    );
}

#[test]
fn digest() {
    check(
        r#"
> DIGEST nokey -> nil
> SET k "" -> OK
> DIGEST k -> "2d06800538d394c2"
> SADD s m -> 1
> DIGEST s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> DIGEST -> -ERR wrong number of arguments for 'digest' command
"#,
    );
}

#[test]
fn msetex() {
    check(
        r#"
> MSETEX 2 a 1 b x -> 1
! set:a set:b => SET a 1 | SET b x
> MGET a b -> ["1", "x"]
> MSETEX 2 a 2 c y NX -> 0
> MSETEX 2 c y d z nx -> 1
! set:c set:d => SET c y | SET d z
> MSETEX 2 a 2 e y XX -> 0
> MSETEX 2 a 2 b y XX EX 100 -> 1
! set:a expire:a set:b expire:b => SET a 2 PXAT 1700000100000 | SET b y PXAT 1700000100000
> TTL b -> 100
> MSETEX 1 b z KEEPTTL -> 1
! set:b => SET b z KEEPTTL
> TTL b -> 100
> MSETEX 1 b z -> 1
> TTL b -> -1
> MSETEX 2 s 1 s 2 PX 1500 -> 1
! set:s expire:s set:s expire:s => SET s 1 PXAT 1700000001500 | SET s 2 PXAT 1700000001500
> GET s -> "2"
> SADD set m -> 1
> MSETEX 1 set x -> 1
> TYPE set -> string
> MSETEX 1 set x EXAT 1 -> 1
> EXISTS set -> 0
"#,
    );
}

#[test]
fn msetex_errors() {
    check(
        r#"
> MSETEX 0 a b -> -ERR invalid numkeys value
> MSETEX -1 a b -> -ERR invalid numkeys value
> MSETEX x a b -> -ERR invalid numkeys value
> MSETEX 2147483648 a b -> -ERR invalid numkeys value
> MSETEX 9223372036854775807 a b -> -ERR invalid numkeys value
> MSETEX 2 a b c -> -ERR wrong number of key-value pairs
> MSETEX 2147483647 a b -> -ERR wrong number of key-value pairs
> MSETEX 1 a b c -> -ERR syntax error
> MSETEX 1 a b GET -> -ERR syntax error
> MSETEX 1 a b IFEQ c -> -ERR syntax error
> MSETEX 1 a b NX XX -> -ERR syntax error
> MSETEX 1 a b EX 1 PX 1 -> -ERR syntax error
> MSETEX 1 a b EX -> -ERR syntax error
> MSETEX 1 a b EX 0 -> -ERR invalid expire time in 'msetex' command
> MSETEX 1 a b EX x -> -ERR value is not an integer or out of range
> MSETEX 1 a -> -ERR wrong number of arguments for 'msetex' command
> EXISTS a -> 0
"#,
    );
}

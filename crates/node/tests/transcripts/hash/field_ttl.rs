//! Fields with their expiry: HGETDEL, HGETEX, HSETEX.

use crate::check::check;

#[test]
fn hgetdel() {
    check(
        r#"
> HSET h a 1 b 2 c 3 -> 3
> HGETDEL h FIELDS 2 a nofield -> ["1", nil]
! hdel:h => HDEL h a nofield
> HGETDEL h FIELDS 1 nofield -> [nil]
> HGETDEL nokey FIELDS 2 b c -> [nil, nil]
> HGETDEL h FIELDS 3 b b c -> ["2", nil, "3"]
! hdel:h del:h => HDEL h b b c
> EXISTS h -> 0
> HGETDEL h FIELDS 1 -> -ERR wrong number of arguments for 'hgetdel' command
> HGETDEL h FIELDS 0 a -> -ERR Number of fields must be a positive integer
> HGETDEL h FIELDS x a -> -ERR Number of fields must be a positive integer
> HGETDEL h FIELDS 2 b -> -ERR The `numfields` parameter must match the number of arguments
> HGETDEL h FOO 1 b -> -ERR Mandatory argument FIELDS is missing or not at the right position
> HSET h a 1 -> 1
> HELLO 3 -> ~~ *
> HGETDEL h FIELDS 2 nofield a -> [nil, "1"]
> SET s x -> OK
> HGETDEL s FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HGETDEL s FOO 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn hgetex() {
    check(
        r#"
> HSET h a 1 b 2 c 3 -> 3
> HGETEX h FIELDS 2 a nofield -> ["1", nil]
> HGETEX h PERSIST FIELDS 1 a -> ["1"]
> HGETEX h EX 10 FIELDS 2 a nofield -> ["1", nil]
! hexpire:h => HPEXPIREAT h 1700000010000 FIELDS 2 a nofield
> HTTL h FIELDS 1 a -> [10]
> HGETEX h px 10500 FIELDS 1 a -> ["1"]
! hexpire:h => HPEXPIREAT h 1700000010500 FIELDS 1 a
> HGETEX h EXAT 1900000001 FIELDS 1 a -> ["1"]
! hexpire:h => HPEXPIREAT h 1900000001000 FIELDS 1 a
> HGETEX h PXAT 1900000001123 FIELDS 1 a -> ["1"]
! hexpire:h => HPEXPIREAT h 1900000001123 FIELDS 1 a
> HPEXPIRETIME h FIELDS 1 a -> [1900000001123]
> HGETEX h PERSIST FIELDS 2 a b -> ["1", "2"]
! hpersist:h => HPERSIST h FIELDS 2 a b
> HPEXPIRETIME h FIELDS 2 a b -> [-1, -1]
> HGETEX nokey EX 10 FIELDS 2 a b -> [nil, nil]
> HGETEX h PXAT 0 FIELDS 2 a a -> ["1", nil]
! hdel:h => HDEL h a a
> HGETEX h EX 0 FIELDS 1 b -> ["2"]
> HGETEX h PX 0 FIELDS 2 c d -> ["3", nil]
! hdel:h del:h => HDEL h c d
> EXISTS h -> 0
> HSET h a 1 -> 1
> HGETEX h EX 10 FIELDS 1 nofield -> [nil]
> OBJECT ENCODING h -> "listpackex"
> HELLO 3 -> ~~ *
> HGETEX h FIELDS 2 a nofield -> ["1", nil]
"#,
    );
}

#[test]
fn hgetex_errors() {
    check(
        r#"
> HGETEX h EX 10 FIELDS -> -ERR wrong number of arguments for 'hgetex' command
> HGETEX h PERSIST FIELDS -> -ERR wrong number of arguments for 'hgetex' command
> HGETEX h EX x FIELDS 1 a -> -ERR value is not an integer or out of range
> HGETEX h EX -1 FIELDS 1 a -> -ERR invalid expire time, must be >= 0
> HGETEX h EX 70368744177664 FIELDS 1 a -> -ERR invalid expire time in 'hgetex' command
> HGETEX h EX 10 FIELDS 2 a -> -ERR The `numfields` parameter must match the number of arguments
> HGETEX h EX 10 FIELDS 0 a -> -ERR Number of fields must be a positive integer
> HGETEX h EX 10 FIELDS x a -> -ERR Number of fields must be a positive integer
> HGETEX h EX 10 FOO 1 a -> -ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h FOO 10 FIELDS 1 a
-ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h EX 10 PX 10 FIELDS 1 a
-ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h KEEPTTL FIELDS 1 a
-ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h EX 10 FIELDS 1 -> -ERR The `numfields` parameter must match the number of arguments
> SET s x -> OK
> HGETEX s FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HGETEX s EX x FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn hsetex() {
    check(
        r#"
> HSETEX h FIELDS 2 a 1 b 2 -> 1
! hset:h => HSET h a 1 b 2
> HSETEX h EX 10 FIELDS 1 a 3 -> 1
! hset:h hexpire:h => HSET h a 3 | HPEXPIREAT h 1700000010000 FIELDS 1 a
> HTTL h FIELDS 2 a b -> [10, -1]
> HSETEX h KEEPTTL FIELDS 2 a 4 b 5 -> 1
! hset:h => HSET h a 4 b 5 | HPEXPIREAT h 1700000010000 FIELDS 1 a
> HTTL h FIELDS 2 a b -> [10, -1]
> HSETEX h FIELDS 1 a 6 -> 1
> HTTL h FIELDS 1 a -> [-1]
> HSETEX h px 10500 FIELDS 1 a 7 -> 1
! hset:h hexpire:h => HSET h a 7 | HPEXPIREAT h 1700000010500 FIELDS 1 a
> HSETEX h EXAT 1900000001 FIELDS 1 a 8 -> 1
! hset:h hexpire:h => HSET h a 8 | HPEXPIREAT h 1900000001000 FIELDS 1 a
> HSETEX h PXAT 1900000001123 FIELDS 1 a 9 -> 1
! hset:h hexpire:h => HSET h a 9 | HPEXPIREAT h 1900000001123 FIELDS 1 a
> HPEXPIRETIME h FIELDS 1 a -> [1900000001123]
> HGETALL h -> ["a", "9", "b", "5"]
> HSETEX h PXAT 1 FIELDS 2 a 1 c 2 -> 1
! hset:h hdel:h => HDEL h a c
> HSETEX h EX 0 FIELDS 1 b 1 -> 1
! hset:h hdel:h del:h => HDEL h b
> EXISTS h -> 0
> HSETEX new PX 0 FIELDS 1 a 1 -> 1
! hset:new hdel:new del:new => HDEL new a
> EXISTS new -> 0
"#,
    );
}

#[test]
fn hsetex_conditions() {
    check(
        r#"
> HSETEX nokey FXX FIELDS 1 a 1 -> 0
> EXISTS nokey -> 0
> HSETEX h FNX PX 100000 FIELDS 2 a 1 b 2 -> 1
! hset:h hexpire:h => HSET h a 1 b 2 | HPEXPIREAT h 1700000100000 FIELDS 2 a b
> HSETEX h FNX FIELDS 2 a 4 z 5 -> 0
> HSETEX h FXX FIELDS 2 a 4 z 5 -> 0
> HSETEX h FNX FIELDS 2 y 4 z 5 -> 1
! hset:h => HSET h y 4 z 5
> HSETEX h fxx FIELDS 2 y 6 z 7 -> 1
> HGETALL h -> ["b", "2", "a", "1", "y", "6", "z", "7"]
# Conditions on the key, which came with Valkey 9.1.
> HSETEX h NX FIELDS 1 a 9 -> 0
> HSETEX h XX FIELDS 1 a 9 -> 1
> HSETEX new XX FIELDS 1 a 9 -> 0
> EXISTS new -> 0
> HSETEX new NX FNX EX 10 FIELDS 1 a 9 -> 1
> HSETEX new NX XX FIELDS 1 a 9 -> -ERR syntax error
> HSETEX h XX FNX FIELDS 1 a 9 -> 0
"#,
    );
}

#[test]
fn an_expired_field_does_not_exist() {
    check(
        r#"
> HSETEX e PX 10 FIELDS 2 a 1 b 2 -> 1
@advance 11
> HSETEX e FXX FIELDS 1 a 3 -> 0
! hexpired:e => HDEL e a
> HSETEX e FNX FIELDS 1 b 3 -> 1
! hexpired:e del:e => HDEL e b
! hset:e => HSET e b 3
> HSETEX e PX 10 FIELDS 1 b 1 -> 1
@advance 11
# The field keeps its expiry, which has passed.
> HSETEX e KEEPTTL FIELDS 1 b 3 -> 1
! hset:e => HSET e b 3 | HPEXPIREAT e 1700000000021 FIELDS 1 b
> HLEN e -> 1
> HGETDEL e FIELDS 1 b -> [nil]
! hexpired:e del:e => HDEL e b
> HSETEX e PX 10 FIELDS 1 b 1 -> 1
@advance 11
> HGETEX e PERSIST FIELDS 1 b -> [nil]
! hexpired:e del:e => HDEL e b
> EXISTS e -> 0
"#,
    );
}

#[test]
fn hsetex_checks_fields_up_to_the_first_failure() {
    check(
        r#"
> HSETEX h PX 10 FIELDS 3 a 1 b 2 c 3 -> 1
> HSET h live 1 -> 1
@advance 11
> HSETEX h FXX FIELDS 4 live 2 a 2 b 2 c 2 -> 0
! hexpired:h => HDEL h a
> HLEN h -> 3
> HSETEX h FNX FIELDS 3 b 2 live 2 c 2 -> 0
! hexpired:h => HDEL h b
> HSETEX h FNX FIELDS 2 live 2 c 2 -> 0
> HSETEX h FXX FIELDS 2 nofield 2 c 2 -> 0
> HSETEX h FXX KEEPTTL FIELDS 1 c 2 -> 0
! hexpired:h => HDEL h c
> HGETALL h -> ["live", "1"]
"#,
    );
}

#[test]
fn hsetex_errors() {
    check(
        r#"
> HSETEX h PX 1 FIELDS 0 a b -> -ERR invalid number of fields
> HSETEX h FIELDS x a b -> -ERR invalid number of fields
> HSETEX h FIELDS 2147483648 a b -> -ERR invalid number of fields
> HSETEX h FIELDS 2 a b c -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 2 a b -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 1 a b c -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 1 a b c d -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 1 a -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h EX 10 PX 10 FIELDS 1 a b
-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h EX 10 KEEPTTL FIELDS 1 a b
-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h KEEPTTL KEEPTTL FIELDS 1 a b
-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h FNX FXX FIELDS 1 a b -> -ERR Only one of FXX or FNX arguments can be specified
> HSETEX h FNX FNX FIELDS 1 a b -> -ERR Only one of FXX or FNX arguments can be specified
> HSETEX h PERSIST FIELDS 1 a b -> -ERR unknown argument: PERSIST
> HSETEX h EX -1 FIELDS 1 a b -> -ERR invalid expire time, must be >= 0
> HSETEX h EX x FIELDS 1 a b -> -ERR value is not an integer or out of range
> HSETEX h EX 70368744177664 FIELDS 1 a b -> -ERR invalid expire time in 'hsetex' command
> HSETEX h FNX PX 100 PX
-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h FNX PX 100 FIELDS -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h FNX KEEPTTL a EX -> -ERR unknown argument: a
> HSETEX h NX FNX PX 100 -> -ERR wrong number of arguments for 'hsetex' command
> HSETEX h NX FNX KEEPTTL PX
-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h NX XX FNX PX -> -ERR syntax error
> HSETEX h XX FNX XX PX -> -ERR missing expire time
"#,
    );
}

#[test]
fn hsetex_of_other_types_and_tables() {
    check(
        r#"
> SET s x -> OK
> HSETEX s FIELDS 1 a b -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HSETEX s FIELDS x a b -> -ERR invalid number of fields
> CONFIG SET hash-max-listpack-entries 1 -> OK
> HSETEX t EX 10 FIELDS 2 a 1 b 2 -> 1
> OBJECT ENCODING t -> "hashtable"
> HTTL t FIELDS 2 a b -> [10, 10]
> HSETEX t KEEPTTL FIELDS 1 a 3 -> 1
> HTTL t FIELDS 2 a b -> [10, 10]
> HSETEX t FIELDS 1 a 3 -> 1
> HTTL t FIELDS 2 a b -> [-1, 10]
"#,
    );
}

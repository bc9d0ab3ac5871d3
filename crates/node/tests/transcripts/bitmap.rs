//! SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP, BITFIELD, BITFIELD_RO.

use crate::check::check;

#[test]
fn setbit_and_getbit() {
    check(
        r#"
> SETBIT k 7 1 -> 0
! setbit:k => SETBIT k 7 1
> GET k -> "\x01"
> SETBIT k 7 1 -> 1
> SETBIT k 7 0 -> 1
> SETBIT k 9 0 -> 0
! setbit:k => SETBIT k 9 0
> STRLEN k -> 2
> SETBIT k 10 0 -> 0
> OBJECT ENCODING k -> "raw"
> GETBIT k 7 -> 0
> GETBIT k 100 -> 0
> GETBIT nokey 0 -> 0
> SET i 123 -> OK
> GETBIT i 2 -> 1
> GETBIT i 24 -> 0
> SETBIT i 2 1 -> 1
> OBJECT ENCODING i -> "raw"
> SETBIT i 15 1 -> 0
> GET i -> "133"
> SET t 12 PX 1000 -> OK
> SETBIT t 0 1 -> 0
! setbit:t => SETBIT t 0 1
> GET t -> "\xb12"
"#,
    );
}

#[test]
fn bits_far_off_and_errors() {
    check(
        r#"
> SETBIT far 199999 1 -> 0
> STRLEN far -> 25000
> SETBIT far 0 1 -> 0
> BITCOUNT far -> 2
> GETBIT far 199999 -> 1
> GETBIT far 4294967295 -> 0
> GETBIT k 4294967296 -> -ERR bit offset is not an integer or out of range
> GETBIT k -1 -> -ERR bit offset is not an integer or out of range
> GETBIT k x -> -ERR bit offset is not an integer or out of range
> SETBIT k -1 1 -> -ERR bit offset is not an integer or out of range
> SETBIT k 4294967296 1 -> -ERR bit offset is not an integer or out of range
> SETBIT k 9223372036854775808 1 -> -ERR bit offset is not an integer or out of range
> SETBIT k x 1 -> -ERR bit offset is not an integer or out of range
> SETBIT k 0 2 -> -ERR bit is not an integer or out of range
> SETBIT k 0 -1 -> -ERR bit is not an integer or out of range
> SETBIT k 0 01 -> -ERR bit is not an integer or out of range
> SETBIT k 0 x -> -ERR bit is not an integer or out of range
> SETBIT k 0 -> -ERR wrong number of arguments for 'setbit' command
> GETBIT k -> -ERR wrong number of arguments for 'getbit' command
"#,
    );
}

#[test]
fn bitcount() {
    check(
        r#"
> SET k foobar -> OK
> BITCOUNT k -> 26
> BITCOUNT k 0 0 -> 4
> BITCOUNT k 1 1 -> 6
> BITCOUNT k 0 -5 -> 10
> BITCOUNT k 1 -2 -> 18
> BITCOUNT k -2 1 -> 0
> BITCOUNT k 5 30 -> 4
> BITCOUNT k 5 30 BIT -> 17
> BITCOUNT k 5 30 byte -> 4
> BITCOUNT k 0 -1 bit -> 26
> BITCOUNT k -7 -1 BIT -> 4
> BITCOUNT k -100 -50 -> 4
> BITCOUNT k -50 -100 -> 0
> BITCOUNT k -9223372036854775808 9223372036854775807 bit -> 26
> BITCOUNT k 9223372036854775807 -9223372036854775808 -> 0
> SET i 123 -> OK
> BITCOUNT i -> 10
> SET e "" -> OK
> BITCOUNT e -> 0
> BITCOUNT e 0 -1 -> 0
> BITCOUNT nokey -> 0
> BITCOUNT nokey 0 -1 -> 0
> BITCOUNT nokey x 1 -> -ERR value is not an integer or out of range
> BITCOUNT k 0 -> -ERR syntax error
> BITCOUNT k 0 x -> -ERR value is not an integer or out of range
> BITCOUNT k 0 x y -> -ERR value is not an integer or out of range
> BITCOUNT k 0 1 y -> -ERR syntax error
> BITCOUNT k 0 1 bit bit -> -ERR syntax error
> BITCOUNT -> -ERR wrong number of arguments for 'bitcount' command
"#,
    );
}

#[test]
fn bitpos() {
    check(
        r#"
> SET k "\xff\xf0\x00" -> OK
> SET one 1 -> OK
> BITPOS one 0 -10 -66 -> 0
> BITCOUNT one -10 -66 -> 0
> BITPOS k 0 -> 12
> BITPOS k 1 -> 0
> BITPOS k 1 2 -> -1
> BITPOS k 0 1 -> 12
> BITPOS k 0 0 0 -> -1
> BITPOS k 0 2 1 -> -1
> BITPOS k 1 -1 -> -1
> BITPOS k 1 -2 -> 8
> BITPOS k 0 0 -1 BIT -> 12
> BITPOS k 0 0 11 BIT -> -1
> BITPOS k 1 5 7 bit -> 5
> BITPOS k 1 12 -1 bit -> -1
> BITPOS k 0 13 14 bit -> 13
> BITPOS k 1 0 -1 byte -> 0
"#,
    );
}

#[test]
fn bitpos_without_an_end() {
    check(
        r#"
> SET f "\xff\xff\xff" -> OK
> BITPOS f 0 -> 24
> BITPOS f 0 0 -> 24
> BITPOS f 0 2 -> 24
> BITPOS f 0 3 -> -1
> BITPOS f 0 0 -1 -> -1
> BITPOS f 0 0 -1 bit -> -1
> SET z "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" -> OK
> BITPOS z 1 -> 143
> BITPOS z 1 0 16 -> -1
> BITPOS z 1 0 142 BIT -> -1
> BITPOS z 0 -> 0
> SET e "" -> OK
> BITPOS e 0 -> -1
> BITPOS e 1 -> -1
> BITPOS nokey 0 -> 0
> BITPOS nokey 1 -> -1
> BITPOS nokey 0 5 -1 -> 0
> BITPOS nokey 1 0 -1 bit -> -1
> SET i 10 -> OK
> BITPOS i 1 -> 2
"#,
    );
}

#[test]
fn bitpos_at_the_edges() {
    check(
        r#"
> SET k "\xff\xf0\x00" -> OK
> BITPOS k 1 -50 -100 -> 0
> BITPOS k 2 -> -ERR The bit argument must be 1 or 0.
> BITPOS k x -> -ERR value is not an integer or out of range
> BITPOS k 1 x -> -ERR value is not an integer or out of range
> BITPOS k 1 0 x -> -ERR value is not an integer or out of range
> BITPOS k 1 0 x bit -> -ERR value is not an integer or out of range
> BITPOS k 1 0 x y -> -ERR syntax error
> BITPOS k 1 x 0 y -> -ERR value is not an integer or out of range
> BITPOS k 1 0 -1 bit x -> -ERR syntax error
> BITPOS k -> -ERR wrong number of arguments for 'bitpos' command
"#,
    );
}

#[test]
fn bitop() {
    check(
        r#"
> SET a "\xf0\xff\x01" -> OK
> SET b "\x3c" -> OK
> SET n 12 -> OK
> BITOP AND d a b -> 3
! set:d => BITOP AND d a b
> GET d -> "0\x00\x00"
> BITOP or d a b nokey -> 3
> GET d -> "\xfc\xff\x01"
> BITOP XOR d a b n -> 3
> GET d -> "\xfd\xcd\x01"
> BITOP NOT d a -> 3
> GET d -> "\x0f\x00\xfe"
> OBJECT ENCODING d -> "raw"
> BITOP AND d a -> 3
> GET d -> "\xf0\xff\x01"
> BITOP OR n n -> 2
> OBJECT ENCODING n -> "raw"
> BITOP AND a a b -> 3
> GET a -> "0\x00\x00"
> SET t x PX 100000 -> OK
> BITOP OR t b -> 1
> PTTL t -> -1
> BITOP AND d nokey nokey2 -> 0
! del:d => BITOP AND d nokey nokey2
> EXISTS d -> 0
> BITOP AND d nokey -> 0
> SET e "" -> OK
> BITOP NOT d e -> 0
> EXISTS d -> 0
> BITOP NOT d a b -> -ERR BITOP NOT must be called with a single source key.
> BITOP NO d a -> -ERR syntax error
> BITOP AND d -> -ERR wrong number of arguments for 'bitop' command
"#,
    );
}

#[test]
fn bitfield() {
    check(
        r#"
> BITFIELD k SET u8 0 200 GET u8 0 GET i8 0 GET u4 4 -> [0, 200, -56, 8]
> BITFIELD k INCRBY u8 0 100 OVERFLOW SAT INCRBY u8 0 300 OVERFLOW FAIL INCRBY u8 0 1
[44, 255, nil]
> BITFIELD k OVERFLOW FAIL SET u8 0 256 -> [nil]
> BITFIELD k SET u8 #1 3 GET u8 8 -> [0, 3]
! setbit:k => BITFIELD k SET u8 #1 3 GET u8 8
> GET k -> "\xff\x03"
> BITFIELD k GET u8 0 GET u8 1000 -> [255, 0]
> BITFIELD k -> []
> BITFIELD nokey GET i64 0 -> [0]
> EXISTS nokey -> 0
> BITFIELD nokey -> []
> BITFIELD k OVERFLOW SAT -> []
> BITFIELD k SET u8 8 3 -> [3]
> BITFIELD k SET u8 8 4 -> [3]
> BITFIELD k SET i64 0 -9223372036854775808 INCRBY i64 0 -1
[-70931694131085312, 9223372036854775807]
> BITFIELD k OVERFLOW SAT INCRBY i64 0 1 OVERFLOW FAIL INCRBY i64 0 1 -> [9223372036854775807, nil]
> BITFIELD k SET u63 3 9223372036854775807 GET u63 3 INCRBY u63 3 1
[9223372036854775804, 9223372036854775807, 0]
> BITFIELD k OVERFLOW WRAP SET u8 0 -1 -> [96]
> BITFIELD k OVERFLOW SAT SET i8 0 -9223372036854775808 GET i8 0 -> [-1, 127]
> BITFIELD k OVERFLOW SAT SET i8 0 -129 GET i8 0 -> [127, -128]
> BITFIELD k OVERFLOW SAT INCRBY u63 0 -9223372036854775808 -> [0]
"#,
    );
}

#[test]
fn bitfield_of_an_integer_and_errors() {
    check(
        r#"
> SET n 12 -> OK
> BITFIELD n GET u8 0 -> [49]
> OBJECT ENCODING n -> "int"
> BITFIELD n SET u8 0 49 -> [49]
> OBJECT ENCODING n -> "raw"
> BITFIELD n SET i5 1 -3 INCRBY u2 #1 1 -> [12, 0]
> GET n -> "E2"
> BITFIELD k GET u64 0
-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET i65 0
-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET I8 0
-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET u8 -1 -> -ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 #-1 -> -ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 x -> -ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 4294967295 -> [0]
> BITFIELD k GET u8 4294967296 -> -ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 #536870911 -> [0]
> BITFIELD k GET u8 #536870912 -> -ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 #9223372036854775807 -> -ERR bit offset is not an integer or out of range
> BITFIELD k SET u8 0 1 SET u8 0 x -> -ERR value is not an integer or out of range
> BITFIELD k SET u8 0 -> -ERR syntax error
> BITFIELD k SET u8 0 300 NONSENSE -> -ERR syntax error
> BITFIELD k OVERFLOW no -> -ERR Invalid OVERFLOW type specified
> BITFIELD k OVERFLOW -> -ERR syntax error
> BITFIELD k GET u8 -> -ERR syntax error
> BITFIELD -> -ERR wrong number of arguments for 'bitfield' command
"#,
    );
}

#[test]
fn bitfield_ro() {
    check(
        r#"
> SET k "\x01\x02" -> OK
> BITFIELD_RO k GET u8 0 get u8 #1 -> [1, 2]
> BITFIELD_RO k -> []
> BITFIELD_RO nokey GET u8 0 -> [0]
> BITFIELD_RO k OVERFLOW SAT GET u8 0 -> [1]
> BITFIELD_RO k SET u8 0 1 -> -ERR BITFIELD_RO only supports the GET subcommand
> BITFIELD_RO k GET u8 0 INCRBY u8 0 1 -> -ERR BITFIELD_RO only supports the GET subcommand
> BITFIELD_RO k SET u8 0 x -> -ERR value is not an integer or out of range
> BITFIELD_RO k OVERFLOW no -> -ERR Invalid OVERFLOW type specified
> BITFIELD_RO k NO -> -ERR syntax error
> BITFIELD_RO -> -ERR wrong number of arguments for 'bitfield_ro' command
"#,
    );
}

#[test]
fn bitop_of_later_versions() {
    check(
        r#"
> SET a "\xf0\xff\x01" -> OK
> SET b "\x3c" -> OK
> SET c "\x81\x0f" -> OK
> BITOP DIFF d a b -> 3
! ~~ set:d => SET d *
> GET d -> "\xc0\xff\x01"
> BITOP diff d a b c -> 3
> GET d -> "@\xf0\x01"
> BITOP DIFF d b a -> 3
> GET d -> "\x0c\x00\x00"
> BITOP DIFF1 d a b c -> 3
> GET d -> "\r\x00\x00"
> BITOP DIFF1 d b a c -> 3
> GET d -> "\xc1\xff\x01"
> BITOP ANDOR d a b c -> 3
> GET d -> "\xb0\x0f\x00"
> BITOP ONE d a b c -> 3
> GET d -> "M\xf0\x01"
> BITOP ONE d b b b -> 1
> GET d -> "\x00"
> BITOP ONE d a -> 3
> GET d -> "\xf0\xff\x01"
> BITOP ANDOR d nokey a -> 3
> GET d -> "\x00\x00\x00"
> BITOP DIFF d nokey nokey2 -> 0
! del:d => DEL d
> BITOP DIFF d a -> -ERR BITOP DIFF must be called with at least two source keys.
> BITOP diff1 d a -> -ERR BITOP DIFF1 must be called with at least two source keys.
> BITOP ANDOR d a -> -ERR BITOP ANDOR must be called with at least two source keys.
"#,
    );
}

#[test]
fn a_string_grows_even_when_all_writes_fail() {
    check(
        r#"
> BITFIELD k OVERFLOW FAIL SET u8 0 256 -> [nil]
!  => BITFIELD k OVERFLOW FAIL SET u8 0 256
> GET k -> "\x00"
> BITFIELD k OVERFLOW FAIL SET u8 0 256 -> [nil]
> BITFIELD k OVERFLOW FAIL SET u8 100 256 -> [nil]
> STRLEN k -> 14
> BITFIELD k OVERFLOW FAIL SET u8 200 256 SET u8 0 0 -> [nil, 0]
! setbit:k => BITFIELD k OVERFLOW FAIL SET u8 200 256 SET u8 0 0
> STRLEN k -> 26
"#,
    );
}

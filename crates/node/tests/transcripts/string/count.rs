//! INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.

use crate::check::check;

#[test]
fn integers() {
    check(
        r#"
> INCR i -> 1
! incrby:i => INCR i
> INCRBY i 10 -> 11
! incrby:i => INCRBY i 10
> DECR i -> 10
! incrby:i => DECR i
> DECRBY i 3 -> 7
! incrby:i => DECRBY i 3
> DECRBY i -3 -> 10
! incrby:i => DECRBY i -3
> INCRBY i 0 -> 10
! incrby:i => INCRBY i 0
> GET i -> "10"
> INCRBY m -9223372036854775808 -> -9223372036854775808
> DECRBY n 9223372036854775807 -> -9223372036854775807
> DECR o -> -1
> INCRBY p 9223372036854775807 -> 9223372036854775807
> SET i 5 PX 100 -> OK
> INCR i -> 6
@advance 150
> INCR i -> 1
! expired:i => DEL i
! incrby:i => INCR i
"#,
    );
}

#[test]
fn integer_errors() {
    check(
        r#"
> SET i 9223372036854775807 -> OK
> INCR i -> -ERR increment or decrement would overflow
> INCRBY i 1 -> -ERR increment or decrement would overflow
> DECRBY i -1 -> -ERR increment or decrement would overflow
> DECR i -> 9223372036854775806
> SET i -9223372036854775808 -> OK
> DECR i -> -ERR increment or decrement would overflow
> DECRBY i 9223372036854775807 -> -ERR increment or decrement would overflow
> INCRBY i -9223372036854775808 -> -ERR increment or decrement would overflow
> GET i -> "-9223372036854775808"
> DECRBY i -9223372036854775808 -> -ERR decrement would overflow
> DECRBY nokey -9223372036854775808 -> -ERR decrement would overflow
> DECRBY i 9223372036854775808 -> -ERR value is not an integer or out of range
> DECRBY i abc -> -ERR value is not an integer or out of range
> INCRBY i 1.5 -> -ERR value is not an integer or out of range
> INCRBY i "" -> -ERR value is not an integer or out of range
> INCRBY i " 1" -> -ERR value is not an integer or out of range
> INCRBY i +1 -> -ERR value is not an integer or out of range
> MSET a abc b 010 c " 1" d "" e 12345678901234567890 f 1.0 -> OK
> INCR a -> -ERR value is not an integer or out of range
> INCRBY b 1 -> -ERR value is not an integer or out of range
> DECR c -> -ERR value is not an integer or out of range
> INCR d -> -ERR value is not an integer or out of range
> DECRBY e 1 -> -ERR value is not an integer or out of range
> INCR f -> -ERR value is not an integer or out of range
> SETRANGE long 20000 1 -> 20001
> INCR long -> -ERR value is not an integer or out of range
> INCR -> -ERR wrong number of arguments for 'incr' command
> DECR a b -> -ERR wrong number of arguments for 'decr' command
> INCRBY i -> -ERR wrong number of arguments for 'incrby' command
> DECRBY i -> -ERR wrong number of arguments for 'decrby' command
"#,
    );
}

#[test]
fn integers_in_edited_strings() {
    check(
        r#"
> SET i 1 -> OK
> APPEND i 2 -> 2
> INCR i -> 13
> SETRANGE i 0 9 -> 2
> DECR i -> 92
> GET i -> "92"
> INCRBYFLOAT i 1 -> "93"
> INCR i -> 94
"#,
    );
}

#[test]
fn floats() {
    check(
        r#"
> INCRBYFLOAT f 1.5 -> "1.5"
! incrbyfloat:f => SET f 1.5 KEEPTTL
> INCRBYFLOAT f 1.5 -> "3"
! incrbyfloat:f => SET f 3 KEEPTTL
> INCRBYFLOAT f -3 -> "0"
! incrbyfloat:f => SET f 0 KEEPTTL
> INCR f -> 1
> INCRBYFLOAT f 0 -> "1"
! incrbyfloat:f => SET f 1 KEEPTTL
> SET f 10.50 -> OK
> INCRBYFLOAT f 0.1 -> "10.6"
> SET f 5.0e3 -> OK
> INCRBYFLOAT f 2.0e2 -> "5200"
> SET f 3 -> OK
> INCRBYFLOAT f 1.100000000000000000000000001 -> "4.1"
> INCRBYFLOAT f -4.1 -> "0"
> INCRBYFLOAT f 0x10 -> "16"
> SET f 9007199254740993 -> OK
> INCRBYFLOAT f 1 -> "9007199254740994"
> SET f 0 -> OK
> INCRBYFLOAT f 1e100 -> ~~ "99999999999999999996693535322073426194*"
> STRLEN f -> 100
> SET f 1 -> OK
> INCRBYFLOAT f 1e4932 -> ~~ "1000000000000000000006018949387963891323*"
> STRLEN f -> 4933
> SET f 1.5 PX 100 -> OK
> INCRBYFLOAT f 1 -> "2.5"
! incrbyfloat:f => SET f 2.5 KEEPTTL
@advance 150
> GET f -> nil
! expired:f => DEL f
"#,
    );
}

#[test]
fn float_errors() {
    check(
        r#"
> INCRBYFLOAT f abc -> -ERR value is not a valid float
> INCRBYFLOAT f nan -> -ERR value is not a valid float
> INCRBYFLOAT f "" -> -ERR value is not a valid float
> INCRBYFLOAT f " 1" -> -ERR value is not a valid float
> INCRBYFLOAT f 1e5000 -> -ERR value is not a valid float
> INCRBYFLOAT f inf -> -ERR increment would produce NaN or Infinity
> INCRBYFLOAT f -inf -> -ERR increment would produce NaN or Infinity
> GET f -> nil
> MSET inf inf nan nan abc abc space "1 " empty "" big 1e4932 -> OK
> INCRBYFLOAT inf 1 -> -ERR increment would produce NaN or Infinity
> INCRBYFLOAT nan 1 -> -ERR value is not a valid float
> INCRBYFLOAT abc 1 -> -ERR value is not a valid float
> INCRBYFLOAT abc inf -> -ERR value is not a valid float
> INCRBYFLOAT space 1 -> -ERR value is not a valid float
> INCRBYFLOAT empty 1 -> -ERR value is not a valid float
> INCRBYFLOAT big 1e4932 -> -ERR increment would produce NaN or Infinity
> INCRBYFLOAT f -> -ERR wrong number of arguments for 'incrbyfloat' command
"#,
    );
}

//! The forms of sets, and when they change.

use crate::check::check;

#[test]
fn forms_and_their_limits() {
    check(
        r#"
> SADD i 3 1 2 -> 3
> OBJECT ENCODING i -> "intset"
> SMEMBERS i -> ["1", "2", "3"]
> SADD i 70000 -5 -> 2
> SMEMBERS i -> ["-5", "1", "2", "3", "70000"]
> SADD i 9223372036854775807 -9223372036854775808 -> 2
> SMEMBERS i -> ["-9223372036854775808", "-5", "1", "2", "3", "70000", "9223372036854775807"]
> SADD i 9223372036854775808 -> 1
> OBJECT ENCODING i -> "listpack"
> SMEMBERS i
["-9223372036854775808", "-5", "1", "2", "3", "70000", "9223372036854775807", "9223372036854775808"]
> SADD i a -> 1
> SREM i a 9223372036854775808 -> 2
> OBJECT ENCODING i -> "listpack"
> SADD p a -> 1
> OBJECT ENCODING p -> "listpack"
> TYPE p -> set
> SADD p 0123456789012345678901234567890123456789012345678901234567890123 -> 1
> OBJECT ENCODING p -> "listpack"
> SADD p 01234567890123456789012345678901234567890123456789012345678901234 -> 1
> OBJECT ENCODING p -> "hashtable"
> SCARD p -> 3
"#,
    );
}

#[test]
fn limits_of_integers() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i 1 2 3 -> 3
> OBJECT ENCODING i -> "intset"
> SADD i 3 -> 0
> OBJECT ENCODING i -> "intset"
> SADD i 4 -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 1 2 3 4 -> 4
> OBJECT ENCODING i -> "listpack"
> DEL i -> 1
> SADD i 1 2 3 4 5 6 -> 6
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 1 1 1 1 1 1 -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 1 2 -> 2
> SADD i 1 1 1 2 -> 0
> OBJECT ENCODING i -> "hashtable"
> SADD i 1 1 1 3 -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 1 2 3 -> 3
"#,
    );
}

#[test]
fn integers_that_meet_text() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i 1 2 3 -> 3
> SADD i a -> 1
> OBJECT ENCODING i -> "listpack"
> SMEMBERS i -> ["1", "2", "3", "a"]
> SADD i 4 -> 1
> OBJECT ENCODING i -> "listpack"
> SADD i 5 -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 12345 2 3 -> 3
> SADD i a -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i -1234 2 3 -> 3
> SADD i a -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i -123 2 3 -> 3
> SADD i abcde -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 1 abcde -> 2
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
"#,
    );
}

#[test]
fn limits_of_packed_members() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i a b c -> 3
> SADD i a a a a a a -> 0
> OBJECT ENCODING i -> "hashtable"
> SADD i a a a a a d -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i a b c d e -> 5
> OBJECT ENCODING i -> "listpack"
> SADD i a -> 0
> OBJECT ENCODING i -> "listpack"
> SADD i f -> 1
> OBJECT ENCODING i -> "hashtable"
> SREM i a b c d -> 4
> OBJECT ENCODING i -> "hashtable"
> SMEMBERS i -> ~~ \["?", "?"]
> DEL i -> 1
> SADD i 1 2 3 -> 3
"#,
    );
}

#[test]
fn limits_that_were_lowered() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i 1 2 3 -> 3
> CONFIG SET set-max-intset-entries 2 -> OK
> SADD i 3 -> 0
> OBJECT ENCODING i -> "intset"
> SADD i 4 -> 1
> OBJECT ENCODING i -> "hashtable"
> CONFIG SET set-max-intset-entries 0 -> OK
> DEL i -> 1
> SADD i 1 -> 1
> OBJECT ENCODING i -> "listpack"
> SADD i 2 -> 1
> OBJECT ENCODING i -> "listpack"
> CONFIG SET set-max-listpack-entries 0 -> OK
> SADD i 3 -> 1
> OBJECT ENCODING i -> "hashtable"
> DEL i -> 1
> SADD i 3 -> 1
> OBJECT ENCODING i -> "hashtable"
> SREM i 3 -> 1
> EXISTS i -> 0
> CONFIG SET set-max-intset-entries 2 set-max-listpack-entries 1 -> OK
> SADD i 1 2 -> 2
> OBJECT ENCODING i -> "intset"
> SADD i a -> 1
> OBJECT ENCODING i -> "hashtable"
"#,
    );
}

#[test]
fn forms_of_unions() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i2 1 2 -> 2
> SADD i3 3 4 5 -> 3
> SADD p a b -> 2
> SADD big a b c d e f g h -> 8
> OBJECT ENCODING big -> "hashtable"
> SADD bigi 1 2 3 4 5 6 7 8 -> 8
> OBJECT ENCODING bigi -> "hashtable"
> SADD long abcde a -> 2
> OBJECT ENCODING long -> "hashtable"
> SUNIONSTORE d i2 i2 -> 2
> OBJECT ENCODING d -> "intset"
> SUNIONSTORE d i2 i3 -> 5
> OBJECT ENCODING d -> "hashtable"
> SUNIONSTORE d i2 p -> 4
> OBJECT ENCODING d -> "listpack"
> SUNIONSTORE d i3 p -> 5
> OBJECT ENCODING d -> "listpack"
> SUNIONSTORE d i3 big -> 11
> OBJECT ENCODING d -> "hashtable"
> SUNIONSTORE d p long -> 3
> OBJECT ENCODING d -> "hashtable"
> SUNIONSTORE d bigi -> 8
> OBJECT ENCODING d -> "hashtable"
"#,
    );
}

#[test]
fn forms_of_intersections() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i3 3 4 5 -> 3
> SADD p a b -> 2
> SADD big a b c d e f g h -> 8
> SADD bigi 1 2 3 4 5 6 7 8 -> 8
> SADD long abcde a -> 2
> SINTERSTORE d bigi bigi -> 8
> OBJECT ENCODING d -> "hashtable"
> SINTERSTORE d bigi i3 -> 3
> OBJECT ENCODING d -> "intset"
> SADD bigi2 1 2 3 x y z k l m n -> 10
> SINTERSTORE d bigi bigi2 -> 3
> OBJECT ENCODING d -> "intset"
> SADD bigi2 4 -> 1
> SINTERSTORE d bigi bigi2 -> 4
> OBJECT ENCODING d -> "listpack"
> SADD bigi2 5 6 -> 2
> SINTERSTORE d bigi bigi2 -> 6
> OBJECT ENCODING d -> "hashtable"
> SINTERSTORE d big big -> 8
> OBJECT ENCODING d -> "hashtable"
> SINTERSTORE d big p -> 2
> OBJECT ENCODING d -> "listpack"
> SINTERSTORE d long big -> 1
> OBJECT ENCODING d -> "listpack"
> SINTERSTORE d long long -> 2
> OBJECT ENCODING d -> "hashtable"
"#,
    );
}

#[test]
fn forms_of_differences() {
    check(
        r#"
> CONFIG SET set-max-intset-entries 3 set-max-listpack-entries 5 set-max-listpack-value 4 -> OK
> SADD i3 3 4 5 -> 3
> SADD p a b -> 2
> SADD big a b c d e f g h -> 8
> SADD bigi 1 2 3 4 5 6 7 8 -> 8
> SDIFFSTORE d bigi i3 -> 5
> OBJECT ENCODING d -> "hashtable"
> SDIFFSTORE d big i3 -> 8
> OBJECT ENCODING d -> "hashtable"
> SDIFFSTORE d big p -> 6
> OBJECT ENCODING d -> "hashtable"
> SADD most a b c d e f g -> 7
> SDIFFSTORE d big most -> 1
> OBJECT ENCODING d -> "listpack"
> SDIFFSTORE d big p p p p p p p p -> 6
> OBJECT ENCODING d -> "hashtable"
> SADD q c -> 1
> SADD r d -> 1
> SADD t e -> 1
> SDIFFSTORE d big p q r t -> 3
> OBJECT ENCODING d -> "hashtable"
> SMEMBERS p -> ["a", "b"]
> SADD moreints 4 5 6 7 8 -> 5
> SDIFFSTORE d bigi moreints -> 3
> OBJECT ENCODING d -> "intset"
> SADD j1 4 -> 1
> SADD j2 5 -> 1
> SADD j3 6 -> 1
> SADD j4 7 8 -> 2
> SDIFFSTORE d bigi j1 j2 j3 j4 -> 3
> OBJECT ENCODING d -> "hashtable"
> SMEMBERS d -> ~~ \["?", "?", "?"]
"#,
    );
}

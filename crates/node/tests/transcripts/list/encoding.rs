//! The encodings of a list, and commands on keys of any type.

use crate::check::check;

#[test]
fn forms_by_elements() {
    check(
        r#"
> CONFIG SET list-max-listpack-size 4 -> OK
> RPUSH l a b c d -> 4
> OBJECT ENCODING l -> "listpack"
> RPUSH l e -> 5
> OBJECT ENCODING l -> "quicklist"
> LRANGE l 0 -1 -> ["a", "b", "c", "d", "e"]
> LPUSH l 1 2 3 4 -> 9
> LRANGE l 0 -1 -> ["4", "3", "2", "1", "a", "b", "c", "d", "e"]
> LINSERT l AFTER b x -> 10
> LINSERT l BEFORE b y -> 11
> LINDEX l 6 -> "b"
> LINDEX l -4 -> "x"
> LSET l 4 changed -> OK
> LPOS l e -> 10
> LPOS l 1 RANK -1 -> 3
> LREM l 0 x -> 1
> LRANGE l 2 7 -> ["2", "1", "changed", "y", "b", "c"]
> LTRIM l 1 -2 -> OK
> LRANGE l 0 -1 -> ["3", "2", "1", "changed", "y", "b", "c", "d"]
> LPOP l -> "3"
> RPOP l 2 -> ["d", "c"]
> RPOPLPUSH l l -> "b"
> OBJECT ENCODING l -> "quicklist"
> LTRIM l 0 0 -> OK
> OBJECT ENCODING l -> "listpack"
> CONFIG SET list-max-listpack-size 1 -> OK
> RPUSH l 2 -> 2
> OBJECT ENCODING l -> "quicklist"
"#,
    );
}

#[test]
fn forms_by_bytes() {
    let big = "x".repeat(4000);
    // The largest list in an entry, which then has no room for another element.
    let limit = "x".repeat(8192);
    check(&format!(
        "
> RPUSH l {big} {big} -> 2
> OBJECT ENCODING l -> \"listpack\"
> RPUSH l {big} -> 3
> OBJECT ENCODING l -> \"quicklist\"
> RPOP l -> \"{big}\"
> OBJECT ENCODING l -> \"quicklist\"
> RPOP l -> \"{big}\"
> OBJECT ENCODING l -> \"listpack\"
> LSET l 0 {big}{big}{big} -> OK
> OBJECT ENCODING l -> \"quicklist\"
> RPUSH l small -> 2
> LINSERT l BEFORE small {big}{big}{big} -> 3
> LPOS l {big}{big}{big} RANK 2 -> 1
> LSET l 0 a -> OK
> LSET l 1 b -> OK
> OBJECT ENCODING l -> \"quicklist\"
> LRANGE l 0 -1 -> [\"a\", \"b\", \"small\"]
> CONFIG SET list-max-listpack-size 128 -> OK
> RPUSH m 1 -> 1
> LSET m 1 small -> -ERR index out of range
> OBJECT ENCODING m -> \"listpack\"
> LSET m 1 {limit} -> -ERR index out of range
> OBJECT ENCODING m -> \"quicklist\"
> LSET m 0 small -> OK
> OBJECT ENCODING m -> \"listpack\"
"
    ));
}

#[test]
fn replacements_by_long_elements() {
    let (long, large) = ("n".repeat(7000), "N".repeat(9000));
    check(&format!(
        "
> CONFIG SET list-max-listpack-size 4 -> OK
> RPUSH l 1 2 3 4 5 -> 5
> RPOP l -> \"5\"
# A chunk grows beyond its limit in bytes, and shrinks by its number of elements.
> LSET l 0 {long} -> OK
> LSET l 1 {long} -> OK
> OBJECT ENCODING l -> \"quicklist\"
> RPOP l 2 -> [\"4\", \"3\"]
> OBJECT ENCODING l -> \"listpack\"
# A large element has a chunk of its own, and so has its replacement.
> LSET l 1 {large} -> OK
> OBJECT ENCODING l -> \"quicklist\"
> LSET l 1 1 -> OK
> OBJECT ENCODING l -> \"quicklist\"
> LPOP l -> \"{long}\"
> OBJECT ENCODING l -> \"listpack\"
> LRANGE l 0 -1 -> [\"1\"]
"
    ));
}

#[test]
fn keys_of_any_type() {
    check(
        r#"
> RPUSH l a b c -> 3
> COPY l copy -> 1
! copy_to:copy => COPY l copy
> LPOP l -> "a"
> LRANGE copy 0 -1 -> ["a", "b", "c"]
> RENAME copy other -> OK
> LRANGE other 0 -1 -> ["a", "b", "c"]
> TYPE other -> list
> OBJECT ENCODING other -> "listpack"
> OBJECT REFCOUNT other -> 1
> SCAN 0 TYPE list COUNT 100 -> ~~ ?"0", ?"*", "*"??
> GET other -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SET other v -> OK
> LPUSH other a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> DEL l -> 1
> EXISTS l -> 0
"#,
    );
}

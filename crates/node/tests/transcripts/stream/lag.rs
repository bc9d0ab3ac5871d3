//! Progress of groups: `entries-read` and `lag`.

use crate::check::check;

#[test]
fn an_empty_stream() {
    check(
        r#"
> XGROUP CREATE s g $ MKSTREAM -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil,
   "lag", 0]]
> XADD s 1-0 a b -> "1-0"
> XDEL s 1-0 -> 1
> XINFO GROUPS s
[["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil,
   "lag", 0]]
> XGROUP CREATE s h 0 -> OK
> XGROUP CREATE s i 0 ENTRIESREAD 5 -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil,
   "lag", 0], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "0-0",
   "entries-read", nil, "lag", 0], ["name", "i", "consumers", 0, "pending", 0,
   "last-delivered-id", "0-0", "entries-read", 5, "lag", 0]]
"#,
    );
}

#[test]
fn reading_more_entries() {
    check(
        r#"
> XGROUP CREATE s g $ MKSTREAM -> OK
> XADD s 1-0 a b -> "1-0"
> XADD s 2-0 a b -> "2-0"
> XADD s 3-0 a b -> "3-0"
> XADD s 4-0 a b -> "4-0"
> XGROUP CREATE s h 2-0 -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", nil,
   "lag", 4], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "2-0",
   "entries-read", nil, "lag", nil]]
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["1-0", ["a", "b"]]]]]
> XREADGROUP GROUP h c COUNT 1 STREAMS s > -> [["s", [["3-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 1, "last-delivered-id", "1-0", "entries-read", 1,
   "lag", 3], ["name", "h", "consumers", 1, "pending", 1, "last-delivered-id", "3-0",
   "entries-read", nil, "lag", nil]]
> XREADGROUP GROUP h c COUNT 1 STREAMS s > -> [["s", [["4-0", ["a", "b"]]]]]
> XREADGROUP GROUP g c STREAMS s >
[["s", [["2-0", ["a", "b"]], ["3-0", ["a", "b"]], ["4-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "4-0", "entries-read", 4,
   "lag", 0], ["name", "h", "consumers", 1, "pending", 2, "last-delivered-id", "4-0",
   "entries-read", 4, "lag", 0]]
> XADD s 5-0 a b -> "5-0"
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "4-0", "entries-read", 4,
   "lag", 1], ["name", "h", "consumers", 1, "pending", 2, "last-delivered-id", "4-0",
   "entries-read", 4, "lag", 1]]
> XGROUP SETID s g 2-0 -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "2-0", "entries-read", nil,
   "lag", nil], ["name", "h", "consumers", 1, "pending", 2, "last-delivered-id", "4-0",
   "entries-read", 4, "lag", 1]]
> XGROUP SETID s g 1-0 -> OK
> XGROUP SETID s h 9-0 -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "1-0", "entries-read", nil,
   "lag", 4], ["name", "h", "consumers", 1, "pending", 2, "last-delivered-id", "9-0",
   "entries-read", nil, "lag", nil]]
"#,
    );
}

#[test]
fn deleted_entries_after_the_position() {
    check(
        r#"
> XADD s 1-0 a b -> "1-0"
> XADD s 2-0 a b -> "2-0"
> XADD s 3-0 a b -> "3-0"
> XADD s 4-0 a b -> "4-0"
> XADD s 5-0 a b -> "5-0"
> XGROUP CREATE s g 0 -> OK
> XDEL s 3-0 -> 1
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["1-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 1, "last-delivered-id", "1-0", "entries-read", nil,
   "lag", nil]]
> XREADGROUP GROUP g c COUNT 2 STREAMS s > -> [["s", [["2-0", ["a", "b"]], ["4-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 3, "last-delivered-id", "4-0", "entries-read", nil,
   "lag", nil]]
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["5-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "5-0", "entries-read", 5,
   "lag", 0]]
> XDEL s 1-0 2-0 -> 2
> XGROUP CREATE s h 1-0 -> OK
> XGROUP CREATE s i 4-0 -> OK
> XGROUP CREATE s j 0 -> OK
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "5-0", "entries-read", 5,
   "lag", 0], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "1-0",
   "entries-read", nil, "lag", 2], ["name", "i", "consumers", 0, "pending", 0,
   "last-delivered-id", "4-0", "entries-read", nil, "lag", 1], ["name", "j", "consumers", 0,
   "pending", 0, "last-delivered-id", "0-0", "entries-read", nil, "lag", 2]]
> XADD s 6-0 a b -> "6-0"
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 4, "last-delivered-id", "5-0", "entries-read", 5,
   "lag", 1], ["name", "h", "consumers", 0, "pending", 0, "last-delivered-id", "1-0",
   "entries-read", nil, "lag", 3], ["name", "i", "consumers", 0, "pending", 0,
   "last-delivered-id", "4-0", "entries-read", nil, "lag", 2], ["name", "j", "consumers", 0,
   "pending", 0, "last-delivered-id", "0-0", "entries-read", nil, "lag", 3]]
"#,
    );
}

#[test]
fn trimmed_entries() {
    check(
        r#"
> XADD s 1-0 a b -> "1-0"
> XADD s 2-0 a b -> "2-0"
> XADD s 3-0 a b -> "3-0"
> XADD s 4-0 a b -> "4-0"
> XGROUP CREATE s g 0 -> OK
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["1-0", ["a", "b"]]]]]
> XTRIM s MAXLEN 2 -> 2
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 1, "last-delivered-id", "1-0", "entries-read", 1,
   "lag", 2]]
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> [["s", [["3-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 2, "last-delivered-id", "3-0", "entries-read", 3,
   "lag", 1]]
> XTRIM s MINID 5-0 -> 2
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 2, "last-delivered-id", "3-0", "entries-read", 3,
   "lag", 0]]
> XREADGROUP GROUP g c STREAMS s > -> nil-array
> XADD s 6-0 a b -> "6-0"
> XREADGROUP GROUP g c STREAMS s > -> [["s", [["6-0", ["a", "b"]]]]]
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 3, "last-delivered-id", "6-0", "entries-read", 5,
   "lag", 0]]
"#,
    );
}

#[test]
fn a_count_beyond_its_range() {
    check(
        r#"
> XADD s 1-0 a b -> "1-0"
> XGROUP CREATE s g $ ENTRIESREAD 9223372036854775807 -> OK
> XADD s 2-0 a b -> "2-0"
> XREADGROUP GROUP g c NOACK STREAMS s > -> [["s", [["2-0", ["a", "b"]]]]]
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g c | XGROUP SETID s g 2-0 ENTRIESREAD -1
> XINFO GROUPS s
[["name", "g", "consumers", 1, "pending", 0, "last-delivered-id", "2-0", "entries-read",
   -9223372036854775808, "lag", -9223372036854775806]]
"#,
    );
}
